"""The text of a SPARQL query as `syntax` has it. What is not answered live is refused where it
stands; whether a text is SPARQL at all is for Oxigraph to say, which reads it before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from condgraph.live.syntax import (
    Aggregate,
    Basic,
    Bind,
    Call,
    Either,
    Exists,
    Expression,
    Group,
    Iri,
    Maybe,
    Part,
    Query,
    Term,
    Triple,
    Values,
    Var,
    Without,
    beyond,
)
from condgraph.live.terms import Terms
from condgraph.sparql.layout import TYPE

#: Functions whose meaning `expressions` knows, with how many arguments they take.
FUNCTIONS: Final = {
    "CONTAINS": 2,
    "STRSTARTS": 2,
    "STRENDS": 2,
    "LCASE": 1,
    "UCASE": 1,
    "STR": 1,
    "REGEX": 2,
    "BOUND": 1,
    "YEAR": 1,
}
AGGREGATES: Final = frozenset(("COUNT", "SUM", "AVG", "MIN", "MAX"))
_COMPARED: Final = frozenset(("=", "!=", "<", "<=", ">", ">="))


def parse(text: str, base: str, prefixes: Mapping[str, str]) -> Query:
    """A query that Oxigraph takes for one. Names are relative to `base`; `prefixes` need not be
    declared. Raises `UnsupportedError` for what is not answered live.
    """
    return _Reader(text, base, prefixes).query()


class _Reader(Terms):
    """Reads one text: its parts, from the query down to expressions."""

    # -- the query ---------------------------------------------------------------------------------

    def query(self) -> Query:
        while True:
            if self._take("PREFIX"):
                name, iri = self._next()[1], self._next()[1]
                self._prefixes[name.removesuffix(":")] = self._resolved(iri[1:-1])
            elif self._is("BASE"):
                self._next()
                self._based(self._next()[1][1:-1])
            else:
                break
        if self._take("ASK"):
            found = Query("ask", Group((), ()))
        elif self._take("SELECT"):
            found = Query("select", Group((), ()))
            found.distinct = self._take("DISTINCT")
            if self._is("REDUCED"):
                raise beyond("REDUCED", "DISTINCT says what is meant")
            self._columns(found)
        else:
            self._refuse()
        every = not found.columns
        if self._is("FROM"):
            raise beyond("FROM", "there is one graph")
        self._take("WHERE")
        found.group = self._group()
        if every and found.form == "select":
            found.columns = [(one, None) for one in found.group.variables() if not one.hidden]
        self._modifiers(found)
        if self._tokens[self._at][0] != "end":
            self._refuse()
        return found

    def _columns(self, found: Query) -> None:
        if self._take("*"):
            return
        while True:
            if self._tokens[self._at][0] == "variable":
                found.columns.append((Var(self._next()[1][1:]), None))
            elif self._take("("):
                expression = self._expression()
                self._expect("AS")
                found.columns.append((Var(self._next()[1][1:]), expression))
                self._expect(")")
            else:
                break
        if not found.columns:
            self._refuse()

    def _modifiers(self, found: Query) -> None:
        if self._take("GROUP"):
            self._expect("BY")
            while self._tokens[self._at][0] == "variable":
                found.grouped.append(Var(self._next()[1][1:]))
            if self._is("("):
                raise beyond("GROUP BY an expression", "BIND it to a variable")
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
                    found.order.append((Var(self._next()[1][1:]), False))
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

    def _group(self) -> Group:
        self._expect("{")
        if self._is("SELECT"):
            raise beyond("a SELECT within a query", "ask twice")
        parts: list[Part] = []
        filters: list[Expression] = []
        triples: list[Triple] = []

        def close() -> None:
            if triples:
                parts.append(Basic(tuple(triples)))
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
        return Group(tuple(parts), tuple(filters))

    def _part(self) -> Part:
        if self._take("OPTIONAL"):
            return Maybe(self._group())
        if self._take("MINUS"):
            return Without(self._group())
        if self._take("BIND"):
            self._expect("(")
            expression = self._expression()
            self._expect("AS")
            variable = Var(self._next()[1][1:])
            self._expect(")")
            return Bind(expression, variable)
        if self._take("VALUES"):
            return self._values()
        if not self._is("{"):
            self._refuse()
        branches = [self._group()]
        while self._take("UNION"):
            branches.append(self._group())
        return Either(tuple(branches))

    def _values(self) -> Values:
        one = self._tokens[self._at][0] == "variable"
        variables = []
        if one:
            variables.append(Var(self._next()[1][1:]))
        else:
            self._expect("(")
            while not self._take(")"):
                variables.append(Var(self._next()[1][1:]))
        self._expect("{")
        rows: list[tuple[Term, ...]] = []
        while not self._take("}"):
            if self._is("UNDEF"):
                raise beyond("UNDEF")
            if one:
                rows.append((self._term(),))
                continue
            self._expect("(")
            row = []
            while not self._take(")"):
                if self._is("UNDEF"):
                    raise beyond("UNDEF")
                row.append(self._term())
            rows.append(tuple(row))
        return Values(tuple(variables), tuple(rows))

    def _same_subject(self) -> list[Triple]:
        subject, found = self._term(), list[Triple]()
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

    def _path(self) -> list[tuple[Iri, bool]]:
        """Steps of a sequence: a predicate, and whether it is gone backwards."""
        steps = [self._step()]
        while self._take("/"):
            steps.append(self._step())
        if self._is("|"):
            raise beyond("a path with alternatives", "UNION says the same")
        return steps

    def _step(self) -> tuple[Iri, bool]:
        back = self._take("^")
        if self._is("(", "!"):
            raise beyond("a path with brackets or negation", "sequences of predicates, some of them with ^, are answered")
        kind, text = self._next()
        if kind == "variable":
            raise beyond(f"a variable where a predicate stands ({text})", "name the predicate")
        found = Iri(TYPE[1:-1]) if (kind, text) == ("word", "a") else self._iri(kind, text)
        if self._is("+", "*", "?"):
            raise beyond("a path of any length", "KoPL and SPARQL without --live go on step by step")
        return found, back

    def _along(self, subject: Term, path: list[tuple[Iri, bool]], target: Term) -> list[Triple]:
        found, here = [], subject
        for number, (predicate, back) in enumerate(path):
            there = target if number == len(path) - 1 else self._hidden()
            found.append(Triple(there, predicate, here) if back else Triple(here, predicate, there))
            here = there
        return found

    # -- expressions -------------------------------------------------------------------------------

    def _constraint(self) -> Expression:
        return self._bracketed() if self._is("(") else self._primary()

    def _bracketed(self) -> Expression:
        self._expect("(")
        found = self._expression()
        self._expect(")")
        return found

    def _expression(self) -> Expression:
        found = self._conjunction()
        while self._take("||"):
            found = Call("||", (found, self._conjunction()))
        return found

    def _conjunction(self) -> Expression:
        found = self._comparison()
        while self._take("&&"):
            found = Call("&&", (found, self._comparison()))
        return found

    def _comparison(self) -> Expression:
        found = self._sum()
        if self._is(*_COMPARED):
            return Call(self._next()[1], (found, self._sum()))
        negated = self._take("NOT")
        if self._take("IN"):
            self._expect("(")
            listed = []
            while not self._take(")"):
                listed.append(self._expression())
                self._take(",")
            inside = Call("IN", (found, *listed))
            return Call("!", (inside,)) if negated else inside
        return found

    def _sum(self) -> Expression:
        found = self._product()
        while self._is("+", "-"):
            found = Call(self._next()[1], (found, self._product()))
        return found

    def _product(self) -> Expression:
        found = self._unary()
        while self._is("*", "/"):
            if self._is("/"):
                raise beyond("division")
            self._next()
            found = Call("*", (found, self._unary()))
        return found

    def _unary(self) -> Expression:
        if self._take("!"):
            return Call("!", (self._unary(),))
        return self._primary()

    def _primary(self) -> Expression:
        if self._is("("):
            return self._bracketed()
        if self._is("NOT") or self._is("EXISTS"):
            negated = self._take("NOT")
            self._expect("EXISTS")
            return Exists(self._group(), negated)
        kind, text = self._tokens[self._at]
        if kind == "word" and text.lower() not in ("true", "false"):
            return self._called(text.upper())
        if kind == "name" and self._tokens[self._at + 1] == ("sign", "("):
            raise beyond(f"the function {text}")
        return self._term()

    def _called(self, name: str) -> Expression:
        self._at += 1
        if name in AGGREGATES:
            self._expect("(")
            distinct = self._take("DISTINCT")
            of = None if self._take("*") else self._expression()
            self._expect(")")
            return Aggregate(name, of, distinct)
        if name not in FUNCTIONS:
            raise beyond(f"the function {name}")
        self._expect("(")
        arguments = [self._expression()]
        while self._take(","):
            arguments.append(self._expression())
        self._expect(")")
        if len(arguments) != FUNCTIONS[name]:
            raise beyond(f"{name} of {len(arguments)} arguments")
        return Call(name, tuple(arguments))
