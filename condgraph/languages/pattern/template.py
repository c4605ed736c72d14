"""Patterns with parameters: `(UNKNOWN film 1) -[directed by]-> ($person)`.

A name that is `$person` as a whole is a parameter, in quotes or not; `$$person` is the name
`$person`. A text that is given is a name, whatever it looks like; a number, a Quantity or a time is
a value, as in a pattern of Python triples. `(> $year)` compares with what is given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from condgraph.engine.errors import LiteralError, OptionError
from condgraph.engine.values import collapse
from condgraph.languages.parameters import GivenText, Hole, hole_or_text, in_order
from condgraph.languages.pattern.pattern import Pattern, Span, condition_of, read, triples_of, written

_COMPARED: Final = re.compile(r"(==?|<=?|>=?|≤|≥)\s*\$([^\W\d]\w{0,99})")
#: A text, or an operator and the parameter behind it.
_Part = str | tuple[str, Hole]


class PatternTemplate:
    """The triples of a pattern. Reading one raises as `Pattern.of`."""

    language: ClassVar[str] = "pattern"

    def __init__(self, program: Any) -> None:
        self._spans: list[list[Span]] = []
        if isinstance(program, Pattern):
            nodes = [node.text for node in program.nodes]
            triples = [(nodes[edge.head], edge.relation, nodes[edge.tail]) for edge in program.edges]
        elif isinstance(program, str):
            triples, self._spans = read(program)
        else:
            triples = triples_of(program)
        self._triples = [tuple(map(_part, triple)) for triple in triples]
        parts = [part for triple in self._triples for part in triple]
        self.parameters = in_order([part[1] if isinstance(part, tuple) else part for part in parts if type(part) is not str])
        self.entities: frozenset[str] = frozenset()
        self._texts = frozenset(collapse(part) for part in parts if type(part) is str)
        # A pattern without parameters complains of its mistakes now.
        if not self.parameters:
            self.bind({})

    def bind(self, values: Mapping[str, GivenText]) -> Pattern:
        """The pattern with these values."""
        names: set[str] = set()

        def text(part: _Part, *, node: bool) -> str:
            if isinstance(part, tuple):
                operator, value = part[0], values[part[1]]
                found = f"{operator} {value}"
                if condition_of(collapse(found)) is None:
                    raise LiteralError(f"{value.parameter} is compared with ({operator}), and {str(value)!r} is no number or time")
                return found
            if type(part) is not Hole:
                return part
            value = values[part]
            if node and (said := written(value.value)) is not None:
                return said
            name = collapse(value)
            if name in self._texts and not Pattern.is_name(name):
                raise OptionError(
                    f"the value of {part} is the name {name!r}, and the pattern has an unknown, or a value, of this text",
                    hint="name that node of the pattern in another way",
                )
            names.add(name)
            return name

        triples = [
            (text(head, node=True), text(relation, node=False), text(tail, node=True)) for head, relation, tail in self._triples
        ]
        return Pattern.build(triples, self._spans, names=frozenset(names))


def _part(text: str) -> _Part:
    compared = _COMPARED.fullmatch(text.strip())
    return (compared[1], Hole(compared[2])) if compared is not None else hole_or_text(text.strip())
