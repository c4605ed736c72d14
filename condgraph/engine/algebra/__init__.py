"""The query algebra: the operators that every language is lowered to.

Operators are small immutable records of six sorts. `Entities` is a set of entities; `Facts` a set of statements, each
with the end that was reached; `Values` a bag of values, each carried by a statement, a qualifier or an entity;
`Scalar` one number, text, time or truth value; `Table` rows of cells under columns; `Solutions` rows that bind
several variables to terms. A plan is a tree of operators (a shared part is one object, referred to twice). Plans
contain names and ids, never a store's own numbers, so that one plan runs on every store. Use the lower-case
constructors where they exist: they normalise their arguments and raise errors for nonsense.

Two rules hold everywhere. A text literal is compared with an entity by the entity's name. A test on one type of value
is false for values of other types and, for quantities, of other units; the answer warns of them.

`operators` defines the sorts, the conditions on values, the operators and the constructors, `grouped` the operators
on tables and their expressions, `solutions` those on rows that bind variables (imported on first use); `facets`
describes the properties of an operator that evidence, warnings and compilers rely on.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from condgraph.engine.algebra.facets import *  # noqa: F403
from condgraph.engine.algebra.grouped import Group as Group
from condgraph.engine.algebra.grouped import Having as Having
from condgraph.engine.algebra.grouped import Limit as Limit
from condgraph.engine.algebra.grouped import Order as Order
from condgraph.engine.algebra.operators import *  # noqa: F403

if TYPE_CHECKING:
    from condgraph.engine.algebra.solutions import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Import an operator of `solutions` on first use; most programs need none."""
    if name[:1].isupper():
        operator = getattr(import_module("condgraph.engine.algebra.solutions"), name, None)
        if operator is not None:
            # Cached: plans look these names up at every operator.
            globals()[name] = operator
            return operator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
