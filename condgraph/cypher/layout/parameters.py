"""Parameters of a Cypher query as the fields of one map: `$p.p1`."""

from __future__ import annotations

from typing import Any, Final

#: The parameter that is the map.
GIVEN: Final = "p"


def give(parameters: dict[str, Any], name: str, value: Any) -> str:
    """Put a value among the parameters of a query, under a plain word; how it is written.

    >>> parameters = {"graph": "films"}
    >>> give(parameters, "p1", "Nepal"), parameters
    ('$p.p1', {'graph': 'films', 'p': {'p1': 'Nepal'}})
    """
    parameters.setdefault(GIVEN, {})[name] = value
    return f"${GIVEN}.{name}"
