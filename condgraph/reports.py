"""Reports of loads and changes, and the status of a graph."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from condgraph.engine.errors import numbered
from condgraph.engine.facts import Source
from condgraph.loaders.base import MAX_PROBLEMS, Problem, ProblemKind, Reading, gathered


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The result of a load. `str()` is one line.

    - `sources`, `formats`: the names of the loaded sources, and their formats in the same order
    - `statements`: the number of statements that were read, including those that the graph had already
    - `entities`: the number of entities and concepts that the graph has more than before
    - `added`: the same for each count of the graph
    - `skipped`: the number of records that were left out
    - `warned`: the number of warnings about records
    - `problems`: the first thousand problems with records, in order
    - `kinds`: all problems by kind, one line each
    - `warnings`: warnings about the load as a whole, as texts
    - `seconds`: its duration
    - `joins`: the columns that refer to rows of other tables, with the reasons
    """

    sources: tuple[str, ...]
    formats: tuple[str, ...]
    statements: int
    entities: int
    added: dict[str, int]
    skipped: int
    warned: int
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    seconds: float
    joins: tuple[str, ...] = ()
    kinds: tuple[ProblemKind, ...] = ()

    def __str__(self) -> str:
        named = ", ".join(self.sources[:3]) + (f" and {len(self.sources) - 3} more" if len(self.sources) > 3 else "")
        entities = numbered(abs(self.entities), "entity", "entities") + " less" * (self.entities < 0)
        text = f"loaded {named}: {numbered(self.statements, 'statement', 'statements')}, {entities} in {self.seconds:.2f} s"
        if self.joins:
            text += f"; {numbered(len(self.joins), 'column', 'columns')} joined"
        if self.skipped:
            text += f"; {numbered(self.skipped, 'record', 'records')} left out"
        if self.warned or self.warnings:
            text += f"; {numbered(self.warned + len(self.warnings), 'warning', 'warnings')}"
        return text


@dataclass(frozen=True, slots=True)
class UnloadReport:
    """The result of an unload: the names of the removed `sources`, and the decrease of each count of the graph
    (`removed`). What other sources state as well stays. `str()` is one line.
    """

    sources: tuple[str, ...]
    removed: dict[str, int]
    warnings: tuple[str, ...]
    seconds: float

    @property
    def statements(self) -> int:
        """The number of relations and attributes that were removed."""
        return self.removed.get("relations", 0) + self.removed.get("attributes", 0)

    @property
    def entities(self) -> int:
        """The number of entities and concepts that were removed."""
        return self.removed.get("entities", 0) + self.removed.get("concepts", 0)

    def __str__(self) -> str:
        named = ", ".join(self.sources[:3]) + (f" and {len(self.sources) - 3} more" if len(self.sources) > 3 else "")
        statements, entities = numbered(self.statements, "statement", "statements"), numbered(self.entities, "entity", "entities")
        return f"unloaded {named}: {statements}, {entities} less in {self.seconds:.2f} s"


@dataclass(frozen=True, slots=True)
class EditReport:
    """The result of a single change. `str()` lists what it removed and added.

    - `number`: the number of the change, which is also the row of the added items in the source `edits`
    - `kind`: "add", "retract" or "correct"
    - `by`, `at`: the author, and the time in UTC
    - `added`, `removed`: the added and removed items, as texts
    - `warnings`: warnings, as texts
    - `seconds`: its duration
    """

    number: int
    kind: str
    by: str
    at: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    warnings: tuple[str, ...]
    seconds: float

    def __str__(self) -> str:
        lines = [f"change {self.number}, by {self.by} at {self.at}, in {self.seconds * 1000:.1f} ms"]
        lines += [f"- {text}" for text in self.removed] + [f"+ {text}" for text in self.added]
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])


#: The counts in a status, in the order of display.
COUNTED: Final = ("entities", "concepts", "relations", "attributes", "qualifiers", "predicates", "sources")
#: The hint at the end of a status.
SEE_SCHEMA: Final = "`condgraph schema`, or graph.schema(), shows what is in it"


@dataclass(frozen=True, slots=True, repr=False)
class Status:
    """The place, counts and sources of a graph.

    - `place`, `graph`: where the graph is, and its name there
    - `generation`: the id of the current generation of a graph in a folder; otherwise a word such as "memory"
    - `counts`: the numbers of entities, concepts, relations, attributes, qualifiers, predicates and sources
    - `sources`: the sources in the order of their loads
    - `bytes`: the size of the columns; 0 for a graph on a server
    - `verified`: whether every byte was read and compared with its checksum
    - `others`: the names of all graphs in the same folder
    - `notes`: notes on the counts, such as which are estimates
    """

    place: str
    graph: str
    generation: str
    counts: dict[str, int]
    sources: tuple[Source, ...]
    bytes: int
    verified: bool = False
    others: tuple[str, ...] = field(default=())
    notes: tuple[str, ...] = field(default=())

    @property
    def statements(self) -> int:
        """The number of relations and attributes."""
        return self.counts.get("relations", 0) + self.counts.get("attributes", 0)

    def __repr__(self) -> str:
        return f"<Status of graph {self.graph!r} in {self.place}: {self.statements:,} statements; {SEE_SCHEMA}>"

    def __str__(self) -> str:
        lines = [f"graph {self.graph!r} in {self.place}, generation {self.generation}, {self.bytes:,} bytes"]
        lines.extend(f"{self.counts.get(name, 0):>12,} {name}" for name in COUNTED)
        if self.verified:
            lines.append("every byte is as it was written")
        lines.extend(self.notes)
        lines.append(SEE_SCHEMA)
        return "\n".join(lines)


class Built(NamedTuple):
    """The result of a build: the counts before and after, the number of statements read, and warnings."""

    before: dict[str, int]
    after: dict[str, int]
    statements: int
    warnings: list[str]


def report(
    sources: tuple[str, ...],
    formats: tuple[str, ...],
    built: Built,
    readings: list[Reading],
    begin: float,
) -> LoadReport:
    """Return the report of a load whose sources were read with `readings`. `begin` is its start by
    `time.perf_counter`.
    """
    before, after = built.before, built.after
    problems = [problem for reading in readings for problem in reading.problems]
    kinds: dict[tuple[bool, str], ProblemKind] = {}
    for reading in readings:
        for key, kind in reading.problems.kinds.items():
            known_kind = kinds.setdefault(key, ProblemKind(0, []))
            known_kind.count += kind.count
            known_kind.examples = [*known_kind.examples, *kind.examples][:2]
    counted_together = ("entities", "concepts")
    return LoadReport(
        sources,
        formats,
        built.statements,
        sum(after[name] for name in counted_together) - sum(before.get(name, 0) for name in counted_together),
        {name: count - before.get(name, 0) for name, count in after.items()},
        sum(reading.skipped for reading in readings),
        sum(reading.warned for reading in readings),
        tuple(problems[:MAX_PROBLEMS]),
        tuple(gathered(built.warnings)),
        time.perf_counter() - begin,
        tuple(join for reading in readings for join in reading.joins),
        tuple(kinds.values()),
    )
