"""Operators that return entities, statements, and values of statements."""

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
    """Return all entities of the kinds; for one source, those that are rows of it or in its statements, or with `own`
    only its rows.
    """
    snapshot = run.snapshot
    entities = snapshot.every(node.kinds)
    if node.source is None:
        return entities
    source = run.source(node.source)
    keys = snapshot.arrays.get("row.key")
    first, last = keys.searchsorted((source << 32, (source + 1) << 32))
    parts = [snapshot.arrays.get("row.entity")[first:last]]
    if not node.own:
        statements = snapshot.sourced(source)
        relations = statements[: int(np.searchsorted(statements, snapshot.relations))]
        parts += [snapshot.subjects(statements), snapshot.relation_object[relations]]
    return intersect(distinct(np.concatenate(parts), snapshot.entities), entities, snapshot.entities)


def known(run: Run, node: alg.ById) -> Numbers:
    """Return entities by id, without ids that the graph does not have (lowering checks them)."""
    numbers = {number for ident in node.ids if (number := run.snapshot.identified(ident)) >= 0}
    return np.array(sorted(numbers), np.int32)


def named(run: Run, node: alg.ByName) -> Numbers:
    """Return entities and concepts by exact name."""
    if len(node.names) == 1:
        return run.snapshot.named(node.names[0])
    return union([run.snapshot.named(name) for name in node.names], run.snapshot.entities)


def members(run: Run, node: alg.Members) -> Numbers:
    """Return the entities in any of the concepts."""
    return run.snapshot.members(_concepts(run, node))


def _concepts(run: Run, node: alg.Members) -> tuple[int, ...]:
    concepts = node.concepts
    if isinstance(concepts, alg.ByName) and len(concepts.names) == 1:
        return run.snapshot.concepts_named(concepts.names[0])
    numbers = run.entities(concepts)
    return tuple(numbers[run.snapshot.entity_kind[numbers] == EntityKind.CONCEPT].tolist())


def union_of(run: Run, node: alg.Union) -> Numbers:
    return union([run.entities(part) for part in node.parts], run.snapshot.entities)


def intersect_of(run: Run, node: alg.Intersect) -> Numbers:
    """Return the entities in all parts, starting with the smallest part."""
    # A program may contain the same set a thousand times.
    parts = {id(part): part for part in map(run.entities, node.parts)}
    result, *larger = sorted(parts.values(), key=len)
    for chunk in watched(larger, 64):
        result = result[run.among(result, chunk)]
    return result


def minus_of(run: Run, node: alg.Minus) -> Numbers:
    return minus(run.entities(node.left), run.entities(node.right), run.snapshot.entities)


def neighbour(run: Run, node: alg.Neighbour) -> Numbers:
    """Return the rows at a distance in the order of their source. Warn of entities that are not rows."""
    snapshot = run.snapshot
    entities_of = run.entities(node.of)
    places, rows = snapshot.arrays.get("ent.source"), snapshot.arrays.get("ent.row")
    keys, entities = snapshot.arrays.get("row.key"), snapshot.arrays.get("row.entity")
    in_table = entities_of[places[entities_of] >= 0] if len(places) else EMPTY
    if len(in_table) < len(entities_of):
        subject = numbered(
            len(entities_of) - len(in_table), "entity is not a table row and has", "entities are not table rows and have"
        )
        run.warn(f"{subject} no neighbours")
    if not len(in_table):
        return EMPTY
    place: Any = places[in_table].astype(np.int64)
    positions = np.searchsorted(keys, place << 32 | rows[in_table]) + node.distance
    in_range = (positions >= 0) & (positions < len(keys))
    positions, place = positions[in_range], place[in_range]
    positions = positions[keys[positions] >> 32 == place]
    return distinct(entities[positions], snapshot.entities)


def reached(run: Run, node: alg.Reached) -> Numbers:
    """Return the distinct ends of the facts."""
    return run.facts(node.facts).ends()


def holders(run: Run, node: alg.SubjectsOf) -> Numbers:
    """Return the subjects of the carriers."""
    snapshot = run.snapshot
    parts = []
    for part in run.values(node.values).parts:
        if part.kind in ("name", "row"):
            parts.append(distinct(part.carriers, snapshot.entities))
        elif part.kind != "given":
            parts.append(distinct(snapshot.subjects(part.carriers), snapshot.entities))
    return union(parts, snapshot.entities)


def named_runs(snapshot: Snapshot, names: Numbers) -> Numbers:
    """Return the entities with these names, given as sorted numbers of texts. Entities are numbered by name, so each
    name is a run.
    """
    first = snapshot.entity_name.searchsorted(names)
    last = snapshot.entity_name.searchsorted(names, side="right")
    return ranges(first, last).astype(np.int32)


