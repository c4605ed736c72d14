"""The constraint: which token may come next, so that a model writes well-formed chains and nothing
else (DoG, sections 2.2 and 2.3).

Nothing is built that grows with the graph. The triples that may follow are read part by part: heads
as sorted runs of ranks, one for each visited entity; relations and tails when their head, and their
relation, is written. What is not there is not allowed: a chain without an entity to begin at, a
token that no triple has, a graph without a neighbour all leave an empty set of tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.chains.lexicon import Loose, Ranked, Run
from condgraph.chains.place import Numbers, Place
from condgraph.chains.shared import Shared
from condgraph.chains.text import named
from condgraph.chains.tokens import Coder, Ids, coder_of
from condgraph.chains.walk import Triple, Walk, triple_of
from condgraph.engine.errors import ChainError
from condgraph.engine.facts import Entity

_OPEN: Final = 0
_HEAD: Final = 1
_RELATION: Final = 2
_TAIL: Final = 3
_COMPLETE: Final = 4
#: A run, the part of it that is still possible, and how many of its tokens were written.
_Item = tuple[Run, int, int, int]


class Chain:
    """A chain of triples as a model writes it, token by token.

    `allowed()` are the tokens that may come next; `advance(id)` says which came; when a triple is
    `complete`, `commit()` takes it into the chain. `done` says that no further triple may follow.
    A copy goes on by itself, so that beams may branch.
    """

    def __init__(self, walk: Walk, coder: Coder, shared: Shared | None = None) -> None:
        self.walk = walk
        self.coder = coder
        self._shared = shared or Shared(walk.place, coder)
        #: The tokens of the triple that is being written.
        self.ids: tuple[int, ...] = ()
        self._stage = _OPEN
        self._items: list[_Item] = []
        self._found: tuple[int, ...] = ()
        self._next: list[int] | None = None
        self._heads: list[_Item] | None = None

    @classmethod
    def of(cls, place: Place, query: Iterable[str | Entity], tokenizer: Any, *, max_steps: int, repeat: bool) -> Chain:
        """A chain that begins at entities."""
        return cls(Walk.of(place, query, max_steps, repeat), coder_of(tokenizer))

    # -- the protocol ------------------------------------------------------------------------------

    def allowed(self) -> NDArray[np.int32]:
        """The ids of the tokens that may come next, rising, int32; none where the triple is
        complete, and none where nothing may follow.
        """
        return np.array(self.next(), np.int32)

    def next(self) -> list[int]:
        """`allowed` as a list."""
        found = self._next
        if found is None:
            found = self._next = self._tokens()
        return found

    def advance(self, token: int) -> None:
        """Take a token; raises `ChainError`, and changes nothing, where it is not allowed."""
        token = int(token)
        self._enter()
        if self._stage == _OPEN:
            if token not in self.next():
                raise self._refused(token)
            self.ids = (*self.ids, token)
            if len(self.ids) == len(self.coder.open):
                self.opened(self.ids)
            else:
                self._next = None
            return
        items: list[_Item] = []
        for run, low, high, depth in self._items:
            low, high = run.narrow(low, high, depth, token)
            if low < high:
                items.append((run, low, high, depth + 1))
        if not items:
            raise self._refused(token)
        self.ids, self._items, self._next = (*self.ids, token), items, None
        if any(run.ends(low, depth) for run, low, _, depth in items):
            self._through([one for one in items if one[0].ends(one[1], one[3])])

    def opened(self, ids: Sequence[int]) -> None:
        """The sign that begins a triple was written, by these tokens: its head comes next."""
        if self.coder.how == "whole triples":
            for token in ids:
                self.advance(token)
            return
        self.ids, self._next = tuple(ids), None
        self._items = self._root()
        self._stage = _HEAD

    @property
    def complete(self) -> bool:
        """Whether a whole triple is written, which waits for `commit`."""
        return self._stage == _COMPLETE

    @property
    def found(self) -> tuple[int, ...]:
        """The statements of the triple that is complete; none before."""
        return self._found

    def commit(self) -> Triple:
        """Take the triple that is complete into the chain; its ends are visited from now on. Raises
        `ChainError` where none is.
        """
        if self._stage != _COMPLETE:
            raise ChainError("no triple is complete", hint="advance to the end of one first")
        triple = triple_of(self.walk.place, self._found)
        self.walk = self.walk.commit(triple)
        self._begin()
        return triple

    def copy(self) -> Chain:
        """The same chain, to be gone on with apart."""
        found = Chain.__new__(Chain)
        found.__dict__.update(self.__dict__)
        return found

    @property
    def done(self) -> bool:
        """Whether no further triple can be written."""
        return not self.ids and not self.next()

    @property
    def triples(self) -> tuple[Triple, ...]:
        """The triples so far."""
        return self.walk.triples

    @property
    def text(self) -> str:
        """The triples so far as they are written, one a line."""
        return self.walk.text

    @property
    def warnings(self) -> list[str]:
        """What was left out, in words."""
        found = list(dict.fromkeys(self.walk.place.warnings))
        names = self._shared.names
        if names is not None and names.unwritten:
            found.append(f"{names.unwritten} names cannot be written by this tokenizer, and stand in no chain")
        return found

    def forced(self, most: int = 256) -> list[int]:
        """The tokens from here on that have no alternative, without taking them."""
        ahead = self.copy()
        found: list[int] = []
        while len(found) < most and len(only := ahead.next()) == 1:
            found.append(only[0])
            ahead.advance(only[0])
        return found

    # -- how it goes on ----------------------------------------------------------------------------

    def _begin(self) -> None:
        self._stage, self.ids = _OPEN, ()
        self._items, self._found = [], ()
        self._next = self._heads = None

    def _refused(self, token: int) -> ChainError:
        many = len(self.next())
        return ChainError(f"token {token} is not allowed here", hint=f"allowed() has the {many} that are" if many else "none is")

    def _enter(self) -> None:
        """Whole triples begin with their first token."""
        if self._stage == _OPEN and self.coder.how == "whole triples":
            self._items, self._stage = self._root(), _HEAD

    def _tokens(self) -> list[int]:
        self._enter()
        if self._stage == _OPEN:
            return [self.coder.open[len(self.ids)]] if self._root() else []
        if self._stage == _COMPLETE:
            return []
        parts = [run.next(low, high, depth) for run, low, high, depth in self._items]
        return parts[0] if len(parts) == 1 else sorted(set().union(*parts))

    def _root(self) -> list[_Item]:
        if self._heads is None:
            runs = self._whole() if self.coder.how == "whole triples" else self._runs()
            self._heads = [(run, 0, len(run), 0) for run in runs if len(run)]
        return self._heads

    def _whole(self) -> list[Run]:
        triples = list(self.walk.following())
        sequences = self.coder.whole([str(one) for one in triples])
        seen: dict[Ids, int] = {}
        for one in sequences:
            seen[one] = seen.get(one, 0) + 1
        self._triples = triples
        return [Loose([one if seen[one] == 1 else () for one in sequences], range(len(triples)))]

    def _runs(self) -> list[Run]:
        """The heads that may come next: those of statements that lead to visited entities, and the
        visited entities themselves.
        """
        walk, shared = self.walk, self._shared
        if walk.full or not walk.visited:
            return []
        spent = self._spent()
        own = [one for one in walk.visited if one not in spent and len(walk.place.outgoing(one))]
        runs = [shared.leading(one) for one in walk.visited]
        if spent:
            runs = [self._without(run, one, spent) for run, one in zip(runs, walk.visited, strict=True)]
        # An entity itself is told from a statement by its sign.
        entities = np.array(own, np.int64)
        return [*runs, shared.heads(entities, -1 - entities)]

    def _spent(self) -> list[int]:
        """The heads of which every triple was used, where none may come again."""
        walk, place = self.walk, self.walk.place
        found = []
        for head in dict.fromkeys(place.ends(one)[0] for one in walk.used):
            if all(one in walk.used for one in self._of_head(head).tolist()):
                found.append(head)
        return found

    def _of_head(self, head: int) -> Numbers:
        """The statements of a head that touch what was visited."""
        walk, place = self.walk, self.walk.place
        if head in walk.visited:
            return place.outgoing(head)
        parts = [into[place.subjects(into) == head] for into in map(place.incoming, walk.visited)]
        return np.unique(np.concatenate(parts))

    def _without(self, run: Run, entity: int, spent: Sequence[int]) -> Run:
        if isinstance(run, Ranked):
            return run.without(spent)
        statements = self.walk.place.incoming(entity)
        subjects = self.walk.place.subjects(statements)
        keep = ~np.isin(subjects, spent)
        return self._shared.heads(subjects[keep], statements[keep])

    def _through(self, items: list[_Item]) -> None:
        """A head, a relation or a tail is whole: what follows it."""
        payload = [one for run, low, high, _ in items for one in run.of(low, high)]
        if self.coder.how == "whole triples":
            self._found, self._stage = self._triples[payload[0]].statements, _COMPLETE
        elif self._stage == _HEAD:
            self._items, self._stage = self._relations(payload), _RELATION
        elif self._stage == _RELATION:
            self._items, self._stage = self._tails(payload), _TAIL
        else:
            self._found, self._stage = tuple(sorted(payload)), _COMPLETE
            self._items = []

    def _relations(self, payload: Sequence[int]) -> list[_Item]:
        place = self.walk.place
        entities = {-1 - one for one in payload if one < 0}
        rest = np.array(sorted(one for one in payload if one >= 0), np.int64)
        if len(rest) and entities:
            rest = rest[~np.isin(place.subjects(rest), list(entities))]
        parts = [*map(place.outgoing, entities), *([rest] if len(rest) else [])]
        found = parts[0] if len(parts) == 1 and entities else np.unique(np.concatenate(parts))
        if self.walk.used:
            found = found[~np.isin(found, list(self.walk.used))]
        self._statements, self._kinds = found, place.relations(found)
        kinds = _distinct(self._kinds)
        run = self._shared.loose([" " + named(place.relation(one)) for one in kinds], self.coder.arrow, kinds)
        return [(run, 0, len(run), 0)] if len(run) else []

    def _tails(self, kinds: Sequence[int]) -> list[_Item]:
        place, shared = self.walk.place, self._shared
        mask = self._kinds == kinds[0] if len(kinds) == 1 else np.isin(self._kinds, kinds)
        statements = self._statements[mask]
        bare = place.bare(statements)
        one_head = len(statements) and bool((subjects := place.subjects(statements))[0] == subjects[-1])
        named_ahead = bare >= 0
        if shared.names is None or len(kinds) > 1 or not one_head:
            named_ahead = np.zeros(len(bare), bool)
        others = statements[~named_ahead].tolist()
        texts = [" " + place.tail(one) for one in others]
        shared.coder.learn(texts)
        groups: dict[Ids, list[int]] = {}
        for one, text in zip(others, texts, strict=True):
            groups.setdefault(shared.sequence(text, self.coder.close), []).append(one)
        for sequence in list(groups):
            if len({place.same(one) for one in groups[sequence]}) > 1:
                # One text that could be two triples is refused.
                del groups[sequence]
        runs: list[Run] = []
        if shared.names is not None and named_ahead.any():
            tails: Ranked = Ranked(shared.names.tails, bare[named_ahead], statements[named_ahead])
            for sequence in [one for one in groups if one]:
                if (at := _whole_of(tails, sequence)) is not None:
                    del groups[sequence]
                    tails = tails.without([place.ends(tails.of(at, at + 1)[0])[1]])
            runs.append(tails)
        pairs = [(sequence, one) for sequence, several in groups.items() for one in several]
        runs.append(Loose([one[0] for one in pairs], [one[1] for one in pairs]))
        return [(run, 0, len(run), 0) for run in runs if len(run)]


def _whole_of(run: Run, sequence: Ids) -> int | None:
    """Where a run has exactly this sequence."""
    low, high = 0, len(run)
    for depth, token in enumerate(sequence):
        if low >= high or run.ends(low, depth):
            return None
        low, high = run.narrow(low, high, depth, token)
    return low if low < high and run.ends(low, len(sequence)) else None


def _distinct(numbers: Numbers) -> list[int]:
    found: list[int] = np.unique(numbers).tolist() if len(numbers) > 64 else sorted(set(numbers.tolist()))
    return found
