"""The constraint: which token may come next, so that a model writes only well-formed chains (DoG, sections 2.2 and 2.3)."""

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
# The names of a graph in process are encoded and sorted once for each tokenizer (`Lexicon`); the triples
# that may follow are sorted arrays of their ranks. Other texts (values, names on servers) are encoded
# when they are reached (`UnorderedChoices`).


#: Most entities whose names are encoded in advance; in larger graphs, names are encoded when reached.
MAX_INDEXED: Final = 1_000_000
_MAX_SCANNED: Final = 24
_TOGETHER: Final = 8192


class Run(Protocol):
    """Sorted sequences with payloads, none of which is a prefix of another one."""

    def __len__(self) -> int: ...

    def next(self, low: int, high: int, depth: int) -> list[int]:
        """Return the distinct tokens at a depth in a range, ascending; none if the sequences end there."""
        ...

    def narrow(self, low: int, high: int, depth: int, token: int) -> tuple[int, int]:
        """Return the part of a range that has a token at a depth."""
        ...

    def ends(self, low: int, depth: int) -> bool:
        """Tell whether a sequence ends at a depth."""
        ...

    def of(self, low: int, high: int) -> list[int]:
        """Return the payloads of a range."""
        ...


class UnorderedChoices:
    """Sequences that were encoded for this point of a chain, with one payload each."""

    def __init__(self, sequences: Sequence[Ids], payload: Sequence[int]) -> None:
        order = sorted(range(len(sequences)), key=sequences.__getitem__)
        kept: list[int] = []
        longer: Ids = ()
        for index in reversed(order):
            mine = sequences[index]
            # An empty sequence, or a prefix of another one, cannot be recognised and is left out.
            if mine and not (len(longer) > len(mine) and longer[: len(mine)] == mine):
                kept.append(index)
                longer = mine
        kept.reverse()
        self.sequences = [sequences[index] for index in kept]
        self.payload = [payload[index] for index in kept]

    def __len__(self) -> int:
        return len(self.sequences)

    def next(self, low: int, high: int, depth: int) -> list[int]:
        """Return the distinct tokens at a depth in a range."""
        result, index, sequences = [], low, self.sequences
        if len(sequences[low]) == depth:
            return []
        while index < high:
            token = sequences[index][depth]
            result.append(token)
            index = bisect_right(sequences, token, index, high, key=lambda item: item[depth])
        return result

    def narrow(self, low: int, high: int, depth: int, token: int) -> tuple[int, int]:
        """Return the part of a range that has a token at a depth."""
        sequences = self.sequences
        if high - low == 1:
            return low, low + (sequences[low][depth] == token)
        low = bisect_left(sequences, token, low, high, key=lambda item: item[depth])
        return low, bisect_right(sequences, token, low, high, key=lambda item: item[depth])

    def ends(self, low: int, depth: int) -> bool:
        """Tell whether a sequence ends at a depth."""
        return len(self.sequences[low]) == depth

    def of(self, low: int, high: int) -> list[int]:
        """Return the payloads of a range."""
        return self.payload[low:high]


class Lexicon:
    """The names of all entities of a snapshot as token sequences, each with a suffix.

    Flat tokens, int32; offsets, int64; and the rank of each entity, int32, -1 if its name cannot be written.
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
        """Return the tokens of an entity's name, which can be written, with the suffix."""
        rank, offsets = self._rank_view[entity], self.offset_view
        return self.flat_view[offsets[rank] : offsets[rank + 1]].tolist()


