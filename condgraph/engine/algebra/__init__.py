"""The operators every way of asking is lowered to: small immutable records over six sorts.

`Entities` is a set of entities; `Facts` a set of statements, each with the end that was reached;
`Values` a bag of values, each carried by a statement, a qualifier or an entity; `Scalar` one
number, text, time or truth value; `Table` rows of cells under columns; `Solutions` rows that bind
several variables to terms. A plan is a tree of these (a shared part stands once and is referred to
twice). Plans hold names and ids, never a store's own numbers, so that one plan runs on every store.
Use the lower-case constructors where there is one: they normalise, and refuse nonsense.

Two rules hold everywhere. A text literal compares with an entity by the entity's name. A test on
one type of value is false for values of other types and, for quantities, of other units; the answer
warns of them.

`operators` holds the sorts, the tests of values, the operators and the constructors, `grouped` the
operators of tables with their expressions, `solutions` those of rows that bind variables (imported
when one of them is first used); `facets` says what the result of each rests on and what else others
must know of it.
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
    """The operators of `solutions`, whose import most programs do without."""
    if name[:1].isupper():
        found = getattr(import_module("condgraph.engine.algebra.solutions"), name, None)
        if found is not None:
            # Plans ask for them at every operator.
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
