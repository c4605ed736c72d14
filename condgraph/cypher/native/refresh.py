"""The mapping of an existing database, read again when its counts change."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

from condgraph.cypher.layout.schema import quote
from condgraph.cypher.native.choose import Typing
from condgraph.cypher.native.exact import closer, named_in, present
from condgraph.cypher.native.file import applied, read_file
from condgraph.cypher.native.introspect import SAMPLE, Counts, Texts, counts, look
from condgraph.cypher.native.mapping import Mapping, NodeType, RelationshipType
from condgraph.engine.bounds import check, left, wait_for, within
from condgraph.engine.errors import DeadlineError, OptionError

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection


T = TypeVar("T", NodeType, RelationshipType)
#: Seconds for which the counts are taken for unchanged.
LEASE: Final = 5.0
#: A database whose counts change all the time is looked at again after so many times as long as a
#: look takes, and at once where it has other labels or types than before.
PAUSE: Final = 50
#: Seconds that counting what some properties have may take, and no more than half of what a call has
#: left.
MOST_COUNTING: Final = 20.0
#: Nodes of a label that are looked through for two with one id.
_COUNTED: Final = 200_000


class Current:
    """The mapping of a database, kept up to date. `file` is the place of a mapping file."""

    def __init__(
        self,
        connection: Connection,
        typing: Typing,
        file: str | os.PathLike[str] | None = None,
        *,
        lease: float = LEASE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection, self._typing, self._lease, self._clock = connection, typing, lease, clock
        self._said: dict[str, Any] = {} if file is None else read_file(file)
        self._lock = Lock()
        self._found: Mapping | None = None
        self._counts: Counts | None = None
        #: What was guessed, without the file; what was sampled for it; answers of `_shared`.
        self._guess: Mapping | None = None
        self._texts: Texts = {}
        self._known: dict[tuple[str, str], bool] = {}
        #: When the counts were asked, when all was looked at, and how long that took.
        self._asked = self._looked = self._took = 0.0

    @property
    def age(self) -> float:
        """Seconds since all was looked at; infinite where it never was."""
        return float("inf") if self._found is None else self._clock() - self._looked

    def refresh(self) -> None:
        """Forget all, so that it is looked at again."""
        self._found = None

    def expire(self) -> None:
        """Let the counts be asked again, whatever the lease."""
        self._asked = float("-inf")

    def mapping(self) -> Mapping:
        """The mapping of now: the same object as long as nothing speaks for another one."""
        wait_for(self._lock)
        try:
            found = self._found
            if found is None:
                return self._look(first=self._counts is None)
            if self._clock() - self._asked <= self._lease:
                return found
            now = counts(self._connection)
            self._asked = self._clock()
            before = self._counts
            assert before is not None
            if now.mark == before.mark:
                return found
            same = now.labels.keys() == before.labels.keys() and now.types.keys() == before.types.keys()
            if not same or self._clock() - self._looked > PAUSE * self._took:
                return self._look(first=False)
            self._counts = now
            assert self._guess is not None
            self._guess, self._found = _recounted(self._guess, now), _recounted(found, now)
            return self._found
        finally:
            self._lock.release()

    def closer(self, keys: Callable[[Mapping], Collection[str]]) -> Mapping:
        """The mapping, with the properties of some keys counted over all nodes and relationships; the
        same object where there is nothing to count. What takes too much of the time that the call has
        left is not counted, and the mapping says so (`unsure`).
        """
        found = self.mapping()
        if not found.beyond:
            return found
        wanted = [key for key in keys(found) if key not in found.exact]
        if not wanted:
            return found
        wait_for(self._lock)
        try:
            guess = self._guess
            if guess is None or self._found is None:
                return found
            begin = self._clock()
            wanted = [key for key in wanted if key not in guess.exact]
            guess = self._counted(guess, wanted)
            self._guess = guess
            self._found = self._applied(replace(guess, mark=self._found.mark))
            self._took += self._clock() - begin
            return self._found
        finally:
            self._lock.release()

    def _counted(self, guess: Mapping, wanted: Sequence[str]) -> Mapping:
        """A guess with some keys counted, as far as there is time; those that nothing has are no longer
        unseen.
        """
        rest = left()
        with within(MOST_COUNTING if rest is None else min(MOST_COUNTING, rest / 2)):
            try:
                unseen = [key for key in wanted if key in guess.unseen]
                there = present(self._connection, guess, unseen) if unseen else []
                guess = replace(guess, unseen=tuple(key for key in guess.unseen if key not in unseen or key in there))
                for key in wanted:
                    if key in there or key not in unseen:
                        guess = closer(self._connection, guess, [key], self._texts, self._typing)
            except DeadlineError:
                pass
        check()
        late = [key for key in wanted if key not in guess.exact and (key not in unseen or key in guess.unseen)]
        return replace(guess, exact=guess.exact | frozenset(wanted), unsure=guess.unsure | frozenset(late))

    def _look(self, *, first: bool) -> Mapping:
        begin, self._texts, self._known = self._clock(), {}, {}
        guess = look(self._connection, self._typing, self._texts)
        # Properties that a file names may be beyond the samples.
        named = named_in(self._said, guess)
        self._guess = self._counted(guess, named) if named else guess
        try:
            found = self._applied(self._guess)
        except OptionError as error:
            if first:
                raise
            # It was good when the graph was opened. The database lost what it names.
            raise OptionError(f"the database has changed: {error.message}", hint=error.hint, candidates=error.candidates) from None
        self._counts = Counts(
            {node.label: node.count for node in found.nodes if node.label},
            {one.type: one.count for one in found.relationships},
            *(found.node_count, found.relationship_count, found.mark),
        )
        self._found, self._asked = found, self._clock()
        self._looked, self._took = self._asked, self._asked - begin
        return found

    def _applied(self, guess: Mapping) -> Mapping:
        return applied(self._said, guess, self._texts, self._shared)

    def _shared(self, label: str, key: str) -> bool:
        """Whether two nodes of a label have the same value of a property: of all of them where they
        are not too many, else of the sample.
        """
        if (label, key) not in self._known:
            self._known[label, key] = self._doubled(label, key)
        return self._known[label, key]

    def _doubled(self, label: str, key: str) -> bool:
        most = _COUNTED if (self._known_count(label)) <= _COUNTED else SAMPLE
        text = (
            f"MATCH (n:{quote(label)}) WITH n LIMIT {most} WITH toStringOrNull(n.{quote(key)}) AS v WHERE v IS NOT NULL "
            "WITH v, count(*) AS times WHERE times > 1 RETURN v LIMIT 1"
        )
        return bool(self._connection.read(text, {}))

    def _known_count(self, label: str) -> int:
        rows = self._connection.ask(f"MATCH (n:{quote(label)}) RETURN count(n) AS count", {})
        return int(rows[0]["count"])


def _recounted(found: Mapping, now: Counts) -> Mapping:
    """The same schema with other counts."""

    def grown(one: T, count: int) -> T:
        return replace(one, count=count, beyond=max(0, one.beyond + count - one.count))

    nodes = tuple(grown(node, now.labels.get(node.label, node.count)) for node in found.nodes)
    relationships = tuple(grown(one, now.types[one.type]) for one in found.relationships)
    counted = {"node_count": now.nodes, "relationship_count": now.relationships, "mark": now.mark}
    return replace(found, nodes=nodes, relationships=relationships, **counted)  # type: ignore[arg-type]