class OrderedChoices:
    """Entities in the order of a lexicon, with one payload each, int64."""

    def __init__(self, lexicon: Lexicon, entities: NDArray[np.int64], payload: NDArray[np.int64]) -> None:
        ranks = lexicon.rank.take(entities)
        order = np.argsort(ranks, kind="stable")
        order = order[np.searchsorted(ranks, 0, sorter=order) :]
        self._set(lexicon, ranks[order], payload[order])

    def _set(self, lexicon: Lexicon, ranks: NDArray[np.int32], payload: NDArray[np.int64]) -> None:
        self._lexicon, self.ranks, self.payload = lexicon, ranks, payload
        self._view, self._flat, self._offsets = self.ranks.data, lexicon.flat_view, lexicon.offset_view
        self._first_tokens: list[int] | None = None

    def __len__(self) -> int:
        return len(self.ranks)

    def next(self, low: int, high: int, depth: int) -> list[int]:
        """Return the distinct tokens at a depth in a range."""
        if depth == 0 and high - low == len(self.ranks):
            if self._first_tokens is None:
                self._first_tokens = self._tokens(low, high, 0)
            return self._first_tokens
        return self._tokens(low, high, depth)

    def _tokens(self, low: int, high: int, depth: int) -> list[int]:
        if self.ends(low, depth):
            return []
        view, flat, offsets = self._view, self._flat, self._offsets
        if high - low <= _MAX_SCANNED:
            result, last = [], -1
            for index in range(low, high):
                token = flat[offsets[view[index]] + depth]
                if token != last:
                    result.append(token)
                    last = token
            return result
        tokens = self._lexicon.flat.take(self._lexicon.offsets.take(self.ranks[low:high]) + depth)
        keep = np.flatnonzero(tokens[1:] != tokens[:-1])
        return [int(tokens[0]), *tokens[keep + 1].tolist()]

    def narrow(self, low: int, high: int, depth: int, token: int) -> tuple[int, int]:
        """Return the part of a range that has a token at a depth."""
        flat, offsets = self._flat, self._offsets
        if high - low == 1:
            return low, low + (flat[offsets[self._view[low]] + depth] == token)

        def key(rank: int) -> int:
            result: int = flat[offsets[rank] + depth]
            return result

        low = bisect_left(self._view, token, low, high, key=key)
        return low, bisect_right(self._view, token, low, high, key=key)

    def without(self, entities: Sequence[int]) -> OrderedChoices:
        """Return the same choices without some entities."""
        keep = ~np.isin(self.ranks, self._lexicon.rank.take(np.array(entities, np.int64)))
        result = OrderedChoices.__new__(OrderedChoices)
        result._set(self._lexicon, self.ranks[keep], self.payload[keep])
        return result

    def place_of(self, entity: int) -> bool:
        """Tell whether an entity is among the choices."""
        rank = int(self._lexicon.rank[entity])
        index = bisect_left(self._view, rank)
        return index < len(self._view) and self._view[index] == rank

    def ends(self, low: int, depth: int) -> bool:
        """Tell whether a sequence ends at a depth."""
        rank = self._view[low]
        return bool(self._offsets[rank + 1] - self._offsets[rank] == depth)

    def of(self, low: int, high: int) -> list[int]:
        """Return the payloads of a range."""
        result: list[int] = self.payload[low:high].tolist()
        return result


class Names:
    """The names of one snapshot for one tokenizer: as heads, followed by an arrow, and as tails, followed by a close."""

    def __init__(self, place: LocalPlace, coder: Coder) -> None:
        snapshot = place.snapshot
        texts = snapshot.texts.take(snapshot.entity_name)
        shared = snapshot.entity_name[1:] == snapshot.entity_name[:-1]
        unique = ~(np.concatenate([[False], shared]) | np.concatenate([shared, [False]]))[: len(texts)]
        ids = snapshot.texts.take(snapshot.entity_id)
        written = [" " + entity_text(*item) for item in zip(texts, ids, unique.tolist(), strict=True)]
        result: list[Ids] = []
        for start in range(0, len(written), _TOGETHER):
            check()
            result += coder.encode_many(written[start : start + _TOGETHER])
        closing = coder.closing
        result = [item if closing.isdisjoint(item) else () for item in result]
        repeated = _repeated(result)
        # Some tokenizers encode different names alike; these are written with their ids.
        written = [" " + entity_text(texts[item], ids[item], False) for item in repeated]
        for member, sequence in zip(repeated, coder.encode_many(written), strict=True):
            result[member] = sequence if closing.isdisjoint(sequence) else ()
        for member in _repeated(result):
            result[member] = ()
        self.heads, self.tails = Lexicon(result, coder.arrow), Lexicon(result, coder.close)
        #: Number of entities that this tokenizer cannot write.
        self.unwritten = sum(1 for item in result if not item)
        self.repeated = frozenset(repeated)


def _repeated(sequences: Sequence[Ids]) -> list[int]:
    """Return the positions of sequences that occur more than once."""
    first_index: dict[Ids, int] = {}
    result: dict[int, None] = {}
    for index, item in enumerate(sequences):
        if not item:
            continue
        before = first_index.setdefault(item, index)
        if before != index:
            result[before] = result[index] = None
    return list(result)


