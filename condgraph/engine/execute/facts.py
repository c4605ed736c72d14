"""Operators that give entities, statements, and values of statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.bounds import watched
from condgraph.engine.errors import PlanError, numbered
from condgraph.engine.execute.conditions import as_places, decide, holds, matches
from condgraph.engine.execute.sets import (
    EMPTY,
    Bag,
    FactSet,
    Mask,
    Numbers,
    Part,
    Runs,
    distinct,
    distinct_positions,
    intersect,
    minus,
    union,
)
from condgraph.engine.execute.validity import holds_at, interval_mask, validity_in
from condgraph.engine.facts import EntityKind
from condgraph.engine.snapshot.ordered import Cells, add_types
from condgraph.engine.snapshot.snapshot import ranges
from condgraph.engine.values import NO_UNIT, Kind, Quantity, Time

if TYPE_CHECKING:
    from condgraph.engine.execute.run import Run
    from condgraph.engine.snapshot.ordered import Ordered
    from condgraph.engine.snapshot.snapshot import Snapshot


# -- entities ----------------------------------------------------------------------------------------
# Operators that give sets of entities.


def every(run: Run, node: alg.AllEntities) -> Numbers:
    """All entities of the kinds; of one source those that are rows of it or subject or object of
    its statements, or its own rows.
    """
    snapshot = run.snapshot
    found = snapshot.every(node.kinds)
    if node.source is None:
        return found
    source = run.source(node.source)
    keys = snapshot.arrays.get("row.key")
    first, last = keys.searchsorted((source << 32, (source + 1) << 32))
    parts = [snapshot.arrays.get("row.entity")[first:last]]
    if not node.own:
        statements = snapshot.sourced(source)
        relations = statements[: int(np.searchsorted(statements, snapshot.relations))]
        parts += [snapshot.subjects(statements), snapshot.relation_object[relations]]
    return intersect(distinct(np.concatenate(parts), snapshot.entities), found, snapshot.entities)


def known(run: Run, node: alg.ById) -> Numbers:
    """Entities by id; ids that the graph does not have are left out (lowering has looked)."""
    found = {number for ident in node.ids if (number := run.snapshot.identified(ident)) >= 0}
    return np.array(sorted(found), np.int32)


def named(run: Run, node: alg.ByName) -> Numbers:
    """Entities and concepts by exact name."""
    if len(node.names) == 1:
        return run.snapshot.named(node.names[0])
    return union([run.snapshot.named(name) for name in node.names], run.snapshot.entities)


def members(run: Run, node: alg.Members) -> Numbers:
    """The entities in any of the concepts."""
    return run.snapshot.members(_concepts(run, node))


def _concepts(run: Run, node: alg.Members) -> tuple[int, ...]:
    concepts = node.concepts
    if isinstance(concepts, alg.ByName) and len(concepts.names) == 1:
        return run.snapshot.concepts_named(concepts.names[0])
    found = run.entities(concepts)
    return tuple(found[run.snapshot.entity_kind[found] == EntityKind.CONCEPT].tolist())


def union_of(run: Run, node: alg.Union) -> Numbers:
    """Entities in any part."""
    return union([run.entities(part) for part in node.parts], run.snapshot.entities)


def intersect_of(run: Run, node: alg.Intersect) -> Numbers:
    """Entities in all parts, the smallest first; concepts by their masks."""
    # A program may name one set a thousand times.
    parts = {id(part): part for part in map(run.entities, node.parts)}
    found, *others = sorted(parts.values(), key=len)
    for other in watched(others, 64):
        found = found[run.among(found, other)]
    return found


def minus_of(run: Run, node: alg.Minus) -> Numbers:
    """Entities of the left that are not in the right."""
    return minus(run.entities(node.left), run.entities(node.right), run.snapshot.entities)


def neighbour(run: Run, node: alg.Neighbour) -> Numbers:
    """Rows at a distance in the order of their source; entities that are no rows have none, and are
    counted in a warning.
    """
    snapshot = run.snapshot
    found = run.entities(node.of)
    places, rows = snapshot.arrays.get("ent.source"), snapshot.arrays.get("ent.row")
    keys, entities = snapshot.arrays.get("row.key"), snapshot.arrays.get("row.entity")
    in_table = found[places[found] >= 0] if len(places) else EMPTY
    if len(in_table) < len(found):
        others = numbered(len(found) - len(in_table), "entity is no table row and has", "entities are no table rows and have")
        run.warn(f"{others} no neighbours")
    if not len(in_table):
        return EMPTY
    place: Any = places[in_table].astype(np.int64)
    at = np.searchsorted(keys, place << 32 | rows[in_table]) + node.distance
    inside = (at >= 0) & (at < len(keys))
    at, place = at[inside], place[inside]
    at = at[keys[at] >> 32 == place]
    return distinct(entities[at], snapshot.entities)


def reached(run: Run, node: alg.Reached) -> Numbers:
    """The distinct ends of the facts."""
    return run.facts(node.facts).ends()


def holders(run: Run, node: alg.SubjectsOf) -> Numbers:
    """The subjects of the carriers."""
    snapshot = run.snapshot
    parts = []
    for part in run.values(node.values).parts:
        if part.kind in ("name", "row"):
            parts.append(distinct(part.carriers, snapshot.entities))
        elif part.kind != "given":
            parts.append(distinct(snapshot.subjects(part.carriers), snapshot.entities))
    return union(parts, snapshot.entities)


def named_runs(snapshot: Snapshot, names: Numbers) -> Numbers:
    """The entities of these names, given as sorted numbers of texts: entities are numbered by name,
    so each name is a run.
    """
    first = snapshot.entity_name.searchsorted(names)
    last = snapshot.entity_name.searchsorted(names, side="right")
    return ranges(first, last).astype(np.int32)


def referents(run: Run, node: alg.Referents) -> Numbers:
    """The entities the values are, or are the names of; other values are counted in a warning."""
    snapshot = run.snapshot
    parts = []
    other = 0
    for part in run.values(node.values).parts:
        if part.kind == "ent":
            parts.append(distinct(part.ids.astype(np.int32), snapshot.entities))
        elif part.kind == "name":
            parts.append(distinct(part.carriers, snapshot.entities))
    rest = [part for part in run.values(node.values).parts if part.kind not in ("ent", "name")]
    for part in rest:
        cells = run.values(node.values).part_cells(part)
        entity = cells["kind"] == Kind.ENTITY
        parts.append(distinct(cells["ref"][entity].astype(np.int32), snapshot.entities))
        texts = cells["ref"][cells["kind"] == Kind.TEXT]
        # Texts that the graph does not have are no names in it.
        texts = distinct(texts[texts >= 0].astype(np.int32), len(snapshot.texts))
        parts.append(named_runs(snapshot, texts))
        other += int(((cells["kind"] != Kind.ENTITY) & (cells["kind"] != Kind.TEXT)).sum())
    if other:
        run.warn(numbered(other, "value is no entity, and no name of one", "values are no entities, and no names of any"))
    return union(parts, snapshot.entities)


# -- values ------------------------------------------------------------------------------------------
# Operators that give bags of values.


#: Programs can double a bag at every step, which nothing but this would end.
MOST_VALUES = 50_000_000


def objects(run: Run, node: alg.Objects) -> Bag:
    """The object of each fact; of a backward scan the object is still the statement's."""
    snapshot = run.snapshot
    numbers = run.facts(node.facts).all()
    split = snapshot.split(numbers)
    parts = []
    if split:
        parts.append(Part("ent", snapshot.relation_object.take(numbers[:split]), numbers[:split]))
    if split < len(numbers) or not parts:
        parts.append(Part("att", numbers[split:] - np.int32(snapshot.relations), numbers[split:]))
    return Bag(run, parts)


