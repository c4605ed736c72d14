"""The constraint: which token may come next, so that a model writes well-formed chains alone (DoG, sections 2.2 and 2.3)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from condgraph.chains.place import ChainGraph, LocalPlace, Numbers
from condgraph.chains.text import entity_text, named
from condgraph.chains.tokens import Coder, Ids, coder_of
from condgraph.chains.walk import Triple, Walk, triple_of
from condgraph.engine.bounds import check
from condgraph.engine.errors import ChainError
from condgraph.engine.facts import Entity

# -- names as sorted token sequences ---------------------------------------------------------------
# Sorted token sequences, in which a prefix is a range: tries without nodes.
#
# The names of a graph in process are encoded and sorted once for each tokenizer (`Lexicon`); the
# triples that may follow are sorted arrays of their ranks. Other texts (values, names on servers) are
# encoded when they are reached (`UnorderedChoices`).


#: The most entities whose names are encoded ahead; names of larger graphs are encoded when reached.
MOST_INDEXED: Final = 1_000_000
_FEW: Final = 24
_TOGETHER: Final = 8192


class Run(Protocol):
    """Sorted sequences, none of which begins another one, each with its payload."""

    def __len__(self) -> int: ...

    def next(self, low: int, high: int, depth: int) -> list[int]:
        """The distinct tokens at a depth in a range, rising; none where the sequences end there."""
        ...

    def narrow(self, low: int, high: int, depth: int, token: int) -> tuple[int, int]:
        """The part of a range that has a token at a depth."""
        ...

    def ends(self, low: int, depth: int) -> bool:
        """Whether a sequence has no token at a depth."""
        ...

    def of(self, low: int, high: int) -> list[int]:
        """What the sequences of a range stand for."""
        ...


class UnorderedChoices:
    """Sequences that were encoded for this place in a chain. `payload` has one entry for each."""

    def __init__(self, sequences: Sequence[Ids], payload: Sequence[int]) -> None:
        order = sorted(range(len(sequences)), key=sequences.__getitem__)
        distinct: list[int] = []
        longer: Ids = ()
        for at in reversed(order):
            mine = sequences[at]
            # What has no tokens, or begins another one, cannot be told apart, and is left out.
            if mine and not (len(longer) > len(mine) and longer[: len(mine)] == mine):
                distinct.append(at)
                longer = mine
        distinct.reverse()
        self.sequences = [sequences[at] for at in distinct]
        self.payload = [payload[at] for at in distinct]

    def __len__(self) -> int:
        return len(self.sequences)

    def next(self, low: int, high: int, depth: int) -> list[int]:
        """The distinct tokens at a depth in a range."""
        result, at, all_of = [], low, self.sequences
        if len(all_of[low]) == depth:
            return []
        while at < high:
            token = all_of[at][depth]
            result.append(token)
            at = bisect_right(all_of, token, at, high, key=lambda item: item[depth])
        return result

    def narrow(self, low: int, high: int, depth: int, token: int) -> tuple[int, int]:
        """The part of a range that has a token at a depth."""
        all_of = self.sequences
        if high - low == 1:
            return low, low + (all_of[low][depth] == token)
        low = bisect_left(all_of, token, low, high, key=lambda item: item[depth])
        return low, bisect_right(all_of, token, low, high, key=lambda item: item[depth])

    def ends(self, low: int, depth: int) -> bool:
        """Whether a sequence has no token at a depth."""
        return len(self.sequences[low]) == depth

    def of(self, low: int, high: int) -> list[int]:
        """What the sequences of a range stand for."""
        return self.payload[low:high]


class Lexicon:
    """The names of all entities of a snapshot as token sequences with a close behind them: flat
    tokens, int32; offsets, int64; and the rank of each entity, int32, -1 where its name cannot be
    written.
    """

    def __init__(self, sequences: Sequence[Ids], suffix: Ids) -> None:
        size = len(sequences)
        counts = np.fromiter((len(sequence) + len(suffix) if sequence else 0 for sequence in sequences), np.int64, size)
        order = sorted(range(size), key=lambda item: (*sequences[item], *suffix))
        order = [item for item in order if sequences[item]]
        self.rank = np.full(size, -1, np.int32)
        self.rank[order] = np.arange(len(order), dtype=np.int32)
        self.offsets = np.zeros(len(order) + 1, np.int64)
        np.cumsum(counts[order], out=self.offsets[1:])
        self.flat = np.fromiter((token for item in order for token in (*sequences[item], *suffix)), np.int32, int(self.offsets[-1]))
        self.flat_view, self.offset_view, self._rank_view = self.flat.data, self.offsets.data, self.rank.data

    def of(self, entity: int) -> list[int]:
        """The tokens of an entity's name, with what follows it; the name can be written."""
        rank, offsets = self._rank_view[entity], self.offset_view
        return self.flat_view[offsets[rank] : offsets[rank + 1]].tolist()


