"""Words of `row_plans.Maker` about a database that condgraph did not write, drawn from the same in process."""

from __future__ import annotations

from random import Random
from typing import Any

from condgraph.engine import algebra as alg
from condgraph.engine.facts import EntityKind, Ref
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Quantity, Time, Unknown
from tests.support.row_plans import Words


def words_of(snapshot: Snapshot, seed: int) -> Words:
    """Some of its names, ids and values, others for each seed."""
    dice, schema = Random(seed), snapshot.schema

    def some(choices: list[Any], count: int) -> list[Any]:
        return dice.sample(choices, min(count, len(choices)))

    entities = [snapshot.entity(number) for number in snapshot.every((EntityKind.ENTITY,)).tolist()]
    concepts = sorted(schema.concepts)
    relations, attributes, keys = (sorted(names) for names in (schema.relations, schema.attributes, schema.qualifiers))
    values = [v for v in snapshot.values("att", slice(None)) if not isinstance(v, Ref | Unknown)]
    picked = some(values, 4)
    one, two, three = dice.choice(entities), dice.choice(entities), dice.choice(entities)
    concept = dice.choice(concepts)
    sets: tuple[Any, ...] = (
        alg.ByName((one.name,)), alg.ByName((two.name,)), alg.ById((one.id, three.id)), alg.Members(alg.ByName((concept,))),
        alg.Reached(alg.Scan(alg.ByName((one.name,)), (dice.choice(relations),), "subject", "object", "relation")),
        alg.AllEntities(), alg.ByName((concept,)), alg.ById((f":{dice.choice(concepts)}", two.id)),
        alg.AllEntities((EntityKind.CONCEPT,)),
    )  # fmt: skip
    compared = [alg.Compare(dice.choice(("=", "!=", "<", ">=")), value) for value in picked if not isinstance(value, Ref)]
    conditions: tuple[Any, ...] = (
        *compared, alg.Compare("=", two.name), alg.AnyOf((compared[0], alg.Compare("=", one.name))),
        alg.Not(alg.Compare("=", three.name)), alg.Among(alg.ByName((two.name,))), alg.Compare(">", Quantity(3)),
        alg.Compare("<", Time.year(2001)),
    )  # fmt: skip
    return Words(
        predicates=(*some(relations, 4), *some(attributes, 5)),
        relations=(*some(relations, 3), relations[0], dice.choice(attributes)),
        keys=tuple(keys) or ("none",),
        sets=sets,
        conditions=conditions,
        terms=(*picked, one.name, Ref(one.id), Ref(f":{concept}"), Ref("nowhere"), None),
        concept=concept,
        attribute=dice.choice(attributes),
    )