def qualifiers(run: Run, node: alg.Qualifiers) -> Bag:
    """The values of one qualifier key, or of all."""
    snapshot = run.snapshot
    facts = run.facts(node.facts)
    statements = facts.all()
    key = None if node.key is None else snapshot.predicate(node.key)
    if facts.small():
        pairs = list(qualifiers_one_by_one(run, statements, key))
        numbers = np.array([number for _, number in pairs], np.int32)
        return Bag(run, [Part("q", numbers, np.array([statement for statement, _ in pairs], np.int32))])
    positions, found = snapshot.qualifiers(statements) if key is None else qualifiers_of(run, statements, key)
    return Bag(run, [Part("q", found, statements.take(positions))])


def predicates(run: Run, node: alg.Predicates) -> Bag:
    """The predicate of each fact."""
    facts = run.facts(node.facts)
    statements = facts.all()
    if facts.small():
        numbers = np.array([run.snapshot.predicate_of(statement) for statement in statements.tolist()], np.int32)
    else:
        numbers = run.snapshot.predicates(statements)
    return Bag(run, [Part("pred", numbers, statements)])


def qualifier_keys(run: Run, node: alg.QualifierKeys) -> Bag:
    """The qualifier keys of each fact."""
    statements = run.facts(node.facts).all()
    positions, numbers = run.snapshot.qualifiers(statements)
    return Bag(run, [Part("pred", run.snapshot.arrays.get("q.key").take(numbers), statements[positions])])


