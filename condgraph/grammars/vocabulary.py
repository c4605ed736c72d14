"""The names of a graph that a program may hold, with their types; the entities that a question may mean, and what these have."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar

from condgraph.engine.algebra import ByName, around
from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError, UnknownNameError
from condgraph.engine.store import QueriedGraph, plan_texts
from condgraph.engine.values import NO_UNIT

if TYPE_CHECKING:
    from condgraph.engine.answer import Answer
    from condgraph.engine.store import LocalGraph
    from condgraph.overview.survey import Survey


# -- cache -------------------------------------------------------------------------------------------
# Cache of what the grammars of one graph share, until the graph changes: names, and the rules over them as text.


T = TypeVar("T")
#: Surveys in the cache, and entries of each.
_SURVEYS: Final = 4
_EACH: Final = 48
_KEPT: Final[OrderedDict[int, tuple[Any, dict[Hashable, Any]]]] = OrderedDict()
_LOCK: Final = Lock()


def kept(survey: Survey, key: Hashable, make: Callable[[], T]) -> T:
    """The result of `make`, made once for a survey and a key. A survey is identified by its object: a
    graph that has changed has another one.
    """
    with _LOCK:
        _, result = _KEPT.setdefault(id(survey), (survey, {}))
        _KEPT.move_to_end(id(survey))
        while len(_KEPT) > _SURVEYS:
            _KEPT.popitem(last=False)
        if key in result:
            value: T = result[key]
            return value
    value = make()
    with _LOCK:
        while len(result) >= _EACH:
            # The oldest entry: questions about a graph of many tables go from table to table.
            del result[next(iter(result))]
        result[key] = value
    return value


# -- names -------------------------------------------------------------------------------------------


#: Words of the longest name in a question, and words at which a name may begin.
MOST_WORDS: Final = 8
MOST_PLACES: Final = 60
#: Names similar to a word of the question, where it contains none.
MOST_ALIKE: Final = 5
_WORD: Final = re.compile(r"\w+(?:[.'’-]\w+)*\.?")


class NamedGraph(QueriedGraph, Protocol):
    """A graph as grammars see it: `condgraph.Graph`."""

    def kopl(self, program: Any, *, on_unknown: Literal["error", "empty"] = "error") -> Answer:
        """`Graph.kopl`."""

    def snapshot(self) -> LocalGraph:
        """`Graph.snapshot`."""

    def _survey(self) -> Survey: ...


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Names by kind. `keys` (attributes) and `qualifiers` have the types of their values ("text",
    "quantity", "time", "entity"); `units` are those of all numbers, `units_of` those of each
    predicate and qualifier. `qualified` has the qualifiers of the facts of each predicate, `columns`
    the tables of which it is a column, and `scopes` its sources where a program has to name one.
    `tables` are those that KoPL treats as concepts.
    """

    entities: tuple[str, ...]
    concepts: tuple[str, ...]
    relations: tuple[str, ...]
    keys: Mapping[str, frozenset[str]]
    qualifiers: Mapping[str, frozenset[str]]
    units: tuple[str, ...]
    units_of: Mapping[str, tuple[str, ...]]
    qualified: Mapping[str, Mapping[str, frozenset[str]]]
    columns: Mapping[str, tuple[str, ...]]
    scopes: Mapping[str, tuple[str, ...]]
    tables: tuple[str, ...] = ()


def vocabulary(graph: NamedGraph, entities: Iterable[str], source: str | None = None) -> Vocabulary:
    """The names of a graph, or of one of its sources, with these entities."""
    survey = graph._survey()
    named = tuple(sorted({entity for entity in entities if entity}))
    return replace(kept(survey, ("vocabulary", source), lambda: _names(survey, source)), entities=named)


