"""The parser of SPARQL: SELECT and ASK over one graph, to the tree in `syntax`.

Features without a plan are refused at their position, and so is invalid SPARQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NoReturn, TypeAlias

from condgraph.engine.errors import ParseError
from condgraph.engine.iris import RDF, XSD
from condgraph.languages.sparql import syntax
from condgraph.languages.sparql.syntax import Iri, Lit, Term, Var, beyond

# -- Tokens ------------------------------------------------------------------------------------------

# Tokens, and the terms made of them: names, variables and literals.


_TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+|\#[^\n\r]*)
    | (?P<iri><[^<>"{}|^`\\\x00-\x20]*>)
    | (?P<variable>[?$]\w+)
    | (?P<text>\"{3}(?:\"{0,2}(?:[^"\\]|\\.))*\"{3} | '{3}(?:'{0,2}(?:[^'\\]|\\.))*'{3}
        | "(?:[^"\\\n\r]|\\.)*" | '(?:[^'\\\n\r]|\\.)*')
    | (?P<tag>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)
    | (?P<number>(?:\d+\.\d*|\.\d+|\d+)[eE][+-]?\d+|\d*\.\d+|\d+)
    | (?P<blank>_:[\w][\w.-]*)
    | (?P<name>(?:[^\W\d_][\w.-]*)?:(?:[\w:](?:[\w.:-]*[\w:-])?)?)
    | (?P<word>[A-Za-z]\w*)
    | (?P<sign>\^\^|&&|\|\||!=|<=|>=|[{}()\[\].;,/^|!+*?=<>-])
    """,
    re.X | re.S,
)
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:").match
_RELATIVE: Final = re.compile(r"(?![/#?])(?!\.{0,2}(?:/|$))(?!.*/\.{0,2}(?:/|$))").match
_ESCAPES: Final = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