class OrderedChoices:
    """Entities in the order of a lexicon. `payload` has one entry for each, int64."""

    def __init__(self, lexicon: Lexicon, entities: NDArray[np.int64], payload: NDArray[np.int64]) -> None:
        ranks = lexicon.rank.take(entities)
        order = np.argsort(ranks, kind="stable")
        order = order[np.searchsorted(ranks, 0, sorter=order) :]
        self._set(lexicon, ranks[order], payload[order])

    def _set(self, lexicon: Lexicon, ranks: NDArray[np.int32], payload: NDArray[np.int64]) -> None:
        self._lexicon, self.ranks, self.payload = lexicon, ranks, payload
        self._view, self._flat, self._offsets = self.ranks.data, lexicon.flat_view, lexicon.offset_view
        self._first: list[int] | None = None

    def __len__(self) -> int:
        return len(self.ranks)

    def next(self, low: int, high: int, depth: int) -> list[int]:
        """The distinct tokens at a depth in a range."""
        if depth == 0 and high - low == len(self.ranks):
            if self._first is None:
                self._first = self._next(low, high, 0)
            return self._first
        return self._next(low, high, depth)

    def _next(self, low: int, high: int, depth: int) -> list[int]:
        if self.ends(low, depth):
            return []
        view, flat, offsets = self._view, self._flat, self._offsets
        if high - low <= _FEW:
            result, last = [], -1
            for at in range(low, high):
                token = flat[offsets[view[at]] + depth]
                if token != last:
                    result.append(token)
                    last = token
            return result
        tokens = self._lexicon.flat.take(self._lexicon.offsets.take(self.ranks[low:high]) + depth)
        keep = np.flatnonzero(tokens[1:] != tokens[:-1])
        return [int(tokens[0]), *tokens[keep + 1].tolist()]

    def narrow(self, low: int, high: int, depth: int, token: int) -> tuple[int, int]:
        """The part of a range that has a token at a depth."""
        flat, offsets = self._flat, self._offsets
        if high - low == 1:
            return low, low + (flat[offsets[self._view[low]] + depth] == token)

        def key(rank: int) -> int:
            result: int = flat[offsets[rank] + depth]
            return result

        low = bisect_left(self._view, token, low, high, key=key)
        return low, bisect_right(self._view, token, low, high, key=key)

    def without(self, entities: Sequence[int]) -> OrderedChoices:
        """The same but for some entities."""
        keep = ~np.isin(self.ranks, self._lexicon.rank.take(np.array(entities, np.int64)))
        result = OrderedChoices.__new__(OrderedChoices)
        result._set(self._lexicon, self.ranks[keep], self.payload[keep])
        return result

    def place_of(self, entity: int) -> bool:
        """Whether an entity is here."""
        rank = int(self._lexicon.rank[entity])
        at = bisect_left(self._view, rank)
        return at < len(self._view) and self._view[at] == rank

    def ends(self, low: int, depth: int) -> bool:
        """Whether a sequence has no token at a depth."""
        rank = self._view[low]
        return bool(self._offsets[rank + 1] - self._offsets[rank] == depth)

    def of(self, low: int, high: int) -> list[int]:
        """What the entities of a range stand for."""
        result: list[int] = self.payload[low:high].tolist()
        return result


