"""What lowering knows of several stores: their schemas as one, and their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from condgraph.engine import algebra as alg
from condgraph.engine.errors import OptionError, SourceError, UnknownNameError, nearest, numbered
from condgraph.engine.facts import EntityKind, Source
from condgraph.engine.origins import check_source
from condgraph.engine.schema import Kinds, Shown
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.values import Value
from condgraph.names.linking import LinkingSchema

if TYPE_CHECKING:
    from condgraph.several.gathering import Gathering, Renamed, Stores
    from condgraph.several.member import Member


#: Names that a store is asked for at once.
_CHUNK: Final = 2_000
#: Which entities of a store are entities of other stores: the ids that they have there by their own, or the concepts whose
#: members are the entities of their name.
Same: TypeAlias = Mapping[str, Mapping[str, str] | Sequence[str] | str]


def matched(members: Sequence[Member], schemas: Sequence[StoredSchema], same: Same) -> list[str]:
    """Let members have the ids that others have for the same entities; what is to be known of those that are not matched.
    Raises `OptionError` and `UnknownNameError` for a store, or a concept, that is not there.
    """
    notes = []
    for name in same:
        if name not in [member.name for member in members]:
            raise OptionError(f"`same` is about a store {name!r}", candidates=nearest(name, [member.name for member in members]))
    for member, schema in zip(members, schemas, strict=True):
        declared = same.get(member.name, ())
        if isinstance(declared, Mapping):
            member.same = dict(declared)
            continue
        ids: dict[str, str] = {}
        for concept in (declared,) if isinstance(declared, str) else declared:
            if not schema.has_concept(concept):
                raise UnknownNameError("concept", concept, candidates=nearest(concept, schema.concepts))
            member.same = {}
            own = member.entities(alg.Members(alg.ByName((concept,))))
            names = sorted({entity.name for entity in own})
            others: dict[str, set[str]] = {}
            for start in range(0, len(names), _CHUNK):
                for other in members:
                    for entity in other.entities(alg.ByName(tuple(names[start : start + _CHUNK]))) if other is not member else ():
                        others.setdefault(entity.name, set()).add(entity.id)
            times = Counter(entity.name for entity in own)
            for entity in own:
                found = others.get(entity.name, set())
                if len(found) == 1 == times[entity.name]:
                    ids[entity.id] = next(iter(found))
            lacking = sum(name not in others for name in times.elements())
            if len(own) > len(ids) and lacking < len(own) - len(ids):
                apart = numbered(len(own) - len(ids) - lacking, "name is", "names are")
                notes.append(f"{apart} of several {concept!r} of {member.name!r}, or of several entities in other stores")
            if lacking:
                notes.append(f"{numbered(lacking, 'entity', 'entities')} of {concept!r} in {member.name!r} have no other store")
        member.same = ids
    return notes


def renamed_sources(members: Sequence[Member]) -> tuple[Renamed, tuple[Source, ...]]:
    """What sources are called that have the name of another one in a store before, by member and name; and all sources."""
    known: dict[str, Source] = {}
    result: Renamed = {}
    for at, member in enumerate(members):
        for source in member.sources():
            name = source.name
            if name in known:
                try:
                    check_source(known[name], source)
                except SourceError:
                    result[at, name] = name = f"{member.name}/{name}"
            known.setdefault(name, Source(name, source.location, source.format, source.content, source.terms))
    return result, tuple(known.values())


def union(
    schemas: Sequence[StoredSchema], renamed: Renamed, sources: Sequence[Source], concepts: Iterable[str] | None
) -> StoredSchema:
    """Schemas as one: concepts, predicates and qualifiers of one name are the same. `concepts` are the names of all concepts,
    None where only the schemas say them.
    """
    names = [source.name for source in sources]
    numbers = {name: number for number, name in enumerate(names)}
    kinds: dict[str, dict[str, Kinds]] = {"attributes": {}, "qualifiers": {}}
    on: dict[str, dict[str, Kinds]] = {}
    predicates: dict[str, set[int]] = {}
    sizes: dict[str, int] = {}
    members: dict[str, int] = {}
    several: dict[str, set[str]] = {"attributes": set(), "qualifiers": set()}
    shown: Shown = {"attributes": {}, "qualifiers": {}}
    tables: dict[str, set[str]] = {"tables": set(), "tabular": set(), "keyed": set()}
    telling: dict[str, str] = {}

    def add(into: Kinds, found: Kinds) -> None:
        for kind, count in found.items():
            into[kind] = into.get(kind, 0) + count

    for at, schema in enumerate(schemas):

        def called(name: str, at: int = at) -> str:
            return renamed.get((at, name), name)

        for name in schema.attributes:
            add(kinds["attributes"].setdefault(name, {}), schema.attribute_kinds(name))
        for key in schema.qualifiers:
            add(kinds["qualifiers"].setdefault(key, {}), schema.qualifier_kinds(key))
        for name in schema.predicates:
            predicates.setdefault(name, set()).update(numbers[called(source)] for source in schema.sources_of(name))
            for key in schema.qualifiers:
                if schema.has_qualifier(key, name):
                    add(on.setdefault(key, {}).setdefault(name, {}), schema.qualifier_kinds(key, name))
        for counts, found in ((sizes, schema.sizes), (members, schema.members)):
            for name, count in found.items():
                counts[name] = counts.get(name, 0) + count
        for sort, listed in (("attributes", schema.attributes), ("qualifiers", schema.qualifiers)):
            for name in listed:
                shared = any(name in (other.attributes if sort == "attributes" else other.qualifiers) for other in schemas[:at])
                if shared or schema.several_values(name, qualifier=sort == "qualifiers") is not False:
                    several[sort].add(name)
            for name, sorts in schema.shown[sort].items():
                known = shown[sort].setdefault(name, [[False, []], [False, []]])
                for one, (others, places) in zip(known, sorts, strict=True):
                    one[:] = [one[0] or others, [*one[1], *(places or ())]]
        for sort, of in (("tables", schema.tables), ("tabular", schema.tabular), ("keyed", schema.keyed_tables)):
            tables[sort].update(map(called, of))
        telling.update({called(source): column for source, column in schema.telling.items()})

    def rows(found: Kinds) -> list[list[Any]]:
        return [[int(kind), unit, count] for (kind, unit), count in sorted(found.items())]

    def every(part: str) -> list[str]:
        return sorted(set(chain.from_iterable(getattr(schema, part) for schema in schemas)))

    def some(part: str) -> bool:
        return any(getattr(schema, part) for schema in schemas)

    # A table whose statements are all of its own rows may be stated of by another store.
    shared_names = len(schemas) > 1
    return StoredSchema(
        {
            "relations": every("relations"),
            "attributes": {name: rows(found) for name, found in sorted(kinds["attributes"].items())},
            "qualifiers": {name: rows(found) for name, found in sorted(kinds["qualifiers"].items())},
            "on": {key: {name: rows(found) for name, found in owners.items()} for key, owners in sorted(on.items())},
            "concepts": every("concepts") if concepts is None else sorted(concepts),
            "sources": names,
            "predicates": {name: sorted(found) for name, found in sorted(predicates.items())},
            "tables": sorted(tables["tables"]),
            "tabular": sorted(tables["tabular"] if not shared_names else _apart(tables["tabular"], schemas, renamed)),
            "keyed": sorted(tables["keyed"]),
            "telling": telling,
            "temporal": some("temporal"),
            "inexact": some("inexact"),
            "raw": some("raw"),
            "concept_subjects": True,
            "concept_attributes": True,
            "concept_members": True,
            "several": {sort: sorted(found) for sort, found in several.items()},
            "shown": shown,
            "sizes": sizes,
            "members": members,
        }
    )


def _apart(tabular: Iterable[str], schemas: Sequence[StoredSchema], renamed: Renamed) -> set[str]:
    """The tables among some of which only one store has statements."""
    times: dict[str, int] = {}
    for at, schema in enumerate(schemas):
        for source in schema.sources:
            name = renamed.get((at, source), source)
            times[name] = times.get(name, 0) + 1
    return {name for name in tabular if times[name] == 1}


def disagreements(members: Sequence[Member], schemas: Sequence[StoredSchema]) -> list[str]:
    """The predicates and qualifiers whose values are of other types in one store than in another."""
    result = []
    for sort, kinds_of in (("attribute", StoredSchema.attribute_kinds), ("qualifier", StoredSchema.qualifier_kinds)):
        for name in sorted({name for schema in schemas for name in getattr(schema, f"{sort}s")}):
            found = [(member.name, kinds_of(schema, name)) for member, schema in zip(members, schemas, strict=True)]
            there = [(store, sorted({kind for kind, _ in kinds})) for store, kinds in found if kinds]
            if len({tuple(kinds) for _, kinds in there}) > 1:
                words = "; ".join(f"{' and '.join(kind.name.lower() for kind in kinds)} in {store!r}" for store, kinds in there)
                result.append(f"values of the {sort} {name!r} are {words}")
    for name in sorted({name for schema in schemas for name in schema.relations}):
        relation = [member.name for member, schema in zip(members, schemas, strict=True) if schema.has_relation(name)]
        value = [
            member.name for member, schema in zip(members, schemas, strict=True)
            if schema.has_attribute(name) and not schema.has_relation(name)
        ]  # fmt: skip
        if value:
            result.append(f"{name!r} leads to entities in {relation[0]!r}, and to values in {value[0]!r}")
    return result


class SeveralSchema(LinkingSchema):
    """The schema that looks up names in several stores."""

    def nearest_entities(self, name: str, *, most: int = 5) -> list[str]:
        """Entity names most like `name`, of entities that have them here: the first store that names one decides."""
        found = super().nearest_entities(name, most=4 * most)
        lacking = set(self.missing(found))
        return [one for one in found if one not in lacking][:most]


class SeveralNames:
    """The names of several stores (`names.linking.NameReader`)."""

    def __init__(self, stores: Stores, gathering: Callable[[], Gathering]) -> None:
        self._stores, self._gathering = stores, gathering

    def _readers(self, source: str | None) -> Iterator[tuple[Any, str | None]]:
        for at, member in enumerate(self._stores.members):
            if source is None:
                yield member.reader, None
            elif (local := self._stores.local_source(at, source)) is not None:
                yield member.reader, local

    def kinds(self, predicates: tuple[str, ...] | None, source: str | None) -> Kinds:
        """How many objects there are of each type and unit."""
        result: Kinds = {}
        for reader, local in self._readers(source):
            for kind, count in reader.kinds(predicates, local).items():
                result[kind] = result.get(kind, 0) + count
        return result

    def refers(self, predicates: tuple[str, ...] | None, source: str | None, table: str) -> bool:
        """Whether some object is a row of a table."""
        rows = alg.AllEntities((EntityKind.ROW,), table, own=True)
        plan = alg.Where(alg.Scan(None, predicates, source=source), alg.Among(rows))
        return len(self._gathering().gather(plan).run(plan).results[id(plan)]) > 0

    def objects(self, predicates: tuple[str, ...] | None, source: str | None) -> Iterator[tuple[str, Value | str, str | None]]:
        """Every distinct object: its predicate, its value (an entity by its name), and its raw text."""
        seen = set()
        for reader, local in self._readers(source):
            for cell in reader.objects(predicates, local):
                if cell not in seen and not (cell[0] == "" and cell[2] is None):
                    seen.add(cell)
                    yield cell
        ends = alg.Reached(alg.Scan(None, predicates, "subject", "object", "relation", source))
        if any(self._stores.schema.has_relation(name) for name in predicates or self._stores.schema.relations):
            yield from (("", name, None) for name in self._gathering().called(ends))

    def heads(self, predicates: tuple[str, ...]) -> Iterator[str]:
        """The names of subjects."""
        return iter(self._gathering().called(alg.Reached(alg.Scan(None, predicates))))

    def names(self) -> Iterator[str]:
        """The names of all entities and concepts that are no table rows."""
        return (name for reader, _ in self._readers(None) for name in reader.names())

    def has_name(self, name: str) -> bool:
        """Some entity or concept has exactly this name."""
        return not self.without((name,))

    def has_text(self, text: str) -> bool:
        """Some entity has this name or id, or some attribute this text."""
        return any(reader.has_text(text) for reader, _ in self._readers(None))

    def name_of(self, ident: str) -> str | None:
        """The name of the entity that has this id; None where none has."""
        names = [name for reader, _ in self._readers(None) if (name := reader.name_of(ident)) is not None]
        return next((name for name in names if name != ident), names[0] if names else None)

    def without(self, names: Sequence[str]) -> list[str]:
        """Those of the names that no entity or concept has."""
        lacking = list(names)
        for reader, _ in self._readers(None):
            lacking = list(reader.without(lacking)) if lacking else []
        there = [name for name in names if name not in set(lacking)]
        # An entity that one store calls so may have another name in a store before it.
        gathering = self._gathering()
        gathering.look_up([alg.ByName(tuple(there))])
        return [*lacking, *(name for name in there if not gathering.named((name,)))]

    names_repeat = False

    def all_names(self, around: Sequence[str]) -> list[str]:
        """The names of all entities, concepts and rows; in a large graph those near some texts."""
        return list(dict.fromkeys(name for reader, _ in self._readers(None) for name in reader.all_names(around)))
