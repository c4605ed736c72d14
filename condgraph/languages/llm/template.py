"""LLM queries with parameters: `Query1: "get_information(head_entity=$person, relation='born')"`.

A parameter is a bare word, `$person`; `'$person'` in quotes is the text `$person`. What is given
for one is a name or a value: "highest" and "none" are no words of the language then, and
`output_of_query1` is no output.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from condgraph.engine.algebra import remade
from condgraph.engine.errors import OptionError, ParseError
from condgraph.languages.llm.functions import OPERATOR_OPTION
from condgraph.languages.llm.syntax.parse import parse
from condgraph.languages.llm.syntax.tree import Argument, Literal, Program
from condgraph.languages.parameters import GivenText, Hole, hole, in_order

#: Arguments whose texts are words of the language.
_SYNTAX: Final = frozenset({*OPERATOR_OPTION, "order", "sort", "ascending", "descending", "absolute", "reverse"})


class LlmTemplate:
    """The syntax tree of a program. Reading one raises as `parse`, and `ParseError` for a parameter
    in the place of an operator or an order, which are syntax.
    """

    language: ClassVar[str] = "llm_query"

    def __init__(self, program: str) -> None:
        if not isinstance(program, str):
            raise OptionError(f"an LLM query is a text, not {type(program).__name__}")
        names: list[str] = []

        def find(node: Any) -> Any:
            if isinstance(node, Argument) and (node.name or "").casefold() in _SYNTAX:
                value = node.value
                if isinstance(value, Literal) and not value.quoted and hole(value.text):
                    raise ParseError(
                        f"{value.text} stands for a word of {node.name}, and a parameter is a name or a value", span=value.span
                    )
            if isinstance(node, Literal) and not node.quoted and (result := hole(node.text)):
                names.append(result)
                return Literal(result, True, node.span)
            return node

        self._program: Program = remade(parse(program), find)
        self.parameters = in_order(names)
        self.entities: frozenset[str] = frozenset()

    def bind(self, values: Mapping[str, GivenText]) -> Program:
        """The tree with these values."""
        result: Program = remade(self._program, lambda node: values[node] if type(node) is Hole else node)
        return result
