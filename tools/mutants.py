"""Mutation testing: small changes of the code, each of which some test should detect; the score of each module.

    python tools/mutants.py [--number 300] [--seed 0] [--code condgraph/engine] [--minutes 14] [TESTS ...]

A seeded sample of cosmic-ray's changes (`<` for `<=`, `and` for `or`, a number increased by one, a loop that never
runs) is made one at a time, in a copy of the tree. Annotations are not changed, since they are never run. For each
change, the tests without servers that run the changed line are tried: first those that detected another change of the
same module, then the quickest, until one fails or `--seconds` of tests have passed. Changes of functions are tried in
forks of one process (`mutants_forks.py`), others in a process each. A test that also fails without the change does not
count.

The tests that run each line are recorded once (`mutants_lines.py`), several test files at a time, and stored in
`build/mutants` with the results. The same command continues a run that was stopped, or whose `--minutes` are over;
`--again` retries undetected changes with tests written since. Everything starts anew when the code has changed. Needs
Python 3.12 and the extra `mutants`.
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
#: The file with the tests that failed in the last run.
FAILED = PLACE / "failed"
#: For each test file, the hash of its content, and the run that recorded its lines.
FILES = PLACE / "files.json"
#: Families of cosmic-ray's operators; one operator is chosen at each place.
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
#: The replacements of arithmetic operators that are tried.
_SWAPS = {"Add_Sub", "Sub_Add", "Mul_Add", "FloorDiv_Mul", "Div_Mul", "Mod_FloorDiv", "BitAnd_BitOr", "BitOr_BitAnd", "Pow_Mul"}
_LANE = ["-m", "not service and not slow and not data", "-p", "no:cacheprovider", "-q"]
#: Test files in one run that records lines; the start of a run costs as much as eight test files.
_AT_ONCE = 30
#: The most tests that detected other changes of a module and are tried first.
_FIRST = 30
#: The most tests for a change that runs during import, which needs a process of its own.
_IMPORTED = 60


@dataclass(frozen=True)
class Mutant:
    """A change: the operator, its number among those in the module, and its line."""

    module: str
    operator: str
    occurrence: int
    line: int
    family: str


def operators() -> dict[str, list[str]]:
    """The operators of each family."""
    from cosmic_ray import plugins

    names = sorted(plugins.operator_names())
    result = {family: [name for name in names if name.startswith(start)] for family, start in FAMILIES.items()}
    comparisons = result["comparison"]
    result["comparison"] = [name for name in comparisons if not name.endswith(("_Is", "_IsNot")) and "_Is_" not in name]
    result["comparison"] += [name for name in comparisons if name.endswith(("_Is_IsNot", "_IsNot_Is"))]
    result["arithmetic"] = [name for name in result["arithmetic"] if name.rpartition("Operator_")[2] in _SWAPS]
    return result


def annotated(text: str) -> set[tuple[int, int]]:
    """Return the places (line, column) in a module within annotations or imports for types only, which are never run."""
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
    """Yield all changes of a module, each with its place and family."""
    from cosmic_ray import plugins
    from cosmic_ray.ast import ast_nodes, get_ast_from_path

    tree, excluded = get_ast_from_path(str(module)), annotated(module.read_text("utf-8"))
    nodes = list(ast_nodes(tree))
    name = str(module.relative_to(TREE))
    for family, names in operators().items():
        for operator in names:
            kind = plugins.get_operator(operator)
            places = (place for node in nodes for place in kind().mutation_positions(node))
            for occurrence, (start, _) in enumerate(places):
                if (start[0], start[1]) not in excluded:
                    yield (start[0], start[1], family), Mutant(name, operator, occurrence, start[0], family)


def sample(code: Path, number: int, seed: int) -> list[Mutant]:
    """Return changes at random places, each place equally likely."""
    places: dict[tuple[str, int, int, str], list[Mutant]] = defaultdict(list)
    for module in sorted(code.rglob("*.py")) if code.is_dir() else [code]:
        for (line, column, family), mutant in mutants(module):
            places[mutant.module, line, column, family].append(mutant)
    dice = random.Random(seed)
    chosen = dice.sample(sorted(places), min(number, len(places)))
    print(f"{len(places)} places of {code.relative_to(TREE)} can be changed; {len(chosen)} are (seed {seed})", flush=True)
    return [dice.choice(places[place]) for place in chosen]


def copied() -> None:
    """Copy the working tree, without what Git ignores; unchanged files are not copied again."""
    names = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True).stdout
    names_to_copy = {name for name in filter(None, os.fsdecode(names).split("\0")) if (ROOT / name).is_file()}
    for path in [path for path in TREE.rglob("*.py") if str(path.relative_to(TREE)) not in names_to_copy]:
        path.unlink()
    for name in names_to_copy:
        source, copy = ROOT / name, TREE / name
        if not source.is_symlink() and not (copy.exists() and copy.read_bytes() == source.read_bytes()):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)


def _environment() -> dict[str, str]:
    environment = os.environ | {"PYTHONPATH": f"{TREE}{os.pathsep}{Path(__file__).parent}", "PYTHONDONTWRITEBYTECODE": "1"}
    # The same examples each time, so that no mutant survives by chance.
    return environment | {"CI": "1"}


def pytest(arguments: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None) -> int | None:
    """Run tests in the copy; return the exit status, or None if they take longer than `seconds`."""
    command, variables = [sys.executable, "-m", "pytest", *arguments], {**_environment(), **(environment or {})}
    with (PLACE / "last.log").open("w") as log:
        process = subprocess.Popen(command, cwd=TREE, env=variables, stdout=log, stderr=log, start_new_session=True)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return None


def _hash(*paths: Path) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def lines_of(code: str, tests: Sequence[str]) -> Found:
    """Return the tests of each line of the code, after recording those of new or changed test files."""
    known: dict[str, list[str]] = json.loads(FILES.read_text()) if FILES.exists() else {}
    files = sorted(
        str(path.relative_to(TREE))
        for name in tests
        for path in ([TREE / name] if (TREE / name).is_file() else (TREE / name).rglob("*.py"))
        if path.name.startswith("test_") or not name.startswith("tests")
    )
    hashes = {file: _hash(TREE / file) for file in files}
    unknown = [file for file in files if known.get(file, [""])[0] != hashes[file]]
    print(f"{len(files)} files of tests, of which the lines of {len(unknown)} are not known yet", flush=True)
    for at in range(0, len(unknown), _AT_ONCE):
        batch, name = unknown[at : at + _AT_ONCE], f"{time.time_ns()}.json"
        variables = {FILE: str(LINES / name), CODE: code}
        # A test that fails without a change is ignored later on; status 5 means that there are no tests.
        status = pytest(["-p", "mutants_lines", *_LANE, *batch], 1800, variables)
        if status not in (0, 1, 5):
            sys.exit(f"the tests of {', '.join(batch)} cannot be run (status {status}), see {PLACE / 'last.log'}")
        known |= {file: [hashes[file], name] for file in batch}
        FILES.write_text(json.dumps(known, indent=1))
    result, runs = Found(), defaultdict(set)
    for file in files:
        runs[known[file][1]].add(file)
    for name in sorted(runs):
        result.add(LINES / name, runs[name])
    return result


class Trials:
    """Tries changes one after the other; tests that detected one are tried first on the next."""

    def __init__(self, found: Found, forks: Forks, seconds: float) -> None:
        self._found, self._forks, self._seconds = found, forks, seconds
        self._killers: dict[str, list[str]] = defaultdict(list)

    def noticed(self, mutant: Mutant) -> tuple[str, str]:
        """Return whether a test detects a change ("killed", "survived", "no test"; "no code" if the result is not valid
        Python, such as a change of the `*` in a signature), and the change as text, with the number of tests that were
        tried.
        """
        from cosmic_ray import plugins
        from cosmic_ray.mutating import mutate_code

        path = TREE / mutant.module
        text = path.read_text("utf-8")
        changed = mutate_code(text, plugins.get_operator(mutant.operator)(), mutant.occurrence) or text
        old, new = text.splitlines(), changed.splitlines()
        difference = "\n".join(f"    - {a.strip()}\n    + {b.strip()}" for a, b in zip(old, new, strict=False) if a != b)
        if not _compiles(changed):
            return "no code", difference
        all_tests = self._ordered(mutant)
        tests, alone = self._within(all_tests), False
        if not tests:
            return "no test", difference
        remaining = tests
        while remaining:
            end, test = (
                self._alone(path, changed, remaining)
                if alone
                else self._forks.run(path, changed, remaining, self._bound(remaining))
            )
            if end == "elsewhere":
                alone, remaining = True, remaining[:_IMPORTED]
                continue
            if end != "killed":
                break
            if test and self._forks.run(path, None, [test], self._bound([test]))[0] != "survived":
                print(f"     fails without the change as well, and says nothing: {test}", flush=True)
                self._forks.known.discard(test)
                remaining = remaining[remaining.index(test) + 1 :]
                continue
            killers = self._killers[mutant.module]
            if test:
                killers[:] = [test, *(killer for killer in killers if killer != test)][:_FIRST]
            return end, difference
        return "survived", f"{difference}\n    ({len(remaining if alone else tests)} of {len(all_tests)} tests)"

    def _ordered(self, mutant: Mutant) -> list[str]:
        lines = self._found.tests.get(mutant.module, {})
        tests = lines.get(mutant.line) or [test for tests_of_line in lines.values() for test in tests_of_line]
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
        """Return the seconds of processor time after which a change is considered endless."""
        return 10 + 4 * sum(self._found.seconds[test] for test in tests)

    def _alone(self, path: Path, changed: str, tests: Sequence[str]) -> tuple[str, str]:
        """Return whether a test in a process of its own detects the changed file, and which one."""
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
    """Return the score of each module, and the undetected changes; changes that are not valid Python do not count."""
    found = [result for result in found if result[1] != "no code"]
    scores: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for mutant, end, _ in found:
        scores[mutant.module][0] += end == "killed"
        scores[mutant.module][1] += 1
    killed = sum(count for count, _ in scores.values())
    lines = ["| module | killed | of |", "| --- | ---: | ---: |"]
    lines += [f"| {name} | {count} | {total} |" for name, (count, total) in sorted(scores.items())]
    lines += [f"| all | {killed} | {len(found)} |", ""]
    for mutant, end, difference in found:
        if end != "killed":
            lines += [f"{mutant.module}:{mutant.line} {end} ({mutant.operator})", difference, ""]
    return "\n".join(lines)


def pytest_runtest_logreport(report: Any) -> None:
    """As a pytest plugin: record the tests that fail."""
    if report.failed:
        with FAILED.open("a") as file:
            file.write(f"{report.nodeid}\n")


def main() -> None:
    """Try a sample of mutants, and report the survivors."""
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
        for stored in (FILES, *PLACE.glob("results-*.jsonl")):
            stored.unlink(missing_ok=True)
        (PLACE / "code").write_text(code)
    LINES.mkdir(exist_ok=True)
    found = lines_of(options.code, options.tests)
    chosen = sample(TREE / options.code, options.number, options.seed)
    results = PLACE / f"results-{options.number}-{options.seed}.jsonl"
    tried = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    ends = {Mutant(**mutant): (end, difference) for mutant, end, difference in tried}
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
            end, difference = ends[mutant] = trials.noticed(mutant)
            with results.open("a") as file:
                file.write(json.dumps([vars(mutant), end, difference]) + "\n")
            print(f"{at:4} {end:8} {time.monotonic() - begin:5.1f} s  {mutant.module}:{mutant.line} {mutant.operator}", flush=True)
            if end not in ("killed", "no code"):
                print(difference, flush=True)
    text = report([(mutant, *ends[mutant]) for mutant in chosen if mutant in ends])
    (PLACE / "report.md").write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
