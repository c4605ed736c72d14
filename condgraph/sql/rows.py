"""Patterns of statements, and what joins their rows, as SQL: for the statements that a plan over rows rests on.

The client joins the rows of an answer. What is fetched for it are the statements of matches, where a match more does no
harm: so terms are joined by a text that is equal where they are, and no operator here has to drop repeats as it should.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias

from sqlglot import exp

from condgraph.engine import algebra as alg
from condgraph.engine.values import Kind
from condgraph.sql.conditions import Tests, condition
from condgraph.sql.terms import (
    NULL,
    Query,
    case,
    cast,
    coalesce,
    column,
    either,
    known,
    literal,
    named,
    one_of,
    select,
    together,
    within,
)

#: What a column has: the number of an entity or of a statement, or a text that identifies a term.
Sort: TypeAlias = Literal["entity", "statement", "key"]


@dataclass(frozen=True, slots=True)
class Bound:
    """A column of rows, or an expression of one, and whether every row has it."""

    column: exp.Expr
    sort: Sort
    certain: bool = True

    def key(self) -> exp.Expr:
        """The text that identifies the term."""
        if self.sort == "key":
            return self.column.copy()
        return _text("e" if self.sort == "entity" else "f", self.column.copy())


Columns: TypeAlias = dict[str, Bound]


class Compiler(Protocol):
    """What rows need of the compiler of a query (`sql.compiler`)."""

    tests: Tests
    rows_made: dict[int, tuple[str, Columns, alg.Node]]

    def stored(self, table: str, alias: str | None = None) -> exp.Expr:
        """A table of the graph."""
        ...

    def bound(self, part: str, alias: str | None = None) -> exp.Table:
        """A part of the query."""
        ...

    def let(self, prefix: str, query: Query) -> str:
        """Bind a query to a name of its own."""
        ...

    def set_of(self, node: alg.Entities) -> Query:
        """The query of a set."""
        ...

    def entities(self, node: alg.Entities) -> str:
        """The part that gives the entities of an operator."""
        ...

    def facts(self, node: alg.Facts) -> str:
        """The part that gives the statements of an operator."""
        ...


def _text(mark: str, *parts: exp.Expr) -> exp.Expr:
    result: exp.Expr = literal(mark)
    for part in parts:
        result = exp.DPipe(this=exp.DPipe(this=result, expression=literal(" ")), expression=cast(part, "text"))
    return result


def _key_of_text(text: exp.Expr) -> exp.Expr:
    return exp.DPipe(this=literal("t "), expression=text)


def _key_of_cell(table: str) -> exp.Expr:
    """The text that identifies the value, or entity, of a cell."""

    def part(name: str) -> exp.Expr:
        return column(name, table)

    def of(kind: Kind) -> exp.Expr:
        return exp.EQ(this=part("kind"), expression=literal(int(kind)))

    tie = coalesce(part("tie"), literal("1"))
    return case(
        [
            (of(Kind.ENTITY), _text("e", part("o"))),
            (of(Kind.TEXT), _key_of_text(part("text"))),
            (of(Kind.QUANTITY), _text("q", part("unit"), tie, part("number"))),
            (of(Kind.TIME), _text("i", part("start"), part("stop"), part("precision"))),
        ],
        literal("u"),
    )


class _Match:
    """A pattern while it is made: tables, tests of them, and what variables are bound to."""

    def __init__(self, compiler: Compiler) -> None:
        self.compiler, self.tables, self.tests = compiler, list[exp.Expr](), list[exp.Expr]()
        self.bound: Columns = {}

    def bind(self, place: object, to: Bound) -> None:
        """Bind a variable, or test that it is equal to what it is bound to."""
        assert isinstance(place, alg.Variable)
        before = self.bound.get(place.name)
        if before is None:
            self.bound[place.name] = to
        elif before.sort == to.sort:
            self.tests.append(exp.EQ(this=before.column.copy(), expression=to.column.copy()))
        else:
            self.tests.append(exp.EQ(this=before.key(), expression=to.key()))

    def end(self, place: Any, number: exp.Expr) -> None:
        """An end that is an entity: a variable, a set, or anything."""
        if isinstance(place, alg.Variable):
            self.bind(place, Bound(number, "entity"))
        elif place is not None:
            self.tests.append(within(number, self.compiler.set_of(place)))

    def statement(self, at: int, part: alg.StatementPattern) -> None:
        """Statements that match a part."""
        s, compiler, tests = f"s{at}", self.compiler, self.tests
        name = "statement" if part.among is None else compiler.facts(part.among)
        if part.undirected:
            self.tables.append(compiler.bound(_both_ways(compiler, name, stored=part.among is None), s))
        else:
            self.tables.append(compiler.stored(name, s) if part.among is None else compiler.bound(name, s))
        relation = part.undirected or part.family == "relation"
        entity = exp.EQ(this=column("kind", s), expression=literal(int(Kind.ENTITY)))
        if relation or part.family == "attribute":
            tests.append(entity if relation else exp.not_(entity))
        if isinstance(part.predicate, tuple):
            tests.append(one_of(column("predicate", s), part.predicate))
        elif part.predicate is not None:
            self.bind(part.predicate, Bound(_key_of_text(column("predicate", s)), "key"))
        self.end(part.subject, column("s", s))
        if isinstance(part.object, alg.Variable):
            self.bind(part.object, Bound(column("o", s), "entity") if relation else Bound(_key_of_cell(s), "key"))
        else:
            self.end(part.object, column("o", s))
        if part.condition is not None and not part.undirected:
            tests.append(condition(compiler.tests, part.condition, s))
        if part.statement is not None:
            self.bind(part.statement, Bound(column("f", s), "statement"))
        for place, qualifier in enumerate(part.qualifiers):
            self.qualifier(f"q{at}_{place}", s, qualifier)

    def qualifier(self, q: str, s: str, part: alg.QualifierPattern) -> None:
        """A qualifier of a statement."""
        self.tables.append(self.compiler.stored("qualifier", q))
        self.tests.append(exp.EQ(this=column("f", q), expression=column("f", s)))
        if isinstance(part.key, str):
            self.tests.append(exp.EQ(this=column("key", q), expression=literal(part.key)))
        else:
            self.bind(part.key, Bound(_key_of_text(column("key", q)), "key"))
        if isinstance(part.value, alg.Variable):
            self.bind(part.value, Bound(_key_of_cell(q), "key"))
        else:
            self.end(part.value, column("o", q))
        if part.condition is not None:
            self.tests.append(condition(self.compiler.tests, part.condition, q))

    def membership(self, at: int, part: alg.MembershipPattern) -> None:
        """Members of concepts."""
        m = f"m{at}"
        self.tables.append(self.compiler.stored("membership" if part.direct else "member", m))
        self.end(part.member, column("e", m))
        self.end(part.concept, column("concept", m))


def _both_ways(compiler: Compiler, name: str, *, stored: bool) -> str:
    """Relations, and the same with their ends changed."""
    queries: list[Query] = []
    for s, o in ("so", "os"):
        table: exp.Expr = compiler.stored(name) if stored else compiler.bound(name)
        columns = [column("f"), named(column(s), "s"), column("predicate"), named(column(o), "o"), column("kind")]
        queries.append(select(*columns).from_(table, copy=False).where(known(column("o")), copy=False))
    return compiler.let("undirected", together(queries))


def _pattern(compiler: Compiler, node: alg.Pattern) -> tuple[Query, Columns]:
    match = _Match(compiler)
    for at, statement in enumerate(node.statements):
        match.statement(at, statement)
    for at, membership in enumerate(node.memberships):
        match.membership(at, membership)
    query, columns = _selected(match.bound)
    for table in match.tables:
        query = _with(query, table)
    return (query.where(*match.tests, copy=False) if match.tests else query), columns


def _with(query: exp.Select, table: exp.Expr) -> exp.Select:
    """A SELECT from one more table."""
    if query.args.get("from_") is None:
        return query.from_(table, copy=False)
    query.append("joins", exp.Join(this=table, kind="CROSS"))
    return query


def _selected(bound: Columns, *, distinct: bool = True) -> tuple[exp.Select, Columns]:
    """The SELECT of what variables are bound to, and the columns that it has."""
    made = [named(item.column, f"v{at}") for at, item in enumerate(bound.values())] or [named(literal(1), "v")]
    columns = {name: Bound(column(f"v{at}"), item.sort, item.certain) for at, (name, item) in enumerate(bound.items())}
    return select(*made, distinct=distinct), columns


def _entity_rows(compiler: Compiler, node: alg.EntityRows) -> tuple[Query, Columns]:
    query, columns = _selected({node.variable: Bound(column("e"), "entity")}, distinct=False)
    return query.from_(compiler.bound(compiler.entities(node.entities)), copy=False), columns


def _of(part: str, columns: Columns, alias: str) -> Columns:
    return {name: Bound(column(item.column.name, alias), item.sort, item.certain) for name, item in columns.items()}


def _join(compiler: Compiler, node: alg.Join) -> tuple[Query, Columns]:
    (one, left), (other, right) = rows(compiler, node.left), rows(compiler, node.right)
    bound, more, tests = _of(one, left, "a"), _of(other, right, "b"), list[exp.Expr]()
    for name, item in more.items():
        mine = bound.get(name)
        if mine is None:
            bound[name] = item
            continue
        same = mine.sort == item.sort
        a, b = (mine.column, item.column) if same else (mine.key(), item.key())
        test: exp.Expr = exp.EQ(this=a.copy(), expression=b.copy())
        unbound = [exp.Is(this=side.column.copy(), expression=NULL.copy()) for side in (mine, item) if not side.certain]
        tests.append(either([test, *unbound]) if unbound else test)
        bound[name] = Bound(
            coalesce(a.copy(), b.copy()) if unbound else a, mine.sort if same else "key", mine.certain or item.certain
        )
    query, columns = _selected(bound)
    query = _with(query.from_(compiler.bound(one, "a"), copy=False), compiler.bound(other, "b"))
    return (query.where(*tests, copy=False) if tests else query), columns


def _union(compiler: Compiler, node: alg.UnionAll) -> tuple[Query, Columns]:
    parts = [rows(compiler, part) for part in node.parts]
    sorts: dict[str, Sort] = {}
    for _, columns in parts:
        for name, item in columns.items():
            sorts[name] = item.sort if sorts.get(name, item.sort) == item.sort else "key"
    queries: list[Query] = []
    for part, columns in parts:
        bound: Columns = {}
        for name, sort in sorts.items():
            own = columns.get(name)
            if own is None:
                bound[name] = Bound(cast(NULL.copy(), "text" if sort == "key" else "int"), sort, certain=False)
            else:
                bound[name] = Bound(own.key() if sort == "key" else own.column.copy(), sort, own.certain)
        query, _ = _selected(bound, distinct=False)
        queries.append(query.from_(compiler.bound(part), copy=False))
    certain = {name: all(name in columns and columns[name].certain for _, columns in parts) for name in sorts}
    return together(queries), {name: Bound(column(f"v{at}"), sorts[name], certain[name]) for at, name in enumerate(sorts)}


def _project(compiler: Compiler, node: alg.Project) -> tuple[Query, Columns]:
    part, columns = rows(compiler, node.of)
    query, made = _selected(
        {new: Bound(columns[old].column.copy(), columns[old].sort, columns[old].certain) for new, old in node.names}
    )
    return query.from_(compiler.bound(part), copy=False), made


#: Operators whose rows are SQL. The rest are the client's; of those, `UnionAll` and `Project` occur in what is fetched for others.
ROWS: Final[dict[str, Callable[[Any, Any], tuple[Query, Columns]]]] = {
    "Pattern": _pattern,
    "EntityRows": _entity_rows,
    "Join": _join,
    "UnionAll": _union,
    "Project": _project,
}


def rows(compiler: Compiler, node: alg.Solutions) -> tuple[str, Columns]:
    """The part that gives the rows of an operator, and its columns."""
    if id(node) not in compiler.rows_made:
        query, columns = ROWS[type(node).__name__](compiler, node)
        compiler.rows_made[id(node)] = compiler.let(type(node).__name__.lower(), query), columns, node
    part, columns, _ = compiler.rows_made[id(node)]
    return part, columns


def facts_of(compiler: Compiler, node: alg.FactsOf) -> Query:
    """The statements that a variable is bound to."""
    part, columns = rows(compiler, node.of)
    bound = select(columns[node.variable].column.copy()).from_(compiler.bound(part), copy=False)
    return select(exp.Star()).from_(compiler.stored("statement"), copy=False).where(within(column("f"), bound), copy=False)


def entities_of(compiler: Compiler, node: alg.EntitiesOf) -> Query:
    """The entities that a variable is bound to."""
    part, columns = rows(compiler, node.of)
    own = columns[node.variable]
    bound = select(own.column.copy()).from_(compiler.bound(part), copy=False)
    number = column("e") if own.sort == "entity" else _text("e", column("e"))
    return select(column("e")).from_(compiler.stored("entity"), copy=False).where(within(number, bound), copy=False)


def tested(node: alg.Pattern) -> Sequence[alg.Condition]:
    """The conditions of a pattern."""
    own = [part.condition for part in node.statements]
    return [test for test in [*own, *(item.condition for part in node.statements for item in part.qualifiers)] if test is not None]