class Names:
    """The names of one snapshot for one tokenizer: as heads, with an arrow behind, and as tails,
    with a close.
    """

    def __init__(self, place: LocalPlace, coder: Coder) -> None:
        snapshot = place.snapshot
        texts = snapshot.texts.take(snapshot.entity_name)
        shared = snapshot.entity_name[1:] == snapshot.entity_name[:-1]
        alone = ~(np.concatenate([[False], shared]) | np.concatenate([shared, [False]]))[: len(texts)]
        ids = snapshot.texts.take(snapshot.entity_id)
        written = [" " + entity_text(*item) for item in zip(texts, ids, alone.tolist(), strict=True)]
        result: list[Ids] = []
        for at in range(0, len(written), _TOGETHER):
            check()
            result += coder.encode_many(written[at : at + _TOGETHER])
        closing = coder.closing
        result = [item if closing.isdisjoint(item) else () for item in result]
        again = _alike(result)
        # Some tokenizers give different names the same tokens; these are told apart by their ids.
        written = [" " + entity_text(texts[item], ids[item], False) for item in again]
        for member, sequence in zip(again, coder.encode_many(written), strict=True):
            result[member] = sequence if closing.isdisjoint(sequence) else ()
        for member in _alike(result):
            result[member] = ()
        self.heads, self.tails = Lexicon(result, coder.arrow), Lexicon(result, coder.close)
        #: How many entities cannot be written by this tokenizer.
        self.unwritten = sum(1 for item in result if not item)
        self.again = frozenset(again)


def _alike(sequences: Sequence[Ids]) -> list[int]:
    """The positions of sequences that occur more than once."""
    seen: dict[Ids, int] = {}
    result: dict[int, None] = {}
    for at, item in enumerate(sequences):
        if not item:
            continue
        before = seen.setdefault(item, at)
        if before != at:
            result[before] = result[at] = None
    return list(result)


def names_of(place: LocalPlace, coder: Coder) -> Names | None:
    """The names of a snapshot by a coder, made once and kept with the snapshot; None of a graph
    with too many, or of a tokenizer that whole triples have to be encoded with.
    """
    snapshot = place.snapshot
    if coder.how == "whole triples" or snapshot.entities > MOST_INDEXED or not snapshot.entities:
        return None
    cache = snapshot.schema.kept.setdefault("chain names", {})
    result = cache.get(id(coder))
    if result is None or result[0] is not coder:
        if len(cache) >= 8:
            cache.clear()
        result = cache[id(coder)] = coder, Names(place, coder)
    names: Names = result[1]
    return names


# -- what chains of one graph share ----------------------------------------------------------------
# What the chains over one graph and one tokenizer share: names by their tokens, and the heads of the
# statements that lead to an entity.


#: The most entries of all the runs of heads that are kept.
_MOST_KEPT: Final = 4_000_000


class Shared:
    """What chains over one place and one tokenizer have in common."""

    def __init__(self, place: ChainGraph, coder: Coder) -> None:
        self.place, self.coder = place, coder
        self.names: Names | None = names_of(place, coder) if isinstance(place, LocalPlace) else None
        self._runs: dict[int, Run] = {}
        self._size = 0

    def leading(self, entity: int) -> Run:
        """The heads of the statements that lead to an entity."""
        result = self._runs.get(entity)
        if result is None:
            statements = self.place.incoming(entity)
            result = self.heads(self.place.subjects(statements), statements)
            self._size += len(result)
            if self._size > _MOST_KEPT:
                self._runs.clear()
                self._size = len(result)
            self._runs[entity] = result
        return result

    def heads(self, entities: Numbers, payload: Numbers) -> Run:
        """Entities as heads."""
        if self.names is not None:
            return OrderedChoices(self.names.heads, entities, payload)
        place = self.place
        written = {item: " " + place.head(item) for item in np.unique(entities).tolist()}
        self.coder.learn(written.values())
        known = {item: self.sequence(text, self.coder.arrow) for item, text in written.items()}
        return UnorderedChoices([known[item] for item in entities.tolist()], payload.tolist())

    def sequence(self, text: str, suffix: Ids) -> Ids:
        """A piece with what follows it; none where a name would have the signs of a triple."""
        result = self.coder.encode(text)
        return (*result, *suffix) if result and self.coder.closing.isdisjoint(result) else ()

    def loose(self, texts: Sequence[str], suffix: Ids, payload: Sequence[int]) -> UnorderedChoices:
        """Texts that are encoded now."""
        self.coder.learn(texts)
        return UnorderedChoices([self.sequence(text, suffix) for text in texts], payload)