def names_of(place: LocalPlace, coder: Coder) -> Names | None:
    """Return the names of a snapshot for a coder, built once and cached with the snapshot.

    None for a graph with too many names, or a tokenizer for which whole triples have to be encoded.
    """
    snapshot = place.snapshot
    if coder.how == "whole triples" or snapshot.entities > MAX_INDEXED or not snapshot.entities:
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
# State shared by all chains over one graph and one tokenizer: encoded names, and heads of statements by
# their object.


#: Most entries of all cached runs of heads.
_MAX_CACHED: Final = 4_000_000


class Shared:
    """State shared by chains over one place and one tokenizer."""

    def __init__(self, place: ChainGraph, coder: Coder) -> None:
        self.place, self.coder = place, coder
        self.names: Names | None = names_of(place, coder) if isinstance(place, LocalPlace) else None
        self._runs: dict[int, Run] = {}
        self._size = 0

    def leading(self, entity: int) -> Run:
        """Return the heads of the statements that lead to an entity."""
        result = self._runs.get(entity)
        if result is None:
            statements = self.place.incoming(entity)
            result = self.heads(self.place.subjects(statements), statements)
            self._size += len(result)
            if self._size > _MAX_CACHED:
                self._runs.clear()
                self._size = len(result)
            self._runs[entity] = result
        return result

    def heads(self, entities: Numbers, payload: Numbers) -> Run:
        """Return entities as heads."""
        if self.names is not None:
            return OrderedChoices(self.names.heads, entities, payload)
        place = self.place
        written = {item: " " + place.head(item) for item in np.unique(entities).tolist()}
        self.coder.learn(written.values())
        known = {item: self.sequence(text, self.coder.arrow) for item, text in written.items()}
        return UnorderedChoices([known[item] for item in entities.tolist()], payload.tolist())

    def sequence(self, text: str, suffix: Ids) -> Ids:
        """Return the tokens of a piece with a suffix; empty if they contain structural characters."""
        result = self.coder.encode(text)
        return (*result, *suffix) if result and self.coder.closing.isdisjoint(result) else ()

    def loose(self, texts: Sequence[str], suffix: Ids, payload: Sequence[int]) -> UnorderedChoices:
        """Return choices among texts, encoded now."""
        self.coder.learn(texts)
        return UnorderedChoices([self.sequence(text, suffix) for text in texts], payload)


# -- all triples that may follow -------------------------------------------------------------------
# Builds all triples that may follow as token sequences at once, instead of token by token: grammars need
# all of them before the first token.
#
# Around a hub, most heads continue alike (`-> has_genre -> Drama >`), so that heads and continuations are
# stored separately: a grammar has each continuation once.


@dataclass(slots=True)
class Parts:
    """Token sequences of triples in two pieces.

    `heads` are beginnings, ascending, each with the index of its continuations; `ends` are lists of continuations, each
    ascending. No head is a prefix of another one.
    """

    heads: list[tuple[Ids, int]] = field(default_factory=list)
    ends: list[list[Ids]] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(len(self.ends[end]) for _, end in self.heads)

    @property
    def longest(self) -> int:
        """The number of tokens of the longest triple."""
        most = [max(map(len, item), default=0) for item in self.ends]
        return max((len(head) + most[end] for head, end in self.heads), default=0)

    def sequences(self) -> list[Ids]:
        """Return every triple as one sequence, ascending."""
        return sorted((*head, *item) for head, end in self.heads for item in self.ends[end])


def walk_through(chain: Chain) -> Iterator[Chain]:
    """Yield every chain in which the triple being written is complete, in the order of ids."""
    stack = [chain.copy()]
    while stack:
        check()
        value = stack.pop()
        # A complete triple has no next tokens.
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
    """Return the sequences of all triples that may follow, after the ids already written; None if there are more than `most`.

    If all statements of a head are relations without qualifiers, its sequences are built from those of the names. Other
    heads, and a triple that has begun, are walked through token by token.
    """
    names, place = chain._shared.names, chain.walk.place
    if names is None or chain.ids:
        taken = _at_most((item.ids for item in walk_through(chain)), most)
        return None if taken is None else Parts([((), 0)], [taken]) if taken else Parts()
    if not len(statements := chain.walk.statements):
        return Parts()
    kinds = place.relations(statements)
    written = {kind: _relation(chain, kind) for kind in np.unique(kinds).tolist()}
    # Relations whose tokens equal or begin those of others are distinguished token by token.
    distinct_kinds = len(UnorderedChoices(list(written.values()), list(written))) == len(written) == len(set(written.values()))
    subjects, bare = place.subjects(statements), place.bare(statements)
    walked_heads = np.unique(subjects[bare < 0]) if distinct_kinds else np.unique(subjects)
    direct = ~np.isin(subjects, walked_heads) & (names.heads.rank.take(subjects) >= 0)
    direct &= names.tails.rank.take(np.maximum(bare, 0)) >= 0
    made = _parts_of(chain, names.heads, names.tails, np.stack([subjects[direct], kinds[direct], bare[direct]]), written)
    remaining = most - len(made)
    if remaining < 0:
        return None
    walked = np.isin(subjects, walked_heads)
    chain.coder.learn(" " + place.tail(item) for item in statements[walked & (bare < 0)].tolist())
    for head in walked_heads.tolist():
        check()
        if (branch := _at(chain, names.heads, head)) is not None:
            continuations = _at_most((item.ids[len(branch.ids) :] for item in walk_through(branch)), remaining)
            if continuations is None:
                return None
            if continuations:
                made.heads.append((branch.ids, len(made.ends)))
                made.ends.append(continuations)
                remaining -= len(continuations)
    if len(walked_heads):
        made.heads.sort()
    return made


