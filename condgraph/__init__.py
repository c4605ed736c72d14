"""condgraph: structured data of any kind in one condition graph, queried exactly, with evidence for every answer.

>>> import condgraph
>>> g = condgraph.open("memory:")
>>> g.load([{"name": "Everest", "height": 8849}, {"name": "K2", "height": 8611}], name="peaks").statements
4
>>> g.kopl("FindAll() FilterNum(height, 8700, >) QueryAttr(name)").texts
['Everest']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from condgraph.engine.errors import CondgraphError

if TYPE_CHECKING:
    from condgraph.aio import AsyncGraph, open_async
    from condgraph.engine.answer import Answer
    from condgraph.engine.check import Checked
    from condgraph.engine.evidence import Searched
    from condgraph.engine.external import FunctionArgument, FunctionCall, FunctionRow
    from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Source, Statement, Subclass
    from condgraph.engine.lowered import Step
    from condgraph.engine.records import Evidence
    from condgraph.engine.values import UNKNOWN, Point, Quantity, Time
    from condgraph.graph import Graph
    from condgraph.languages.pattern.pattern import Pattern
    from condgraph.opening import open
    from condgraph.overview.schema import GraphSchema
    from condgraph.patterns.matches import Matches
    from condgraph.patterns.result import Solution
    from condgraph.reports import LoadReport, Status

__version__ = "0.2.0"
__all__ = [
    "UNKNOWN",
    "Answer",
    "AsyncGraph",
    "Checked",
    "CondgraphError",
    "Entity",
    "EntityKind",
    "Evidence",
    "FunctionArgument",
    "FunctionCall",
    "FunctionRow",
    "Graph",
    "GraphSchema",
    "LoadReport",
    "Matches",
    "Member",
    "Pattern",
    "Point",
    "Quantity",
    "Ref",
    "Searched",
    "Solution",
    "Source",
    "Statement",
    "Status",
    "Step",
    "Subclass",
    "Time",
    "open",
    "open_async",
]

#: The module of each name, which is imported when the name is first used.
_LATER = {
    "Answer": "condgraph.engine.answer",
    "AsyncGraph": "condgraph.aio",
    "Checked": "condgraph.engine.check",
    "Entity": "condgraph.engine.facts",
    "EntityKind": "condgraph.engine.facts",
    "Evidence": "condgraph.engine.evidence",
    "FunctionArgument": "condgraph.engine.external",
    "FunctionCall": "condgraph.engine.external",
    "FunctionRow": "condgraph.engine.external",
    "Graph": "condgraph.graph",
    "GraphSchema": "condgraph.overview.schema",
    "LoadReport": "condgraph.reports",
    "Matches": "condgraph.patterns.matches",
    "Member": "condgraph.engine.facts",
    "Pattern": "condgraph.languages.pattern.pattern",
    "Point": "condgraph.engine.values",
    "Quantity": "condgraph.engine.values",
    "Ref": "condgraph.engine.facts",
    "Searched": "condgraph.engine.evidence",
    "Solution": "condgraph.patterns.result",
    "Source": "condgraph.engine.facts",
    "Statement": "condgraph.engine.facts",
    "Status": "condgraph.reports",
    "Step": "condgraph.engine.lowered",
    "Subclass": "condgraph.engine.facts",
    "Time": "condgraph.engine.values",
    "UNKNOWN": "condgraph.engine.values",
    "open": "condgraph.opening",
    "open_async": "condgraph.aio",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LATER[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