def names(run: Run, node: alg.Names) -> Bag:
    """The name of each entity."""
    found = run.entities(node.entities)
    return Bag(run, [Part("name", found, found)])


def row_numbers(run: Run, node: alg.RowNumbers) -> Bag:
    """The position of each row; entities that are no rows have none."""
    found = run.entities(node.entities)
    rows = run.snapshot.arrays.get("ent.row")
    found = found[rows[found] > 0] if len(rows) else EMPTY
    return Bag(run, [Part("row", found, found)])


def keep(run: Run, node: alg.FilterValues) -> Bag:
    """The values that satisfy the test."""
    bag = run.values(node.values)
    cells = bag.cells()
    run.warn_incomparable(cells, node.condition)
    return bag.take(holds(run, node.condition, cells))


def distinct_values(run: Run, node: alg.Distinct) -> Bag:
    """Each value once, the first carrier staying."""
    bag = run.values(node.values)
    if len(bag) < 2:
        return bag
    if (few := bag.few()) is not None:
        cells, numbers = few
        first: dict[tuple[int, ...], int] = {}
        for i, n in enumerate(numbers):
            first.setdefault((cells.ref[n], cells.a[n], cells.kind[n], cells.b[n], cells.unit[n], cells.precision[n]), i)
        return bag if len(first) == len(numbers) else bag.take(np.array(list(first.values())))
    # Attributes of one predicate are numbered by value, so that equal ones stand together.
    positions = distinct_positions(bag.cells(), ordered=len(bag.parts) == 1 and bag.parts[0].kind == "att")
    return bag if len(positions) == len(bag) else bag.take(positions)


def concat(run: Run, node: alg.Concat) -> Bag:
    """The bags one after the other."""
    bags = [run.values(value) for value in node.parts]
    total = sum(map(len, bags))
    if total > MOST_VALUES:
        raise PlanError(f"{total} values side by side are too many", hint="union of sets, or unique, keeps each value once")
    return Bag(run, [part for bag in bags for part in bag.parts])


def given(run: Run, node: alg.Constants) -> Bag:
    """Values written in the program."""
    return Bag(run, [Part("given", np.arange(len(node.values)), EMPTY, node.values)])


# -- statements --------------------------------------------------------------------------------------


# -- scans -----------------------------------------------------------------------------------------


