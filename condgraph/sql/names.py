"""The names of a graph in a SQL database: what `names.linking.NameReader` asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from condgraph.engine.facts import EntityKind, Ref
from condgraph.engine.schema import AROUND, MOST_COMPARED, Kinds
from condgraph.engine.stored_schema import StoredSchema
from condgraph.engine.values import NO_UNIT, Kind, Value
from condgraph.sql.compiler import Compiler, Relations
from condgraph.sql.tables import CELL, Row, value_of
from condgraph.sql.terms import both, column, is_text, literal, one_of, select, within


class SqlNames:
    """The names of one graph, read with queries of their own."""

    def __init__(self, read: Callable[[exp.Expr | str], list[Row]], place: str | Relations, schema: StoredSchema) -> None:
        self._read, self._in = read, Compiler(place, schema)

    def _objects(self, predicates: tuple[str, ...] | None, source: str | None) -> exp.Expr:
        """The test of statements of some predicates and a source."""
        tests = []
        if predicates is not None:
            tests.append(one_of(column("predicate"), predicates))
        if source is not None:
            placed = (
                select(column("f"))
                .from_(self._in.stored("place"), copy=False)
                .where(within(column("source"), self._in.source(source)), copy=False)
            )
            tests.append(within(column("f"), placed))
        return both(tests)

    def kinds(self, predicates: tuple[str, ...] | None, source: str | None) -> Kinds:
        """How many objects there are of each type and unit."""
        query = select(column("kind"), column("unit"), exp.Count(this=exp.Star())).from_(self._in.stored("statement"), copy=False)
        query = query.where(self._objects(predicates, source), copy=False).group_by(column("kind"), column("unit"), copy=False)
        result: Kinds = {}
        for number, unit, count in self._read(query):
            kind = Kind(number)
            key = kind, unit if kind is Kind.QUANTITY else NO_UNIT
            result[key] = result.get(key, 0) + count
        return result

    def refers(self, predicates: tuple[str, ...] | None, source: str | None, table: str) -> bool:
        """Whether some object is a row of a table."""
        rows = (
            select(column("e"))
            .from_(self._in.stored("entity"), copy=False)
            .where(within(column("source"), self._in.source(table)), copy=False)
        )
        query = select(column("f")).from_(self._in.stored("statement"), copy=False)
        return bool(
            self._read(query.where(self._objects(predicates, source), within(column("o"), rows), copy=False).limit(1, copy=False))
        )

    def objects(self, predicates: tuple[str, ...] | None, source: str | None) -> Iterator[tuple[str, Value | str, str | None]]:
        """Every distinct object: its predicate, its value (an entity by its name), and its raw text."""
        columns = [column(name) for name in ("predicate", "o", *CELL, "raw")]
        query = (
            select(*columns, distinct=True)
            .from_(self._in.stored("statement"), copy=False)
            .where(self._objects(predicates, source), copy=False)
        )
        rows = self._read(query)
        for name in dict.fromkeys(row[3] for row in rows if row[1] is not None):
            yield "", name, None
        for predicate, o, *cell, raw in rows:
            if o is None:
                value = value_of(cell)
                assert not isinstance(value, Ref)
                yield predicate, value, raw

    def heads(self, predicates: tuple[str, ...]) -> Iterator[str]:
        """The names of subjects."""
        subjects = (
            select(column("s"))
            .from_(self._in.stored("statement"), copy=False)
            .where(one_of(column("predicate"), predicates), copy=False)
        )
        return self._names(within(column("e"), subjects))

    def _names(self, test: exp.Expr) -> Iterator[str]:
        query = select(column("name"), distinct=True).from_(self._in.stored("entity"), copy=False).where(test, copy=False)
        return (name for (name,) in self._read(query))

    def names(self) -> Iterator[str]:
        """The names of all entities and concepts that are no table rows."""
        return self._names(one_of(column("kind"), [int(EntityKind.ENTITY), int(EntityKind.CONCEPT)]))

    def has_name(self, name: str) -> bool:
        """Some entity or concept has exactly this name."""
        return self._any("entity", "name", name)

    def _any(self, table: str, key: str, text: str, *tests: exp.Expr) -> bool:
        if not is_text(text):
            return False
        query = select(literal(1)).from_(self._in.stored(table), copy=False)
        return bool(
            self._read(query.where(exp.EQ(this=column(key), expression=literal(text)), *tests, copy=False).limit(1, copy=False))
        )

    def has_text(self, text: str) -> bool:
        """Some entity has this name or id, or some attribute this text."""
        if self.has_name(text) or self._any("entity", "id", text):
            return True
        return self._any("statement", "text", text, exp.EQ(this=column("kind"), expression=literal(int(Kind.TEXT))))

    def name_of(self, ident: str) -> str | None:
        """The name of the entity that has this id; None where none has."""
        if not is_text(ident):
            return None
        return next(self._names(exp.EQ(this=column("id"), expression=literal(ident))), None)

    def without(self, names: Sequence[str]) -> list[str]:
        """Those of the names that no entity or concept has: one query."""
        possible = [name for name in names if is_text(name)]
        there = set(self._names(one_of(column("name"), possible))) if possible else set()
        return [name for name in names if name not in there]

    def all_names(self, around: Sequence[str]) -> list[str]:
        """The names of all entities, concepts and rows; in a large graph those in order around some texts."""
        ((count,),) = self._read(select(exp.Count(this=exp.Star())).from_(self._in.stored("entity"), copy=False))
        if count <= MOST_COMPARED:
            return list(self._names(exp.true()))
        result: list[str] = []
        for text in filter(is_text, around):
            for side, down in ((exp.GTE, False), (exp.LT, True)):
                query = select(column("name"), distinct=True).from_(self._in.stored("entity"), copy=False)
                own = self._in.by_bytes(column("name"))
                query = query.where(side(this=own, expression=literal(text)), copy=False)
                query = query.order_by(exp.Ordered(this=own.copy(), desc=down), copy=False).limit(AROUND, copy=False)
                result += [name for (name,) in self._read(query)]
        return result
