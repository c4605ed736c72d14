"""The plain triples of a snapshot: statements, lists, memberships, and labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from condgraph.engine.errors import numbered
from condgraph.engine.terms import Terms, loads
from condgraph.sparql.layout import RDFS, TYPE
from condgraph.sparql.plain.labels import Labels
from condgraph.sparql.plain.statements import Statements
from condgraph.sparql.plain.terms import Quad, TermWriter

if TYPE_CHECKING:
    from condgraph.engine.snapshot.snapshot import Snapshot

_SUBCLASS: Final = f"<{RDFS}subClassOf>"


class Plain:
    """The plain triples of a snapshot. `everything`: those of sources that were no RDF, too. Without
    `star` statements about statements are reified, whatever the source had.

    `quads` gives each at least once; `warnings` is complete behind the last.
    """

    def __init__(self, snapshot: Snapshot, base: str, *, everything: bool = True, star: bool = True) -> None:
        self.snapshot, self._everything = snapshot, everything
        sources = [snapshot.source_of(i) for i in range(len(snapshot.arrays.get("src.name")))]
        self._terms: list[Terms | None] = [loads(one.terms) if one.terms else None for one in sources]
        self._write = TermWriter(base)
        self._statements = Statements(snapshot, self._write, self._terms, everything=everything, star=star)
        self._labels = Labels(snapshot, self._write, self._terms, everything=everything)

    @property
    def warnings(self) -> list[str]:
        """What could not be said, with how often."""
        return [f"{numbered(count, 'statement', 'statements')}: {what}" for what, count in sorted(self._statements.lost.items())]

    def quads(self) -> Iterator[Quad]:
        """All triples, with the graphs that they stood in."""
        # Behind the statements: what they imply, and the predicates in them, is known then.
        yield from self._statements.quads()
        yield from self._statements.lists()
        yield from self._members()
        yield from self._labels.quads()

    def lines(self) -> Iterator[str]:
        """The same as lines of N-Quads, without their line ends."""
        for one in self.quads():
            yield " ".join(part for part in (*one, ".") if part)

    def _members(self) -> Iterator[Quad]:
        get, snapshot = self.snapshot.arrays.get, self.snapshot
        for prefix, first, second, predicate in (("mem", "e", "c", TYPE), ("sub", "c", "p", _SUBCLASS)):
            columns = [get(f"{prefix}.{name}").tolist() for name in (first, second, "src", "row")]
            for left, right, source, row in zip(*columns, strict=True):
                terms, one, other = self._terms[source], snapshot.ident(left), snapshot.ident(right)
                if (terms is not None or self._everything) and (source, row, one, other) not in self._statements.implied:
                    yield Quad(self._write.node(one, terms), predicate, self._write.node(other, terms))