# -- all triples that may follow -------------------------------------------------------------------
# All triples that may follow as token sequences, put together at once instead of token by token:
# for grammars, which need every one of them before the first token.
#
# Around a hub most heads go on alike (`-> has_genre -> Drama >`), so that heads, and what follows
# them, are kept apart: a grammar has each of the second once.


@dataclass(slots=True)
class Parts:
    """Token sequences of triples in two pieces: `heads` are beginnings, rising, each with the number
    of what may follow it; `ends` are what may follow, rising each. No beginning begins another one.
    """

    heads: list[tuple[Ids, int]] = field(default_factory=list)
    ends: list[list[Ids]] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(len(self.ends[end]) for _, end in self.heads)

    @property
    def longest(self) -> int:
        """Tokens of the longest triple."""
        most = [max(map(len, item), default=0) for item in self.ends]
        return max((len(head) + most[end] for head, end in self.heads), default=0)

    def sequences(self) -> list[Ids]:
        """Every triple as one sequence, rising."""
        return sorted((*head, *item) for head, end in self.heads for item in self.ends[end])


def walk_through(chain: Chain) -> Iterator[Chain]:
    """Every chain in which the triple that is being written is complete, in the order of ids."""
    stack = [chain.copy()]
    while stack:
        check()
        value = stack.pop()
        # A triple that is complete has nothing that may follow.
        while len(tokens := value.next()) == 1:
            value.advance(tokens[0])
        if value.complete:
            yield value
            continue
        for token in reversed(tokens):
            branch = value.copy()
            branch.advance(token)
            stack.append(branch)


def parts(chain: Chain, most: int) -> Parts | None:
    """The sequences of all triples that may follow, with the ids of this triple that are written
    already; None where there are more than `most`.

    A head whose statements are all relations without qualifiers has sequences made of its names'.
    Other heads, and a triple that is begun, are walked through token by token.
    """
    names, place = chain._shared.names, chain.walk.place
    if names is None or chain.ids:
        taken = _taken((item.ids for item in walk_through(chain)), most)
        return None if taken is None else Parts([((), 0)], [taken]) if taken else Parts()
    if not len(result := chain.walk.statements):
        return Parts()
    kinds = place.relations(result)
    written = {kind: _relation(chain, kind) for kind in np.unique(kinds).tolist()}
    # Relations whose tokens begin others', or are others', are told apart token by token.
    clear = len(UnorderedChoices(list(written.values()), list(written))) == len(written) == len(set(written.values()))
    subjects, bare = place.subjects(result), place.bare(result)
    odd = np.unique(subjects[bare < 0]) if clear else np.unique(subjects)
    plain = ~np.isin(subjects, odd) & (names.heads.rank.take(subjects) >= 0)
    plain &= names.tails.rank.take(np.maximum(bare, 0)) >= 0
    made = _made(chain, names.heads, names.tails, np.stack([subjects[plain], kinds[plain], bare[plain]]), written)
    left = most - len(made)
    if left < 0:
        return None
    odd_ones = np.isin(subjects, odd)
    chain.coder.learn(" " + place.tail(item) for item in result[odd_ones & (bare < 0)].tolist())
    for head in odd.tolist():
        check()
        if (branch := _at(chain, names.heads, head)) is not None:
            more = _taken((item.ids[len(branch.ids) :] for item in walk_through(branch)), left)
            if more is None:
                return None
            if more:
                made.heads.append((branch.ids, len(made.ends)))
                made.ends.append(more)
                left -= len(more)
    if len(odd):
        made.heads.sort()
    return made


def _taken(sequences: Iterator[Ids], most: int) -> list[Ids] | None:
    taken: list[Ids] = []
    for item in sequences:
        if len(taken) >= most:
            return None
        taken.append(item)
    return sorted(taken)


def _relation(chain: Chain, kind: int) -> Ids:
    return chain._shared.sequence(" " + named(chain.walk.place.relation(kind)), chain.coder.arrow)


