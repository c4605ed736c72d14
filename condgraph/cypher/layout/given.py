"""The values of a query as the fields of one parameter, a map: `$p.p1`.

The server plans a text again for parameters of other types, and takes a text of more than 1, 10 or
100 characters for another type than a shorter one. It does not look into a map. So a text is planned
once, whatever the names in it are; the planner takes the same indexes for a field of a map.
"""

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
