"""Query lines of the plain kind, read in one pass: one call whose arguments are texts without
quotes, or outputs.

Nine of ten lines that models write are `"function(name='text', other>'output_of_query1')"`. They
need no grammar; whatever else stands in a line sends it to `expression`, which gives the same tree
for the plain ones (a test holds both against each other).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

from condgraph.languages.llm.syntax.tree import Argument, Call, CompareOp, Expression, Literal, OutputRef

_QUOTED: Final = r"'[^'‘’‚‛´′\"“”„‟″\\\n`]*'"
_LINE: Final = re.compile(
    rf"[ \t]*\"(?P<name>[^\W\d]\w*)\("
    rf"(?P<arguments>[^\W\d]\w* ?(?:=|!=|<=|>=|<|>) ?{_QUOTED}(?:, ?[^\W\d]\w* ?(?:=|!=|<=|>=|<|>) ?{_QUOTED})*+)\)\"\s*"
)
_ARGUMENT: Final = re.compile(rf"([^\W\d]\w*) ?(!=|<=|>=|=|<|>) ?({_QUOTED})")
_REFERENCE: Final = re.compile(r"output_of_query(\d+)").fullmatch
#: Words that the grammar gives a meaning, or texts that may hold an expression.
_SPECIAL: Final = frozenset({"then", "else", "and", "or", "in", "not", "return", "if"})


def plain_call(text: str, start: int, stop: int, known: Mapping[str, int]) -> Expression | None:
    """The call of a plain line `text[start:stop]`, or None where the line needs the grammar.

    `known` maps the labels of the queries before to their positions; an output that is not among
    them is left to the grammar, which says what is wrong with it.
    """
    found = _LINE.fullmatch(text, start, stop)
    if found is None or found["name"].casefold() in _SPECIAL:
        return None
    arguments: list[Argument] = []
    begin, end = found.span("arguments")
    for one in _ARGUMENT.finditer(text, begin, end):
        name, operator, quoted = one.groups()
        if name.casefold() in _SPECIAL:
            return None
        span, inner = one.span(3), quoted[1:-1]
        value: Expression
        if "query" in inner.casefold():
            reference = _REFERENCE(inner)
            position = None if reference is None else known.get(reference[1])
            if position is None:
                return None
            value = OutputRef(position, span)
        else:
            value = Literal(inner, True, span)
        arguments.append(Argument(name, cast(CompareOp, operator), value, one.span()))
    return Call(found["name"], tuple(arguments), (found.start("name"), end + 1))
