"""Properties of operators: which inputs a result needs in full, and what evidence, warnings and compilers must know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

# -- Needs -------------------------------------------------------------------------------------------
# Which inputs an operator or condition needs in full.
#
# A plan in which no operator needs a whole input is monotone: additional statements can only add
# results, so that the statements behind an answer prove it. An operator that needs a whole input also
# depends on the absence of statements: a count is right only if nothing is missing.


@dataclass(frozen=True, slots=True)
class Needs:
    """What must be complete for a result to be right.

    `whole` names the fields that must be complete: an additional item there can change or shrink the result. An
    additional item in any other field can only add to it. `graph`: the result also depends on the rest of the graph,
    on there being no other row or larger value. `shown` applies to truth values: a "yes" depends only on the items
    that show it, a "no" on all of them.
    """

    whole: tuple[str, ...] = ()
    graph: bool = False
    shown: bool = False


#: Additional items in any input can only add to the result.
EACH: Final = Needs()


def declared(cls: type, sort: str, said: Mapping[str, type]) -> None:
    """Raise `TypeError` if an operator or condition lacks one of the class variables in `said` (name and type).
    Direct subclasses of `sort` are exempt.
    """
    if cls.__bases__[0].__name__ == sort:
        return
    for name, kind in said.items():
        if not isinstance(cls.__dict__.get(name), kind):
            raise TypeError(f"{cls.__name__} does not say its {name}: give it `{name}: ClassVar[{kind.__name__}]`")


# -- Facets ------------------------------------------------------------------------------------------
# Evidence, warnings and the stores' compilers use these instead of lists of operators. Every
# operator must define `facets`: mypy and `declared` reject one without.


#: The kinds of the values of a result, or of the objects of its facts: those of the inputs that it
#: `carries` ("carried"); those that the schema states for its predicates or key ("stated"); one fixed
#: kind; or unknown before execution ("any").
Gives: TypeAlias = Literal["carried", "stated", "entities", "times", "numbers", "texts", "truths", "any"]
#: What an operator reads from the graph, apart from its inputs. Entities that it reads are evidence
#: themselves, because no statement leads to them.
Reads: TypeAlias = Literal["nothing", "statements", "members", "entities"]
#: The values that a condition is applied to: objects or qualifiers of facts, a bound of their
#: validity, or the values of a bag.
Tests: TypeAlias = Literal["nothing", "objects", "qualifiers", "validity", "values"]


@dataclass(frozen=True, slots=True)
class Warns:
    """When an operator may give a warning that depends on its values.

    "mixed": the values are not all numbers of one unit or all times, or there are none; "empty": there are none;
    "nameless": they are neither entities nor texts, which name entities. `of` is the field whose values decide: an
    input, or the key of an attribute. `constants`: values written in the program may be mixed, too. Conditions give
    their own warnings about values that they cannot compare (`Facets.tests`).
    """

    when: Literal["never", "always", "mixed", "empty", "nameless"]
    of: str = ""
    constants: bool = True


NEVER: Final = Warns("never")
ALWAYS: Final = Warns("always")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """The properties of an operator. All but the last three are required.

    `carries` names the inputs whose entities, statements or values, with their carriers, make up the result: the
    evidence contains the part of these that is in the answer, and all other inputs in full. `strict` names the inputs
    that must not be empty: if one is, the result is empty, 0 or false. `alters`: the operator changes what it carries
    (another end is reached, a time is cut). `total` is how a number was computed that is 0 for an empty input,
    because a 0 does not tell that the input was empty.
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
        """Whether the result is a subset of a carried input."""
        return bool(self.carries) and not self.alters
