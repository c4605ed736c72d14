"""condgraph: any structured data in one condition graph, asked precisely, with every answer's evidence.

>>> import condgraph
>>> g = condgraph.open("memory:")
>>> g.load([{"name": "Everest", "height": 8849}, {"name": "K2", "height": 8611}], name="peaks").statements
4
>>> g.kopl("FindAll() FilterNum(height, 8700, >) QueryAttr(name)").texts
['Everest']
"""

from condgraph.aio import AsyncGraph, open_async
from condgraph.engine.answer import Answer, Evidence, Step
from condgraph.engine.errors import CondgraphError
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Source, Statement, Subclass
from condgraph.engine.frontends.pattern import Pattern
from condgraph.engine.search.result import Matches, Solution
from condgraph.engine.values import UNKNOWN, Quantity, Time
from condgraph.graph import Graph
from condgraph.opening import open
from condgraph.reports import LoadReport, Status

__version__ = "0.1.0"
__all__ = [
    "UNKNOWN",
    "Answer",
    "AsyncGraph",
    "CondgraphError",
    "Entity",
    "EntityKind",
    "Evidence",
    "Graph",
    "LoadReport",
    "Matches",
    "Member",
    "Pattern",
    "Quantity",
    "Ref",
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