def _names(survey: Survey, source: str | None) -> Vocabulary:
    """The names of a survey, without entities; of a source only its predicates."""
    keys: dict[str, frozenset[str]] = {}
    qualifiers: dict[str, frozenset[str]] = {}
    units_of: dict[str, set[str]] = {}
    qualified: dict[str, dict[str, frozenset[str]]] = {}
    columns: dict[str, tuple[str, ...]] = {}
    scopes: dict[str, tuple[str, ...]] = {}
    relations = []
    for number, (name, with_entities, with_values, values, with_keys, sources, *_) in enumerate(survey["predicates"]):
        if source is not None and all(item != source for item, _ in sources):
            continue
        if with_entities:
            relations.append(name)
        if with_values:
            keys[name] = frozenset(value[0] for value in values)
            units_of.setdefault(name, set()).update(value[1] for value in values)
        for key, its in with_keys:
            kinds = frozenset(value[0] for value in its)
            qualifiers[key] = qualifiers.get(key, frozenset()) | kinds
            qualified.setdefault(name, {})[key] = kinds
            units_of.setdefault(key, set()).update(value[1] for value in its)
        if tables := _tables(survey, number):
            columns[name] = tables if source is None else tuple(table for table in tables if table == source)
            scopes |= {name: tuple(item for item, _ in sources)} if len(sources) > 1 and source is None else {}
    units = {unit for several in units_of.values() for unit in several}
    concepts = dict.fromkeys(kind[1] for kind in survey["kinds"] if kind[0] == "concept" and kind[1])
    of_rows = [name for sort, name, _, rows, *_ in survey["kinds"] if sort == "table" and rows]
    of_rows = [name for name in of_rows if name.rpartition("/")[2] not in concepts]
    written = {name: tuple(sorted(several - {NO_UNIT, ""})) for name, several in units_of.items()}
    return Vocabulary(
        (), tuple(concepts), tuple(relations), keys, qualifiers, tuple(sorted(units - {NO_UNIT, ""})), written,
        qualified, columns, scopes, tuple(of_rows),
    )  # fmt: skip


def _tables(survey: Survey, predicate: int) -> tuple[str, ...]:
    """The tables whose rows are subjects of a predicate."""
    starts, kinds, _ = survey["subjects"]
    its = (survey["kinds"][kind] for kind in kinds[starts[predicate] : starts[predicate + 1]])
    return tuple(kind[1] for kind in its if kind[0] == "table")


def candidates(graph: NamedGraph, question: str) -> list[str]:
    """The names of entities and concepts in a question, the longest first; without any, those most
    similar to words with a capital letter.
    """
    result: list[str] = []
    taken: set[int] = set()
    for words, name in _spans(question):
        if taken.isdisjoint(words) and _there(graph, name):
            result.append(name)
            taken.update(words)
    if not result:
        for words, name in _spans(question):
            if taken.isdisjoint(words) and all(word[:1].isupper() or word[:1].isdigit() for word in name.split()):
                near = _alike(graph, name)
                result += near
                taken.update(words if near else ())
    return list(dict.fromkeys(result))


def everybody(graph: NamedGraph) -> list[str]:
    """The names of all entities and concepts of a graph; a graph on a server is pulled whole."""
    snapshot = graph.snapshot().current
    names = snapshot.texts.take(snapshot.arrays.get("ent.name"))
    return sorted({name for name in names if name})


def _spans(question: str) -> Iterator[tuple[Sequence[int], str]]:
    """Runs of words of a question, the longest first."""
    words = list(_WORD.finditer(question))[:MOST_PLACES]
    for length in range(min(MOST_WORDS, len(words)), 0, -1):
        for at in range(len(words) - length + 1):
            check()
            text = question[words[at].start() : words[at + length - 1].end()]
            yield range(at, at + length), text
            if text.endswith("."):
                yield range(at, at + length), text[:-1]


def _there(graph: NamedGraph, name: str) -> bool:
    if name.islower() and len(name) < 3:
        return False
    return bool(graph.kopl([{"function": "Find", "inputs": [name], "dependencies": []}], on_unknown="empty").entities)


def _alike(graph: NamedGraph, name: str) -> list[str]:
    try:
        graph.kopl([{"function": "Find", "inputs": [name], "dependencies": []}])
    except UnknownNameError as error:
        return list(error.candidates[:MOST_ALIKE])
    return [name]


# -- what entities have ------------------------------------------------------------------------------
# The predicates of each entity of a question, so that a grammar allows nothing else after `Find(e)`.


#: The most entities whose predicates are looked up.
MOST: Final = 64
#: The predicates of an entity: "forward" and "backward" relations, and attributes ("value").
Has = Mapping[str, Sequence[str]]


def surroundings(graph: NamedGraph, entities: Sequence[str]) -> dict[str, Has]:
    """The predicates of each entity, by three short queries; entities of one name share them. Raises
    `OptionError` for more than `MOST` entities.
    """
    if len(entities) > MOST:
        raise OptionError(
            f"a grammar that knows what {len(entities):,} entities have would be far too long",
            hint=f"question=, or entities= with at most {MOST}",
        )
    store = graph._store_of(None)
    return {
        entity: {direction: plan_texts(store, plan) for direction, plan in around(ByName((entity,))).items()} for entity in entities
    }
