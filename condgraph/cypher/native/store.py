"""A database of others as a store: asked where it is, with one query a program. Nothing is written.

What it is taken for is a `Mapping`. Values are always those of the database; the mapping is read
again by what made it (`remap`), as its owner sees fit.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from condgraph.cypher.connection import Connection
from condgraph.cypher.layout.base import TARGET
from condgraph.cypher.native.exact import keys_of
from condgraph.cypher.native.ids import SOURCE
from condgraph.cypher.native.layout import NativeLayout
from condgraph.cypher.native.mapping import Mapping
from condgraph.cypher.native.schema import NativeSchema
from condgraph.cypher.queries import AskingStore
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.facts import Source
from condgraph.snapshot_store import SnapshotStore

if TYPE_CHECKING:
    from condgraph.cypher.compile.plan import Compiled
    from condgraph.cypher.native.names import NativeNames
    from condgraph.cypher.queries import Asked
    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.engine.store import Request
    from condgraph.patterns.matches import Matches

T = TypeVar("T")
#: Patterns are searched for in process, in databases of at most so many nodes and relationships.
MOST_PULLED: Final = 250_000
#: For so many seconds what was pulled is good for the next pattern.
KEPT: Final = 10.0


class NativeStore(AskingStore):
    """A database that condgraph did not write. `remap` gives the mapping of now, the same one as long
    as nothing speaks for another; `closer` the same with some properties counted (`native.exact`).
    """

    read_only = True

    def __init__(
        self,
        connection: Connection,
        mapping: Mapping,
        *,
        remap: Callable[[], Mapping] | None = None,
        closer: Callable[[Callable[[Mapping], Collection[str]]], Mapping] | None = None,
    ) -> None:
        super().__init__(connection, SOURCE, NativeLayout(mapping))
        self._schema, self._remap, self._look_closer = NativeSchema(mapping), remap, closer
        self._pulled: tuple[Mapping, float, Snapshot] | None = None

    def __repr__(self) -> str:
        return f"<NativeStore at {self.place}>"

    @property
    def mapping(self) -> Mapping:
        """What the database is taken for now."""
        if self._remap is not None:
            found = self._remap()
            if found is not self._schema.mapping:
                self._schema, self._layout = NativeSchema(found), NativeLayout(found)
        return self._schema.mapping

    def closer(self, keys: Callable[[Mapping], Collection[str]]) -> bool:
        """Have the properties of some keys counted over the whole database; whether that tells more."""
        before = self.mapping
        return self._look_closer is not None and self._look_closer(keys) is not before

    def _asked(self, request: Request) -> Asked:
        """What the properties of a program have is counted first, also beyond the samples."""
        self.closer(lambda mapping: unseen_in(request, mapping))
        while True:
            asked = super()._asked(request)
            # What an answer asks to explain itself is told by the keys that there are.
            if not request.program or not self.closer(partial(keys_of, asked.lowered.plan)):
                return asked

    @property
    def schema(self) -> NativeSchema:
        """What lowering knows."""
        assert self.mapping is self._schema.mapping
        return self._schema

    @property
    def content(self) -> str:
        """A name for the counts of the database; edits that keep all counts keep it."""
        return self.mapping.mark

    def names(self) -> NativeNames:
        """Names read from the database."""
        from condgraph.cypher.native.names import NativeNames

        return NativeNames(self.connection, self._schema, self._layout)  # type: ignore[arg-type]

    def _layout_for(self, plans: Sequence[Node]) -> NativeLayout:
        """Names are looked up first, by one query that is the same for all programs: said in each part
        of a query that needs them they are most of what the server plans.
        """
        nodes = [node for plan in plans for node in postorder(plan)]
        names = list(dict.fromkeys(name for node in nodes if isinstance(node, alg.ByName) for name in node.names))
        layout: NativeLayout = self.layout  # type: ignore[assignment]
        found = self.names().found(names) if names else {}
        return layout if found is None else layout.with_found(found)

    def _fetched(self, compiled: Compiled) -> list[dict[str, Any]]:
        """Nodes are described by one more query, which is the same for all programs, too."""
        rows = self.run(compiled)
        return self.names().described(rows)

    def run(self, compiled: Compiled) -> list[dict[str, Any]]:
        """The rows of a compiled query, which are maps, lists and plain values."""
        return self.connection.rows(compiled.text, compiled.parameters)

    def steady(self, ask: Callable[[], T]) -> T:
        """What `ask` gives: each query is of one state of the database."""
        return ask()

    @property
    def known_sources(self) -> tuple[Source, ...]:
        """The database itself."""
        return (Source(SOURCE, self.place, "neo4j"),)

    def match(self, pattern: Any, *, exact: bool = True, **options: Any) -> Matches:
        """The subgraphs nearest to a pattern, in process: the database is pulled for it, and again
        once its counts are others, or what was pulled is older than `KEPT` seconds. Raises
        `UnsupportedError` for a larger database.
        """
        if not exact:
            raise UnsupportedError(TARGET, ["an approximate index of a database that is not condgraph's"], hint="leave `exact` out")
        return SnapshotStore(self.pulled()).match(pattern, **options)

    def pulled(self) -> Snapshot:
        """The database in process, at most `KEPT` seconds old, where it is not too large for that."""
        mapping = self.mapping
        size = mapping.node_count + mapping.relationship_count
        if size > MOST_PULLED:
            raise UnsupportedError(
                TARGET,
                [f"patterns on {size:,} nodes and relationships that condgraph did not write"],
                hint=f"up to {MOST_PULLED:,} they are pulled for it; graph.snapshot() pulls any number, once",
            )
        now = time.monotonic()
        if self._pulled is None or self._pulled[0] is not mapping or now - self._pulled[1] > KEPT:
            self._pulled = mapping, now, self._read()[0]
        return self._pulled[2]

    # -- looking -----------------------------------------------------------------------------------

    def exists(self) -> bool:
        """A database that answers is there."""
        return True

    def sources(self) -> tuple[Source, ...]:
        """The database itself."""
        return self.known_sources

    def snapshot(self) -> Snapshot:
        """The whole database pulled into process; warns of relationships that are equal to others,
        each of which is one statement there.
        """
        snapshot, equal = self._read()
        if equal:
            said = "1 relationship is" if equal == 1 else f"{equal:,} relationships are"
            warnings.warn(
                f"{said} equal to another in ends, type and properties, and the same statement: "
                "the database itself counts each of them",
                stacklevel=3,
            )
        return snapshot

    def _read(self) -> tuple[Snapshot, int]:
        from condgraph.cypher.native.pull import pull

        # All of it is read: what texts are read as is counted over all of it, too.
        self.closer(lambda mapping: {*mapping.unseen, *mapping.keys})
        return pull(self.connection, self.mapping)


def unseen_in(request: Request, mapping: Mapping) -> list[str]:
    """The keys that no sample has, and that may stand in a program, in whatever spelling."""
    if not mapping.unseen:
        return []
    written = _folded(f"{request.program} {request.options}")
    return [key for key in mapping.unseen if _folded(key) in written]


def _folded(text: str) -> str:
    """A text without what other spellings of a name differ in."""
    return "".join(c for c in text.casefold() if c.isalnum())
