"""What an operator says of itself, so that nobody else has to decide it by its name: what it
carries on, without which inputs it gives nothing, of which kinds its values are, what it reads of
the graph, and whether it may warn.

Evidence, warnings and the compilers of the stores ask these instead of listing operators. Every
operator has to say them: one without `facets` cannot be made (mypy), nor defined (`declared`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

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