def _made(chain: Chain, heads: Lexicon, tails: Lexicon, triples: Numbers, written: dict[int, Ids]) -> Parts:
    """The heads of triples (subjects, relations and objects: int64, 3 by triples) with what follows
    each; a repeated triple counts once.
    """
    result = Parts()
    if not triples.shape[1]:
        return result
    # Heads rise by their ranks; what each goes on with rises too, so that the same is the same.
    triples = triples[:, np.lexsort((triples[2], triples[1], heads.rank.take(triples[0])))]
    again = np.all(triples[:, 1:] == triples[:, :-1], axis=0)
    triples = triples[:, np.concatenate([[True], ~again])]
    subjects, opened = triples[0], chain.coder.open
    # Rows of relation and object, so that what follows a head is a slice.
    following = np.ascontiguousarray(triples[1:].T)
    bounds = [0, *(np.flatnonzero(subjects[1:] != subjects[:-1]) + 1).tolist(), len(subjects)]
    numbers: dict[bytes, int] = {}
    for low, high in pairwise(bounds):
        key = following[low:high].tobytes()
        end = numbers.get(key)
        if end is None:
            end = numbers[key] = len(result.ends)
            pairs = following[low:high].tolist()
            result.ends.append(sorted((*written[kind], *tails.of(tail)) for kind, tail in pairs))
        result.heads.append(((*opened, *heads.of(int(subjects[low]))), end))
    return result


def _at(chain: Chain, heads: Lexicon, head: int) -> Chain | None:
    """The chain after a head; None for a head that cannot be written."""
    if heads.rank[head] < 0:
        return None
    result = chain.copy()
    for token in (*chain.coder.open, *heads.of(head)):
        result.advance(token)
    return result


# -- the constraint --------------------------------------------------------------------------------
# No index grows with the graph. The triples that may follow are read part by part: heads as sorted
# runs of ranks, one for each visited entity; relations and tails once their head, and their relation,
# is written. Where no triple may follow, the set of tokens is empty.


_OPEN: Final = 0
_HEAD: Final = 1
_RELATION: Final = 2
_TAIL: Final = 3
_COMPLETE: Final = 4
#: A run, the part of it that is still possible, and how many of its tokens were written.
_Item = tuple[Run, int, int, int]


