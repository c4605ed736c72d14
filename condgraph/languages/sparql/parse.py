"""The text of a SPARQL query as `syntax` has it: SELECT and ASK over one graph. What has no plan is refused
where it stands, and so is what is no SPARQL.
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

# The tokens of a SPARQL query, and the terms that they make: names, variables and literals.


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
    """Reads one text, token by token."""

    def __init__(self, text: str, base: str, prefixes: Mapping[str, str]) -> None:
        self._base, self._prefixes = base, dict(prefixes)
        self._tokens: list[tuple[str, str]] = []
        self._at = self._fresh = 0
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise beyond(f"{text[at : at + 20]!r}")
            if found.lastgroup != "space":
                self._tokens.append((str(found.lastgroup), found[0]))
            at = found.end()
        self._tokens.append(("end", ""))

    # -- tokens ------------------------------------------------------------------------------------

    def _is(self, *signs: str) -> bool:
        kind, text = self._tokens[self._at]
        return kind in ("sign", "word") and (text if kind == "sign" else text.upper()) in signs

    def _take(self, *signs: str) -> bool:
        found = self._is(*signs)
        self._at += found
        return found

    def _next(self) -> tuple[str, str]:
        found = self._tokens[self._at]
        self._at += 1
        return found

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
        """Take an IRI as the base of relative ones, which are put behind its last slash."""
        whole = iri if _ABSOLUTE(iri) else self._resolved(iri)
        scheme, mark, rest = whole.partition("://")
        if not mark:
            raise beyond(f"BASE <{iri}>", "an IRI with :// and a path")
        self._base = f"{scheme}{mark}{rest[: rest.rindex('/') + 1] if '/' in rest else rest + '/'}"

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
            found = _number(self._next()[1])
            return Lit(text + found.text, found.datatype)
        if kind == "word" and text.lower() in ("true", "false"):
            return Lit(text.lower(), f"{XSD}boolean")
        return self._iri(kind, text)

    def _literal(self, text: str) -> Lit:
        body = text[3:-3] if len(text) >= 6 and text[:3] == text[0] * 3 else text[1:-1]
        plain = re.sub(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", _unescaped, body, flags=re.S)
        if self._tokens[self._at][0] == "tag":
            return Lit(plain, "", self._next()[1][1:])
        if self._take("^^"):
            return Lit(plain, self._iri(*self._next()).iri)
        return Lit(plain, f"{XSD}string")


def _number(text: str) -> Lit:
    kind = "double" if "e" in text.lower() else "decimal" if "." in text else "integer"
    return Lit(text, XSD + kind)


def _unescaped(found: re.Match[str]) -> str:
    escape = found[1]
    if escape[0] in "uU" and len(escape) > 1:
        return chr(int(escape[1:], 16))
    return _ESCAPES.get(escape, escape)


# -- The parser --------------------------------------------------------------------------------------


#: Functions, with how many arguments they take at least and at most.
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
#: How deep groups and expressions may be nested.
_DEEPEST: Final = 100
#: The signs + - * / of a query: each is nested in the next.
_MOST_OPERATIONS: Final = 150
_COMPARED: Final = frozenset(("=", "!=", "<", "<=", ">", ">="))


def parse(text: str, base: str, prefixes: Mapping[str, str]) -> syntax.Query:
    """A query. Names are relative to `base`; `prefixes` need not be declared. Raises `UnsupportedError` for
    what has no plan, and `ParseError` for an undeclared prefix.
    """
    reader = _Reader(text, base, prefixes)
    found = reader.query()
    reader.end()
    return found


#: A step of a path: predicates, each with whether it is gone backwards, and how often, from and to.
_Step: TypeAlias = tuple[tuple[tuple[syntax.Iri, bool], ...], int, int | None]


class _Reader(Terms):
    """Reads one text: its parts, from the query down to expressions."""

    # -- the query ---------------------------------------------------------------------------------

    _depth = 0
    _operations = 0

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise syntax.beyond(f"more than {_DEEPEST} brackets or negations within each other")
        yield
        self._depth -= 1

    def end(self) -> None:
        """Refuse what follows a query."""
        if self._tokens[self._at][0] != "end":
            self._refuse()

    def query(self) -> syntax.Query:
        """A whole query, with its prologue."""
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
        found = syntax.Query("ask", syntax.Group((), ()))
        return self._body(found)

    def _select(self) -> syntax.Query:
        if self._take("SELECT"):
            found = syntax.Query("select", syntax.Group((), ()))
            found.distinct = self._take("DISTINCT")
            if self._is("REDUCED"):
                raise syntax.beyond("REDUCED", "DISTINCT says what is meant")
            self._columns(found)
        else:
            self._refuse()
        return self._body(found)

    def _body(self, found: syntax.Query) -> syntax.Query:
        every = not found.columns
        if self._is("FROM"):
            raise syntax.beyond("FROM", "there is one graph")
        self._take("WHERE")
        found.group = self._group()
        if every and found.form == "select":
            found.columns = [(one, None) for one in found.group.variables() if not one.hidden]
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
            which, number = self._next()[1].upper(), self._next()
            if number[0] != "number" or not number[1].isdigit():
                self._refuse()
            if which == "LIMIT":
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
            # Paths of any length are joined with the triples that they stand among.
            plain = tuple(one for one in triples if isinstance(one, syntax.Triple))
            if plain:
                parts.append(syntax.Basic(plain))
            parts.extend(one for one in triples if isinstance(one, syntax.PathPattern))
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
        one = self._tokens[self._at][0] == "variable"
        variables = []
        if one:
            variables.append(syntax.Var(self._next()[1][1:]))
        else:
            self._expect("(")
            while not self._take(")"):
                variables.append(syntax.Var(self._next()[1][1:]))
        self._expect("{")
        rows: list[tuple[syntax.Term | None, ...]] = []
        while not self._take("}"):
            if one:
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
        subject, found = self._term(), list[syntax.Triple | syntax.PathPattern]()
        while True:
            path = self._path()
            while True:
                found += self._along(subject, path, self._term())
                if not self._take(","):
                    break
            while self._take(";"):
                pass
            if self._is(".", "}", "{", "FILTER", "OPTIONAL", "MINUS", "BIND", "VALUES", "GRAPH", "SERVICE"):
                return found

    def _path(self) -> list[_Step]:
        """The steps of a sequence."""
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
                f"a variable where a predicate stands ({text})", "name the predicate, or ask for <pred:fact_r> of a statement"
            )
        return syntax.Iri(f"{RDF}type") if (kind, text) == ("word", "a") else self._iri(kind, text), back

    def _along(self, subject: syntax.Term, path: list[_Step], target: syntax.Term) -> list[syntax.Triple | syntax.PathPattern]:
        found, here = list[syntax.Triple | syntax.PathPattern](), subject
        for number, (hops, least, most) in enumerate(path):
            there = target if number == len(path) - 1 else self._hidden()
            if len(hops) == 1 and least == most == 1:
                ((predicate, back),) = hops
                found.append(syntax.Triple(there, predicate, here) if back else syntax.Triple(here, predicate, there))
            else:
                found.append(syntax.PathPattern(here, hops, there, least, most))
            here = there
        return found

    # -- expressions -------------------------------------------------------------------------------

    def _constraint(self) -> syntax.Expression:
        return self._bracketed() if self._is("(") else self._primary()

    def _bracketed(self) -> syntax.Expression:
        self._expect("(")
        found = self._expression()
        self._expect(")")
        return found

    def _expression(self) -> syntax.Expression:
        with self._deeper():
            return self._disjunction()

    def _disjunction(self) -> syntax.Expression:
        return self._joined("||", self._conjunction)

    def _conjunction(self) -> syntax.Expression:
        return self._joined("&&", self._comparison)

    def _joined(self, sign: str, part: Callable[[], syntax.Expression]) -> syntax.Expression:
        """Parts between signs; all are operands of one call, as nested ones may be nested too deeply."""
        found = [part()]
        while self._take(sign):
            found.append(part())
        return syntax.Call(sign, tuple(found)) if len(found) > 1 else found[0]

    def _comparison(self) -> syntax.Expression:
        found = self._sum()
        if self._is(*_COMPARED):
            return syntax.Call(self._next()[1], (found, self._sum()))
        negated = self._take("NOT")
        if self._take("IN"):
            self._expect("(")
            listed = []
            while not self._take(")"):
                listed.append(self._expression())
                if not self._is(")"):
                    self._expect(",")
            inside = syntax.Call("IN", (found, *listed))
            return syntax.Call("!", (inside,)) if negated else inside
        return found

    def _sum(self) -> syntax.Expression:
        return self._computed(("+", "-"), self._product)

    def _product(self) -> syntax.Expression:
        return self._computed(("*", "/"), self._unary)

    def _computed(self, signs: tuple[str, str], part: Callable[[], syntax.Expression]) -> syntax.Expression:
        found = part()
        while self._is(*signs):
            self._operations += 1
            if self._operations > _MOST_OPERATIONS:
                raise syntax.beyond(f"more than {_MOST_OPERATIONS} operations of arithmetic")
            found = syntax.Call(self._next()[1], (found, part()))
        return found

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
