"""The text of a logical query to its formula.

    ?x : exists ?v. award("Nobel", ?v) and born(?v, ?x) and not capital(?x, "France")

An atom is `relation(subject, object)`, or `concept(?x)` for a type. Constants are names in double
quotes as in JSON, or ids in angle brackets. A relation is a word, or in double quotes. `and`, `or`,
`not` and `exists` are also written `∧ & &&`, `∨ | ||`, `¬ !` and `∃`; `and` binds closer than
`or`, `not` closest, and `exists` reaches as far as it can. Time is linear in the text.
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

#: How deep brackets, `not` and `exists` may be nested.
DEEPEST: Final = 60
#: The most atoms of a query.
MOST_ATOMS: Final = 200
#: Characters of the longest query.
LONGEST: Final = 100_000
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
    """Read a query; raises `ParseError`, with the place. With `parameters`, `$name` is no variable,
    but stands for what is given later.

    >>> str(read('?x : ∃?v. award("Nobel", ?v) ∧ born(?v, ?x) ∧ ¬capital(?x, <Q142>)'))
    '?x : exists ?v. award("Nobel", ?v) and born(?v, ?x) and not capital(?x, <Q142>)'
    """
    if len(text) > LONGEST:
        raise ParseError(f"the query has {len(text):,} characters; at most {LONGEST:,} are read", span=(LONGEST, len(text)))
    parser = _Parser(text, parameters)
    answer = parser.variable("the variable that is asked for is expected")
    parser.expect(":")
    body = parser.formula(0)
    if parser.kind:
        parser.fail("the query should end here, or go on with and/or")
    return Query(answer, body)


class _Parser:
    """The tokens of a text, the one at hand, and a recursive descent over them."""

    def __init__(self, text: str, parameters: bool) -> None:
        self.source, self.end, self.atoms, self.parameters = text, 0, 0, parameters
        self.kind, self.text, self.span = "", "", (0, 0)
        self.next()

    def next(self) -> None:
        found = _TOKEN.match(self.source, self.end)
        if found is None:
            rest = self.source[self.end :]
            start = self.end + len(rest) - len(rest.lstrip())
            self.kind, self.text, self.span = "", "", (start, len(self.source))
            if start < len(self.source):
                at = self.source[start]
                what = "this name has no closing mark" if at in '"<' else f"{at!r} has no meaning here"
                what = "this id is empty" if self.source.startswith("<>", start) else what
                raise ParseError(what, span=(start, start + 1), hint=_HINT)
            return
        self.kind = str(found.lastgroup)
        self.text, self.span, self.end = found[self.kind], found.span(self.kind), found.end()
        if self.parameters and self.kind == "variable" and self.text[0] == "$":
            self.kind = "hole"
        word = _MARKS.get(self.text, self.text.casefold() if self.kind == "word" else "")
        if self.kind in ("mark", "word") and word in ("and", "or", "not", "exists"):
            # A word before a bracket that opens is a relation of that name only in quotes.
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
        found = Variable(self.text[1:], self.span)
        self.next()
        return found

    def formula(self, depth: int) -> Formula:
        """or > and > not, exists, atom."""
        return self._joined("or", depth)

    def _joined(self, word: str, depth: int) -> Formula:
        parts: list[Formula] = []
        while True:
            parts.append(self._joined("and", depth) if word == "or" else self._part(depth))
            if not self.at("operator", word):
                break
            self.next()
        if len(parts) == 1:
            return parts[0]
        return Or(tuple(parts)) if word == "or" else And(tuple(parts))

    def _part(self, depth: int) -> Formula:
        if depth > DEEPEST:
            self.fail(f"the query is nested deeper than {DEEPEST}")
        if self.at("operator", "not"):
            self.next()
            return Not(self._part(depth + 1))
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
        variables = [self.variable("a variable is expected behind exists")]
        while self.kind == "variable" or self.at("mark", ","):
            if self.at("mark", ","):
                self.next()
            variables.append(self.variable("a variable is expected here"))
        if self.at("mark", ".") or self.at("mark", ":"):
            self.next()
        elif not self.at("mark", "(") and not self.at("operator", "exists"):
            self.fail("'.' is expected behind the variables of exists")
        return Exists(tuple(variables), self.formula(depth + 1))

    def _atom(self) -> Formula:
        start = self.span
        if self.kind not in ("word", "text", "hole"):
            self.fail("a relation is expected")
        relation = self.name()
        self.expect("(")
        found = [self._term()]
        while self.at("mark", ","):
            self.next()
            found.append(self._term())
        whole = start[0], self.expect(")")[1]
        self.atoms += 1
        if self.atoms > MOST_ATOMS:
            raise ParseError(f"a query has at most {MOST_ATOMS} atoms", span=whole)
        if len(found) == 1:
            return Typed(relation, found[0], whole)
        if len(found) != 2:
            raise ParseError(f"an atom is about one or two entities, not {len(found)}", span=whole, hint=_HINT)
        return Atom(relation, found[0], found[1], whole)

    def _term(self) -> Term:
        if self.kind == "variable":
            return self.variable("")
        if self.kind not in ("text", "id", "hole"):
            self.fail("a variable, a name in double quotes or an id in angle brackets is expected")
        is_id, span = self.kind == "id", self.span
        return Constant(self.name(), is_id, span)

    def name(self) -> str:
        """The token at hand as a name."""
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
# Where a query has parameters, `?x` is a variable and `$prize` a parameter: a name, or, as `<$prize>`,
# an id; `$relation(?v, ?x)` is a relation. In BetaE's lists, where all is in quotes, `"$prize"` is a
# parameter and `"$$prize"` the name.


class LogicTemplate:
    """The formula of a query. Reading one raises as `read`."""

    language: ClassVar[str] = "logic"

    def __init__(self, program: Any) -> None:
        if isinstance(program, Query) or is_nested(program):
            query = program if isinstance(program, Query) else nested(program)
            query = remade(query, _quoted)
        else:
            query = read(program if isinstance(program, str) else str(program), parameters=True)
        names: list[str] = []
        others: set[str] = set()

        def find(node: Any) -> Any:
            if isinstance(node, (Atom, Typed)):
                relation = node.relation if isinstance(node, Atom) else node.concept
                if isinstance(relation, Hole):
                    names.append(relation)
                    others.add(str(relation))
            if isinstance(node, Constant) and isinstance(node.name, Hole):
                names.append(node.name)
                if node.is_id:
                    others.add(str(node.name))
            return node

        self._query: Query = remade(query, find)
        self.parameters = in_order(names)
        self.entities = frozenset(self.parameters) - others

    def bind(self, values: Mapping[str, GivenText]) -> Query:
        """The formula with these values."""
        found: Query = remade(self._query, lambda node: values[node] if type(node) is Hole else node)
        return found


def _quoted(node: Any) -> Any:
    if isinstance(node, Constant):
        return Constant(hole_or_text(node.name), node.is_id, node.span)
    if isinstance(node, Atom):
        return Atom(hole_or_text(node.relation), remade(node.subject, _quoted), remade(node.object, _quoted), node.span)
    return Typed(hole_or_text(node.concept), remade(node.of, _quoted), node.span) if isinstance(node, Typed) else node
