"""Execution of a plan in process, on a snapshot.

In order of control flow: `run` executes the operators of a plan and stores their results; `facts` implements the
operators that return entities, statements and values, `aggregates` those that need a whole bag; `sets` defines the
types of results; `conditions` tests columns; `evidence` traces an answer back to the statements it rests on.
"""

# Imported for its table of operators, which `run` needs.
from condgraph.engine.execute import operators as _operators  # noqa: F401
from condgraph.engine.execute.run import Run, run

__all__ = ["Run", "run"]
