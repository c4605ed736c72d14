"""Write the figures of all benchmarks as one page, `docs/reference/results.md`, from their JSON
files.

    python benchmarks/results.py [--run DATA] [--from DIR] [--to FILE] [--keep] [--check]

Each file of DIR (`benchmarks/out` by default) is one result:

    {"name": "kopl",                       the benchmark, `benchmarks/kopl.py`
     "title": "KoPL programs",             the heading of its section
     "command": "python benchmarks/...",   how it was made; optional
     "date": "2026-11-21",                 optional
     "machine": {"cpu": ..., ...},         what it was measured on
     "columns": ["program", "ms"],
     "rows": [["one hop", 0.2], ...],      a list, or an object by column, each
     "notes": ["...", ...]}                what the figures mean, and what they do not; optional

or a list of such, or an object with a list of them under "results", whose other parts apply to
each. "text" instead of "columns" and "rows" is shown unchanged. A file of another form is an
error that says what is missing. `--check` writes nothing and exits with 1 if the page differs. With
`--keep`, sections of the page that no file replaces stay unchanged. `--run DATA` first runs the
benchmarks that print (`PRINTING`), and stores their output.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
#: Sections in this order; others follow by name.
ORDER = (
    "kopl",
    "prepared",
    "scale",
    "wtq",
    "llm_query",
    "patterns",
    "generate",
    "links",
    "cypher",
    "first_runs",
    "sums",
    "joins",
    "native_tables",
    "matrix",
    "neo4j_store",
    "rdf",
    "rdf_endpoint",
    "sparql_stores",
    "endpoint",
)
#: Benchmarks that take the folder of data and print, without a file of their own.
PRINTING = ("wtq", "llm_query")
#: Parts of a machine that say where it is, not what it is.
PRIVATE = frozenset({"host", "hostname", "node", "user", "path", "directory", "folder"})
HEAD = """# Results

Measured figures. Each section has what was measured, the command that measures it, a table, and
what the figures mean, with goals that are missed and why.

- **Machine**: 2 cores of an AMD EPYC, 24 GiB of memory, Linux, Python 3.11.7 and NumPy 2.4.6,
  unless a section names another one. A *load* is the number of processes that wanted a core during
  the measurement; wall times at a load above 2 are too long.
- **CPU time** is the time that a process had a core. It depends little on the load.
- **Comparisons**: compare two engines within one run. Figures of different machines do not compare,
  and on one machine speed differs from run to run by some percent.
- **Commands**: `DIR` and `DATA` are folders with the data sets, which are not part of the package;
  the docstring of each benchmark says what they hold. A benchmark writes its figures to
  `benchmarks/out`, and `python benchmarks/results.py --keep` replaces the sections of this page
  that it finds there.