class Chain:
    """A chain of triples as a model writes it, token by token.

    `allowed()` are the tokens that may come next; `advance(id)` takes one; `commit()` adds a triple
    that is `complete` to the chain. After the last possible triple the chain is `done`. A `copy()`
    is independent, so that beams can branch.
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
    def of(cls, place: ChainGraph, query: Iterable[str | Entity], tokenizer: Any, *, max_steps: int, repeat: bool) -> Chain:
        """A chain that begins at entities."""
        return cls(Walk.of(place, query, max_steps, repeat), coder_of(tokenizer))

    # -- the protocol ------------------------------------------------------------------------------

    def allowed(self) -> NDArray[np.int32]:
        """The ids of the tokens that may come next, ascending, int32; none where the triple is complete,
        or no triple may follow.
        """
        return np.array(self.next(), np.int32)

    def next(self) -> list[int]:
        """`allowed` as a list."""
        result = self._next
        if result is None:
            result = self._next = self._tokens()
        return result

    def advance(self, token: int) -> None:
        """Take a token; raises `ChainError`, without any change, for one that is not allowed."""
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
            self._through([item for item in items if item[0].ends(item[1], item[3])])

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
        """Add the complete triple to the chain, and visit its ends. Raises `ChainError` where the
        triple is not complete.
        """
        if self._stage != _COMPLETE:
            raise ChainError("no triple is complete", hint="advance to the end of one first")
        triple = triple_of(self.walk.place, self._found)
        self.walk = self.walk.commit(triple)
        self._begin()
        return triple

    def copy(self) -> Chain:
        """An independent copy."""
        result = Chain.__new__(Chain)
        result.__dict__.update(self.__dict__)
        return result

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
        """What was left out."""
        result = list(dict.fromkeys(self.walk.place.warnings))
        names = self._shared.names
        if names is not None and names.unwritten:
            result.append(f"{names.unwritten} names cannot be written by this tokenizer, and stand in no chain")
        return result

    def forced(self, most: int = 256) -> list[int]:
        """The tokens from here on that have no alternative, without taking them."""
        ahead = self.copy()
        result: list[int] = []
        while len(result) < most and len(only := ahead.next()) == 1:
            result.append(only[0])
            ahead.advance(only[0])
        return result

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
        sequences = self.coder.whole([str(triple) for triple in triples])
        seen: dict[Ids, int] = {}
        for item in sequences:
            seen[item] = seen.get(item, 0) + 1
        self._triples = triples
        return [UnorderedChoices([sequence if seen[sequence] == 1 else () for sequence in sequences], range(len(triples)))]

    def _runs(self) -> list[Run]:
        """The heads that may come next: those of statements that lead to visited entities, and the
        visited entities themselves.
        """
        walk, shared = self.walk, self._shared
        if walk.full or not walk.visited:
            return []
        spent = self._spent()
        own = [item for item in walk.visited if item not in spent and len(walk.place.outgoing(item))]
        runs = [shared.leading(item) for item in walk.visited]
        if spent:
            runs = [self._without(run, item, spent) for run, item in zip(runs, walk.visited, strict=True)]
        # The sign distinguishes an entity from a statement.
        entities = np.array(own, np.int64)
        return [*runs, shared.heads(entities, -1 - entities)]

    def _spent(self) -> list[int]:
        """The heads of which every triple was used, where none may come again."""
        walk, place = self.walk, self.walk.place
        result = []
        for head in dict.fromkeys(place.ends(item)[0] for item in walk.used):
            if all(item in walk.used for item in self._of_head(head).tolist()):
                result.append(head)
        return result

    def _of_head(self, head: int) -> Numbers:
        """The statements of a head that touch what was visited."""
        walk, place = self.walk, self.walk.place
        if head in walk.visited:
            return place.outgoing(head)
        parts = [into[place.subjects(into) == head] for into in map(place.incoming, walk.visited)]
        return np.unique(np.concatenate(parts))

    def _without(self, run: Run, entity: int, spent: Sequence[int]) -> Run:
        if isinstance(run, OrderedChoices):
            return run.without(spent)
        statements = self.walk.place.incoming(entity)
        subjects = self.walk.place.subjects(statements)
        keep = ~np.isin(subjects, spent)
        return self._shared.heads(subjects[keep], statements[keep])

    def _through(self, items: list[_Item]) -> None:
        """A head, a relation or a tail is whole: what follows it."""
        payload = [item for run, low, high, _ in items for item in run.of(low, high)]
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
        entities = {-1 - item for item in payload if item < 0}
        rest = np.array(sorted(item for item in payload if item >= 0), np.int64)
        if len(rest) and entities:
            rest = rest[~np.isin(place.subjects(rest), list(entities))]
        parts = [*map(place.outgoing, entities), *([rest] if len(rest) else [])]
        result = parts[0] if len(parts) == 1 and entities else np.unique(np.concatenate(parts))
        if self.walk.used:
            result = result[~np.isin(result, list(self.walk.used))]
        self._statements, self._kinds = result, place.relations(result)
        kinds = _distinct(self._kinds)
        run = self._shared.loose([" " + named(place.relation(kind)) for kind in kinds], self.coder.arrow, kinds)
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
        texts = [" " + place.tail(other) for other in others]
        shared.coder.learn(texts)
        groups: dict[Ids, list[int]] = {}
        for member, text in zip(others, texts, strict=True):
            groups.setdefault(shared.sequence(text, self.coder.close), []).append(member)
        for sequence in list(groups):
            if len({place.same(group) for group in groups[sequence]}) > 1:
                # One text that could be two triples is refused.
                del groups[sequence]
        runs: list[Run] = []
        if shared.names is not None and named_ahead.any():
            tails: OrderedChoices = OrderedChoices(shared.names.tails, bare[named_ahead], statements[named_ahead])
            for sequence in [group for group in groups if group]:
                if (at := _whole_of(tails, sequence)) is not None:
                    del groups[sequence]
                    tails = tails.without([place.ends(tails.of(at, at + 1)[0])[1]])
            runs.append(tails)
        pairs = [(sequence, item) for sequence, several in groups.items() for item in several]
        runs.append(UnorderedChoices([pair[0] for pair in pairs], [pair[1] for pair in pairs]))
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
    result: list[int] = np.unique(numbers).tolist() if len(numbers) > 64 else sorted(set(numbers.tolist()))
    return result
