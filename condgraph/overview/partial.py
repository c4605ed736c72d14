"""What can be said of a graph on a server that another version wrote, which kept no survey beside
the graph, or one that this version does not read: the schema that programs are lowered against.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.engine.errors import StoreDamagedError
from condgraph.overview.survey import Ends, Survey, unpacked

if TYPE_CHECKING:
    from condgraph.engine.schema import Kinds
    from condgraph.engine.stored_schema import StoredSchema

#: What is missing then, and what brings it.
NOTE: Final = (
    "Another version wrote this graph: what subjects and objects are, spans, statements of sources and examples are not known "
    "until the same is loaded again, or something else."
)


def stored_survey(text: str | None, content: str, schema: StoredSchema, counts: Mapping[str, int]) -> Survey:
    """The survey that a server keeps as text; what the schema says where it keeps none of this
    content. Raises `StoreDamagedError` where the text is no survey.
    """
    try:
        found = unpacked(text, content) if text else None
    except ValueError as error:
        raise StoreDamagedError(f"what is kept of the graph's content cannot be read: {error}", hint="load it again") from None
    return partial_survey(schema, counts) if found is None else found


def partial_survey(schema: StoredSchema, counts: Mapping[str, int]) -> Survey:
    """A survey of what the schema kept with a graph says: predicates, types of values, qualifiers,
    concepts and sources by name; what it does not say is empty, or 0.
    """
    predicates = [
        [
            *(name, schema.sizes.get(name, 0), sum(schema.attribute_kinds(name).values())),
            *(_values(schema.attribute_kinds(name)), _qualifiers(schema, name), [[one, 0] for one in schema.sources_of(name)], []),
        ]
        for name in schema.predicates
    ]
    kinds = [["concept", name, "", schema.members.get(name, 0), [], []] for name in dict.fromkeys(schema.concepts)]
    nothing = Ends(np.zeros(len(predicates) + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
    known = ("entities", "concepts", "rows", "relations", "attributes", "qualifiers")
    return {
        "counts": {name: counts.get(name, 0) for name in known},
        "sources": [[name, "", 0] for name in schema.sources],
        "kinds": kinds,
        "predicates": predicates,
        "subjects": nothing,
        "objects": nothing,
        "note": NOTE,
    }


def _qualifiers(schema: StoredSchema, predicate: str) -> list[list[Any]]:
    found = [[key, _values(kinds)] for key in schema.qualifiers if (kinds := schema.qualifier_kinds(key, predicate))]
    return sorted(found, key=lambda one: (-sum(value[2] for value in one[1]), one[0]))


def _values(kinds: Kinds) -> list[list[Any]]:
    found = [[kind.name.lower(), unit, count, "", "", None, None] for (kind, unit), count in kinds.items()]
    return sorted(found, key=lambda one: (-one[2], one[0], one[1]))
