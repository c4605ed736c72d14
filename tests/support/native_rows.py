"""Words of `row_plans.Maker` for an existing database, drawn from a snapshot with the same content."""

from __future__ import annotations

from random import Random
from typing import Any

from condgraph.engine import algebra as alg
from condgraph.engine.facts import EntityKind, Ref
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Quantity, Time, Unknown
from tests.support.row_plans import Words


def words_of(snapshot: Snapshot, seed: int) -> Words:
    """Return some names, ids and values of a snapshot, different for each seed."""
    dice, schema = Random(seed), snapshot.schema

    def draw(choices: list[Any], count: int) -> list[Any]:
        return dice.sample(choices, min(count, len(choices)))

    entities = [snapshot.entity(number) for number in snapshot.every((EntityKind.ENTITY,)).tolist()]
    concepts = sorted(schema.concepts)
    relations, attributes, keys = (sorted(names) for names in (schema.relations, schema.attributes, schema.qualifiers))
    values = [v for v in snapshot.values("att", slice(None)) if not isinstance(v, Ref | Unknown)]
    picked = draw(values, 4)
    first, second, third = dice.choice(entities), dice.choice(entities), dice.choice(entities)
    concept = dice.choice(concepts)
    sets: tuple[Any, ...] = (
        alg.ByName((first.name,)), alg.ByName((second.name,)), alg.ById((first.id, third.id)), alg.Members(alg.ByName((concept,))),
        alg.Reached(alg.Scan(alg.ByName((first.name,)), (dice.choice(relations),), "subject", "object", "relation")),
        alg.AllEntities(), alg.ByName((concept,)), alg.ById((f":{dice.choice(concepts)}", second.id)),
        alg.AllEntities((EntityKind.CONCEPT,)),
    )  # fmt: skip
    compared = [alg.Compare(dice.choice(("=", "!=", "<", ">=")), value) for value in picked if not isinstance(value, Ref)]
    conditions: tuple[Any, ...] = (
        *compared, alg.Compare("=", second.name), alg.AnyOf((compared[0], alg.Compare("=", first.name))),
        alg.Not(alg.Compare("=", third.name)), alg.Among(alg.ByName((second.name,))), alg.Compare(">", Quantity(3)),
        alg.Compare("<", Time.year(2001)),
    )  # fmt: skip
    return Words(
        predicates=(*draw(relations, 4), *draw(attributes, 5)),
        relations=(*draw(relations, 3), relations[0], dice.choice(attributes)),
        keys=tuple(keys) or ("none",),
        sets=sets,
        conditions=conditions,
        terms=(*picked, first.name, Ref(first.id), Ref(f":{concept}"), Ref("nowhere"), None),
        concept=concept,
        attribute=dice.choice(attributes),
    )