def _at_most(sequences: Iterator[Ids], most: int) -> list[Ids] | None:
    taken: list[Ids] = []
    for item in sequences:
        if len(taken) >= most:
            return None
        taken.append(item)
    return sorted(taken)


def _relation(chain: Chain, kind: int) -> Ids:
    return chain._shared.sequence(" " + named(chain.walk.place.relation(kind)), chain.coder.arrow)


def _parts_of(chain: Chain, heads: Lexicon, tails: Lexicon, triples: Numbers, written: dict[int, Ids]) -> Parts:
    """Return the heads of triples (subjects, relations and objects: int64, 3 by triples) with their continuations.

    A repeated triple counts once.
    """
    result = Parts()
    if not triples.shape[1]:
        return result
    # Heads ascend by rank; their continuations ascend too, so that equal ones compare equal.
    triples = triples[:, np.lexsort((triples[2], triples[1], heads.rank.take(triples[0])))]
    repeated = np.all(triples[:, 1:] == triples[:, :-1], axis=0)
    triples = triples[:, np.concatenate([[True], ~repeated])]
    subjects, opened = triples[0], chain.coder.open
    # Rows of relation and object, so that the continuations of a head are a slice.
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
    """Return the chain after a head; None for a head that cannot be written."""
    if heads.rank[head] < 0:
        return None
    result = chain.copy()
    for token in (*chain.coder.open, *heads.of(head)):
        result.advance(token)
    return result


# -- the constraint --------------------------------------------------------------------------------
# No index grows with the graph. The triples that may follow are read part by part: heads as sorted runs
# of ranks, one for each visited entity; relations and tails once the head, or the relation, is written.
# If no triple may follow, the set of tokens is empty.


_START: Final = 0
_HEAD: Final = 1
_RELATION: Final = 2
_TAIL: Final = 3
_COMPLETE: Final = 4
#: A run, the range of it that is still possible, and how many of its tokens are written.
_Item = tuple[Run, int, int, int]