def referents(run: Run, node: alg.Referents) -> Numbers:
    """Return the entities that the values are or name. Warn of other values."""
    snapshot = run.snapshot
    bag, parts, ignored = run.values(node.values), [], 0
    for part in bag.parts:
        if part.kind == "ent":
            parts.append(distinct(part.ids.astype(np.int32), snapshot.entities))
            continue
        if part.kind == "name":
            parts.append(distinct(part.carriers, snapshot.entities))
            continue
        cells = bag.part_cells(part)
        entity = cells["kind"] == Kind.ENTITY
        parts.append(distinct(cells["ref"][entity].astype(np.int32), snapshot.entities))
        texts = cells["ref"][cells["kind"] == Kind.TEXT]
        # Texts that the graph does not have name nothing in it.
        texts = distinct(texts[texts >= 0].astype(np.int32), len(snapshot.texts))
        parts.append(named_runs(snapshot, texts))
        ignored += int(((cells["kind"] != Kind.ENTITY) & (cells["kind"] != Kind.TEXT)).sum())
    if ignored:
        run.warn(
            numbered(ignored, "value is neither an entity nor the name of one", "values are neither entities nor names of entities")
        )
    return union(parts, snapshot.entities)


# -- values ------------------------------------------------------------------------------------------
# Operators that give bags of values.


#: The largest bag: a program can double a bag at every step.
MAX_VALUES = 50_000_000


def objects(run: Run, node: alg.Objects) -> Bag:
    """Return the object of each fact; also for a backward scan it is the object of the statement."""
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
    """Return the values of one qualifier key, or of all keys."""
    snapshot = run.snapshot
    facts = run.facts(node.facts)
    statements = facts.all()
    key = None if node.key is None else snapshot.predicate(node.key)
    if facts.small():
        pairs = list(qualifiers_one_by_one(run, statements, key))
        numbers = np.array([number for _, number in pairs], np.int32)
        return Bag(run, [Part("q", numbers, np.array([statement for statement, _ in pairs], np.int32))])
    positions, qualifier_numbers = snapshot.qualifiers(statements) if key is None else qualifiers_of(run, statements, key)
    return Bag(run, [Part("q", qualifier_numbers, statements.take(positions))])


def predicates(run: Run, node: alg.Predicates) -> Bag:
    facts = run.facts(node.facts)
    statements = facts.all()
    if facts.small():
        numbers = np.array([run.snapshot.predicate_of(statement) for statement in statements.tolist()], np.int32)
    else:
        numbers = run.snapshot.predicates(statements)
    return Bag(run, [Part("pred", numbers, statements)])


def qualifier_keys(run: Run, node: alg.QualifierKeys) -> Bag:
    statements = run.facts(node.facts).all()
    positions, numbers = run.snapshot.qualifiers(statements)
    return Bag(run, [Part("pred", run.snapshot.arrays.get("q.key").take(numbers), statements[positions])])


def names(run: Run, node: alg.Names) -> Bag:
    entities = run.entities(node.entities)
    return Bag(run, [Part("name", entities, entities)])


def row_numbers(run: Run, node: alg.RowNumbers) -> Bag:
    """Return the position of each row in its source; other entities have none."""
    entities = run.entities(node.entities)
    rows = run.snapshot.arrays.get("ent.row")
    entities = entities[rows[entities] > 0] if len(rows) else EMPTY
    return Bag(run, [Part("row", entities, entities)])


def keep(run: Run, node: alg.FilterValues) -> Bag:
    """Return the values that satisfy the condition."""
    bag = run.values(node.values)
    cells = bag.cells()
    run.warn_incomparable(cells, node.condition)
    return bag.take(holds(run, node.condition, cells))


def distinct_values(run: Run, node: alg.Distinct) -> Bag:
    """Return each value once, with its first carrier."""
    bag = run.values(node.values)
    if len(bag) < 2:
        return bag
    if (few := bag.few()) is not None:
        cells, numbers = few
        first: dict[tuple[int, ...], int] = {}
        for position, at in enumerate(numbers):
            value = cells.ref[at], cells.a[at], cells.kind[at], cells.b[at], cells.unit[at], cells.precision[at]
            first.setdefault(value, position)
        return bag if len(first) == len(numbers) else bag.take(np.array(list(first.values())))
    # Attributes of one predicate are numbered by value, so that equal ones are adjacent.
    positions = distinct_positions(bag.cells(), ordered=len(bag.parts) == 1 and bag.parts[0].kind == "att")
    return bag if len(positions) == len(bag) else bag.take(positions)


