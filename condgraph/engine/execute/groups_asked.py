"""What one row of a table asks of the inputs of its group: the rows of the graph behind it, and what
its ways went over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from condgraph.engine.algebra import Entities, Group, Node, Table
from condgraph.engine.execute.columns import Ways
from condgraph.engine.execute.demand import Asked, Demand

if TYPE_CHECKING:
    from condgraph.engine.execute.grid import Grid
    from condgraph.engine.execute.run import Run


def row_asked(run: Run, plan: Table, row: int) -> dict[int, Asked]:
    """For the `Group` below a table, by identity, what a row of the table wants of its inputs."""
    grid: Grid = run.results[id(plan)]
    places = sorted(grid.members[row])
    node: Node = plan
    while not isinstance(node, Group):
        (node,) = node.inputs()
    ways = Ways(run, node, np.array(places, np.int64))
    steps = ways.gone_over()
    rows = np.unique(ways.chosen)
    own = Demand(entities=rows) if isinstance(node.of, Entities) else Demand(statements=rows)
    asked: Asked = [(node.of, own)]
    for number, facts in enumerate(node.facts):
        asked.append((facts, Demand(statements=steps.get(number, rows[:0]))))
    return {id(node): asked}