"""
#: The heading of the summary.
SHORT = "In short"
#: The sentences of the summary: the section that each is about, what it takes from there, and how
#: it reads.
SENTENCES = (
    (
        "KoPL programs",
        r"\| all (\d+) programs, total \| ([\d,.]+) \| ([\d,.]+) \| ([\d,.]+) ",
        "{0} KoPL programs take {2} ms, {3} times faster than the KoPL package ({1} ms).",
    ),
    (
        "KoPL programs",
        r"(\d+) of the (\d+) programs without a flag give the expected answer",
        "{0} of the {1} programs give the expected answer, without those that a quirk of that package decides.",
    ),
    (
        "Scale: loading and opening",
        r"\| triples \| (10,000,000) \| ([\d,.]+) \|(?:[^|]+\|){5} ([\d,.]+) ",
        "{0} triples load in {1} s and open in {2} ms.",
    ),
    ("Scale: asking", r"\| triples \| two hops \|(?:[^|]+\|){2} ([\d,.]+) ", "Two hops among 10 million statements take {0} ms."),
    (
        "LLM queries over WikiTableQuestions",
        r"(\d+) of (\d+) programs right \(([\d.]+) %\)",
        "{0} of {1} published LLM queries over WikiTableQuestions give the gold answer ({2} %).",
    ),
    (
        "Neo4j: one Cypher query a program",
        r"\| all \| (\d+) \| ([\d.]+) \| ([\d.]+) ",
        "A KoPL program on Neo4j takes {1} ms (median of {0}), {2} times `RETURN 1`.",
    ),
    (
        "The same answers on a server (neo4j)",
        r"\| all \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) ",
        "Of {0} programs, {3} give another answer on Neo4j than in process.",
    ),
    (
        "SPARQL: KoPL programs on the embedded store",
        r"\| all \| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d,]+) \| ([\d,]+) ",
        "{0} programs as SPARQL on the embedded store take {3} ms of CPU, in KQA Pro's form {4} ms.",
    ),
    (
        "Graph patterns: gold answers of gold patterns",
        r"\| MetaQA 3-hop dev \| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) ",
        "A pattern of three hops over MetaQA takes {3} ms and finds {1} % of the gold answers.",
    ),
    (
        "Questions from a graph",
        r"\| Wikidata with qualifiers \| ([\d,]+) \| ([\d.]+) ",
        "Making {0} questions from 14,304 entities of Wikidata takes {1} s of CPU, with their SPARQL and Cypher.",
    ),
    (
        "The SPARQL endpoint under load",
        r"\| ordinary, with runaways \| ([\d,]+) \|(?:[^|]+\|){3} ([\d.]+) ",
        "While a tenth of a server's queries never end, 99 % of the other {0} are answered within {1} ms.",
    ),
)
EMPTY = "\nNothing has been measured yet: run a benchmark of the folder `benchmarks`, then this command.\n"


class BadResultError(Exception):
    """A file that is no result; says which, and why."""


@dataclass(frozen=True, slots=True)
class Result:
    """One section of the page."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    machine: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    command: str = ""
    date: str = ""
    text: str = ""


def results_of(path: Path) -> Iterator[Result]:
    """The results in one file; raises `BadResultError`."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadResultError(f"{path.name} is not JSON: {error}") from None
    shared = {}
    if isinstance(found, dict) and isinstance(found.get("results"), list):
        shared = {key: value for key, value in found.items() if key != "results"}
        found = found["results"]
    for one in found if isinstance(found, list) else [found]:
        if not isinstance(one, dict):
            raise BadResultError(f"{path.name}: a result is an object")
        yield result_of({"name": path.stem, **shared, **one}, path.name)


def result_of(record: Mapping[str, Any], file: str) -> Result:
    """A record checked and made even; raises `BadResultError`."""
    wanted = ("title",) if "text" in record else ("title", "columns", "rows")
    missing = [key for key in wanted if key not in record]
    if missing:
        raise BadResultError(f"{file}: a result has {', '.join(missing)}, too")
    columns = tuple(map(str, record.get("columns", ())))
    rows = []
    for row in record.get("rows", ()):
        cells = tuple(row.get(column) for column in columns) if isinstance(row, Mapping) else tuple(row)
        if len(cells) != len(columns):
            raise BadResultError(f"{file}: a row has {len(cells)} cells, and there are {len(columns)} columns: {row!r}")
        rows.append(cells)
    notes = record.get("notes") or ()
    return Result(
        str(record["name"]),
        str(record["title"]),
        columns,
        tuple(rows),
        record.get("machine") or {},
        (notes,) if isinstance(notes, str) else tuple(map(str, notes)),
        str(record.get("command") or ""),
        str(record.get("date") or ""),
        str(record.get("text") or ""),
    )


def shown(value: Any) -> str:
    """A cell: thousands separated, three significant digits for what is no whole number."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1e15:
            return f"{int(value):,}"
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return " ".join(str(value).replace("|", "\\|").split())