def concat(run: Run, node: alg.Concat) -> Bag:
    """Return the concatenated bags."""
    bags = [run.values(value) for value in node.parts]
    total = sum(map(len, bags))
    if total > MAX_VALUES:
        raise PlanError(f"{total} values side by side are too many", hint="union of sets, or unique, keeps each value once")
    return Bag(run, [part for bag in bags for part in bag.parts])


def given(run: Run, node: alg.Constants) -> Bag:
    """Return the values written in the program."""
    return Bag.given(run, node.values)


# -- statements --------------------------------------------------------------------------------------


# -- scans -----------------------------------------------------------------------------------------


def scan(run: Run, node: alg.Scan) -> FactSet:
    """Return the statements of a `Scan`, unevaluated."""
    anchor, family, input_node = node.anchor, node.family, node.of
    attributes = family != "relation" and anchor == "subject" and (family == "any" or node.reach == "subject")
    runs = run.snapshot.runs(node.predicates, family != "attribute", attributes)
    entities = None if input_node is None else run.entities(input_node)
    if (
        type(input_node) is alg.AllEntities
        and input_node.source is None
        and len(input_node.kinds) > 1
        and not _concepts_at(run, anchor, runs)
    ):
        entities = None  # every entity is every anchor: nothing to look up
    source = -1 if node.source is None else run.source(node.source)
    return FactSet(run, node.reach, runs=runs, of=entities, anchor=anchor, source=source)


def _concepts_at(run: Run, anchor: alg.End, runs: Runs) -> bool:
    """Return whether a concept is the anchor of any statement in the families of these runs."""
    counts, base = run.snapshot.counts, run.snapshot.relations
    if not runs:
        return False
    if anchor == "object":
        return counts["concept_objects"] > 0
    return (runs[0][0] < base and counts["concept_subjects"] > 0) or (runs[-1][1] > base and counts["concept_attributes"] > 0)


# -- tests of the object ---------------------------------------------------------------------------


def where(run: Run, node: alg.Where) -> FactSet:
    return satisfying(run, run.facts(node.facts), node.condition)


def satisfying(run: Run, facts: FactSet, condition: alg.Condition) -> FactSet:
    """Return the facts of a set whose object satisfies the condition."""
    if isinstance(condition, alg.Among):
        return facts.keep(pointing_at(facts, run.entities(condition.entities)))
    if literal(condition):
        return _by_value(run, facts, condition)
    numbers = facts.all()
    cells = object_cells(run, numbers)
    run.warn_incomparable(cells, condition)
    return facts.keep(numbers[holds(run, condition, cells)])


def literal(condition: alg.Condition) -> bool:
    """Return whether a condition compares only with literals, so that sorted values answer it."""
    if isinstance(condition, (alg.AnyOf, alg.AllOf)):
        return all(literal(part) for part in condition.conditions)
    return isinstance(condition, alg.Compare)


def object_cells(run: Run, numbers: Numbers) -> Cells:
    """Return the objects of sorted statements as cells."""
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
    """Return the relations among the facts whose object is one of `targets`."""
    snapshot = facts.scope.snapshot
    if not len(targets):
        return EMPTY
    small = facts.of is not None and len(facts.of) <= len(targets)
    if facts.numbers is None and not small and len(targets) * 16 < snapshot.entities:
        runs = [run for run in facts.runs if run[0] < snapshot.relations]
        statements = FactSet(facts.scope, "subject", runs=runs, of=targets, anchor="object").all()
        return distinct(facts.having(statements), snapshot.statements)
    numbers = facts.all()
    numbers = numbers[: snapshot.split(numbers)]
    return numbers[facts.scope.among(snapshot.relation_object.take(numbers), targets)]


def _by_value(run: Run, facts: FactSet, condition: alg.Condition) -> FactSet:
    """Return the facts that satisfy a condition on literals. The values of each predicate are sorted, so mostly the
    runs are shortened.
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
                places = sorted_matches(run, condition, snapshot.ordered("att"), kind, unit, begin, end)
                if isinstance(places, list):
                    runs.extend([(first + base, last + base) for first, last in places])
                else:
                    single.append(facts.having(places + np.int32(base)))
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
    """Return the cells of a sorted group of one type and unit that satisfy a condition on literals, as runs or sorted
    single positions.
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
    """Return whether a condition on literals can hold for values of a type and unit; a text also for entities, by
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
    """Return the relations whose object's name satisfies the condition."""
    if isinstance(condition, alg.Compare) and condition.operator == "=" and isinstance(condition.value, str):
        return pointing_at(facts, run.snapshot.named(condition.value))
    numbers = facts.all()
    mask: Mask = holds(run, condition, object_cells(run, numbers))
    return numbers[mask]


# -- tests of validity -----------------------------------------------------------------------------


