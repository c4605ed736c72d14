"""Random graphs, random plans of several variables over them, and the same plans as SQL and SPARQL, generated
independently of the engine: the answers of other systems, for comparison.

In SQL a term is a text: `e:` an entity, `n:` a number, `t:` a text, `s:` a statement, NULL an unbound variable.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import condgraph
from condgraph import Entity, EntityKind, Member, Quantity, Ref, Statement, Subclass
from condgraph.engine.algebra import ById, Compare, postorder
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.algebra import solutions as alg
from condgraph.engine.answer import Answer
from condgraph.engine.execute.run import Run
from condgraph.engine.records import Evidence
from condgraph.sparql.layout import base_iri

RELATIONS = ("r", "s", "t")
ATTRIBUTES = ("size", "word")
Fact = tuple[str, str, str, str, tuple[tuple[str, str], ...]]


@dataclass
class World:
    """A graph, and its statements as rows."""

    graph: Any
    facts: list[Fact]
    members: list[tuple[str, str]]
    entities: list[str]

    def tables(self, connection: Any) -> None:
        """Write the graph as DuckDB tables."""
        for name in ("st", "q", "mem", "ent"):
            connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.execute("CREATE TABLE st (id VARCHAR, s VARCHAR, p VARCHAR, o VARCHAR, fam VARCHAR)")
        connection.execute("CREATE TABLE q (id VARCHAR, k VARCHAR, v VARCHAR)")
        connection.execute("CREATE TABLE mem (e VARCHAR, c VARCHAR)")
        connection.execute("CREATE TABLE ent (e VARCHAR)")
        insert(connection, "st", [(key, s, f"t:{p}", o, "r" if o.startswith("e:") else "a") for key, s, p, o, _ in self.facts])
        insert(connection, "q", [(key, f"t:{k}", v) for key, *_, qualifiers in self.facts for k, v in qualifiers])
        insert(connection, "mem", self.members)
        insert(connection, "ent", [(entity,) for entity in self.entities])


def insert(connection: Any, table: str, rows: list[tuple[str, ...]]) -> None:
    if rows:
        connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def key_of(subject: str, predicate: str, value: str, qualifiers: Any) -> str:
    """Return the identity of a statement as a text."""
    return f"s:{subject}|{predicate}|{value}|{sorted(qualifiers)}"


def encoded(value: Any) -> str | None:
    """Return a term of an answer as in SQL."""
    if value is None:
        return None
    if isinstance(value, Entity):
        return f"e:{value.id}"
    if isinstance(value, Quantity):
        return f"n:{value.number}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"n:{value}"
    if isinstance(value, Evidence):
        qualifiers = [(k, str(encoded(v))) for k, v in value.qualifiers]
        return key_of(f"e:{value.subject.id}", value.predicate, str(encoded(value.object)), qualifiers)
    return f"t:{value}"


def world(rng: random.Random) -> World:
    """Return a small graph with parallel statements, loops, hubs, values of two types, and concepts with subclasses."""
    entities = [f"x{number}" for number in range(rng.randint(3, 9))]
    concepts, parents = ["c0", "c1", "c2"], {"c1": "c0", "c2": "c1"}
    statements: dict[str, tuple[Fact, Statement]] = {}
    for _ in range(rng.randint(6, 40)):
        subject = rng.choice(entities[: rng.choice((1, 3, 9))])
        qualifiers: list[tuple[str, Any]] = []
        if rng.random() < 0.4:
            qualifiers.append(("since", Quantity(rng.randint(1, 3))))
        if rng.random() < 0.15:
            qualifiers.append(("since", Quantity(rng.randint(4, 5))))
        if rng.random() < 0.15:
            qualifiers.append(("via", Ref(rng.choice(entities))))
        value: Any
        if rng.random() < 0.72:
            predicate, value = rng.choice(RELATIONS), Ref(rng.choice(entities))
        elif rng.random() < 0.5:
            predicate, value = "size", Quantity(rng.randint(1, 3))
        else:
            predicate, value = "word", rng.choice(("wa", "wb", "r"))
        if rng.random() < 0.05:
            predicate = "size"
        as_text = f"e:{value.id}" if isinstance(value, Ref) else encoded(value)
        texts = tuple((k, f"e:{v.id}" if isinstance(v, Ref) else str(encoded(v))) for k, v in qualifiers)
        fact = (key_of(f"e:{subject}", predicate, str(as_text), texts), f"e:{subject}", predicate, str(as_text), texts)
        statements[fact[0]] = fact, Statement(subject, predicate, value, tuple(qualifiers))
    stated = {(rng.choice(entities), rng.choice(concepts)) for _ in range(rng.randint(0, 6))}
    members = set()
    for entity, concept in stated:
        ancestor: str | None = concept
        while ancestor is not None:
            members.add((f"e:{entity}", f"e:{ancestor}"))
            ancestor = parents.get(ancestor)
    graph = condgraph.open()
    graph.add(
        [
            *(Entity(item, item) for item in entities),
            *(Entity(item, item, EntityKind.CONCEPT) for item in concepts),
            *(Subclass(child, parent) for child, parent in parents.items()),
            *(Member(*pair) for pair in sorted(stated)),
            *(statement for _, statement in statements.values()),
        ]
    )
    return World(
        graph, [fact for fact, _ in statements.values()], sorted(members), [f"e:{item}" for item in (*entities, *concepts)]
    )


# -- plans -------------------------------------------------------------------------------------------


@dataclass
class Plans:
    """Random plans over a world; `plain` ones use only what has the same meaning in the RDF of a graph."""

    rng: random.Random
    entities: list[str]
    plain: bool = False
    names: tuple[str, ...] = ("a", "b", "c", "d")
    fresh: int = 0

    def new(self) -> str:
        self.fresh += 1
        return f"v{self.fresh}"

    def some_ids(self) -> ById:
        return ById(tuple(sorted(self.rng.sample(self.entities, min(len(self.entities), self.rng.randint(1, 3))))))

    def place(self) -> Any:
        draw = self.rng.random()
        return alg.Variable(self.rng.choice(self.names)) if draw < 0.86 else self.some_ids() if draw < 0.94 else None

    def qualifier(self) -> alg.QualifierPattern:
        rng = self.rng
        key: Any = rng.choice(("since", "via", "nothing")) if rng.random() < 0.8 else alg.Variable(rng.choice((*self.names, "k")))
        draw = rng.random()
        if draw < 0.5:
            return alg.QualifierPattern(key, alg.Variable(rng.choice((*self.names, "w"))))
        if draw < 0.8:
            return alg.QualifierPattern(key, None, Compare(rng.choice(("=", ">", "<=")), Quantity(rng.randint(1, 4))))
        return alg.QualifierPattern(key, self.some_ids() if draw < 0.9 else None)

    def statement(self) -> alg.StatementPattern:
        rng = self.rng
        draw = rng.random()
        if self.plain or draw < 0.7:
            predicate: Any = (rng.choice(RELATIONS),) if rng.random() < 0.7 else tuple(rng.sample(RELATIONS, 2))
            if not self.plain and rng.random() < 0.15:
                predicate = None
            return alg.StatementPattern(
                self.place(),
                predicate,
                self.place(),
                statement=None if self.plain or rng.random() < 0.8 else alg.Variable(rng.choice(("e1", "e2"))),
                qualifiers=() if self.plain or rng.random() < 0.85 else tuple(self.qualifier() for _ in range(rng.randint(1, 2))),
                family="relation",
                undirected=not self.plain and rng.random() < 0.15,
            )
        condition = None
        if draw < 0.8:
            condition = Compare(rng.choice(("=", ">", "<=", "!=")), Quantity(rng.randint(1, 3)))
        predicates: Any = (
            None if draw > 0.95 else alg.Variable(rng.choice(("p", self.names[0]))) if draw > 0.88 else ("size", "word")
        )
        family: Any = "attribute" if predicates == ("size", "word") or condition is not None else rng.choice(("any", "attribute"))
        value: Any = None if rng.random() < 0.1 else alg.Variable(rng.choice((*self.names, "w")))
        statement = None if rng.random() < 0.85 else alg.Variable("e1")
        return alg.StatementPattern(self.place(), predicates, value, condition, statement, (), family)

    def pattern(self) -> alg.Pattern:
        rng = self.rng
        statements = tuple(self.statement() for _ in range(rng.choice((1, 1, 2, 2, 3, 3, 4))))
        memberships: list[alg.MembershipPattern] = []
        if not self.plain and rng.random() < 0.25:
            concept: Any = ById((rng.choice(("c0", "c1", "c2")),)) if rng.random() < 0.6 else alg.Variable(rng.choice(("k", "d")))
            memberships.append(alg.MembershipPattern(self.place(), concept))
        return alg.Pattern(statements, tuple(memberships), not self.plain and rng.random() < 0.3)

    def path(self, of: Any = None) -> alg.Path:
        rng = self.rng
        directions: Any = ("forward", "backward") if self.plain else ("forward", "backward", "either")
        hops = tuple(alg.Hop((rng.choice(RELATIONS),), rng.choice(directions)) for _ in range(rng.randint(1, 2)))
        mode: Any = "ends" if self.plain else rng.choice(("ends", "ends", "trails", "all shortest"))
        least = 1 if self.plain else rng.choice((0, 1, 1) if mode == "all shortest" else (0, 1, 1, 2))
        most = rng.randint(max(least, 1), 3) if mode == "trails" or (rng.random() < 0.4 and not self.plain) else None
        ends = [alg.Variable(rng.choice(self.names)), alg.Variable(rng.choice(self.names))]
        if rng.random() < 0.3:
            ends[rng.randrange(2)] = self.some_ids()  # type: ignore[call-overload]
        length = alg.Variable(self.new()) if mode != "ends" and rng.random() < 0.7 else None
        return alg.Path(of, ends[0], hops, ends[1], least, most, mode, None, length)

    def test(self, variables: tuple[str, ...]) -> ex.Expression:
        rng = self.rng
        first, second = (ex.Variable(rng.choice(variables or ("a",))) for _ in range(2))
        draw = rng.random()
        if draw < 0.5:
            return ex.Comparison("=" if rng.random() < 0.5 else "<>", first, second)
        if draw < 0.7 and not self.plain:
            return ex.IsNull(first)
        if draw < 0.85 and not self.plain:
            return ex.Not(ex.Comparison("=", first, second))
        parts = (ex.Comparison("=", first, second), ex.Comparison("<>", first, ex.Variable(rng.choice(variables or ("a",)))))
        return ex.And(parts) if rng.random() < 0.5 else ex.Or(parts)

    def plan(self, depth: int) -> Any:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.15:
            draw = rng.random()
            if draw < 0.75:
                return self.pattern()
            if draw < 0.9:
                return self.path()
            if self.plain or draw < 0.95:
                return self.pattern()
            terms: list[Any] = [Ref(rng.choice(self.entities)), Quantity(rng.randint(1, 3)), "wa", None]
            return alg.Rows(("a", "w"), tuple((rng.choice(terms), rng.choice(terms)) for _ in range(rng.randint(0, 3))))
        kinds: Any = (
            "Join",
            "Join",
            "LeftJoin",
            "UnionAll",
            "Filter",
            "MinusRows",
            "AntiJoin",
            "SemiJoin",
            "Project",
            "DistinctRows",
        )
        if not self.plain:
            kinds = (*kinds, "MarkJoin", "GroupRows", "SliceRows", "BoundRows", "WhereRows", "Path")
        kind = rng.choice(kinds)
        left = self.plan(depth - 1)
        names = tuple(left.variables)
        if kind in ("Join", "LeftJoin", "MinusRows", "AntiJoin", "SemiJoin", "MarkJoin", "UnionAll"):
            # EXISTS of SPARQL equals a semi-join only for a single group.
            right = self.pattern() if self.plain and kind in ("AntiJoin", "SemiJoin") else self.plan(depth - 2)
            if kind == "UnionAll":
                return alg.UnionAll((left, right))
            if kind == "LeftJoin":
                all_names = tuple(dict.fromkeys([*names, *right.variables]))
                return alg.LeftJoin(left, right, self.test(all_names) if rng.random() < 0.3 and all_names else None)
            if kind == "MarkJoin":
                return alg.MarkJoin(left, right, self.new())
            return getattr(alg, kind)(left, right)
        if kind == "Filter" and names:
            return alg.Filter(left, self.test(names))
        if kind == "Project" and names:
            chosen = rng.sample(names, rng.randint(1, len(names)))
            return alg.Project(
                left, tuple((self.new() if rng.random() < 0.2 and not self.plain else variable, variable) for variable in chosen)
            )
        if kind == "GroupRows":
            keys = tuple(rng.sample(names, rng.randint(0, min(2, len(names)))))
            parts = [alg.RowAggregate(self.new(), "count")]
            if names:
                parts.append(alg.RowAggregate(self.new(), "count", rng.choice(names), rng.random() < 0.6))
            return alg.GroupRows(left, keys, tuple(parts))
        ordered = any(isinstance(part, alg.SliceRows) for part in postorder(left))
        if (
            kind == "SliceRows"
            and not ordered
            and names
            and not {"e1", "e2"} & set(names)
            and not any(name.startswith("v") for name in names)
        ):
            if rng.random() < 0.5:
                left = alg.OrderRows(left, (alg.RowOrder(rng.choice(names), rng.random() < 0.5, rng.random() < 0.5),))
            return alg.SliceRows(left, rng.randint(0, 3), rng.choice((None, 1, 4)))
        if kind == "BoundRows" and names:
            return alg.BoundRows(left, tuple(rng.sample(names, 1)))
        if kind == "WhereRows" and names:
            return alg.WhereRows(left, rng.choice(names), Compare(rng.choice(("=", ">", "<=")), Quantity(rng.randint(1, 3))))
        if kind == "Path":
            return self.path(left)
        return alg.DistinctRows(left)


# -- SQL ---------------------------------------------------------------------------------------------


def number(term: str) -> str:
    return f"CASE WHEN {term} LIKE 'n:%' THEN CAST(substr({term}, 3) AS INTEGER) END"


def listed(node: ById) -> str:
    return "(" + ", ".join(f"'e:{entity_id}'" for entity_id in node.ids) + ")"


def compared(term: str, condition: Compare) -> str:
    operator = "<>" if condition.operator == "!=" else condition.operator
    assert isinstance(condition.value, Quantity)
    return f"coalesce({number(term)} {operator} {condition.value.number}, false)"


def compatible(left: Any, right: Any) -> list[str]:
    return [f"(l.{n} IS NULL OR r.{n} IS NULL OR l.{n} = r.{n})" for n in left.variables if n in right.variables]


@dataclass
class Select:
    """A SELECT for a pattern, under construction."""

    tables: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    bound: dict[str, str] = field(default_factory=dict)

    def table(self, source: str) -> str:
        name = f"t{len(self.tables)}"
        self.tables.append(f"{source} {name}")
        return name

    def at(self, place: Any, term: str) -> None:
        """Bind or test a term for a place of the pattern."""
        if isinstance(place, alg.Variable):
            if place.name in self.bound:
                self.tests.append(f"{self.bound[place.name]} = {term}")
            else:
                self.bound[place.name] = term
        elif isinstance(place, ById):
            self.tests.append(f"{term} IN {listed(place)}")

    def text(self, variables: tuple[str, ...]) -> str:
        columns = ", ".join(f"{self.bound[name]} AS {name}" for name in variables) or "1 AS none_"
        where = f" WHERE {' AND '.join(self.tests)}" if self.tests else ""
        return f"SELECT {columns} FROM {', '.join(self.tables) or '(SELECT 1)'}{where}"


BOTH = "(SELECT id, s, p, o, fam FROM st UNION ALL SELECT id, o, p, s, fam FROM st WHERE fam = 'r' AND s <> o)"


def pattern_sql(node: alg.Pattern) -> str:
    select = Select()
    ids: list[str] = []
    for part in node.statements:
        t = select.table(BOTH if part.undirected else "st")
        ids.append(t)
        if isinstance(part.object, ById) or part.undirected or part.family == "relation":
            select.tests.append(f"{t}.fam = 'r'")
        elif part.family == "attribute":
            select.tests.append(f"{t}.fam = 'a'")
        select.at(part.subject, f"{t}.s")
        if part.predicate is None:
            pass
        elif isinstance(part.predicate, tuple):
            select.tests.append(f"{t}.p IN ({', '.join(repr('t:' + item) for item in part.predicate)})")
        else:
            select.at(part.predicate, f"{t}.p")
        select.at(part.object, f"{t}.o")
        if part.condition is not None:
            assert isinstance(part.condition, Compare)
            select.tests.append(compared(f"{t}.o", part.condition))
        select.at(part.statement, f"{t}.id")
        for qualifier in part.qualifiers:
            if qualifier.variables:
                q = select.table("q")
                tests = select.tests
            else:
                q, tests = "q", []
            tests.append(f"{q}.id = {t}.id")
            if isinstance(qualifier.key, alg.Variable):
                select.at(qualifier.key, f"{q}.k")
            else:
                tests.append(f"{q}.k = 't:{qualifier.key}'")
            if isinstance(qualifier.value, ById):
                tests.append(f"{q}.v IN {listed(qualifier.value)}")
            else:
                select.at(qualifier.value, f"{q}.v")
            if qualifier.condition is not None:
                assert isinstance(qualifier.condition, Compare)
                tests.append(compared(f"{q}.v", qualifier.condition))
            if not qualifier.variables:
                select.tests.append(f"EXISTS (SELECT 1 FROM q WHERE {' AND '.join(tests)})")
    for membership in node.memberships:
        tests_of_ids = [
            f"{column} IN {listed(place)}"
            for column, place in zip("ec", (membership.member, membership.concept), strict=True)
            if isinstance(place, ById)
        ]
        columns = [
            column
            for column, place in zip("ec", (membership.member, membership.concept), strict=True)
            if isinstance(place, alg.Variable)
        ]
        where = f" WHERE {' AND '.join(tests_of_ids)}" if tests_of_ids else ""
        m = select.table(f"(SELECT DISTINCT {', '.join(columns) or '1 AS one_'} FROM mem{where})")
        for column, place in zip("ec", (membership.member, membership.concept), strict=True):
            if isinstance(place, alg.Variable):
                select.at(place, f"{m}.{column}")
    if node.different:
        select.tests.extend(f"{item}.id <> {earlier}.id" for at, item in enumerate(ids) for earlier in ids[:at])
    return select.text(node.variables)


def path_sql(node: alg.Path) -> str:
    steps = []
    for hop in node.hops:
        predicates = ", ".join(f"'t:{predicate}'" for predicate in hop.predicates or ())
        if hop.direction != "backward":
            steps.append(f"SELECT id, s AS x, o AS y FROM st WHERE fam = 'r' AND p IN ({predicates})")
        if hop.direction != "forward":
            steps.append(f"SELECT id, o AS x, s AS y FROM st WHERE fam = 'r' AND p IN ({predicates})")
    step = f"({' UNION '.join(steps)})"
    most = f" AND w.n < {node.most}" if node.most is not None else ""
    if node.mode == "ends":
        # Walks longer than the number of entities reach nothing new, apart from the least number of steps.
        bound = most or f" AND w.n < {node.least} + 14"
        walks = (
            f"WITH RECURSIVE w(x, y, n) AS (SELECT e, e, 0 FROM ent UNION SELECT w.x, step.y, w.n + 1 FROM w JOIN {step} step "
            f"ON step.x = w.y WHERE true{bound}) SELECT DISTINCT x, y, NULL AS n FROM w WHERE n >= {node.least}"
        )
    else:
        is_new = "NOT list_contains(w.ids, step.id)" if node.mode == "trails" else "NOT list_contains(w.seen, step.y)"
        walks = (
            f"WITH RECURSIVE w(x, y, n, ids, seen) AS (SELECT e, e, 0, CAST([] AS VARCHAR[]), [e] FROM ent UNION ALL "
            f"SELECT w.x, step.y, w.n + 1, list_append(w.ids, step.id), list_append(w.seen, step.y) FROM w JOIN {step} step "
            f"ON step.x = w.y WHERE {is_new}{most}) SELECT x, y, n FROM w WHERE n >= {node.least}"
        )
        if node.mode == "all shortest":
            walks = f"SELECT x, y, n FROM (SELECT *, min(n) OVER (PARTITION BY x, y) AS best FROM ({walks})) WHERE n = best"
    select = Select()
    t = select.table(f"({walks})")
    for place, term in ((node.subject, f"{t}.x"), (node.object, f"{t}.y")):
        select.at(place, term)
    without_input = alg.Path(
        None, *(getattr(node, name) for name in ("subject", "hops", "object", "least", "most", "mode", "path", "length"))
    )
    if node.length is not None:
        select.bound[node.length.name] = f"'n:' || {t}.n"
    text = select.text(without_input.variables)
    if node.mode == "ends":
        text = text.replace("SELECT ", "SELECT DISTINCT ", 1)
    return text if node.of is None else joined(node.of, without_input, sql(node.of), text, node.variables, "JOIN")


def joined(left: Any, right: Any, one: str, other: str, variables: tuple[str, ...], how: str, more: str = "") -> str:
    columns = []
    for name in variables:
        is_shared = name in left.variables and name in right.variables
        columns.append(
            f"coalesce(l.{name}, r.{name}) AS {name}" if is_shared else f"{'l' if name in left.variables else 'r'}.{name} AS {name}"
        )
    on = " AND ".join([*compatible(left, right), *([more] if more else [])]) or "true"
    return f"SELECT {', '.join(columns) or '1 AS none_'} FROM ({one}) l {how} ({other}) r ON {on}"


def test_sql(test: ex.Expression, term: Any) -> str:
    if isinstance(test, ex.Comparison):
        return f"({term(test.left)} {test.operator} {term(test.right)})"
    if isinstance(test, ex.IsNull):
        return f"({term(test.of)} IS NULL)"
    if isinstance(test, ex.Not):
        return f"(NOT {test_sql(test.of, term)})"
    assert isinstance(test, ex.And | ex.Or)
    return "(" + (" AND " if isinstance(test, ex.And) else " OR ").join(test_sql(part, term) for part in test.parts()) + ")"


def place_in_order(name: str) -> str:
    return f"({name} IS NULL), ({number(name)} IS NULL), {number(name)}, substr({name}, 3), substr({name}, 1, 1) DESC"


def sql(node: Any) -> str:
    """Return a plan as one SELECT."""
    if isinstance(node, alg.Pattern):
        return pattern_sql(node)
    if isinstance(node, alg.Path):
        return path_sql(node)
    if isinstance(node, alg.Rows):
        terms = [[None if t is None else f"e:{t.id}" if isinstance(t, Ref) else encoded(t) for t in row] for row in node.rows]
        rows = [", ".join("CAST(NULL AS VARCHAR)" if t is None else f"'{t}'" for t in row) for row in terms]
        empty = "SELECT CAST(NULL AS VARCHAR) AS a, CAST(NULL AS VARCHAR) AS w WHERE false"
        return (
            empty
            if not rows
            else f"SELECT * FROM (VALUES {', '.join(f'({row})' for row in rows)}) AS given({', '.join(node.names)})"
        )
    if isinstance(node, alg.Join):
        return joined(node.left, node.right, sql(node.left), sql(node.right), node.variables, "JOIN")
    if isinstance(node, alg.LeftJoin):
        left, right = node.left, node.right

        def term(variable: ex.Variable) -> str:
            name = variable.name
            sides = [f"{side}.{name}" for side, rows_of in (("l", left), ("r", right)) if name in rows_of.variables]
            return f"coalesce({', '.join(sides)})"

        condition = "" if node.condition is None else f"coalesce({test_sql(node.condition, term)}, false)"
        return joined(left, right, sql(left), sql(right), node.variables, "LEFT JOIN", condition)
    if isinstance(node, alg.SemiJoin | alg.AntiJoin | alg.MarkJoin | alg.MinusRows):
        tests = compatible(node.left, node.right)
        if isinstance(node, alg.MinusRows):
            shared = [n for n in node.left.variables if n in node.right.variables]
            tests.append("(" + (" OR ".join(f"(l.{n} IS NOT NULL AND r.{n} IS NOT NULL)" for n in shared) or "false") + ")")
        exists = f"EXISTS (SELECT 1 FROM ({sql(node.right)}) r WHERE {' AND '.join(tests) or 'true'})"
        if isinstance(node, alg.MarkJoin):
            return f"SELECT l.*, CASE WHEN {exists} THEN 'true' ELSE 'false' END AS {node.variable} FROM ({sql(node.left)}) l"
        return f"SELECT * FROM ({sql(node.left)}) l WHERE {'' if isinstance(node, alg.SemiJoin) else 'NOT '}{exists}"
    if isinstance(node, alg.UnionAll):
        parts = []
        for part in node.parts:
            columns = [name if name in part.variables else f"CAST(NULL AS VARCHAR) AS {name}" for name in node.variables]
            parts.append(f"SELECT {', '.join(columns) or '1 AS none_'} FROM ({sql(part)})")
        return " UNION ALL ".join(parts)
    inner = sql(node.of)
    if isinstance(node, alg.Filter):
        return f"SELECT * FROM ({inner}) WHERE {test_sql(node.test, lambda variable: variable.name)}"
    if isinstance(node, alg.WhereRows):
        assert isinstance(node.condition, Compare)
        return f"SELECT * FROM ({inner}) WHERE {compared(node.variable, node.condition)}"
    if isinstance(node, alg.BoundRows):
        return f"SELECT * FROM ({inner}) WHERE {' AND '.join(f'{name} IS NOT NULL' for name in node.names)}"
    if isinstance(node, alg.Project):
        return f"SELECT {', '.join(f'{old} AS {new}' for new, old in node.names)} FROM ({inner})"
    if isinstance(node, alg.OrderRows):
        return inner
    if isinstance(node, alg.DistinctRows):
        return f"SELECT DISTINCT * FROM ({inner})"
    if isinstance(node, alg.GroupRows):
        columns = list(node.keys)
        for aggregate in node.aggregates:
            argument = "*" if aggregate.of is None else f"{'DISTINCT ' * aggregate.distinct}{aggregate.of}"
            columns.append(f"'n:' || count({argument}) AS {aggregate.name}")
        by = f" GROUP BY {', '.join(node.keys)}" if node.keys else ""
        return f"SELECT {', '.join(columns)} FROM ({inner}){by}"
    assert isinstance(node, alg.SliceRows)
    order = [place_in_order(name) for name in node.variables]
    if isinstance(node.of, alg.OrderRows):
        inner = sql(node.of.of)
        for by in node.of.by:
            mark = "DESC" if by.descending else "ASC"
            nulls = f"({by.variable} IS NULL) {'DESC' if by.first else 'ASC'}"
            value = f"({number(by.variable)} IS NULL) {mark}, {number(by.variable)} {mark}, substr({by.variable}, 3) {mark}"
            order.insert(0, f"{nulls}, {value}, substr({by.variable}, 1, 1) {'ASC' if by.descending else 'DESC'}")
    limit = "" if node.number is None else f" LIMIT {node.number}"
    return f"SELECT * FROM ({inner}) ORDER BY {', '.join(order)}{limit} OFFSET {node.start}"


# -- SPARQL ------------------------------------------------------------------------------------------
# SPARQL over the statements of a graph as RDF nodes with subject, predicate and object, so that rows are counted as in
# a pattern. `EXISTS` substitutes the outer row into its pattern, which equals a join for a single group.


def sparql(node: Any) -> str:
    """Return a plan with variables as one SELECT."""
    return f"SELECT {' '.join('?' + name for name in node.variables)} {{ {group(node)} }}"


def group(node: Any) -> str:
    """Return a plan as a SPARQL group."""
    if isinstance(node, alg.Pattern):
        parts: list[str] = []
        for part in node.statements:
            at = len(parts)
            parts.append(f"?f{at} <pred:fact_h> {spot(part.subject, f's{at}')} ; <pred:fact_t> {spot(part.object, f'o{at}')} .")
            parts[-1] += f" ?f{at} <pred:fact_r> ?p{at} . "
            parts[-1] += f"FILTER(?p{at} IN ({', '.join(f'<{predicate}>' for predicate in part.predicate or ())})) "
            parts[-1] += "".join(
                f"FILTER(?{name} IN ({', '.join(f'<{entity_id}>' for entity_id in place.ids)})) "
                for place, name in ((part.subject, f"s{at}"), (part.object, f"o{at}"))
                if isinstance(place, ById)
            )
        return f"{{ SELECT {' '.join('?' + name for name in node.variables) or '(1 AS ?none)'} {{ {' '.join(parts)} }} }}"
    if isinstance(node, alg.Path):
        hops = "|".join(
            ("^" if hop.direction == "backward" else "") + f"<{hop.predicates[0]}>" for hop in node.hops if hop.predicates
        )
        filters = "".join(
            f"FILTER(?{name} IN ({', '.join(f'<{entity_id}>' for entity_id in place.ids)})) "
            for place, name in ((node.subject, "s0"), (node.object, "o0"))
            if isinstance(place, ById)
        )
        names = " ".join("?" + name for name in node.variables)
        return f"{{ SELECT DISTINCT {names} {{ {spot(node.subject, 's0')} ({hops})+ {spot(node.object, 'o0')} . {filters}}} }}"
    if isinstance(node, alg.Join):
        return f"{{ {group(node.left)} }} {{ {group(node.right)} }}"
    if isinstance(node, alg.LeftJoin):
        test = "" if node.condition is None else f" FILTER({as_sparql(node.condition)})"
        return f"{{ {group(node.left)} }} OPTIONAL {{ {{ {group(node.right)} }}{test} }}"
    if isinstance(node, alg.MinusRows):
        return f"{{ {group(node.left)} }} MINUS {{ {group(node.right)} }}"
    if isinstance(node, alg.SemiJoin | alg.AntiJoin):
        exists = "EXISTS" if isinstance(node, alg.SemiJoin) else "NOT EXISTS"
        return f"{{ {group(node.left)} }} FILTER {exists} {{ {bare(node.right)} }}"
    if isinstance(node, alg.UnionAll):
        return " UNION ".join(f"{{ {group(part)} }}" for part in node.parts)
    if isinstance(node, alg.Filter):
        return f"{{ {group(node.of)} }} FILTER({as_sparql(node.test)})"
    names = " ".join("?" + name for name in node.variables)
    distinct = "DISTINCT " if isinstance(node, alg.DistinctRows) else ""
    return f"{{ SELECT {distinct}{names} {{ {group(node.of)} }} }}"


def bare(node: alg.Pattern) -> str:
    """Return a pattern without the SELECT that hides its own variables, which EXISTS could not substitute."""
    text = group(node)
    return text[text.index("{", 2) + 1 : -3]


def as_sparql(test: ex.Expression) -> str:
    return test_sql(test, asked).replace("<>", "!=").replace("AND", "&&").replace("OR", "||")


def asked(variable: ex.Variable) -> str:
    return f"?{variable.name}"


def spot(place: Any, name: str) -> str:
    return f"?{place.name}" if isinstance(place, alg.Variable) else f"?{name}"


def by_sparql(graph: Any, plan: Any) -> Counter[Any]:
    """Return the rows of a plan from the embedded RDF store."""
    table = graph.sparql(f"BASE <{base_iri('default')}> " + sparql(plan))
    return Counter(
        tuple(None if term is None else "e:" + str(term).rpartition("/")[2].rstrip(">") for term in row) for row in table.rows
    )


# -- answers -----------------------------------------------------------------------------------------


def answered(graph: Any, plan: Any) -> tuple[Answer, Counter[Any]]:
    """Return the answer of a plan in process, and its rows as in SQL."""
    run = Run(graph.current)
    run.execute(plan)
    answer = Answer(run, plan)
    return answer, Counter(tuple(encoded(value) for value in row) for row in answer.values)


def by_sql(connection: Any, plan: Any) -> Counter[Any]:
    """Return the rows of a plan from DuckDB."""
    rows = connection.execute(sql(plan)).fetchall()
    return Counter(rows) if plan.variables else Counter([()] * len(rows))
