"""What each operator says of itself: what has to be whole for its result, and what others must know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

# -- Needs -------------------------------------------------------------------------------------------
# What the result of an operator rests on, beside the parts of its inputs that led to it: one facet
# of every operator and test.
#
# A plan in which nothing rests on a whole is monotone: more statements can only give more, so that
# the statements behind an answer prove it. What rests on a whole rests on absence as well: a count is
# right only where nothing was left out.


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


# -- Facets ------------------------------------------------------------------------------------------
# Evidence, warnings and the compilers of the stores ask these instead of listing operators. Every
# operator has to say them: one without `facets` cannot be made (mypy), nor defined (`declared`).


#: Of which kinds the values of a result are, or the objects of its facts: those of what it
#: `carries`; what the schema says (`stated`) of its predicates or its key; always the same; or not
#: known before it is run.
Gives: TypeAlias = Literal["carried", "stated", "entities", "times", "numbers", "texts", "truths", "any"]
#: What of the graph an operator looks through, beside its inputs. Entities that are read are in the
#: evidence by themselves, as no statement leads to them.
Reads: TypeAlias = Literal["nothing", "statements", "members", "entities"]
#: Which values a condition is asked of: the objects or qualifiers of facts, a bound of their
#: validity, or the values of a bag.
Tests: TypeAlias = Literal["nothing", "objects", "qualifiers", "validity", "values"]


@dataclass(frozen=True, slots=True)
class Warns:
    """When an operator may have something to say that only a look at its values tells.

    "mixed": where they are not all numbers of one unit, or all times, and where there are none;
    "empty": where there are none; "nameless": where they are no entities or texts, which name
    entities. `of` is the field whose values decide: an input, or the key of an attribute.
    `constants` is whether those written in the program may be mixed, too. Conditions warn by
    themselves, of what they cannot compare (`Facets.tests`).
    """

    when: Literal["never", "always", "mixed", "empty", "nameless"]
    of: str = ""
    constants: bool = True


NEVER: Final = Warns("never")
ALWAYS: Final = Warns("always")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """What others must know of an operator. All but the last three have to be said.

    `carries` names the inputs whose entities, statements or values, with their carriers, make up
    the result: of these the evidence has the part that the answer has, of all other inputs
    everything. `strict` names the inputs of which none may be empty: where one is, the result is
    empty, 0 or false. `alters` is whether what is carried on is not the same any more: another end
    is reached, a time is cut. `total` says how a number that is 0 of nothing was made, since it
    does not tell that there was nothing.
    """

    carries: tuple[str, ...]
    strict: tuple[str, ...]
    gives: Gives
    reads: Reads
    warns: Warns
    alters: bool = False
    tests: Tests = "nothing"
    total: Literal["", "counted", "summed"] = ""

    @property
    def filters(self) -> bool:
        """Whether the result is a part of what it carries on."""
        return bool(self.carries) and not self.alters
