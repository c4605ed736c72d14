"""Execution of a plan in process, on a snapshot.

In order of control flow: `run` walks the plan and keeps every operator's result; `facts` has the
operators that give entities, statements and values, `aggregates` those that look at a whole; `sets`
is what results are kept in; `conditions` decides tests on columns; `evidence` walks back from an
answer to the statements it rests on.
"""

# For its table of operators, without which nothing runs.
from condgraph.engine.execute import operators as _operators  # noqa: F401
from condgraph.engine.execute.run import Run, run

__all__ = ["Run", "run"]