def wrapped(text: str) -> str:
    """A paragraph, or an item of a list, in lines of at most 100 characters; words stay whole."""
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(" ".join(text.split()), 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def section(result: Result) -> str:
    """The Markdown of one result."""
    numeric = [
        all(row[at] is None or (isinstance(row[at], (int, float)) and not isinstance(row[at], bool)) for row in result.rows)
        for at in range(len(result.columns))
    ]
    parts = [f"## {result.title}", ""]
    machine = ", ".join(
        f"{key} {shown(value)}" for key, value in result.machine.items() if key not in PRIVATE and value is not None
    )
    told = [f"`{result.command}`" if result.command else "", result.date, machine]
    if any(told):
        parts += [wrapped("; ".join(part for part in told if part) + "."), ""]
    if result.columns:
        parts.append("| " + " | ".join(result.columns) + " |")
        parts.append("|" + "|".join("---:" if right else "---" for right in numeric) + "|")
        parts += ["| " + " | ".join(map(shown, row)) + " |" for row in result.rows]
    if result.text:
        lines = [textwrap.wrap(line, 130, subsequent_indent=" " * 8) or [""] for line in result.text.strip().splitlines()]
        parts += ["```text", *(part for line in lines for part in line), "```"]
    if result.notes:
        parts += ["", *(wrapped(f"- {note}") for note in result.notes)]
    return "\n".join(parts)


def page(results: Sequence[Result]) -> str:
    """The whole page."""
    rank = {name: at for at, name in enumerate(ORDER)}
    ordered = sorted(results, key=lambda result: (rank.get(result.name, len(ORDER)), result.name))
    return put_together([section(result).removeprefix("## ") for result in ordered]) if ordered else HEAD + EMPTY


def put_together(sections: Sequence[str]) -> str:
    """A page of these sections (each begins with its title), with the summary in front."""
    return HEAD + "".join(f"\n## {part}\n" for part in [*in_short(sections), *sections])


def in_short(sections: Sequence[str]) -> list[str]:
    """The summary as a section: a sentence for each figure that is there. None where there is
    none.
    """
    texts = {one.split("\n", 1)[0]: one for one in sections}
    lines = []
    for title, wanted, sentence in SENTENCES:
        found = re.search(wanted, texts.get(title, ""))
        if found is not None:
            anchor = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
            lines.append(wrapped(f"- {sentence.format(*found.groups())} [More](#{anchor})"))
    return ["\n".join([SHORT, "", *lines])] if lines else []


def kept(text: str, old: str) -> str:
    """A new page with those sections of the old one, in their old places, that it does not have
    itself.
    """
    new = {part.split("\n", 1)[0]: part.rstrip() for part in text.split("\n## ")[1:]}
    places = {part.split("\n", 1)[0]: part.rstrip() for part in old.split("\n## ")[1:]}
    for one in (new, places):
        one.pop(SHORT, None)
    parts = [new.pop(title, part) for title, part in places.items()] + list(new.values())
    return put_together(parts) if parts else text


def run(name: str, data: Path, to: Path) -> None:
    """Run a benchmark that prints, and keep what it prints as a result."""
    from machine import machine

    script = ROOT / "benchmarks" / f"{name}.py"
    about = (ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or name).splitlines()[0].rstrip(".")
    title, _, rest = about.partition(": ")
    ran = subprocess.run([sys.executable, script, data], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise BadResultError(f"{script.name} ended with {ran.returncode}: {ran.stderr.strip().splitlines()[-1:]}")
    record = {
        "name": name,
        "title": title.removesuffix(", by one command"),
        "command": f"python benchmarks/{script.name} DATA",
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "text": ran.stdout,
        "notes": [rest[:1].upper() + rest[1:] + "."] if rest else [],
    }
    to.mkdir(parents=True, exist_ok=True)
    (to / f"{name}.json").write_text(json.dumps(record, ensure_ascii=False, indent=1), encoding="utf-8")


def main() -> int:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    arguments.add_argument("--from", dest="source", type=Path, default=ROOT / "benchmarks" / "out", metavar="DIR")
    arguments.add_argument("--to", type=Path, default=ROOT / "docs" / "reference" / "results.md", metavar="FILE")
    arguments.add_argument("--run", type=Path, metavar="DATA", help=f"first run {', '.join(PRINTING)} on this folder of data")
    arguments.add_argument("--check", action="store_true", help="write nothing; exit with 1 where the page is another one")
    arguments.add_argument("--keep", action="store_true", help="sections that no file makes anew stay as they are")
    given = arguments.parse_args()
    try:
        for name in PRINTING if given.run is not None else ():
            run(name, given.run, given.source)
        text = page([result for path in sorted(given.source.glob("*.json")) for result in results_of(path)])
    except BadResultError as error:
        print(error, file=sys.stderr)
        return 1
    if given.keep and given.to.exists():
        text = kept(text, given.to.read_text(encoding="utf-8"))
    if given.check:
        return int(not given.to.exists() or given.to.read_text(encoding="utf-8") != text)
    given.to.write_text(text, encoding="utf-8")
    print(f"{given.to}: {len(text.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
