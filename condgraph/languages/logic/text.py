"""The parser of logical queries.

    ?x : exists ?v. award("Nobel", ?v) and born(?v, ?x) and not capital(?x, "France")

An atom is `relation(subject, object)`, or `concept(?x)` for a type. Constants are names as JSON
strings, or ids in angle brackets. A relation is a word or a JSON string. `and`, `or`, `not` and
`exists` are also written `∧ & &&`, `∨ | ||`, `¬ !` and `∃`. `not` binds closest, then `and`, then
`or`; `exists` extends as far as it can. Parsing takes linear time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NoReturn

from condgraph.engine.algebra import remade
from condgraph.engine.errors import ParseError
from condgraph.languages.logic.formula import And, Atom, Constant, Exists, Formula, Not, Or, Query, Span, Term, Typed, Variable
from condgraph.languages.logic.structures import is_nested, nested
from condgraph.languages.parameters import GivenText, Hole, hole, hole_or_text, in_order

#: The deepest nesting of brackets, `not` and `exists`.
MAX_DEPTH: Final = 60
#: The most atoms of a query.
MAX_ATOMS: Final = 200
#: The most characters of a query.
MAX_LENGTH: Final = 100_000
_TOKEN: Final = re.compile(
    r"""\s*+(?:
        (?P<variable>[?$][^\W\d]\w*+)
      | (?P<text>"(?:[^"\\]|\\.)*+")
      | (?P<id><[^<>\n]++>)
      | (?P<word>[^\W\d]\w*+)
      | (?P<mark>&&|\|\||[()∧∨¬∃!&|:.,])
    )""",
    re.VERBOSE,
)
_MARKS: Final = {"∧": "and", "&": "and", "&&": "and", "∨": "or", "|": "or", "||": "or", "¬": "not", "!": "not", "∃": "exists"}
_HINT: Final = 'a query is like ?x : exists ?v. award("Nobel", ?v) and born(?v, ?x) and not capital(?x, "France")'


def read(text: str, *, parameters: bool = False) -> Query:
    """Parse a query; raises `ParseError` with a position.

    With `parameters`, `$name` is a parameter instead of a variable.

    >>> str(read('?x : ∃?v. award("Nobel", ?v) ∧ born(?v, ?x) ∧ ¬capital(?x, <Q142>)'))
    '?x : exists ?v. award("Nobel", ?v) and born(?v, ?x) and not capital(?x, <Q142>)'
    """
    if len(text) > MAX_LENGTH:
        raise ParseError(f"the query has {len(text):,} characters; at most {MAX_LENGTH:,} are read", span=(MAX_LENGTH, len(text)))
    parser = _Parser(text, parameters)
    answer = parser.variable("the variable that is asked for is expected")
    parser.expect(":")
    body = parser.formula(0)
    if parser.kind:
        parser.fail("the query should end here, or go on with and/or")
    return Query(answer, body)


class _Parser:
    """A tokenizer with one token of lookahead, and a recursive-descent parser."""

    def __init__(self, text: str, parameters: bool) -> None:
        self.source, self.end, self.atoms, self.parameters = text, 0, 0, parameters
        self.kind, self.text, self.span = "", "", (0, 0)
        self.next()

    def next(self) -> None:
        match = _TOKEN.match(self.source, self.end)
        if match is None:
            remainder = self.source[self.end :]
            start = self.end + len(remainder) - len(remainder.lstrip())
            self.kind, self.text, self.span = "", "", (start, len(self.source))
            if start < len(self.source):
                at = self.source[start]
                message = "this name has no closing mark" if at in '"<' else f"{at!r} has no meaning here"
                message = "this id is empty" if self.source.startswith("<>", start) else message
                raise ParseError(message, span=(start, start + 1), hint=_HINT)
            return
        self.kind = str(match.lastgroup)
        self.text, self.span, self.end = match[self.kind], match.span(self.kind), match.end()
        if self.parameters and self.kind == "variable" and self.text[0] == "$":
            self.kind = "hole"
        word = _MARKS.get(self.text, self.text.casefold() if self.kind == "word" else "")
        if self.kind in ("mark", "word") and word in ("and", "or", "not", "exists"):
            # A keyword is an operator even before a bracket; a relation of that name must be quoted.
            self.kind, self.text = "operator", word

    def fail(self, message: str) -> NoReturn:
        raise ParseError(message, span=self.span if self.kind else (len(self.source), len(self.source)), hint=_HINT)

    def expect(self, mark: str) -> Span:
        if self.kind != "mark" or self.text != mark:
            self.fail(f"{mark!r} is expected")
        span = self.span
        self.next()
        return span

    def at(self, kind: str, text: str) -> bool:
        return self.kind == kind and self.text == text

    def variable(self, message: str) -> Variable:
        if self.kind == "hole":
            self.fail(f"{self.text} is a parameter; a variable is written ?{self.text[1:]} in a query with parameters")
        if self.kind != "variable":
            self.fail(message)
        result = Variable(self.text[1:], self.span)
        self.next()
        return result

    def formula(self, depth: int) -> Formula:
        """Parse a formula; precedence is or < and < not, exists, atom."""
        return self._junction("or", depth)

    def _junction(self, word: str, depth: int) -> Formula:
        parts: list[Formula] = []
        while True:
            parts.append(self._junction("and", depth) if word == "or" else self._operand(depth))
            if not self.at("operator", word):
                break
            self.next()
        if len(parts) == 1:
            return parts[0]
        return Or(tuple(parts)) if word == "or" else And(tuple(parts))

    def _operand(self, depth: int) -> Formula:
        if depth > MAX_DEPTH:
            self.fail(f"the query is nested deeper than {MAX_DEPTH}")
        if self.at("operator", "not"):
            self.next()
            return Not(self._operand(depth + 1))
        if self.at("operator", "exists"):
            return self._exists(depth)
        if self.at("mark", "("):
            self.next()
            inner = self.formula(depth + 1)
            self.expect(")")
            return inner
        return self._atom()

    def _exists(self, depth: int) -> Formula:
        self.next()
        variables = [self.variable("a variable is expected after exists")]
        while self.kind == "variable" or self.at("mark", ","):
            if self.at("mark", ","):
                self.next()
            variables.append(self.variable("a variable is expected here"))
        if self.at("mark", ".") or self.at("mark", ":"):
            self.next()
        elif not self.at("mark", "(") and not self.at("operator", "exists"):
            self.fail("'.' is expected after the variables of exists")
        return Exists(tuple(variables), self.formula(depth + 1))

    def _atom(self) -> Formula:
        start = self.span
        if self.kind not in ("word", "text", "hole"):
            self.fail("a relation is expected")
        relation = self.name()
        self.expect("(")
        arguments = [self._term()]
        while self.at("mark", ","):
            self.next()
            arguments.append(self._term())
        span = start[0], self.expect(")")[1]
        self.atoms += 1
        if self.atoms > MAX_ATOMS:
            raise ParseError(f"a query has at most {MAX_ATOMS} atoms", span=span)
        if len(arguments) == 1:
            return Typed(relation, arguments[0], span)
        if len(arguments) != 2:
            raise ParseError(f"an atom is about one or two entities, not {len(arguments)}", span=span, hint=_HINT)
        return Atom(relation, arguments[0], arguments[1], span)

    def _term(self) -> Term:
        if self.kind == "variable":
            return self.variable("")
        if self.kind not in ("text", "id", "hole"):
            self.fail("a variable, a name in double quotes or an id in angle brackets is expected")
        is_id, span = self.kind == "id", self.span
        return Constant(self.name(), is_id, span)

    def name(self) -> str:
        """Take the current token as a name."""
        text = self.text
        if self.kind == "text":
            try:
                text = json.loads(text, strict=False)
            except ValueError:
                self.fail("this name is not written as in JSON")
        elif self.kind == "id":
            text = (hole(text[1:-1]) if self.parameters else None) or text[1:-1]
        elif self.kind == "hole":
            text = Hole(text[1:])
        self.next()
        return text


# -- templates ---------------------------------------------------------------------------------------
# Logical queries with parameters: `?x : exists ?v. award($prize, ?v) and born(?v, ?x)`.
#
# In a template `?x` is a variable and `$prize` a parameter: a name, or an id as `<$prize>`;
# `$relation(?v, ?x)` has a relation as its parameter. In BetaE's lists, where everything is quoted,
# `"$prize"` is a parameter and `"$$prize"` the name.


class LogicTemplate:
    """A parsed logical query with parameters; raises as `read`."""

    language: ClassVar[str] = "logic"

    def __init__(self, program: Any) -> None:
        if isinstance(program, Query) or is_nested(program):
            query = program if isinstance(program, Query) else nested(program)
            query = remade(query, _quoted)
        else:
            query = read(program if isinstance(program, str) else str(program), parameters=True)
        names: list[str] = []
        not_entities: set[str] = set()

        def find(node: Any) -> Any:
            if isinstance(node, (Atom, Typed)):
                relation = node.relation if isinstance(node, Atom) else node.concept
                if isinstance(relation, Hole):
                    names.append(relation)
                    not_entities.add(str(relation))
            if isinstance(node, Constant) and isinstance(node.name, Hole):
                names.append(node.name)
                if node.is_id:
                    not_entities.add(str(node.name))
            return node

        self._query: Query = remade(query, find)
        self.parameters = in_order(names)
        self.entities = frozenset(self.parameters) - not_entities

    def bind(self, values: Mapping[str, GivenText]) -> Query:
        query: Query = remade(self._query, lambda node: values[node] if type(node) is Hole else node)
        return query


def _quoted(node: Any) -> Any:
    if isinstance(node, Constant):
        return Constant(hole_or_text(node.name), node.is_id, node.span)
    if isinstance(node, Atom):
        return Atom(hole_or_text(node.relation), remade(node.subject, _quoted), remade(node.object, _quoted), node.span)
    return Typed(hole_or_text(node.concept), remade(node.of, _quoted), node.span) if isinstance(node, Typed) else node
