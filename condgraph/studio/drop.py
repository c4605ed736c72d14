"""Files that are dropped on the page: loaded into a scratch graph of their own, in a worker that has
no network, within bounds of time, memory and size.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any, Final

from condgraph.studio.answers import warned

#: Kinds of problems of records that are told.
_KINDS: Final = 100


def load(place: str, file: str, *, name: str, key: str | None, refs: list[str], beside: list[str]) -> dict[str, Any]:
    """Load one file into the graph in a folder; what was recognised and what was left out.

    Records that cannot be used are left out and reported. `key` and `refs` are options of tables. A
    table that refers to others of that graph for certain, or they to it, is loaded together with
    them: `beside` are their files.
    """
    import condgraph
    from condgraph.engine.errors import FormatError, OptionError
    from condgraph.loaders.fetch import fetched
    from condgraph.loaders.files import suffix_of
    from condgraph.loaders.folder.load import PARQUET, SUFFIXES, referring
    from condgraph.loaders.recognise import recognise

    path = Path(file)
    options: dict[str, Any] = {}
    try:
        with fetched(path) as there:
            recognised = recognise(there)
    except FormatError as error:
        # The page has no option for the format.
        raise FormatError(
            error.message, hint="tables (CSV, Excel, Parquet, JSON), RDF, triples, SQLite and graphs of JSON are"
        ) from None
    if key:
        options["key"] = key
    if refs:
        options["refs"] = refs
    known = set(recognised[0].format.options)
    if any(option not in known for option in options):
        raise OptionError(f"a file of the format {recognised[0].format.name!r} has no key or references", hint="leave them out")
    table = not options and suffix_of(path) in (*SUFFIXES, *PARQUET) and recognised[0].format.name in ("csv", "tsv", "parquet")
    joined, questions = referring([*map(Path, beside), path], {}) if table and beside else ([], [])
    with condgraph.open(place) as graph:
        if path in joined:
            again = {str(one) for one in joined}
            graph.unload(*(one.name for one in graph.status().sources if one.location in again))
            report = graph.load(joined, name="files", on_error="skip")
        else:
            report = graph.load(path, name=name, on_error="skip", **options)
        counts = dict(graph.status().counts)
    told = [*map(str, report.kinds), *(f"{one.name}, field {column!r}: {said}" for one, column, said in questions if column)]
    names = {file: name, **{one: Path(one).name for one in beside}}
    problems = [_without(one, names) for one in islice(told, _KINDS)]
    return {
        "sources": list(report.sources),
        "formats": list(report.formats),
        "statements": report.statements,
        "entities": report.entities,
        "skipped": report.skipped,
        "joins": list(report.joins),
        "problems": problems,
        "warnings": warned([_without(one, names) for one in report.warnings]),
        "seconds": report.seconds,
        "counts": counts,
        "table": table,
    }


def _without(text: str, names: dict[str, str]) -> str:
    for file, name in names.items():
        text = without(text, file, name)
    return text


def without(text: str, file: str, name: str) -> str:
    """Messages name a dropped file by its name, and do not say in which folder it was put."""
    return text.replace(file, name)