def during(run: Run, node: alg.During) -> FactSet:
    """Return the facts whose validity has the relation to the interval."""
    facts = run.facts(node.facts)
    statements = facts.all()
    if node.relation in ("may", "must"):
        return facts.keep(statements[holds_at(run.snapshot, node.relation, node.interval, statements)])
    positions, start, end = validity_in(run.snapshot, statements)
    return facts.keep(statements[positions[interval_mask(node.relation, node.interval, start, end)]])


def turn(run: Run, node: alg.OtherEnd) -> FactSet:
    """Return the same statements with the other end reached; attributes have no entity as their object and are
    dropped.
    """
    facts = run.facts(node.facts)
    numbers = facts.all()
    if node.reach == "object":
        numbers = numbers[: run.snapshot.split(numbers)]
    return FactSet(run, node.reach, numbers=numbers, anchor=facts.anchor)


# -- tests of qualifiers ---------------------------------------------------------------------------
# The operator that tests qualifiers of statements, and access to qualifiers.


def where_qualifier(run: Run, node: alg.WhereQualifier) -> FactSet:
    """Return the facts with a qualifier of the key that satisfies the condition."""
    snapshot = run.snapshot
    facts, condition = run.facts(node.facts), node.condition
    key = snapshot.predicate(node.key)
    if key < 0:
        return facts.keep(EMPTY)
    if literal(condition):
        if facts.small():
            return facts.keep(_tested_singly(run, facts.all(), key, condition))
        matches = _by_qualifier(run, facts, key, condition)
        if matches is not None:
            return facts.keep(matches)
    statements = facts.all()
    positions, numbers = qualifiers_of(run, statements, key)
    cells = Cells(len(numbers), lambda name: snapshot.arrays.get(f"q.{name}").take(numbers))
    run.warn_incomparable(cells, condition)
    return facts.keep(statements[distinct(positions[holds(run, condition, cells)], len(statements))])


def qualifiers_of(run: Run, statements: Numbers, key: int) -> tuple[Numbers, Any]:
    """Return the qualifiers of a key of sorted statements: the position of each one's statement, and its number."""
    positions, numbers = run.snapshot.qualifiers(statements)
    chosen = (run.snapshot.arrays.get("q.key").take(numbers) == key).nonzero()[0]
    return positions.take(chosen), numbers.take(chosen)


def _tested_singly(run: Run, statements: Numbers, key: int, condition: alg.Condition) -> Numbers:
    """Test a few statements one by one."""
    ordered, satisfies = run.snapshot.ordered("q"), decide(run, condition)
    qualifiers = qualifiers_one_by_one(run, statements, key)
    run.warn_types(add_types(ordered, [number for _, number in qualifiers]), condition)
    matches = dict.fromkeys([statement for statement, number in qualifiers if satisfies(ordered, number)])
    return statements if len(matches) == len(statements) else np.array(list(matches), np.int32)


def qualifiers_one_by_one(run: Run, statements: Numbers, key: int | None) -> list[tuple[int, int]]:
    """Return the qualifiers of a key (None: all) of a few statements, as pairs of statement and qualifier number."""
    offsets, keys = run.snapshot.arrays.view("q.offsets"), run.snapshot.arrays.view("q.key")
    return [
        (statement, number)
        for statement in (statements.tolist() if len(offsets) else ())
        for number in range(offsets[statement], offsets[statement + 1])
        if key is None or keys[number] == key
    ]


def _by_qualifier(run: Run, facts: FactSet, key: int, condition: alg.Condition) -> Numbers | None:
    """Return the facts with a qualifier whose value satisfies a condition on literals, or None if testing all facts
    is cheaper.
    """
    snapshot = run.snapshot
    ordered = snapshot.ordered("q")
    owner = snapshot.arrays.get("q.owner")
    runs: Runs = []
    parts: list[Numbers] = []
    incomparable: list[tuple[Kind, str, int, int]] = []
    for kind, unit, low, high in snapshot.qualifier_groups(key):
        if comparable(condition, kind, unit):
            places = sorted_matches(run, condition, ordered, kind, unit, low, high)
            if isinstance(places, list):
                runs.extend(places)
            else:
                parts.append(snapshot.arrays.get("qkey.items").take(places))
        elif kind is not Kind.UNKNOWN:
            incomparable.append((kind, unit, low, high))
    if facts.few():
        size = sum(high - low for low, high in runs) + sum(high - low for _, _, low, high in incomparable) + sum(map(len, parts))
        if size > 4 * len(facts.all()):
            return None
    parts.extend(ordered.numbers(low, high) for low, high in runs)
    for kind, unit, low, high in incomparable:
        run.leave_out(kind, unit, len(facts.having(owner.take(ordered.numbers(low, high)))), condition)
    numbers = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else EMPTY
    return distinct(facts.having(owner.take(numbers)), snapshot.statements)