class Terms:
    """The tokenizer of one query, and the parser of its terms."""

    def __init__(self, text: str, base: str, prefixes: Mapping[str, str]) -> None:
        self._base, self._prefixes = base, dict(prefixes)
        self._tokens: list[tuple[str, str]] = []
        self._at = self._fresh = 0
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise beyond(f"{text[at : at + 20]!r}")
            if match.lastgroup != "space":
                self._tokens.append((str(match.lastgroup), match[0]))
            at = match.end()
        self._tokens.append(("end", ""))

    # -- tokens ------------------------------------------------------------------------------------

    def _is(self, *signs: str) -> bool:
        kind, text = self._tokens[self._at]
        return kind in ("sign", "word") and (text if kind == "sign" else text.upper()) in signs

    def _take(self, *signs: str) -> bool:
        matches = self._is(*signs)
        self._at += matches
        return matches

    def _next(self) -> tuple[str, str]:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            self._refuse()

    def _refuse(self) -> NoReturn:
        kind, text = self._tokens[self._at]
        raise beyond("a query that ends here" if kind == "end" else text.upper() if kind == "word" else repr(text))

    def _hidden(self) -> Var:
        self._fresh += 1
        return Var(f".{self._fresh}")

    # -- terms -------------------------------------------------------------------------------------

    def _iri(self, kind: str, text: str) -> Iri:
        if kind == "iri":
            return Iri(self._resolved(text[1:-1]))
        if kind == "name":
            prefix, _, local = text.partition(":")
            if prefix not in self._prefixes:
                raise ParseError(f"the prefix {prefix!r} is not declared")
            return Iri(self._prefixes[prefix] + local)
        self._at -= 1
        return self._refuse()

    def _based(self, iri: str) -> None:
        """Set the base of relative IRIs: the given IRI up to its last slash."""
        absolute = iri if _ABSOLUTE(iri) else self._resolved(iri)
        scheme, mark, path = absolute.partition("://")
        if not mark:
            raise beyond(f"BASE <{iri}>", "an IRI with :// and a path")
        self._base = f"{scheme}{mark}{path[: path.rindex('/') + 1] if '/' in path else path + '/'}"

    def _resolved(self, iri: str) -> str:
        if _ABSOLUTE(iri):
            return iri
        if not _RELATIVE(iri):
            raise beyond(f"the relative IRI <{iri}>", "write the whole IRI")
        return self._base + iri

    def _term(self) -> Term:
        kind, text = self._next()
        if kind == "variable":
            return Var(text[1:])
        if kind == "blank":
            return Var(f".{text}")
        if (kind, text) == ("sign", "["):
            if not self._take("]"):
                raise beyond("a blank node with properties in brackets", "give it a variable")
            return self._hidden()
        if kind == "text":
            return self._literal(text)
        if kind == "number":
            return _number(text)
        if kind == "sign" and text in "+-" and self._tokens[self._at][0] == "number":
            number = _number(self._next()[1])
            return Lit(text + number.text, number.datatype)
        if kind == "word" and text.lower() in ("true", "false"):
            return Lit(text.lower(), f"{XSD}boolean")
        return self._iri(kind, text)

    def _literal(self, text: str) -> Lit:
        body = text[3:-3] if len(text) >= 6 and text[:3] == text[0] * 3 else text[1:-1]
        unescaped = re.sub(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", _unescaped, body, flags=re.S)
        if self._tokens[self._at][0] == "tag":
            return Lit(unescaped, "", self._next()[1][1:])
        if self._take("^^"):
            return Lit(unescaped, self._iri(*self._next()).iri)
        return Lit(unescaped, f"{XSD}string")


def _number(text: str) -> Lit:
    kind = "double" if "e" in text.lower() else "decimal" if "." in text else "integer"
    return Lit(text, XSD + kind)


def _unescaped(found: re.Match[str]) -> str:
    escape = found[1]
    if escape[0] in "uU" and len(escape) > 1:
        return chr(int(escape[1:], 16))
    return _ESCAPES.get(escape, escape)


# -- The parser --------------------------------------------------------------------------------------


#: Functions, with the least and the greatest number of arguments.
FUNCTIONS: Final = {
    **dict.fromkeys(("CONTAINS", "STRSTARTS", "STRENDS"), (2, 2)),
    **dict.fromkeys(("LCASE", "UCASE", "STR", "STRLEN", "BOUND", "YEAR", "MONTH", "DAY", "ABS", "CEIL", "FLOOR", "ROUND"), (1, 1)),
    "REGEX": (2, 3),
    "SUBSTR": (2, 3),
    "IF": (3, 3),
    "CONCAT": (0, 100),
    "COALESCE": (1, 100),
    "SAMETERM": (2, 2),
}
AGGREGATES: Final = frozenset(("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT"))
#: The deepest nesting of groups and expressions.
_MAX_DEPTH: Final = 100
#: The most operators + - * / in a query; each nests in the next.
_MAX_OPERATIONS: Final = 150
_COMPARED: Final = frozenset(("=", "!=", "<", "<=", ">", ">="))


def parse(text: str, base: str, prefixes: Mapping[str, str]) -> syntax.Query:
    """Parse a query.

    Names are relative to `base`; `prefixes` need no declaration. Raises `UnsupportedError` for a feature
    without a plan, and `ParseError` for an undeclared prefix.
    """
    reader = _Reader(text, base, prefixes)
    query = reader.query()
    reader.end()
    return query


#: A step of a path: the predicates, each with whether it is followed backwards, and the least and most repetitions.
_Step: TypeAlias = tuple[tuple[tuple[syntax.Iri, bool], ...], int, int | None]


class _Reader(Terms):
    """The recursive-descent parser of one query."""

    # -- the query ---------------------------------------------------------------------------------

    _depth = 0
    _operations = 0

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise syntax.beyond(f"more than {_MAX_DEPTH} brackets or negations within each other")
        yield
        self._depth -= 1

    def end(self) -> None:
        """Raise if anything follows the query."""
        if self._tokens[self._at][0] != "end":
            self._refuse()

    def query(self) -> syntax.Query:
        """Parse a query with its prologue."""
        while True:
            if self._take("PREFIX"):
                name, iri = self._next()[1], self._next()[1]
                self._prefixes[name.removesuffix(":")] = self._resolved(iri[1:-1])
            elif self._is("BASE"):
                self._next()
                self._based(self._next()[1][1:-1])
            else:
                break
        if not self._take("ASK"):
            return self._select()
        ask = syntax.Query("ask", syntax.Group((), ()))
        return self._body(ask)

    def _select(self) -> syntax.Query:
        if self._take("SELECT"):
            query = syntax.Query("select", syntax.Group((), ()))
            query.distinct = self._take("DISTINCT")
            if self._is("REDUCED"):
                raise syntax.beyond("REDUCED", "DISTINCT says what is meant")
            self._columns(query)
        else:
            self._refuse()
        return self._body(query)

    def _body(self, found: syntax.Query) -> syntax.Query:
        every = not found.columns
        if self._is("FROM"):
            raise syntax.beyond("FROM", "there is one graph")
        self._take("WHERE")
        found.group = self._group()
        if every and found.form == "select":
            found.columns = [(variable, None) for variable in found.group.variables() if not variable.hidden]
        self._modifiers(found)
        if self._take("VALUES"):
            found.group = syntax.Group((syntax.UnionGroup((found.group,)), self._values()), ())
        return found

    def _columns(self, found: syntax.Query) -> None:
        if self._take("*"):
            return
        while True:
            if self._tokens[self._at][0] == "variable":
                found.columns.append((syntax.Var(self._next()[1][1:]), None))
            elif self._take("("):
                expression = self._expression()
                self._expect("AS")
                found.columns.append((syntax.Var(self._next()[1][1:]), expression))
                self._expect(")")
            else:
                break
        if not found.columns:
            self._refuse()

    def _modifiers(self, found: syntax.Query) -> None:
        if self._take("GROUP"):
            self._expect("BY")
            while True:
                if self._tokens[self._at][0] == "variable":
                    found.grouped.append((syntax.Var(self._next()[1][1:]), None))
                elif self._take("("):
                    key = self._expression()
                    found.grouped.append((syntax.Var(self._next()[1][1:]) if self._take("AS") else self._hidden(), key))
                    self._expect(")")
                else:
                    break
        if self._take("HAVING"):
            while self._is("("):
                found.having.append(self._bracketed())
        if self._take("ORDER"):
            self._expect("BY")
            while True:
                down = self._is("DESC")
                if self._take("ASC", "DESC"):
                    found.order.append((self._bracketed(), down))
                elif self._tokens[self._at][0] == "variable":
                    found.order.append((syntax.Var(self._next()[1][1:]), False))
                elif self._is("("):
                    found.order.append((self._bracketed(), False))
                else:
                    break
        while self._is("LIMIT", "OFFSET"):
            keyword, number = self._next()[1].upper(), self._next()
            if number[0] != "number" or not number[1].isdigit():
                self._refuse()
            if keyword == "LIMIT":
                found.limit = int(number[1])
            else:
                found.offset = int(number[1])

    # -- groups ------------------------------------------------------------------------------------

    def _group(self) -> syntax.Group:
        with self._deeper():
            return self._parts()

    def _parts(self) -> syntax.Group:
        self._expect("{")
        if self._is("SELECT"):
            inner = self._select()
            self._expect("}")
            return syntax.Group((syntax.Nested(inner),), ())
        parts: list[syntax.Part] = []
        filters: list[syntax.Expression] = []
        triples: list[syntax.Triple | syntax.PathPattern] = []

        def close() -> None:
            # Paths of variable length become parts of their own, joined with the triples around them.
            basic = tuple(pattern for pattern in triples if isinstance(pattern, syntax.Triple))
            if basic:
                parts.append(syntax.Basic(basic))
            parts.extend(pattern for pattern in triples if isinstance(pattern, syntax.PathPattern))
            triples.clear()

        while not self._take("}"):
            if self._take("."):
                continue
            if self._take("FILTER"):
                filters.append(self._constraint())
                continue
            if self._is("OPTIONAL", "MINUS", "{", "BIND", "VALUES", "GRAPH", "SERVICE"):
                close()
                parts.append(self._part())
                continue
            triples += self._same_subject()
        close()
        return syntax.Group(tuple(parts), tuple(filters))

    def _part(self) -> syntax.Part:
        if self._take("OPTIONAL"):
            return syntax.OptionalGroup(self._group())
        if self._take("MINUS"):
            return syntax.MinusGroup(self._group())
        if self._take("BIND"):
            self._expect("(")
            expression = self._expression()
            self._expect("AS")
            variable = syntax.Var(self._next()[1][1:])
            self._expect(")")
            return syntax.Bind(expression, variable)
        if self._take("VALUES"):
            return self._values()
        if not self._is("{"):
            self._refuse()
        branches = [self._group()]
        while self._take("UNION"):
            branches.append(self._group())
        return syntax.UnionGroup(tuple(branches))

    def _values(self) -> syntax.Values:
        single = self._tokens[self._at][0] == "variable"
        variables = []
        if single:
            variables.append(syntax.Var(self._next()[1][1:]))
        else:
            self._expect("(")
            while not self._take(")"):
                variables.append(syntax.Var(self._next()[1][1:]))
        self._expect("{")
        rows: list[tuple[syntax.Term | None, ...]] = []
        while not self._take("}"):
            if single:
                rows.append((None if self._take("UNDEF") else self._term(),))
                continue
            self._expect("(")
            row: list[syntax.Term | None] = []
            while not self._take(")"):
                row.append(None if self._take("UNDEF") else self._term())
            if len(row) != len(variables):
                raise ParseError(f"a row of VALUES has {len(row)} terms for {len(variables)} variables")
            rows.append(tuple(row))
        return syntax.Values(tuple(variables), tuple(rows))

    def _same_subject(self) -> list[syntax.Triple | syntax.PathPattern]:
        subject, patterns = self._term(), list[syntax.Triple | syntax.PathPattern]()
        while True:
            path = self._path()
            while True:
                patterns += self._along(subject, path, self._term())
                if not self._take(","):
                    break
            while self._take(";"):
                pass
            if self._is(".", "}", "{", "FILTER", "OPTIONAL", "MINUS", "BIND", "VALUES", "GRAPH", "SERVICE"):
                return patterns

    def _path(self) -> list[_Step]:
        """Parse a path as a sequence of steps."""
        steps = [self._step()]
        while self._take("/"):
            steps.append(self._step())
        if self._is("|"):
            raise syntax.beyond("a path with alternatives outside of brackets", "brackets, or UNION, say the same")
        return steps

    def _step(self) -> _Step:
        hops = [self._hop()]
        if hops[0] is None:
            hops = [self._one()]
            while self._take("|"):
                hops.append(self._one())
            self._expect(")")
        least: int = 1
        most: int | None = 1
        if self._is("+", "*", "?"):
            mark = self._next()[1]
            least, most = int(mark == "+"), 1 if mark == "?" else None
        return tuple(hop for hop in hops if hop is not None), least, most

    def _hop(self) -> tuple[syntax.Iri, bool] | None:
        return None if self._take("(") else self._one()

    def _one(self) -> tuple[syntax.Iri, bool]:
        back = self._take("^")
        if self._is("(", "!"):
            raise syntax.beyond("a path with brackets within brackets, or negation", "name the predicates")
        kind, text = self._next()
        if kind == "variable":
            raise syntax.beyond(
                f"a variable in place of a predicate ({text})", "name the predicate, or ask for <pred:fact_r> of a statement"
            )
        return syntax.Iri(f"{RDF}type") if (kind, text) == ("word", "a") else self._iri(kind, text), back

    def _along(self, subject: syntax.Term, path: list[_Step], target: syntax.Term) -> list[syntax.Triple | syntax.PathPattern]:
        patterns, start = list[syntax.Triple | syntax.PathPattern](), subject
        for number, (hops, least, most) in enumerate(path):
            end = target if number == len(path) - 1 else self._hidden()
            if len(hops) == 1 and least == most == 1:
                ((predicate, back),) = hops
                patterns.append(syntax.Triple(end, predicate, start) if back else syntax.Triple(start, predicate, end))
            else:
                patterns.append(syntax.PathPattern(start, hops, end, least, most))
            start = end
        return patterns

    # -- expressions -------------------------------------------------------------------------------

    def _constraint(self) -> syntax.Expression:
        return self._bracketed() if self._is("(") else self._primary()

    def _bracketed(self) -> syntax.Expression:
        self._expect("(")
        expression = self._expression()
        self._expect(")")
        return expression

    def _expression(self) -> syntax.Expression:
        with self._deeper():
            return self._disjunction()

    def _disjunction(self) -> syntax.Expression:
        return self._joined("||", self._conjunction)

    def _conjunction(self) -> syntax.Expression:
        return self._joined("&&", self._comparison)

    def _joined(self, sign: str, part: Callable[[], syntax.Expression]) -> syntax.Expression:
        """Parse operands of one sign into a single flat call, since a nested one might be too deep."""
        operands = [part()]
        while self._take(sign):
            operands.append(part())
        return syntax.Call(sign, tuple(operands)) if len(operands) > 1 else operands[0]

    def _comparison(self) -> syntax.Expression:
        left = self._sum()
        if self._is(*_COMPARED):
            return syntax.Call(self._next()[1], (left, self._sum()))
        negated = self._take("NOT")
        if self._take("IN"):
            self._expect("(")
            items = []
            while not self._take(")"):
                items.append(self._expression())
                if not self._is(")"):
                    self._expect(",")
            inside = syntax.Call("IN", (left, *items))
            return syntax.Call("!", (inside,)) if negated else inside
        return left

    def _sum(self) -> syntax.Expression:
        return self._computed(("+", "-"), self._product)

    def _product(self) -> syntax.Expression:
        return self._computed(("*", "/"), self._unary)

    def _computed(self, signs: tuple[str, str], part: Callable[[], syntax.Expression]) -> syntax.Expression:
        result = part()
        while self._is(*signs):
            self._operations += 1
            if self._operations > _MAX_OPERATIONS:
                raise syntax.beyond(f"more than {_MAX_OPERATIONS} operations of arithmetic")
            result = syntax.Call(self._next()[1], (result, part()))
        return result

    def _unary(self) -> syntax.Expression:
        if self._take("!"):
            with self._deeper():
                return syntax.Call("!", (self._unary(),))
        return self._primary()

    def _primary(self) -> syntax.Expression:
        if self._is("("):
            return self._bracketed()
        if self._is("NOT") or self._is("EXISTS"):
            negated = self._take("NOT")
            self._expect("EXISTS")
            return syntax.Exists(self._group(), negated)
        kind, text = self._tokens[self._at]
        if kind == "word" and text.lower() not in ("true", "false"):
            return self._called(text.upper())
        if kind == "name" and self._tokens[self._at + 1] == ("sign", "("):
            raise syntax.beyond(f"the function {text}")
        return self._term()

    def _called(self, name: str) -> syntax.Expression:
        self._at += 1
        if name in AGGREGATES:
            self._expect("(")
            distinct = self._take("DISTINCT")
            of = None if self._take("*") else self._expression()
            separator = " "
            if name == "GROUP_CONCAT" and self._take(";"):
                self._expect("SEPARATOR")
                self._expect("=")
                separator = getattr(self._term(), "text", " ")
            self._expect(")")
            return syntax.Aggregate(name, of, distinct, separator)
        if name not in FUNCTIONS:
            raise syntax.beyond(f"the function {name}")
        self._expect("(")
        arguments = list[syntax.Expression]()
        while not self._take(")"):
            arguments.append(self._expression())
            if not self._is(")"):
                self._expect(",")
        if not FUNCTIONS[name][0] <= len(arguments) <= FUNCTIONS[name][1]:
            raise syntax.beyond(f"{name} of {len(arguments)} arguments")
        return syntax.Call(name, tuple(arguments))
