"""The schemas and names of several stores, combined for lowering."""

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


#: Names in one query to a store.
_CHUNK: Final = 2_000
#: Declares entities of a store as entities of others: a mapping from its own ids to theirs, or concepts
#: whose members are matched by name.
Same: TypeAlias = Mapping[str, Mapping[str, str] | Sequence[str] | str]


def matched(members: Sequence[Member], schemas: Sequence[StoredSchema], same: Same) -> list[str]:
    """Set the common ids of members, and return notes about entities that were not matched.

    Raises `OptionError` for an unknown store, and `UnknownNameError` for an unknown concept.
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
            ids_by_name: dict[str, set[str]] = {}
            for start in range(0, len(names), _CHUNK):
                for other in members:
                    for entity in other.entities(alg.ByName(tuple(names[start : start + _CHUNK]))) if other is not member else ():
                        ids_by_name.setdefault(entity.name, set()).add(entity.id)
            times = Counter(entity.name for entity in own)
            for entity in own:
                candidates = ids_by_name.get(entity.name, set())
                if len(candidates) == 1 == times[entity.name]:
                    ids[entity.id] = next(iter(candidates))
            lacking = sum(name not in ids_by_name for name in times.elements())
            if len(own) > len(ids) and lacking < len(own) - len(ids):
                ambiguous = numbered(len(own) - len(ids) - lacking, "name is", "names are")
                notes.append(f"{ambiguous} of several {concept!r} of {member.name!r}, or of several entities in other stores")
            if lacking:
                notes.append(f"{numbered(lacking, 'entity', 'entities')} of {concept!r} in {member.name!r} have no other store")
        member.same = ids
    return notes


def renamed_sources(members: Sequence[Member]) -> tuple[Renamed, tuple[Source, ...]]:
    """Return new names for sources that share a name with a different source of an earlier store, and all sources."""
    known: dict[str, Source] = {}
    result: Renamed = {}
    for number, member in enumerate(members):
        for source in member.sources():
            name = source.name
            if name in known:
                try:
                    check_source(known[name], source)
                except SourceError:
                    result[number, name] = name = f"{member.name}/{name}"
            known.setdefault(name, Source(name, source.location, source.format, source.content, source.terms))
    return result, tuple(known.values())


def union(
    schemas: Sequence[StoredSchema], renamed: Renamed, sources: Sequence[Source], concepts: Iterable[str] | None
) -> StoredSchema:
    """Combine schemas: concepts, predicates and qualifiers with the same name are the same.

    `concepts` are the names of all concepts; None to take them from the schemas.
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
        for sort, source_names in (("tables", schema.tables), ("tabular", schema.tabular), ("keyed", schema.keyed_tables)):
            tables[sort].update(map(called, source_names))
        telling.update({called(source): column for source, column in schema.telling.items()})

    def rows(found: Kinds) -> list[list[Any]]:
        return [[int(kind), unit, count] for (kind, unit), count in sorted(found.items())]

    def every(part: str) -> list[str]:
        return sorted(set(chain.from_iterable(getattr(schema, part) for schema in schemas)))

    def some(part: str) -> bool:
        return any(getattr(schema, part) for schema in schemas)

    # Another store may have statements about rows of a table.
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
            "tabular": sorted(tables["tabular"] if not shared_names else _single_store_tables(tables["tabular"], schemas, renamed)),
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


def _single_store_tables(tabular: Iterable[str], schemas: Sequence[StoredSchema], renamed: Renamed) -> set[str]:
    """Return those of the tables that occur in one store only."""
    times: dict[str, int] = {}
    for at, schema in enumerate(schemas):
        for source in schema.sources:
            name = renamed.get((at, source), source)
            times[name] = times.get(name, 0) + 1
    return {name for name in tabular if times[name] == 1}


