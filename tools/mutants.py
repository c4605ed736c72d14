"""Mutants: small changes of the code, each of which some test should notice; the score a module.

    python tools/mutants.py [--number 300] [--seed 0] [--code condgraph/engine] [TESTS ...]

A seeded sample of the changes that cosmic-ray knows (`<` for `<=`, `and` for `or`, a number one
larger, a loop that never runs) is made one after the other, in a copy of the tree. Each is tried
with the tests without servers that run the changed line, which a first run under `coverage` finds;
the copy and what it found are kept in `build/mutants` for the next time (`--fresh` makes them
anew). Changes of annotations are left out, since nothing runs them. Changes of functions are tried
in forks of one process (`mutants_forks.py`), others in a process each. A test that fails without
the change as well, as one may where forks are not what it expects, notices nothing. Needs the extra
`mutants`.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutants_forks import Forks

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "mutants"
TREE, DATA = PLACE / "tree", PLACE / "coverage"
#: The tests that failed in the run before.
FAILED = PLACE / "failed"
#: What cosmic-ray changes: families of its operators, of which one is taken at each place.
FAMILIES = {
    "comparison": "core/ReplaceComparisonOperator_",
    "arithmetic": "core/ReplaceBinaryOperator_",
    "unary": "core/ReplaceUnaryOperator_",
    "not": "core/AddNot",
    "and, or": ("core/ReplaceAndWithOr", "core/ReplaceOrWithAnd"),
    "truth": ("core/ReplaceTrueWithFalse", "core/ReplaceFalseWithTrue"),
    "number": "core/NumberReplacer",
    "loop": ("core/ReplaceBreakWithContinue", "core/ReplaceContinueWithBreak", "core/ZeroIterationForLoop"),
}
#: Pairs that are worth a change: `==` and `is` are the same of most things.
_SWAPS = {"Add_Sub", "Sub_Add", "Mul_Add", "FloorDiv_Mul", "Div_Mul", "Mod_FloorDiv", "BitAnd_BitOr", "BitOr_BitAnd", "Pow_Mul"}
_LANE = ["-m", "not service and not slow and not data", "-p", "no:cacheprovider", "-q"]
#: How many tests a mutant meets first; those that are left when none of these notices it.
_FIRST = 40


@dataclass(frozen=True)
class Mutant:
    """A change: the operator and how many it is of those in the module; where it begins."""

    module: str
    operator: str
    occurrence: int
    line: int
    family: str


def operators() -> dict[str, list[str]]:
    """The operators of each family."""
    from cosmic_ray import plugins

    names = sorted(plugins.operator_names())
    found = {family: [name for name in names if name.startswith(start)] for family, start in FAMILIES.items()}
    comparisons = found["comparison"]
    found["comparison"] = [name for name in comparisons if not name.endswith(("_Is", "_IsNot")) and "_Is_" not in name]
    found["comparison"] += [name for name in comparisons if name.endswith(("_Is_IsNot", "_IsNot_Is"))]
    found["arithmetic"] = [name for name in found["arithmetic"] if name.rpartition("Operator_")[2] in _SWAPS]
    return found


def annotated(text: str) -> set[tuple[int, int]]:
    """The places (line, column) of a module that lie in an annotation, which nothing runs."""
    spans: list[ast.AST] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.AnnAssign) or (isinstance(node, ast.arg) and node.annotation is not None):
            spans.append(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            spans.append(node.returns)
    return {
        (line, column)
        for span in spans
        for line in range(span.lineno, (span.end_lineno or span.lineno) + 1)  # type: ignore[attr-defined]
        for column in range(span.col_offset if line == span.lineno else 0, 400 if line != span.end_lineno else span.end_col_offset)  # type: ignore[attr-defined]
    }


def mutants(module: Path) -> Iterator[tuple[tuple[int, int, str], Mutant]]:
    """All changes of a module, each with its place and family."""
    from cosmic_ray import plugins
    from cosmic_ray.ast import ast_nodes, get_ast_from_path

    tree, barred = get_ast_from_path(str(module)), annotated(module.read_text("utf-8"))
    nodes = list(ast_nodes(tree))
    name = str(module.relative_to(TREE))
    for family, names in operators().items():
        for operator in names:
            kind = plugins.get_operator(operator)
            places = (place for node in nodes for place in kind().mutation_positions(node))
            for occurrence, (start, _) in enumerate(places):
                if (start[0], start[1]) not in barred:
                    yield (start[0], start[1], family), Mutant(name, operator, occurrence, start[0], family)


def sample(code: Path, number: int, seed: int) -> list[Mutant]:
    """Changes at places chosen by chance, each place as likely as any other."""
    places: dict[tuple[str, int, int, str], list[Mutant]] = defaultdict(list)
    for module in sorted(code.rglob("*.py")) if code.is_dir() else [code]:
        for (line, column, family), mutant in mutants(module):
            places[mutant.module, line, column, family].append(mutant)
    dice = random.Random(seed)
    chosen = dice.sample(sorted(places), min(number, len(places)))
    print(f"{len(places)} places of {code.relative_to(TREE)} can be changed; {len(chosen)} are (seed {seed})", flush=True)
    return [dice.choice(places[place]) for place in chosen]


def copied() -> None:
    """The tree as it is now, without what Git leaves out."""
    shutil.rmtree(TREE, ignore_errors=True)
    names = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, os.fsdecode(names).split("\0")):
        if (ROOT / name).is_file() and not (ROOT / name).is_symlink():
            (TREE / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, TREE / name)


def _environment() -> dict[str, str]:
    environment = os.environ | {"PYTHONPATH": f"{TREE}{os.pathsep}{Path(__file__).parent}", "PYTHONDONTWRITEBYTECODE": "1"}
    # The same examples each time: a mutant that lives should not do so by luck.
    return environment | {"CI": "1"}


def pytest(arguments: Sequence[str], seconds: float, *, covered: str | None = None) -> int | None:
    """Run tests in the copy: the exit status, None where they take longer; `covered` is what is
    watched.
    """
    before = [] if covered is None else ["coverage", "run", f"--data-file={DATA}", f"--source={covered}", "-m"]
    command = [sys.executable, "-m", *before, "pytest", *arguments]
    with (PLACE / "last.log").open("w") as log:
        process = subprocess.Popen(command, cwd=TREE, env=_environment(), stdout=log, stderr=log, start_new_session=True)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return None


def tests_of(code: str) -> dict[str, dict[int, list[str]]]:
    """For each module and line the tests that run it."""
    from coverage import CoverageData

    data = CoverageData(str(DATA))
    data.read()
    return {
        str(Path(path).relative_to(TREE)): {
            line: sorted(filter(None, tests)) for line, tests in data.contexts_by_lineno(path).items()
        }
        for path in data.measured_files()
        if path.startswith(str(TREE / code.removesuffix(".py")))
    }


def spread(tests: Sequence[str], number: int) -> list[str]:
    """So many of them, from all over."""
    return list(tests) if len(tests) <= number else [tests[i * len(tests) // number] for i in range(number)]


def noticed(mutant: Mutant, lines: dict[int, list[str]], seconds: float, forks: Forks) -> tuple[str, str]:
    """Whether some test notices a change ("killed", "survived", "no test"), and the change as text."""
    from cosmic_ray import plugins
    from cosmic_ray.mutating import mutate_code

    path = TREE / mutant.module
    text = path.read_text("utf-8")
    changed = mutate_code(text, plugins.get_operator(mutant.operator)(), mutant.occurrence) or text
    old, new = text.splitlines(), changed.splitlines()
    shown = "\n".join(f"    - {a.strip()}\n    + {b.strip()}" for a, b in zip(old, new, strict=False) if a != b)
    tests = [test for test in lines.get(mutant.line, []) if test in forks.known]
    if not tests:
        # Run while the module is imported, or by nobody: those that run anything of it.
        tests = spread(sorted({test for found in lines.values() for test in found}), 200)
    if not tests:
        return "no test", shown
    first = spread(tests, _FIRST)
    rest = sorted(set(tests) - set(first))
    alone = False
    for chosen in (first, rest):
        left = [test for test in chosen if test in forks.known]
        while left:
            end, test = _alone(path, changed, left, seconds) if alone else forks.run(path, changed, left, seconds)
            if end == "elsewhere":
                alone = True
                continue
            if end == "killed" and test and forks.run(path, None, [test], seconds)[0] != "survived":
                print(f"     fails without the change as well, and says nothing: {test}", flush=True)
                forks.known.discard(test)
                left = left[left.index(test) + 1 :]
                continue
            if end == "killed":
                return end, shown
            break
    return "survived", shown


def _alone(path: Path, changed: str, tests: Sequence[str], seconds: float) -> tuple[str, str]:
    """Whether a test in a process of its own notices what is changed in the file, and which."""
    text = path.read_text("utf-8")
    FAILED.unlink(missing_ok=True)
    (PLACE / "tests").write_text("\n".join(tests))
    try:
        path.write_text(changed, "utf-8")
        if pytest([*_LANE, "-p", "mutants", "-x", f"@{PLACE / 'tests'}"], seconds) == 0:
            return "survived", ""
    finally:
        path.write_text(text, "utf-8")
    return "killed", FAILED.read_text().splitlines()[0] if FAILED.exists() else ""


def report(found: list[tuple[Mutant, str, str]]) -> str:
    """The score of each module, and the changes that nothing noticed."""
    scores: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for mutant, end, _ in found:
        scores[mutant.module][0] += end == "killed"
        scores[mutant.module][1] += 1
    killed = sum(one for one, _ in scores.values())
    lines = ["| module | killed | of |", "| --- | ---: | ---: |"]
    lines += [f"| {name} | {one} | {of} |" for name, (one, of) in sorted(scores.items())]
    lines += [f"| all | {killed} | {len(found)} |", ""]
    for mutant, end, shown in found:
        if end != "killed":
            lines += [f"{mutant.module}:{mutant.line} {end} ({mutant.operator})", shown, ""]
    return "\n".join(lines)


def pytest_runtest_protocol(item: Any) -> None:
    """As a plugin of the first run: lines are noted with the test that runs them."""
    from coverage import Coverage

    if (current := Coverage.current()) is not None:
        current.switch_context(item.nodeid)


def pytest_runtest_logreport(report: Any) -> None:
    """As a plugin: tests that fail are noted."""
    if report.failed:
        with FAILED.open("a") as file:
            file.write(f"{report.nodeid}\n")


def main() -> None:
    """Make a sample of mutants, and say which live."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=300, help="how many changes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--code", default="condgraph/engine", help="the folder or module that is changed")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for the tests of one change; longer counts as killed")
    parser.add_argument("--fresh", action="store_true", help="copy the tree and find its tests anew")
    parser.add_argument("tests", nargs="*", default=["tests", "condgraph/engine"], help="the tests to choose from")
    options = parser.parse_args()
    PLACE.mkdir(parents=True, exist_ok=True)
    if options.fresh or not DATA.exists():
        copied()
        DATA.unlink(missing_ok=True)
        FAILED.unlink(missing_ok=True)
        # Watched, tests of times may fail; what fails without a change later on says nothing.
        if (status := pytest(["-p", "mutants", *_LANE, *options.tests], 3 * 3600, covered=options.code)) not in (0, 1):
            sys.exit(f"the tests cannot be run (status {status}), see {PLACE / 'last.log'}")
        if FAILED.exists():
            print(f"without a change these fail:\n{FAILED.read_text()}", flush=True)
    lines = tests_of(options.code)
    chosen = sample(TREE / options.code, options.number, options.seed)
    found = []
    command = [sys.executable, "-m", "pytest", *_LANE, *options.tests]
    with Forks(command, TREE, _environment(), PLACE / "forks.log") as forks:
        for at, mutant in enumerate(chosen, 1):
            begin = time.monotonic()
            end, shown = noticed(mutant, lines.get(mutant.module, {}), options.timeout, forks)
            found.append((mutant, end, shown))
            took = time.monotonic() - begin
            print(f"{at:4} {end:8} {took:5.1f} s  {mutant.module}:{mutant.line} {mutant.operator}", flush=True)
            if end != "killed":
                print(shown, flush=True)
    text = report(found)
    (PLACE / "report.md").write_text(text, "utf-8")
    (PLACE / "report.json").write_text(json.dumps([(vars(mutant), end) for mutant, end, _ in found], indent=1), "utf-8")
    print(text)


if __name__ == "__main__":
    main()
