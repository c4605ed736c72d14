"""The evidence of an answer as records: statements with their sources, entities, and what was searched.

A graph made of the records alone (`EvidenceList.items`) gives the same answer to the same plan; `check` verifies
that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from condgraph.engine.bounds import watched
from condgraph.engine.errors import requiring
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Source, Sourced, Statement, Subclass, shown
from condgraph.engine.records import Evidence, place_text, record_of
from condgraph.engine.snapshot import readback
from condgraph.engine.terms import INFERRED, axioms_of
from condgraph.engine.values import Value

if TYPE_CHECKING:
    import igraph
    import networkx

    from condgraph.engine.algebra import Node
    from condgraph.engine.execute.evidence import EvidenceTrail
    from condgraph.engine.execute.searched import SearchRecord
    from condgraph.engine.snapshot.snapshot import Snapshot


#: The predicates that display memberships and subclass steps.
INSTANCE_OF: Final = "instance of"
SUBCLASS_OF: Final = "subclass of"
#: The number of records between two checks of the deadline.
SOME: Final = 512
#: Counts the statements or entities of each operator on the store that answered, with a timeout in
#: seconds.
Counter: TypeAlias = Callable[[Sequence["Node"], float | None], list[int]]


@dataclass(frozen=True, slots=True)
class Declared:
    """An entity that is evidence itself: found by name, as one of all, or as a row, which has a position in `source`."""

    entity: Entity
    source: Source | None = None

    def __str__(self) -> str:
        place = f"  [{self.source.name}, row {self.entity.row}]" if self.source is not None else ""
        return f"{self.entity.name} ({self.entity.id}){place}"


@dataclass(frozen=True, slots=True)
class Searched:
    """Something that was searched, for an answer that depends on there being no more.

    `number` statements of the predicates `names` (empty: any), followed "forward" or "backward" from `start` entities
    (None: all); or members of the concepts `names`; or entities with the names `names` (empty: all), or rows.
    `source` restricts it to one source.
    """

    what: Literal["statements", "members", "entities", "rows"]
    number: int
    names: tuple[str, ...] = ()
    direction: Literal["", "forward", "backward"] = ""
    start: int | None = None
    source: str | None = None

    def __str__(self) -> str:
        names = " or ".join(self.names)
        words = self.what if self.number != 1 else {"entities": "entity"}.get(self.what, self.what[:-1])
        text = f"{self.number} {words}"
        if self.what == "statements":
            text += f" of {names or 'any predicate'}, {self.direction} from "
            text += "all entities" if self.start is None else f"{self.start} entit{'y' if self.start == 1 else 'ies'}"
        elif names:
            text += f" of {names}" if self.what == "members" else f" called {names}"
        return text + (f"  [{self.source}]" if self.source is not None else "")


class EvidenceList(Sequence[Evidence]):
    """The evidence of an answer, a sequence of statements that are read on access.

    In addition, `entities` are evidence themselves, and `rows` have positions in tables; `searched` lists what was
    searched, empty if the statements prove the answer (`monotone`).
    """

    def __init__(self, trail: EvidenceTrail, plan: Node | None = None, counter: Counter | None = None) -> None:
        self.trail, self._plan, self._counter = trail, plan, counter
        self._searched: tuple[Searched, ...] | None = None

    @classmethod
    def of(cls, snapshot: Snapshot, statements: list[int], memberships: list[tuple[int, int]]) -> EvidenceList:
        """Return some statements and memberships of a snapshot, by number."""
        from condgraph.engine.execute.evidence import EvidenceTrail
        from condgraph.engine.execute.run import Run

        return cls(EvidenceTrail(Run(snapshot), statements=np.array(statements, np.int32), memberships=memberships))

    @property
    def _snapshot(self) -> Snapshot:
        return self.trail.run.snapshot

    def __len__(self) -> int:
        return len(self.trail.statements) + len(self.trail.memberships) + len(self.trail.subclasses)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[index] for index in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        at %= len(self)
        trail = self.trail
        if at < len(trail.statements):
            return record_of(self._snapshot, int(trail.statements[at]))
        at -= len(trail.statements)
        if at < len(trail.memberships):
            return self._link("mem", *trail.memberships[at])
        return self._link("sub", *trail.subclasses[at - len(trail.memberships)])

    def __iter__(self) -> Iterator[Evidence]:
        return (self[index] for index in watched(range(len(self)), SOME))

    def __repr__(self) -> str:
        return f"<{len(self)} statements of evidence>"

    def _repr_html_(self) -> str:
        """The statements as a drawing and a table, for notebooks."""
        from condgraph.engine import html
        from condgraph.engine.drawing import of_statements

        rows = [
            (record.subject.name, record.predicate, shown(record.object),
             "; ".join(f"{key}: {shown(value)}" for key, value in record.qualifiers),
             "; ".join(place_text(source, row) for source, row in record.sources))
            for record in islice(self, html.MAX_ROWS)
        ]  # fmt: skip
        columns = ("subject", "predicate", "object", "qualifiers", "source")
        parts = [of_statements(self).svg, html.table("statements", columns, rows, len(self) - len(rows))] if rows else []
        return html.page(repr(self)[1:-1], parts)

    def to_networkx(self) -> networkx.MultiDiGraph:
        """Return the statements as a NetworkX graph: a node for each entity, by id, with `name`, `kind` and `values`
        (lists by predicate, typed), and an edge for each statement between two entities, with `predicate`,
        `qualifiers` (pairs) and `sources`.
        """
        with requiring("networkx", "networkx"):
            import networkx
        graph = networkx.MultiDiGraph()
        nodes, edges = parts_of(self)
        graph.add_nodes_from(nodes.items())
        graph.add_edges_from(edges)
        return graph

    def to_igraph(self) -> igraph.Graph:
        """Return the same as a directed igraph graph, whose nodes have their ids as `id`."""
        with requiring("igraph", "igraph"):
            import igraph
        nodes, edges = parts_of(self)
        places = {ident: place for place, ident in enumerate(nodes)}
        graph = igraph.Graph(len(nodes), [(places[start], places[end]) for start, end, _ in edges], directed=True)
        graph.vs["id"] = list(nodes)
        for key in ("name", "kind", "values"):
            graph.vs[key] = [about[key] for about in nodes.values()]
        for key in ("predicate", "qualifiers", "sources"):
            graph.es[key] = [about[key] for _, _, about in edges]
        return graph

    def _link(self, table: Literal["mem", "sub"], below: int, above: int) -> Evidence:
        snapshot = self._snapshot
        places = readback.link_sources(snapshot, table, below, above)
        sources = tuple((snapshot.source_of(number), row) for number, row in places)
        predicate = INSTANCE_OF if table == "mem" else SUBCLASS_OF
        kind: Literal["membership", "subclass"] = "membership" if table == "mem" else "subclass"
        ends = snapshot.entity(below), predicate, snapshot.entity(above)
        # If any source states it, it does not follow from axioms alone.
        derivations = [axioms_of(source.terms).get((ends[0].id, ends[2].id)) for source, _ in sources] if table == "mem" else []
        axioms = min((derivation for derivation in derivations if derivation), default=()) if None not in derivations else ()
        return Evidence(*ends, tuple((INFERRED, axiom) for axiom in axioms), sources, kind)

    # -- entities, rows and searches ---------------------------------------------------------------

    @cached_property
    def entities(self) -> tuple[Declared, ...]:
        """The entities that are evidence themselves: found by name, as one of all or as a row, and not in any
        statement here.
        """
        mentioned = self.trail.mentioned()
        return tuple(map(self._declared, watched(self.trail.entities[~np.isin(self.trail.entities, mentioned)].tolist(), SOME)))

    @cached_property
    def rows(self) -> tuple[Declared, ...]:
        """The table rows in the statements, with their positions."""
        places, mentioned = self._snapshot.arrays.get("ent.source"), self.trail.mentioned()
        return tuple(map(self._declared, watched(mentioned[places[mentioned] >= 0].tolist(), SOME))) if len(places) else ()

    def _declared(self, number: int) -> Declared:
        snapshot, places = self._snapshot, self._snapshot.arrays.get("ent.source")
        place = int(places[number]) if len(places) else -1
        return Declared(snapshot.entity(number), snapshot.source_of(place) if place >= 0 else None)

    @cached_property
    def looks(self) -> list[SearchRecord]:
        """What was searched, as operators that count it."""
        from condgraph.engine.execute.searched import looks

        return [] if self._plan is None else looks(self.trail, self._plan)

    @property
    def searched(self) -> tuple[Searched, ...]:
        """What was searched, if the answer depends on there being no more; on a server this takes one further query."""
        return self.search()

    def search(self, timeout: float | None = None) -> tuple[Searched, ...]:
        """Return `searched`, with a timeout in seconds for counting."""
        if self._searched is None:
            results = () if self._counter is None else counted(self.looks, self._counter, timeout)
            # Ties are broken by the counts, so that the order is the same on every store.
            order = sorted(range(len(results)), key=lambda index: (_ORDER.index(results[index].what), _sort_key(results[index])))
            self.looks = [self.looks[index] for index in order]
            self._searched = tuple(results[index] for index in order)
        return self._searched

    @property
    def monotone(self) -> bool:
        """Whether the statements alone prove the answer, so that nothing else had to be searched."""
        return not self.looks

    def items(self) -> list[Item]:
        """Return the evidence as items of a graph: `condgraph.open().add(answer.evidence.items())`."""
        return items(self, (*self.entities, *self.rows), self.sources)

    @property
    def confirmed(self) -> dict[str, datetime | None]:
        """When each source of the statements was last loaded, by name, sorted: the statements were confirmed then.
        None if unknown, as on servers.
        """
        load_times = {source.name: source.loaded for record in self for source, _ in record.sources}
        return {name: load_times[name] for name in sorted(load_times)}

    @property
    def sources(self) -> list[str]:
        """The sources named in the plan, sorted."""
        named = {source for node in self.trail.run.order if (source := getattr(node, "source", None)) is not None}
        return sorted(named)


_ORDER: Final = ("statements", "members", "entities", "rows")


def _sort_key(one: Searched) -> tuple[Any, ...]:
    return one.names, one.direction, one.source or "", -1 if one.start is None else one.start, one.number


def counted(looked: Sequence[SearchRecord], counter: Counter, timeout: float | None = None) -> tuple[Searched, ...]:
    """Return what was searched, with the counts."""
    if not looked:
        return ()
    nodes: list[Node] = [look.counted for look in looked]
    starts: list[Node] = [look.start for look in looked if look.start is not None]
    sizes = counter([*nodes, *starts], timeout)
    start_sizes = iter(sizes[len(nodes) :])
    return tuple(
        Searched(look.what, size, look.names, look.direction, None if look.start is None else next(start_sizes), look.source)
        for look, size in zip(looked, sizes, strict=False)
    )


def items(evidence: Iterable[Evidence], declared: Iterable[Declared] = (), sources: Iterable[str] = ()) -> list[Item]:
    """Return evidence as items of a graph; `sources` are always included, since a program may name them."""
    sources_by_name: dict[str, Source] = {name: Source(name) for name in sources}
    entities: dict[str, Item] = {}
    facts: list[Item] = []
    for declaration in watched(declared, SOME):
        entity, source = declaration.entity, declaration.source
        entities[entity.id] = entity if source is None else _row(entity, source)
        if source is not None:
            sources_by_name[source.name] = source

    def ref(value: Entity | Value, place: Source) -> Ref | Value:
        if not isinstance(value, Entity):
            return value
        if value.id not in entities:
            entities[value.id] = _row(value, place) if value.kind is EntityKind.ROW else value
        return Ref(value.id)

    for fact in watched(evidence, SOME):
        sources_by_name.update((source.name, source) for source, _ in fact.sources)
        place = fact.sources[0][0] if fact.sources else Source("")
        ref(fact.subject, place)
        object_ = ref(fact.object, place)
        places = tuple((source.name, row) for source, row in fact.sources)
        item: Member | Subclass | Statement
        if isinstance(object_, Ref) and fact.kind != "statement":
            item = (Member if fact.kind == "membership" else Subclass)(fact.subject.id, object_.id)
        else:
            qualifiers = tuple((key, ref(value, place)) for key, value in fact.qualifiers)
            item = Statement(fact.subject.id, fact.predicate, object_, qualifiers, raw=fact.raw)
        facts.append(Sourced(item, places))
    return [*sources_by_name.values(), *entities.values(), *facts]


def _row(entity: Entity, source: Source) -> Item:
    return Sourced(entity, ((source.name, entity.row),))


# -- evidence as a network ---------------------------------------------------------------------------
# Statements as a graph of NetworkX or igraph.


#: Nodes by entity id, with their attributes; edges as the ids of their ends, and their attributes.
Nodes = dict[str, dict[str, Any]]
Edges = list[tuple[str, str, dict[str, Any]]]


def parts_of(statements: Iterable[Evidence]) -> tuple[Nodes, Edges]:
    """Return nodes with their `name`, `kind` and `values` by predicate; edges with their `predicate`, `qualifiers`
    and `sources`.
    """
    nodes: Nodes = {}
    edges: Edges = []

    def node(entity: Entity) -> dict[str, Any]:
        return nodes.setdefault(entity.id, {"name": entity.name, "kind": entity.kind.name.lower(), "values": {}})

    for record in statements:
        subject = node(record.subject)
        if isinstance(record.object, Entity):
            node(record.object)
            sources = [place_text(source, row) for source, row in record.sources]
            about = {"predicate": record.predicate, "qualifiers": list(record.qualifiers), "sources": sources}
            edges.append((record.subject.id, record.object.id, about))
        else:
            subject["values"].setdefault(record.predicate, []).append(record.object)
    return nodes, edges
