"""Mutants: small changes of the code, each of which some test should notice; the score a module.

    python tools/mutants.py [--number 300] [--seed 0] [--code condgraph/engine] [--minutes 14] [TESTS ...]

A seeded sample of the changes that cosmic-ray knows (`<` for `<=`, `and` for `or`, a number one
larger, a loop that never runs) is made one after the other, in a copy of the tree. Changes of
annotations are left out, since nothing runs them. Each is tried with the tests without servers that
run the changed line: first those that noticed a change of the same module, then the quickest, until
one fails or `--seconds` of tests have passed. Changes of functions are tried in forks of one
process (`mutants_forks.py`), others in a process each. A test that fails without the change as well
notices nothing.

Which tests run a line is found once (`mutants_lines.py`), some files of tests at a time, and kept
in `build/mutants`; so are the results. A run that was ended, or whose `--minutes` are over, is gone
on with by the same command; `--again` tries what nothing noticed again, with tests written since.
Changed code is a new beginning. Needs Python 3.12 and the extra `mutants`.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutants_forks import Forks
from mutants_lines import CODE, FILE, Found

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "mutants"
TREE, LINES = PLACE / "tree", PLACE / "lines"
#: The tests that failed in the run before.
FAILED = PLACE / "failed"
#: For each file of tests its content's hash, and the run that found its lines.
FILES = PLACE / "files.json"
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
#: Files of tests whose lines are found in one run, of which the start costs as much as eight files of tests.
_AT_ONCE = 30
#: How many tests that noticed other changes of a module are tried first.
_FIRST = 30
#: How many tests a change meets that runs while the module is imported: each is a process.
_IMPORTED = 60


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
    """The places (line, column) of a module that lie in an annotation, or say what is imported for types
    alone: nothing runs them.
    """
    spans: list[ast.AST] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.AnnAssign) or (isinstance(node, ast.arg) and node.annotation is not None):
            spans.append(node.annotation)
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            spans.append(node)
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
    """The tree as it is now, without what Git leaves out; what is unchanged stays."""
    names = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True).stdout
    wanted = {name for name in filter(None, os.fsdecode(names).split("\0")) if (ROOT / name).is_file()}
    for path in [path for path in TREE.rglob("*.py") if str(path.relative_to(TREE)) not in wanted]:
        path.unlink()
    for name in wanted:
        source, copy = ROOT / name, TREE / name
        if not source.is_symlink() and not (copy.exists() and copy.read_bytes() == source.read_bytes()):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)


def _environment() -> dict[str, str]:
    environment = os.environ | {"PYTHONPATH": f"{TREE}{os.pathsep}{Path(__file__).parent}", "PYTHONDONTWRITEBYTECODE": "1"}
    # The same examples each time: a mutant that lives should not do so by luck.
    return environment | {"CI": "1"}


def pytest(arguments: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None) -> int | None:
    """Run tests in the copy: the exit status, None where they take longer."""
    command, said = [sys.executable, "-m", "pytest", *arguments], {**_environment(), **(environment or {})}
    with (PLACE / "last.log").open("w") as log:
        process = subprocess.Popen(command, cwd=TREE, env=said, stdout=log, stderr=log, start_new_session=True)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return None


def _hash(*paths: Path) -> str:
    found = hashlib.sha256()
    for path in paths:
        found.update(path.read_bytes())
    return found.hexdigest()


def lines_of(code: str, tests: Sequence[str]) -> Found:
    """The tests of each line, of which those are found that are not known yet."""
    known: dict[str, list[str]] = json.loads(FILES.read_text()) if FILES.exists() else {}
    files = sorted(
        str(path.relative_to(TREE))
        for name in tests
        for path in ([TREE / name] if (TREE / name).is_file() else (TREE / name).rglob("*.py"))
        if path.name.startswith("test_") or not name.startswith("tests")
    )
    now = {file: _hash(TREE / file) for file in files}
    left = [file for file in files if known.get(file, [""])[0] != now[file]]
    print(f"{len(files)} files of tests, of which the lines of {len(left)} are not known yet", flush=True)
    for at in range(0, len(left), _AT_ONCE):
        chosen, name = left[at : at + _AT_ONCE], f"{time.time_ns()}.json"
        watched = {FILE: str(LINES / name), CODE: code}
        # A test that fails without a change says nothing later on either; 5 is that there are none.
        status = pytest(["-p", "mutants_lines", *_LANE, *chosen], 1800, watched)
        if status not in (0, 1, 5):
            sys.exit(f"the tests of {', '.join(chosen)} cannot be run (status {status}), see {PLACE / 'last.log'}")
        known |= {file: [now[file], name] for file in chosen}
        FILES.write_text(json.dumps(known, indent=1))
    found, runs = Found(), defaultdict(set)
    for file in files:
        runs[known[file][1]].add(file)
    for name in sorted(runs):
        found.add(LINES / name, runs[name])
    return found


class Trials:
    """Changes are tried, one after the other; what noticed one is tried first on the next."""

    def __init__(self, found: Found, forks: Forks, seconds: float) -> None:
        self._found, self._forks, self._seconds = found, forks, seconds
        self._killers: dict[str, list[str]] = defaultdict(list)

    def noticed(self, mutant: Mutant) -> tuple[str, str]:
        """Whether some test notices a change ("killed", "survived", "no test"; "no code" where what
        comes of it is no Python, as of the `*` of a signature), and the change as text, with how many
        tests of how many were tried.
        """
        from cosmic_ray import plugins
        from cosmic_ray.mutating import mutate_code

        path = TREE / mutant.module
        text = path.read_text("utf-8")
        changed = mutate_code(text, plugins.get_operator(mutant.operator)(), mutant.occurrence) or text
        old, new = text.splitlines(), changed.splitlines()
        shown = "\n".join(f"    - {a.strip()}\n    + {b.strip()}" for a, b in zip(old, new, strict=False) if a != b)
        if not _compiles(changed):
            return "no code", shown
        every = self._ordered(mutant)
        tests, alone = self._within(every), False
        if not tests:
            return "no test", shown
        left = tests
        while left:
            end, test = self._alone(path, changed, left) if alone else self._forks.run(path, changed, left, self._bound(left))
            if end == "elsewhere":
                alone, left = True, left[:_IMPORTED]
                continue
            if end != "killed":
                break
            if test and self._forks.run(path, None, [test], self._bound([test]))[0] != "survived":
                print(f"     fails without the change as well, and says nothing: {test}", flush=True)
                self._forks.known.discard(test)
                left = left[left.index(test) + 1 :]
                continue
            killers = self._killers[mutant.module]
            if test:
                killers[:] = [test, *(one for one in killers if one != test)][:_FIRST]
            return end, shown
        return "survived", f"{shown}\n    ({len(left if alone else tests)} of {len(every)} tests)"

    def _ordered(self, mutant: Mutant) -> list[str]:
        lines = self._found.tests.get(mutant.module, {})
        tests = lines.get(mutant.line) or [test for found in lines.values() for test in found]
        known = sorted({test for test in tests if test in self._forks.known}, key=lambda test: (self._found.seconds[test], test))
        first = [test for test in self._killers[mutant.module] if test in known]
        return [*first, *(test for test in known if test not in first)]

    def _within(self, tests: Sequence[str]) -> list[str]:
        chosen: list[str] = []
        spent = 0.0
        for test in tests:
            spent += self._found.seconds[test] + 0.005
            if chosen and spent > self._seconds:
                break
            chosen.append(test)
        return chosen

    def _bound(self, tests: Sequence[str]) -> float:
        """Seconds of the processor that end a change which never ends."""
        return 10 + 4 * sum(self._found.seconds[test] for test in tests)

    def _alone(self, path: Path, changed: str, tests: Sequence[str]) -> tuple[str, str]:
        """Whether a test in a process of its own notices what is changed in the file, and which."""
        text = path.read_text("utf-8")
        FAILED.unlink(missing_ok=True)
        (PLACE / "tests").write_text("\n".join(tests))
        try:
            path.write_text(changed, "utf-8")
            if pytest([*_LANE, "-p", "mutants", "-x", f"@{PLACE / 'tests'}"], 60 + 10 * self._bound(tests)) == 0:
                return "survived", ""
        finally:
            path.write_text(text, "utf-8")
        return "killed", FAILED.read_text().splitlines()[0] if FAILED.exists() else ""


def _compiles(text: str) -> bool:
    try:
        compile(text, "changed", "exec")
    except SyntaxError:
        return False
    return True


def report(found: list[tuple[Mutant, str, str]]) -> str:
    """The score of each module, and the changes that nothing noticed; what is no Python counts not."""
    found = [one for one in found if one[1] != "no code"]
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
    parser.add_argument("--seconds", type=float, default=60, help="seconds of tests that are tried on one change")
    parser.add_argument("--minutes", type=float, default=600, help="when to stop; the same command goes on")
    parser.add_argument("--again", action="store_true", help="try what nothing noticed again: there are new tests, or more seconds")
    parser.add_argument("--fresh", action="store_true", help="forget what is kept")
    parser.add_argument("tests", nargs="*", default=["tests", "condgraph/engine"], help="the tests to choose from")
    options = parser.parse_args()
    if sys.version_info < (3, 12):
        sys.exit("Python 3.12 or later is needed: make mutants PYTHON=/path/to/python3.12")
    until = time.monotonic() + 60 * options.minutes
    copied()
    code = f"{options.code} {_hash(*sorted((TREE / 'condgraph').rglob('*.py')))}"
    if options.fresh or not (PLACE / "code").exists() or (PLACE / "code").read_text() != code:
        shutil.rmtree(LINES, ignore_errors=True)
        for kept in (FILES, *PLACE.glob("results-*.jsonl")):
            kept.unlink(missing_ok=True)
        (PLACE / "code").write_text(code)
    LINES.mkdir(exist_ok=True)
    found = lines_of(options.code, options.tests)
    chosen = sample(TREE / options.code, options.number, options.seed)
    results = PLACE / f"results-{options.number}-{options.seed}.jsonl"
    tried = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    ends = {Mutant(**mutant): (end, shown) for mutant, end, shown in tried}
    files = sorted({test.partition("::")[0] for test in found.seconds})
    command = [sys.executable, "-m", "pytest", *_LANE, *files]
    with Forks(command, TREE, _environment(), PLACE / "forks.log") as forks:
        trials = Trials(found, forks, options.seconds)
        for at, mutant in enumerate(chosen, 1):
            if time.monotonic() > until:
                print(f"{at - 1} of {len(chosen)} are tried; the same command goes on", flush=True)
                break
            if mutant in ends and (ends[mutant][0] in ("killed", "no code") or not options.again):
                continue
            begin = time.monotonic()
            end, shown = ends[mutant] = trials.noticed(mutant)
            with results.open("a") as file:
                file.write(json.dumps([vars(mutant), end, shown]) + "\n")
            print(f"{at:4} {end:8} {time.monotonic() - begin:5.1f} s  {mutant.module}:{mutant.line} {mutant.operator}", flush=True)
            if end not in ("killed", "no code"):
                print(shown, flush=True)
    text = report([(mutant, *ends[mutant]) for mutant in chosen if mutant in ends])
    (PLACE / "report.md").write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
