"""What patterns are gathered in: groups with their unions and differences, the facts they leave,
and what is known of a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from condgraph.engine import algebra as alg
from condgraph.engine.facts import Entity
from condgraph.engine.store import KnownSchema
from condgraph.sparql.dialect import STANDARD, Dialect
from condgraph.sparql.layout import GraphIris

TARGET: Final = "SPARQL"
#: Characters of a group up to which it is written out into the branches of its unions.
LONGEST_TEXT: Final = 20_000
#: What a variable may stand for: an entity, a value node, or either.
Objects: TypeAlias = Literal["entity", "value", "any"]
#: A filter that nothing passes.
NOTHING: Final = "FILTER(false)"


@dataclass(frozen=True, slots=True)
class Target:
    """The graph a plan is compiled for: its names, its schema, and what it holds how many of
    (`sparql.load.write.counts`).
    """

    names: GraphIris
    schema: KnownSchema
    counts: Mapping[str, int]
    #: Gives entities by their ids, where the graph is in this process too: then names need no
    #: looking up, and rows are read no further than wanted.
    entities: Callable[[list[str]], list[Entity]] | None = None
    #: What its store does otherwise.
    dialect: Dialect = STANDARD

    @property
    def local(self) -> bool:
        """Whether the graph is in this process too."""
        return self.entities is not None


class Group(list[str]):
    """The patterns of one group.

    Stores go on from patterns, and not from what a UNION gave or a difference left. So what is
    taken away comes last, and the rest of a group goes into the branches of its union; where that
    would write too much, the union is a sub-select.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        super().__init__(patterns)
        self.minus: list[str] = []
        self.unions: list[tuple[str, list[Group]]] = []
        #: Whether the unions stand as they are: what follows them is found without them as well.
        self.apart = False

    @property
    def empty(self) -> bool:
        """Whether a filter of the group says that it gives nothing."""
        return any(pattern.endswith(NOTHING) for pattern in self)

    def text(self) -> str:
        """All patterns, for between braces."""
        if self.apart and self.unions:
            unions = [" UNION ".join(f"{{ {branch.text()} }}" for branch in branches) for _, branches in self.unions]
            return " ".join((*(f"{{ {union} }}" for union in unions), *self, *self.minus))
        whole = self._spread(LONGEST_TEXT)
        return whole if whole is not None and len(whole) <= LONGEST_TEXT else self._selected()

    def _selected(self) -> str:
        unions = [
            f"{{ SELECT DISTINCT {e} WHERE {{ {' UNION '.join(f'{{ {branch._selected()} }}' for branch in branches)} }} }}"
            for e, branches in self.unions
        ]
        return " ".join((*unions, *self, *self.minus))

    def _spread(self, most: int) -> str | None:
        """The text with the unions spread over the rest; None where it is longer, or a sub-select
        would be evaluated twice.
        """
        if not self.unions:
            return " ".join((*self, *self.minus))
        if sum(map(len, self)) > most or any("SELECT" in pattern for pattern in self):
            return None
        (_, branches), *others = self.unions
        texts = []
        for branch in branches:
            joined = Group((*branch, *self))
            joined.minus = [*branch.minus, *self.minus]
            joined.unions = [*branch.unions, *others]
            text = joined._spread(most)
            if text is None:
                return None
            texts.append(f"{{ {text} }}")
            most -= len(text)
            if most < 0:
                return None
        return " UNION ".join(texts)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of facts: whether their statement is bound, and the variables that subject and
    object are to have.
    """

    whole: bool = False
    subject: str | None = None
    object: str | None = None
    #: The set that the object lies in, which is said before the fact.
    among: alg.Entities | None = None


@dataclass(slots=True)
class FactTerms:
    """Variables (or IRIs) of the facts that patterns leave. `statement` is None where only the
    direct triple stands there.
    """

    subject: str
    predicate: str
    object: str
    statement: str | None
    reached: str
    #: What the objects are, as far as it is known.
    objects: Objects
    loose: bool = False
    #: Patterns that bind the statement, to be said once the tests on its object are.
    bind: list[str] = field(default_factory=list)
