"""The names of a graph that a program may contain, with their types; the entities that a question may mean, and their
predicates.
"""

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
# Caches what the grammars of one graph share, until the graph changes: names, and the rules over them as
# text.


T = TypeVar("T")
#: Surveys in the cache, and entries of each.
_SURVEYS: Final = 4
_EACH: Final = 48
_CACHE: Final[OrderedDict[int, tuple[Any, dict[Hashable, Any]]]] = OrderedDict()
_LOCK: Final = Lock()


def kept(survey: Survey, key: Hashable, make: Callable[[], T]) -> T:
    """Return the result of `make`, computed once for a survey and a key.

    A survey is identified by its object: a graph that has changed has another one.
    """
    with _LOCK:
        _, entries = _CACHE.setdefault(id(survey), (survey, {}))
        _CACHE.move_to_end(id(survey))
        while len(_CACHE) > _SURVEYS:
            _CACHE.popitem(last=False)
        if key in entries:
            value: T = entries[key]
            return value
    value = make()
    with _LOCK:
        while len(entries) >= _EACH:
            # The oldest entry: questions about a graph of many tables use one table after the other.
            del entries[next(iter(entries))]
        entries[key] = value
    return value


# -- names -------------------------------------------------------------------------------------------


#: Most words of a name in a question, and most words at which a name may begin.
MAX_WORDS: Final = 8
MAX_STARTS: Final = 60
#: Most names similar to a word of the question, if it contains no name.
MAX_SIMILAR: Final = 5
_WORD: Final = re.compile(r"\w+(?:[.'’-]\w+)*\.?")


class NamedGraph(QueriedGraph, Protocol):
    """The part of `condgraph.Graph` that grammars use."""

    def kopl(self, program: Any, *, on_unknown: Literal["error", "empty"] = "error") -> Answer:
        """See `Graph.kopl`."""

    def snapshot(self) -> LocalGraph:
        """See `Graph.snapshot`."""

    def _survey(self) -> Survey: ...


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Names by kind.

    `keys` (attributes) and `qualifiers` have the types of their values ("text", "quantity", "time", "entity"); `units`
    are those of all numbers, `units_of` those of each predicate and qualifier. `qualified` has the qualifiers on the
    facts of each predicate, `columns` the tables in which it is a column, and `scopes` its sources if a program has to
    name one. `tables` are those that KoPL treats as concepts.
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
    """Return the names of a graph, or of one of its sources, with some entities."""
    survey = graph._survey()
    named = tuple(sorted({entity for entity in entities if entity}))
    return replace(kept(survey, ("vocabulary", source), lambda: _survey_names(survey, source)), entities=named)


def _survey_names(survey: Survey, source: str | None) -> Vocabulary:
    """Return the names in a survey, without entities; for a source, only its predicates."""
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
        for key, key_values in with_keys:
            kinds = frozenset(value[0] for value in key_values)
            qualifiers[key] = qualifiers.get(key, frozenset()) | kinds
            qualified.setdefault(name, {})[key] = kinds
            units_of.setdefault(key, set()).update(value[1] for value in key_values)
        if tables := _tables(survey, number):
            columns[name] = tables if source is None else tuple(table for table in tables if table == source)
            scopes |= {name: tuple(item for item, _ in sources)} if len(sources) > 1 and source is None else {}
    units = {unit for predicate_units in units_of.values() for unit in predicate_units}
    concepts = dict.fromkeys(kind[1] for kind in survey["kinds"] if kind[0] == "concept" and kind[1])
    row_tables = [name for sort, name, _, rows, *_ in survey["kinds"] if sort == "table" and rows]
    row_tables = [name for name in row_tables if name.rpartition("/")[2] not in concepts]
    units_by_name = {name: tuple(sorted(predicate_units - {NO_UNIT, ""})) for name, predicate_units in units_of.items()}
    return Vocabulary(
        (), tuple(concepts), tuple(relations), keys, qualifiers, tuple(sorted(units - {NO_UNIT, ""})), units_by_name,
        qualified, columns, scopes, tuple(row_tables),
    )  # fmt: skip


def _tables(survey: Survey, predicate: int) -> tuple[str, ...]:
    """Return the tables whose rows are subjects of a predicate."""
    starts, kinds, _ = survey["subjects"]
    subject_kinds = (survey["kinds"][kind] for kind in kinds[starts[predicate] : starts[predicate + 1]])
    return tuple(kind[1] for kind in subject_kinds if kind[0] == "table")


def candidates(graph: NamedGraph, question: str) -> list[str]:
    """Return the names of entities and concepts in a question, the longest first.

    If there are none, return those most similar to words with a capital letter.
    """
    result: list[str] = []
    used_words: set[int] = set()
    for words, name in _spans(question):
        if used_words.isdisjoint(words) and _is_name(graph, name):
            result.append(name)
            used_words.update(words)
    if not result:
        for words, name in _spans(question):
            if used_words.isdisjoint(words) and all(word[:1].isupper() or word[:1].isdigit() for word in name.split()):
                similar = _similar(graph, name)
                result += similar
                used_words.update(words if similar else ())
    return list(dict.fromkeys(result))


def everybody(graph: NamedGraph) -> list[str]:
    """Return the names of all entities and concepts of a graph; a graph on a server is read completely."""
    snapshot = graph.snapshot().current
    names = snapshot.texts.take(snapshot.arrays.get("ent.name"))
    return sorted({name for name in names if name})


def _spans(question: str) -> Iterator[tuple[Sequence[int], str]]:
    """Yield runs of words of a question, the longest first."""
    words = list(_WORD.finditer(question))[:MAX_STARTS]
    for length in range(min(MAX_WORDS, len(words)), 0, -1):
        for index in range(len(words) - length + 1):
            check()
            text = question[words[index].start() : words[index + length - 1].end()]
            yield range(index, index + length), text
            if text.endswith("."):
                yield range(index, index + length), text[:-1]


def _is_name(graph: NamedGraph, name: str) -> bool:
    if name.islower() and len(name) < 3:
        return False
    return bool(graph.kopl([{"function": "Find", "inputs": [name], "dependencies": []}], on_unknown="empty").entities)


def _similar(graph: NamedGraph, name: str) -> list[str]:
    try:
        graph.kopl([{"function": "Find", "inputs": [name], "dependencies": []}])
    except UnknownNameError as error:
        return list(error.candidates[:MAX_SIMILAR])
    return [name]


# -- what entities have ------------------------------------------------------------------------------
# The predicates of each entity of a question, so that a grammar allows nothing else after `Find(e)`.


#: Most entities whose predicates are looked up.
MAX_ENTITIES: Final = 64
#: The predicates of an entity: "forward" and "backward" relations, and attributes ("value").
Has = Mapping[str, Sequence[str]]


def surroundings(graph: NamedGraph, entities: Sequence[str]) -> dict[str, Has]:
    """Return the predicates of each entity, by three short queries; entities with the same name share them.

    Raises `OptionError` for more than `MAX_ENTITIES` entities.
    """
    if len(entities) > MAX_ENTITIES:
        raise OptionError(
            f"a grammar that knows what {len(entities):,} entities have would be far too long",
            hint=f"question=, or entities= with at most {MAX_ENTITIES}",
        )
    store = graph._store_of(None)
    return {
        entity: {direction: plan_texts(store, plan) for direction, plan in around(ByName((entity,))).items()} for entity in entities
    }