def scan(run: Run, node: alg.Scan) -> FactSet:
    """The statements of `Scan`, not yet looked at."""
    anchor, family, before = node.anchor, node.family, node.of
    if family == "relation":
        attributes = False
    else:
        attributes = anchor == "subject" and (family == "any" or node.reach == "subject")
    runs = run.snapshot.runs(node.predicates, family != "attribute", attributes)
    of = None if before is None else run.entities(before)
    if type(before) is alg.AllEntities and before.source is None and len(before.kinds) > 1 and not _concepts_at(run, anchor, runs):
        of = None  # every entity is every anchor: nothing to look up
    source = -1 if node.source is None else run.source(node.source)
    return FactSet(run, node.reach, runs=runs, of=of, anchor=anchor, source=source)


def _concepts_at(run: Run, anchor: alg.End, runs: Runs) -> bool:
    """Whether concepts are anchors of any statement in the families of these runs."""
    counts, base = run.snapshot.counts, run.snapshot.relations
    if not runs:
        return False
    if anchor == "object":
        return counts["concept_objects"] > 0
    return (runs[0][0] < base and counts["concept_subjects"] > 0) or (runs[-1][1] > base and counts["concept_attributes"] > 0)


# -- tests of the object ---------------------------------------------------------------------------


def where(run: Run, node: alg.Where) -> FactSet:
    """The facts whose object satisfies the test."""
    return satisfying(run, run.facts(node.facts), node.condition)


def satisfying(run: Run, facts: FactSet, condition: alg.Condition) -> FactSet:
    """The facts of a set whose object satisfies the test."""
    if isinstance(condition, alg.Among):
        return facts.keep(pointing_at(facts, run.entities(condition.entities)))
    if literal(condition):
        return _by_value(run, facts, condition)
    numbers = facts.all()
    cells = object_cells(run, numbers)
    run.warn_incomparable(cells, condition)
    return facts.keep(numbers[holds(run, condition, cells)])


def literal(condition: alg.Condition) -> bool:
    """Whether a test compares with literals only, so that sorted values answer it."""
    if isinstance(condition, (alg.AnyOf, alg.AllOf)):
        return all(literal(part) for part in condition.conditions)
    return isinstance(condition, alg.Compare)


def object_cells(run: Run, numbers: Numbers) -> Cells:
    """The objects of sorted statements as cells."""
    snapshot = run.snapshot
    split = snapshot.split(numbers)
    get = snapshot.arrays.get
    attributes = numbers[split:] - np.int32(snapshot.relations)
    if not split:
        return Cells(len(numbers), lambda name: get(f"att.{name}").take(attributes))
    objects = snapshot.relation_object.take(numbers[:split])
    filler = {"kind": np.int8(Kind.ENTITY), "a": np.int64(0), "b": np.int64(0), "unit": np.int32(-1), "precision": np.int8(0)}

    def read(name: str) -> Any:
        relations = objects if name == "ref" else np.full(split, filler[name])
        return np.concatenate([relations, get(f"att.{name}").take(attributes)])

    return Cells(len(numbers), read)


def pointing_at(facts: FactSet, targets: Numbers) -> Numbers:
    """The relations among the facts whose object is one of `targets`."""
    snapshot = facts.scope.snapshot
    if not len(targets):
        return EMPTY
    small = facts.of is not None and len(facts.of) <= len(targets)
    if facts.numbers is None and not small and len(targets) * 16 < snapshot.entities:
        runs = [run for run in facts.runs if run[0] < snapshot.relations]
        found = FactSet(facts.scope, "subject", runs=runs, of=targets, anchor="object").all()
        return distinct(facts.having(found), snapshot.statements)
    numbers = facts.all()
    numbers = numbers[: snapshot.split(numbers)]
    return numbers[facts.scope.among(snapshot.relation_object.take(numbers), targets)]