class Chain:
    """A chain of triples that a model writes token by token.

    `allowed()` returns the tokens that may come next; `advance(id)` adds one; `commit()` adds a `complete` triple to
    the chain. After the last possible triple, the chain is `done`. A `copy()` is independent, so that beams can branch.
    """

    def __init__(self, walk: Walk, coder: Coder, shared: Shared | None = None) -> None:
        self.walk = walk
        self.coder = coder
        self._shared = shared or Shared(walk.place, coder)
        #: Tokens of the triple being written.
        self.ids: tuple[int, ...] = ()
        self._stage = _START
        self._items: list[_Item] = []
        self._last_statements: tuple[int, ...] = ()
        self._allowed: list[int] | None = None
        self._heads: list[_Item] | None = None

    @classmethod
    def of(cls, place: ChainGraph, query: Iterable[str | Entity], tokenizer: Any, *, max_steps: int, repeat: bool) -> Chain:
        """A chain that begins at entities."""
        return cls(Walk.of(place, query, max_steps, repeat), coder_of(tokenizer))

    # -- the protocol ------------------------------------------------------------------------------

    def allowed(self) -> NDArray[np.int32]:
        """Return the ids of the tokens that may come next, ascending, int32.

        The array is empty if the triple is complete, or no triple may follow.
        """
        return np.array(self.next(), np.int32)

    def next(self) -> list[int]:
        """Return `allowed` as a list."""
        result = self._allowed
        if result is None:
            result = self._allowed = self._tokens()
        return result

    def advance(self, token: int) -> None:
        """Add a token; raises `ChainError`, without any change, for one that is not allowed."""
        token = int(token)
        self._enter()
        if self._stage == _START:
            if token not in self.next():
                raise self._refused(token)
            self.ids = (*self.ids, token)
            if len(self.ids) == len(self.coder.open):
                self.opened(self.ids)
            else:
                self._allowed = None
            return
        items: list[_Item] = []
        for run, low, high, depth in self._items:
            low, high = run.narrow(low, high, depth, token)
            if low < high:
                items.append((run, low, high, depth + 1))
        if not items:
            raise self._refused(token)
        self.ids, self._items, self._allowed = (*self.ids, token), items, None
        if any(run.ends(low, depth) for run, low, _, depth in items):
            self._through([item for item in items if item[0].ends(item[1], item[3])])

    def opened(self, ids: Sequence[int]) -> None:
        """Record that the opening of a triple was written with these tokens: its head comes next."""
        if self.coder.how == "whole triples":
            for token in ids:
                self.advance(token)
            return
        self.ids, self._allowed = tuple(ids), None
        self._items = self._root()
        self._stage = _HEAD

    @property
    def complete(self) -> bool:
        """Whether a whole triple is written, to be added by `commit`."""
        return self._stage == _COMPLETE

    @property
    def found(self) -> tuple[int, ...]:
        """The statements of the complete triple; none before it is complete."""
        return self._last_statements

    def commit(self) -> Triple:
        """Add the complete triple to the chain, and visit its ends. Raises `ChainError` if it is not complete."""
        if self._stage != _COMPLETE:
            raise ChainError("no triple is complete", hint="advance to the end of one first")
        triple = triple_of(self.walk.place, self._last_statements)
        self.walk = self.walk.commit(triple)
        self._begin()
        return triple

    def copy(self) -> Chain:
        """Return an independent copy."""
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
        """The triples so far as text, one on each line."""
        return self.walk.text

    @property
    def warnings(self) -> list[str]:
        """Warnings about what was left out."""
        result = list(dict.fromkeys(self.walk.place.warnings))
        names = self._shared.names
        if names is not None and names.unwritten:
            result.append(f"{names.unwritten} names cannot be written by this tokenizer, and are in no chain")
        return result

    def forced(self, most: int = 256) -> list[int]:
        """Return the following tokens that have no alternative, without adding them."""
        ahead = self.copy()
        result: list[int] = []
        while len(result) < most and len(tokens := ahead.next()) == 1:
            result.append(tokens[0])
            ahead.advance(tokens[0])
        return result

    # -- how it goes on ----------------------------------------------------------------------------

    def _begin(self) -> None:
        self._stage, self.ids = _START, ()
        self._items, self._last_statements = [], ()
        self._allowed = self._heads = None

    def _refused(self, token: int) -> ChainError:
        many = len(self.next())
        return ChainError(f"token {token} is not allowed here", hint=f"allowed() has the {many} that are" if many else "none is")

    def _enter(self) -> None:
        """Start a whole triple, which has no separate opening."""
        if self._stage == _START and self.coder.how == "whole triples":
            self._items, self._stage = self._root(), _HEAD

    def _tokens(self) -> list[int]:
        self._enter()
        if self._stage == _START:
            return [self.coder.open[len(self.ids)]] if self._root() else []
        if self._stage == _COMPLETE:
            return []
        parts = [run.next(low, high, depth) for run, low, high, depth in self._items]
        return parts[0] if len(parts) == 1 else sorted(set().union(*parts))

    def _root(self) -> list[_Item]:
        if self._heads is None:
            runs = self._whole_triples() if self.coder.how == "whole triples" else self._runs()
            self._heads = [(run, 0, len(run), 0) for run in runs if len(run)]
        return self._heads

    def _whole_triples(self) -> list[Run]:
        triples = list(self.walk.following())
        sequences = self.coder.whole([str(triple) for triple in triples])
        seen: dict[Ids, int] = {}
        for item in sequences:
            seen[item] = seen.get(item, 0) + 1
        self._triples = triples
        return [UnorderedChoices([sequence if seen[sequence] == 1 else () for sequence in sequences], range(len(triples)))]

    def _runs(self) -> list[Run]:
        """Return the heads that may come next:

        of statements that lead to visited entities, and the visited entities themselves.
        """
        walk, shared = self.walk, self._shared
        if walk.full or not walk.visited:
            return []
        spent = self._spent()
        own_heads = [item for item in walk.visited if item not in spent and len(walk.place.outgoing(item))]
        runs = [shared.leading(item) for item in walk.visited]
        if spent:
            runs = [self._excluding(run, item, spent) for run, item in zip(runs, walk.visited, strict=True)]
        # The sign distinguishes an entity from a statement.
        entities = np.array(own_heads, np.int64)
        return [*runs, shared.heads(entities, -1 - entities)]

    def _spent(self) -> list[int]:
        """Return the heads whose triples are all used, if none may be repeated."""
        walk, place = self.walk, self.walk.place
        result = []
        for head in dict.fromkeys(place.ends(item)[0] for item in walk.used):
            if all(item in walk.used for item in self._of_head(head).tolist()):
                result.append(head)
        return result

    def _of_head(self, head: int) -> Numbers:
        """Return the statements of a head that touch a visited entity."""
        walk, place = self.walk, self.walk.place
        if head in walk.visited:
            return place.outgoing(head)
        parts = [into[place.subjects(into) == head] for into in map(place.incoming, walk.visited)]
        return np.unique(np.concatenate(parts))

    def _excluding(self, run: Run, entity: int, spent: Sequence[int]) -> Run:
        if isinstance(run, OrderedChoices):
            return run.without(spent)
        statements = self.walk.place.incoming(entity)
        subjects = self.walk.place.subjects(statements)
        keep = ~np.isin(subjects, spent)
        return self._shared.heads(subjects[keep], statements[keep])

    def _through(self, items: list[_Item]) -> None:
        """Continue after a complete head, relation or tail."""
        payload = [item for run, low, high, _ in items for item in run.of(low, high)]
        if self.coder.how == "whole triples":
            self._last_statements, self._stage = self._triples[payload[0]].statements, _COMPLETE
        elif self._stage == _HEAD:
            self._items, self._stage = self._relations(payload), _RELATION
        elif self._stage == _RELATION:
            self._items, self._stage = self._tails(payload), _TAIL
        else:
            self._last_statements, self._stage = tuple(sorted(payload)), _COMPLETE
            self._items = []

    def _relations(self, payload: Sequence[int]) -> list[_Item]:
        place = self.walk.place
        entities = {-1 - item for item in payload if item < 0}
        direct_statements = np.array(sorted(item for item in payload if item >= 0), np.int64)
        if len(direct_statements) and entities:
            direct_statements = direct_statements[~np.isin(place.subjects(direct_statements), list(entities))]
        parts = [*map(place.outgoing, entities), *([direct_statements] if len(direct_statements) else [])]
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
        encoded_now = statements[~named_ahead].tolist()
        texts = [" " + place.tail(other) for other in encoded_now]
        shared.coder.learn(texts)
        groups: dict[Ids, list[int]] = {}
        for member, text in zip(encoded_now, texts, strict=True):
            groups.setdefault(shared.sequence(text, self.coder.close), []).append(member)
        for sequence in list(groups):
            if len({place.same(group) for group in groups[sequence]}) > 1:
                # A text that stands for two triples is not allowed.
                del groups[sequence]
        runs: list[Run] = []
        if shared.names is not None and named_ahead.any():
            tails: OrderedChoices = OrderedChoices(shared.names.tails, bare[named_ahead], statements[named_ahead])
            for sequence in [group for group in groups if group]:
                if (position := _position_of(tails, sequence)) is not None:
                    del groups[sequence]
                    tails = tails.without([place.ends(tails.of(position, position + 1)[0])[1]])
            runs.append(tails)
        pairs = [(sequence, item) for sequence, members in groups.items() for item in members]
        runs.append(UnorderedChoices([pair[0] for pair in pairs], [pair[1] for pair in pairs]))
        return [(run, 0, len(run), 0) for run in runs if len(run)]


def _position_of(run: Run, sequence: Ids) -> int | None:
    """Return where a run has exactly this sequence, or None."""
    low, high = 0, len(run)
    for depth, token in enumerate(sequence):
        if low >= high or run.ends(low, depth):
            return None
        low, high = run.narrow(low, high, depth, token)
    return low if low < high and run.ends(low, len(sequence)) else None


def _distinct(numbers: Numbers) -> list[int]:
    result: list[int] = np.unique(numbers).tolist() if len(numbers) > 64 else sorted(set(numbers.tolist()))
    return result
