"""What the result of an operator rests on, beside the parts of its inputs that led to it: one facet
of every operator and test.

A plan in which nothing rests on a whole is monotone: more statements can only give more, so that
the statements behind an answer prove it. What rests on a whole rests on absence as well: a count is
right only where nothing was left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Needs:
    """What a result needs to be whole.

    `whole` names the fields of which everything counts, and that there is no more: with more there
    the result can be another one, or less. Of all other fields more can only give more. `graph`
    says that the result rests on the graph beside its inputs as well: on there being no other row,
    no larger value. `shown` is of truth values: a "yes" rests on what shows it, only a "no" on all.
    """

    whole: tuple[str, ...] = ()
    graph: bool = False
    shown: bool = False


#: More in any input can only give more.
EACH: Final = Needs()


def declared(cls: type, sort: str, said: Mapping[str, type]) -> None:
    """Raise `TypeError` for an operator or a test that does not say what it has to, by name and
    type; what lies directly below `sort` is neither.
    """
    if cls.__bases__[0].__name__ == sort:
        return
    for name, kind in said.items():
        if not isinstance(cls.__dict__.get(name), kind):
            raise TypeError(f"{cls.__name__} does not say its {name}: give it `{name}: ClassVar[{kind.__name__}]`")
