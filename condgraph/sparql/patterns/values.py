"""Values of a pattern in SPARQL: what a store is asked for, and what of it is as asked.

The store compares doubles, at most a step beyond what is asked; its value nodes say in their names
what they are, so that the client compares exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from condgraph.engine.iris import VALUE, nearest_double, value_named
from condgraph.engine.values import NO_UNIT, Value
from condgraph.patterns.remote.values import ValuePlan
from condgraph.sparql.layout import TYPE, double, exactly, integer, read_value, string

#: The least step that stores are trusted with; they need not read the smallest doubles.
_LEAST: Final = 1e-300


def value_text(plan: ValuePlan) -> str:
    """Patterns by which `?v` may be as asked."""
    ways = _ways(plan)
    return ways[0] if len(ways) == 1 else " UNION ".join(f"{{ {way} }}" for way in ways)


def _ways(plan: ValuePlan) -> list[str]:
    """Patterns, each of one way in which a value may be as asked."""
    found, operator = [], plan.condition.operator
    for one in plan.numbers:
        number = nearest_double(one.number)
        step = max(math.ulp(number), _LEAST) if math.isfinite(number) else 0.0
        low, high = number - step, number + step
        tests = []
        if operator[0] != "<" and math.isfinite(low):
            tests.append(f"?n >= {double(low)}")
        if operator[0] != ">" and math.isfinite(high):
            tests.append(f"?n <= {double(high)}")
        unit = "" if one.unit == NO_UNIT else f" ; <pred:unit> {string(one.unit)}"
        where = f" FILTER({' && '.join(tests)})" if tests else ""
        found.append(f"?v {TYPE} <pred:Quantity>{unit} ; <pred:value> ?n{where}")
    time = plan.time
    if time is not None:
        start, end = integer(time.start), integer(time.end)
        test = {
            "=": f"?a >= {start} && ?b <= {end}",
            "<": f"?b <= {start}",
            "<=": f"?b <= {end}",
            ">": f"?a >= {end}",
            ">=": f"?a >= {start}",
        }[operator]
        found.append(f"?v {TYPE} <pred:Time> ; <pred:start> ?a ; <pred:end> ?b FILTER({test})")
    return found


def value_at(iri: str, base: str) -> Value | None:
    """The value that a node says in its name; None where the name is a hash."""
    return value_named(iri[len(base) + len(VALUE) :])


def values_read(rows: Iterable[tuple[str, str, str]], base: str) -> dict[str, Value]:
    """Values by their nodes, from what is said of nodes: node, term of the vocabulary, lexical form."""
    said: dict[str, dict[str, str]] = {}
    for node, term, text in rows:
        name = "type" if term == TYPE[1:-1] else term.removeprefix("pred:")
        said.setdefault(node, {})[name] = text.removeprefix("pred:") if name == "type" else text
    return {node: exactly(read_value(found), node[len(base) + len(VALUE) :]) for node, found in said.items()}