def _by_value(run: Run, facts: FactSet, condition: alg.Condition) -> FactSet:
    """The facts that satisfy a test on literals: the values of each predicate are sorted, so that
    mostly the runs get shorter.
    """
    snapshot = run.snapshot
    base = snapshot.relations
    runs: Runs = []
    single: list[Numbers] = []
    for low, high in facts.runs:
        if low < base:
            if comparable(condition, Kind.ENTITY, NO_UNIT):
                single.append(_relations_by_name(run, facts.narrowed([(low, high)]), condition))
            else:
                run.leave_out(Kind.ENTITY, NO_UNIT, len(facts.narrowed([(low, high)])), condition)
            continue
        for kind, unit, begin, end in snapshot.groups(low - base, high - base):
            if comparable(condition, kind, unit):
                found = sorted_matches(run, condition, snapshot.ordered("att"), kind, unit, begin, end)
                if isinstance(found, list):
                    runs.extend([(first + base, last + base) for first, last in found])
                else:
                    single.append(facts.having(found + np.int32(base)))
            elif kind is not Kind.UNKNOWN:
                run.leave_out(kind, unit, len(facts.narrowed([(begin + base, end + base)])), condition)
    if not single:
        return facts.narrowed(runs) if runs else facts.keep(EMPTY)
    if runs:
        single.append(facts.narrowed(runs).all())
    return facts.keep(union(single, snapshot.statements))


def sorted_matches(
    run: Run, condition: alg.Condition, cells: Ordered, kind: Kind, unit: str, low: int, high: int
) -> Runs | Numbers:
    """The cells of a sorted group of one type and unit that satisfy a test on literals: runs, or
    sorted single places.
    """
    if isinstance(condition, alg.Compare):
        return matches(run, condition, cells, low, high, entities=kind is Kind.ENTITY) if comparable(condition, kind, unit) else []
    assert isinstance(condition, (alg.AnyOf, alg.AllOf))
    parts = [sorted_matches(run, part, cells, kind, unit, low, high) for part in condition.conditions]
    if isinstance(condition, alg.AnyOf):
        parts = [part for part in parts if len(part)]
    if len(parts) == 1:
        return parts[0]
    places = [as_places(part) for part in parts]
    if isinstance(condition, alg.AnyOf):
        return union(places, high) if places else []
    result = places[0]
    for part in places[1:]:
        result = intersect(result, part, high)
    return result


def comparable(condition: alg.Condition, kind: Kind, unit: str) -> bool:
    """Whether a test on literals can hold of values of a type and unit; a text also of entities, by
    their names.
    """
    if isinstance(condition, alg.Compare):
        value = condition.value
        if isinstance(value, Time):
            return kind is Kind.TIME
        if isinstance(value, Quantity):
            return kind is Kind.QUANTITY and value.unit == unit
        return kind is Kind.TEXT or kind is Kind.ENTITY
    assert isinstance(condition, (alg.AnyOf, alg.AllOf))
    return any(comparable(part, kind, unit) for part in condition.conditions)


def _relations_by_name(run: Run, facts: FactSet, condition: alg.Condition) -> Numbers:
    """Relations whose object's name satisfies the test."""
    if isinstance(condition, alg.Compare) and condition.operator == "=" and isinstance(condition.value, str):
        return pointing_at(facts, run.snapshot.named(condition.value))
    numbers = facts.all()
    mask: Mask = holds(run, condition, object_cells(run, numbers))
    return numbers[mask]


# -- tests of validity -----------------------------------------------------------------------------


def validity(run: Run, numbers: Numbers) -> tuple[Numbers, Any, Any]:
    """Of statements, those that have a validity (as positions), with its start and end."""
    return validity_in(run.snapshot, numbers)


def during(run: Run, node: alg.During) -> FactSet:
    """The facts whose validity stands in the relation to the interval."""
    facts = run.facts(node.facts)
    statements = facts.all()
    if node.relation in ("may", "must"):
        return facts.keep(statements[holds_at(run.snapshot, node.relation, node.interval, statements)])
    positions, start, end = validity(run, statements)
    return facts.keep(statements[positions[interval_mask(node.relation, node.interval, start, end)]])


def turn(run: Run, node: alg.OtherEnd) -> FactSet:
    """The same statements, with the other end reached; attributes have no entity at their object."""
    facts = run.facts(node.facts)
    numbers = facts.all()
    if node.reach == "object":
        numbers = numbers[: run.snapshot.split(numbers)]
    return FactSet(run, node.reach, numbers=numbers, anchor=facts.anchor)