def disagreements(members: Sequence[Member], schemas: Sequence[StoredSchema]) -> list[str]:
    """Return texts about predicates and qualifiers whose values have different types in different stores."""
    result = []
    for sort, kinds_of in (("attribute", StoredSchema.attribute_kinds), ("qualifier", StoredSchema.qualifier_kinds)):
        for name in sorted({name for schema in schemas for name in getattr(schema, f"{sort}s")}):
            by_store = [(member.name, kinds_of(schema, name)) for member, schema in zip(members, schemas, strict=True)]
            present = [(store, sorted({kind for kind, _ in kinds})) for store, kinds in by_store if kinds]
            if len({tuple(kinds) for _, kinds in present}) > 1:
                words = "; ".join(f"{' and '.join(kind.name.lower() for kind in kinds)} in {store!r}" for store, kinds in present)
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
    """A schema that looks up names in several stores."""

    def nearest_entities(self, name: str, *, most: int = 5) -> list[str]:
        """Return the entity names most like `name`; names that an earlier store replaces are left out."""
        similar = super().nearest_entities(name, most=4 * most)
        lacking = set(self.missing(similar))
        return [candidate for candidate in similar if candidate not in lacking][:most]


class SeveralNames:
    """The names of several stores, for `names.linking.NameReader`."""

    def __init__(self, stores: Stores, gathering: Callable[[], Gathering]) -> None:
        self._stores, self._gathering = stores, gathering

    def _readers(self, source: str | None) -> Iterator[tuple[Any, str | None]]:
        for at, member in enumerate(self._stores.members):
            if source is None:
                yield member.reader, None
            elif (local := self._stores.local_source(at, source)) is not None:
                yield member.reader, local

    def kinds(self, predicates: tuple[str, ...] | None, source: str | None) -> Kinds:
        """Count the objects by type and unit."""
        result: Kinds = {}
        for reader, local in self._readers(source):
            for kind, count in reader.kinds(predicates, local).items():
                result[kind] = result.get(kind, 0) + count
        return result

    def refers(self, predicates: tuple[str, ...] | None, source: str | None, table: str) -> bool:
        """Tell whether some object is a row of a table."""
        rows = alg.AllEntities((EntityKind.ROW,), table, own=True)
        plan = alg.Where(alg.Scan(None, predicates, source=source), alg.Among(rows))
        return len(self._gathering().gather(plan).run(plan).results[id(plan)]) > 0

    def objects(self, predicates: tuple[str, ...] | None, source: str | None) -> Iterator[tuple[str, Value | str, str | None]]:
        """Yield every distinct object: its predicate, its value (for an entity, the name), and its raw text."""
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
        """Return the names of subjects."""
        return iter(self._gathering().called(alg.Reached(alg.Scan(None, predicates))))

    def names(self) -> Iterator[str]:
        """Return the names of all entities and concepts except table rows."""
        return (name for reader, _ in self._readers(None) for name in reader.names())

    def has_name(self, name: str) -> bool:
        """Tell whether an entity or concept has exactly this name."""
        return not self.without((name,))

    def has_text(self, text: str) -> bool:
        """Tell whether an entity has this name or id, or an attribute this text."""
        return any(reader.has_text(text) for reader, _ in self._readers(None))

    def name_of(self, ident: str) -> str | None:
        """Return the name of the entity with this id, or None."""
        names = [name for reader, _ in self._readers(None) if (name := reader.name_of(ident)) is not None]
        return next((name for name in names if name != ident), names[0] if names else None)

    def without(self, names: Sequence[str]) -> list[str]:
        """Return those of the names that no entity or concept has."""
        lacking = list(names)
        for reader, _ in self._readers(None):
            lacking = list(reader.without(lacking)) if lacking else []
        present = [name for name in names if name not in set(lacking)]
        # An entity that one store names so may have another name in an earlier store.
        gathering = self._gathering()
        gathering.look_up([alg.ByName(tuple(present))])
        return [*lacking, *(name for name in present if not gathering.named((name,)))]

    names_repeat = False

    def all_names(self, around: Sequence[str]) -> list[str]:
        """Return the names of all entities, concepts and rows; in a large graph, only those near some texts."""
        return list(dict.fromkeys(name for reader, _ in self._readers(None) for name in reader.all_names(around)))
