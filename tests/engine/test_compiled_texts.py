"""The Cypher, the SPARQL and Spark's SQL of every operator and condition, and of programs over one of everything, as text:
a fault of a compiler shows here in milliseconds, without a server. `CONDGRAPH_GOLDEN=write` accepts what is new.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from condgraph.cypher.compile import plan as cypher
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.check import built
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.passes import optimise
from condgraph.engine.stored_schema import StoredSchema, describe_schema
from condgraph.languages.registry import detect, lower
from condgraph.sparql.compile.conditions import Target
from condgraph.sparql.compile.plan import over_rows
from condgraph.sparql.dialect import STANDARD, VIRTUOSO
from condgraph.sparql.gathered import compile_whole
from condgraph.sparql.layout import GraphIris, base_iri
from condgraph.sparql.load.write import counts
from condgraph.sql import plan as sql
from condgraph.sql.plan import OwnPlans
from condgraph.sql.spark import printed
from tests.support import golden
from tests.support.operators import CONDITIONS, OPERATORS, asked, graph
from tests.support.row_plans import EXAMPLES
from tests.support.world import PROGRAMS, QUERIES

SNAPSHOT: Final = built(graph())
SCHEMA: Final = StoredSchema(describe_schema(SNAPSHOT))


def plans() -> dict[str, Node]:
    """By a name: the plan of each operator and condition, and of each program after the passes."""
    found = {type(node).__name__: node for node in OPERATORS}
    found |= {f"condition {type(condition).__name__}": asked(condition) for condition in CONDITIONS}
    programs = {" ".join(text.split()): lower(SNAPSHOT.schema, text, detect(text), {}).plan for text in (*PROGRAMS, *QUERIES)}
    return {name: optimise(plan)[0] for name, plan in (found | programs | EXAMPLES).items()}


#: Of a graph in which no value is written in a way of its own: there stores give rows of values.
PLAIN: Final = StoredSchema(describe_schema(SNAPSHOT) | {"raw": False})


def in_cypher(plan: Node) -> str:
    made = cypher.compile_plan(plan, "world", PLAIN if over_rows(postorder(plan)) else SCHEMA)
    return f"{made.text}\n{json.dumps(made.parameters, default=str, ensure_ascii=False, sort_keys=True)}"


def in_sparql(target: Target) -> Callable[[Node], str]:
    plain = replace(target, schema=PLAIN, counts={**target.counts, "raws": 0})
    return lambda plan: compile_whole(plan, plain if over_rows(postorder(plan)) else target).text


def in_spark(plan: Node) -> str:
    plans = OwnPlans("condgraph world", PLAIN if over_rows(postorder(plan)) else SCHEMA, lambda place: None)
    return printed(sql.compile_plan(plan, plans).query)


NAMES: Final = GraphIris(base_iri("world"))
COMPILERS: Final[dict[str, Callable[[Node], str]]] = {
    "cypher": in_cypher,
    "spark": in_spark,
    "sparql": in_sparql(Target(NAMES, SCHEMA, counts(SNAPSHOT), dialect=STANDARD)),
    "sparql-virtuoso": in_sparql(Target(NAMES, SCHEMA, counts(SNAPSHOT), dialect=VIRTUOSO)),
}


@pytest.mark.parametrize("name", COMPILERS)
def test_compiled(name: str) -> None:
    texts = {}
    for which, plan in plans().items():
        try:
            texts[which] = COMPILERS[name](plan)
        except UnsupportedError as error:
            texts[which] = f"unsupported: {error}"
    golden.check(Path(__file__).parent / "golden" / f"{name}.txt", texts)