# -- tests of qualifiers ---------------------------------------------------------------------------
# The operator that tests qualifiers of statements, and the qualifiers that statements have.


def where_qualifier(run: Run, node: alg.WhereQualifier) -> FactSet:
    """The facts of which some qualifier of the key satisfies the test."""
    snapshot = run.snapshot
    facts, condition = run.facts(node.facts), node.condition
    key = snapshot.predicate(node.key)
    if key < 0:
        return facts.keep(EMPTY)
    if literal(condition):
        if facts.small():
            return facts.keep(_one_by_one(run, facts.all(), key, condition))
        found = _by_qualifier(run, facts, key, condition)
        if found is not None:
            return facts.keep(found)
    statements = facts.all()
    positions, numbers = qualifiers_of(run, statements, key)
    cells = Cells(len(numbers), lambda name: snapshot.arrays.get(f"q.{name}").take(numbers))
    run.warn_incomparable(cells, condition)
    return facts.keep(statements[distinct(positions[holds(run, condition, cells)], len(statements))])


def qualifiers_of(run: Run, statements: Numbers, key: int) -> tuple[Numbers, Any]:
    """The qualifiers of a key of sorted statements: for each the position of its statement, and its
    own number.
    """
    positions, numbers = run.snapshot.qualifiers(statements)
    chosen = (run.snapshot.arrays.get("q.key").take(numbers) == key).nonzero()[0]
    return positions.take(chosen), numbers.take(chosen)


def _one_by_one(run: Run, statements: Numbers, key: int, condition: alg.Condition) -> Numbers:
    """A few statements are looked at one by one."""
    ordered, satisfies = run.snapshot.ordered("q"), decide(run, condition)
    owned = qualifiers_one_by_one(run, statements, key)
    run.warn_types(add_types(ordered, [number for _, number in owned]), condition)
    found = dict.fromkeys([statement for statement, number in owned if satisfies(ordered, number)])
    return statements if len(found) == len(statements) else np.array(list(found), np.int32)


def qualifiers_one_by_one(run: Run, statements: Numbers, key: int | None) -> list[tuple[int, int]]:
    """The qualifiers of a key (None: all) of a few statements: each with its statement, both by
    number.
    """
    offsets, keys = run.snapshot.arrays.view("q.offsets"), run.snapshot.arrays.view("q.key")
    found = []
    for statement in statements.tolist() if len(offsets) else ():
        for number in range(offsets[statement], offsets[statement + 1]):
            if key is None or keys[number] == key:
                found.append((statement, number))
    return found


def _by_qualifier(run: Run, facts: FactSet, key: int, condition: alg.Condition) -> Numbers | None:
    """The facts with a qualifier whose value satisfies a test on literals; None where it is better
    to look at all facts.
    """
    snapshot = run.snapshot
    ordered = snapshot.ordered("q")
    owner = snapshot.arrays.get("q.owner")
    runs: Runs = []
    parts: list[Numbers] = []
    others: list[tuple[Kind, str, int, int]] = []
    for kind, unit, low, high in snapshot.qualifier_groups(key):
        if comparable(condition, kind, unit):
            found = sorted_matches(run, condition, ordered, kind, unit, low, high)
            if isinstance(found, list):
                runs.extend(found)
            else:
                parts.append(snapshot.arrays.get("qkey.items").take(found))
        elif kind is not Kind.UNKNOWN:
            others.append((kind, unit, low, high))
    if facts.few():
        size = sum(high - low for low, high in runs) + sum(high - low for _, _, low, high in others) + sum(map(len, parts))
        if size > 4 * len(facts.all()):
            return None
    parts.extend(ordered.numbers(low, high) for low, high in runs)
    for kind, unit, low, high in others:
        run.leave_out(kind, unit, len(facts.having(owner.take(ordered.numbers(low, high)))), condition)
    numbers = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else EMPTY
    return distinct(facts.having(owner.take(numbers)), snapshot.statements)
