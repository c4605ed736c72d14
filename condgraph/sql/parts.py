"""Parts of a graph in a SQL database: what a single change asks of it, and the rows that it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from condgraph.edits import Edit, Key, Removed, Use, key_of, named_in, normal
from condgraph.engine.facts import Entity, EntityKind, Item, Source, Sourced, Statement
from condgraph.engine.identity import statement_ids
from condgraph.engine.snapshot.snapshot import Snapshot
from condgraph.engine.values import Kind, Value
from condgraph.sql.connections import Writer
from condgraph.sql.tables import TABLES, Columns, Graph, Row, columns
from condgraph.sql.terms import both, column, either, is_text, literal, one_of, select, table_of

Read = Callable[[exp.Query], list[Row]]


class SqlParts:
    """Parts of the graph in one schema (`condgraph.single_change.PartStore`)."""

    def __init__(self, read: Read, place: str) -> None:
        self._read, self._in = read, place
        #: The statements that were read, with their numbers in the database.
        self._numbers: dict[Key, int] = {}
        self._sources: list[Source] | None = None

    def _rows(self, table: str, test: exp.Expr, names: Iterable[str] = (), limit: int | None = None) -> list[Row]:
        query = select(*(column(name) for name in names or TABLES[table])).from_(table_of(table, self._in), copy=False)
        query = query.where(test, copy=False)
        return self._read(query if limit is None else query.limit(limit, copy=False))

    def sources(self) -> list[Source]:
        """The sources in the order they were loaded."""
        if self._sources is None:
            self._sources = [Source(*rest) for _, *rest in sorted(self._rows("source", exp.true()))]
        return self._sources

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """The numbers of the entities of some ids."""
        return dict(self._rows("entity", one_of(column("id"), ids), ("id", "e"))) if ids else {}

    def called(self, text: str) -> list[Entity]:
        """The entities that have a text as their id or name."""
        if not is_text(text):
            return []
        test = either(exp.EQ(this=column(name), expression=literal(text)) for name in ("id", "name"))
        rows = self._rows("entity", test, ("id", "name", "kind", "row"))
        return [Entity(ident, name, EntityKind(kind), row or 0) for ident, name, kind, row in rows]

    def some_names(self, most: int) -> list[str]:
        """The names of all entities; none where there are more than `most`."""
        rows = self._rows("entity", exp.true(), ("name",), most + 1)
        return [name for (name,) in rows] if len(rows) <= most else []

    def entities_about(self, ids: Sequence[str], sources: Sequence[str]) -> list[Item]:
        """Entities by their ids, and the concepts that they are stated to be in."""
        own = sorted(self.numbers([ident for ident in ids if is_text(ident)]).values())
        if not own:
            return []
        rows = {
            "membership": self._rows("membership", one_of(column("e"), own)),
            "subclass": self._rows("subclass", one_of(column("concept"), own)),
        }
        every = sorted({*own, *(above for some in rows.values() for _, above, *_ in some)})
        rows |= {table: self._rows(table, one_of(column("e"), every)) for table in ("entity", "declared")}
        return [one for one in Graph(rows, self.sources()).items() if not isinstance(one, Source)]

    def statements_about(self, subject: str, predicate: str) -> list[Sourced]:
        """The statements of a subject and a predicate."""
        return self._stated(subject, [one_of(column("predicate"), [predicate])]) if is_text(predicate) else []

    def some_about(self, subject: str) -> list[Statement]:
        """Statements of a subject: up to 100."""
        return [one.item for one in self._stated(subject, [], 100) if isinstance(one.item, Statement)]

    def _stated(self, subject: str, tests: list[exp.Expr], limit: int | None = None) -> list[Sourced]:
        own = self.numbers([subject] if is_text(subject) else [])
        if not own:
            return []
        rows = {"statement": self._rows("statement", both([one_of(column("s"), list(own.values())), *tests]), limit=limit)}
        if not rows["statement"]:
            return []
        there = sorted(row[0] for row in rows["statement"])
        rows |= {table: self._rows(table, one_of(column("f"), there)) for table in ("qualifier", "place")}
        ends = {row[3] for table in ("statement", "qualifier") for row in rows[table]} - {None}
        rows["entity"] = self._rows("entity", one_of(column("e"), sorted({*ends, *own.values()})))
        graph = Graph(rows, self.sources())
        numbered = list(graph.statements())
        self._numbers |= {key_of(normal(one.item)): f for f, one in numbered if isinstance(one.item, Statement)}
        return [one for _, one in numbered]

    def number(self, statement: Statement) -> int:
        """The number of a statement (`normal`) of the graph."""
        if key_of(statement) not in self._numbers:
            self.statements_about(statement.subject, statement.predicate)
        return self._numbers[key_of(statement)]

    def uses(self, ident: str, without: Removed) -> Iterable[Use]:
        """A source that uses an entity in statements, but for those `without`, and one that uses it as a concept."""
        own = list(self.numbers([ident] if is_text(ident) else []).values())
        if not own:
            return
        gone = [self.number(statement) for statement in without.statements]
        other = [exp.not_(one_of(column("f"), gone), copy=False)] if gone else []
        for table, end in (("statement", "s"), ("statement", "o"), ("qualifier", "o")):
            if rows := self._rows(table, both([one_of(column(end), own), *other]), ("f",), 1):
                ((source,),) = self._rows(
                    "place", both([one_of(column("f"), list(rows[0])), one_of(column("n"), [0])]), ("source",)
                )
                yield Use(self.sources()[source].name, False)
                break
        for table, end in (("membership", "concept"), ("subclass", "concept"), ("subclass", "parent")):
            if rows := self._rows(table, one_of(column(end), own), ("source",), 1):
                yield Use(self.sources()[rows[0][0]].name, True)
                break

    def value_used(self, value: Value, without: Removed) -> bool:
        """Each statement has a row of its own for its value."""
        return False

    def unused(self, most: int) -> list[str]:
        """None: who declared an entity is a row of its own."""
        return []

    def has_several(self, name: str, qualifier: bool, subjects: Sequence[str], without: Removed) -> bool:
        """Whether some entity has several values of an attribute, but for some `subjects`; or some statement of a qualifier."""
        table, key, owner = ("qualifier", "key", "f") if qualifier else ("statement", "predicate", "s")
        gone = [self.number(one) for one in without.statements] if qualifier else sorted(self.numbers(subjects).values())
        tests = [one_of(column(key), [name])] + ([exp.not_(one_of(column(owner), gone), copy=False)] if gone else [])
        if not qualifier:
            tests.append(exp.NEQ(this=column("kind"), expression=literal(int(Kind.ENTITY))))
        many = exp.GT(this=exp.Count(this=exp.Star()), expression=literal(1))
        query = select(column(owner)).from_(table_of(table, self._in), copy=False).where(both(tests), copy=False)
        return bool(self._read(query.group_by(column(owner), copy=False).having(many, copy=False).limit(1, copy=False)))


# -- Rows --------------------------------------------------------------------------------------------


class Changes:
    """The rows that differ before and after a change, of the parts that it is about: by the numbers of the database."""

    def __init__(self, before: Snapshot, after: Snapshot, parts: SqlParts, edit: Edit) -> None:
        self._parts = parts
        self._of = [_of(snapshot) for snapshot in (before, after)]
        self._ids = [list(of["entity"]["id"]) for of in self._of]
        sids = [statement_ids(snapshot).tolist() for snapshot in (before, after)]
        #: Statements that are added, by their numbers in the part; ids of entities that go, and that come.
        self._fresh = [number for number, sid in enumerate(sids[1]) if sid not in set(sids[0])]
        there = [set(ids) for ids in self._ids]
        self._gone, self._new = sorted(there[0] - there[1]), sorted(there[1] - there[0])
        self._edit = edit

    def write(self, writer: Writer, place: str) -> None:
        """Write them."""
        of, parts = self._of, self._parts
        gone = [parts.number(part) for part in self._edit.removed if isinstance(part, Statement)]
        for table in ("statement", "qualifier", "place") if gone else ():
            writer.execute(_deleted(place, table, column("f"), gone))
        declared = [_declared(of[at], self._ids[at]) for at in (0, 1)]
        other = sorted(
            ident for ident in declared[0].keys() | declared[1].keys() if declared[0].get(ident) != declared[1].get(ident)
        )
        mine = sorted({*other, *self._gone, *(self._ids[1][e] for e in self._ends())} - set(self._new))
        numbers = parts.numbers(mine)
        if ends := [numbers[ident] for ident in sorted({*other, *self._gone}) if ident in numbers]:
            writer.execute(_deleted(place, "declared", column("e"), ends))
        if self._gone:
            writer.execute(_deleted(place, "entity", column("e"), [numbers[ident] for ident in self._gone]))
        last_e, last_f = (_last(writer, place, table, name) for table, name in (("entity", "e"), ("statement", "f")))
        numbers |= {ident: last_e + at for at, ident in enumerate(self._new, 1)}
        e = {at: numbers[ident] for at, ident in enumerate(self._ids[1]) if ident in numbers}
        f = {number: last_f + at for at, number in enumerate(self._fresh, 1)}
        new = set(self._new)
        sources = set(of[0]["source"]["name"])
        chosen: dict[str, Callable[[Mapping[str, Any]], bool]] = {
            "source": lambda row: row["name"] not in sources,
            "entity": lambda row: self._ids[1][row["e"]] in new,
            "declared": lambda row: self._ids[1][row["e"]] in other,
            **dict.fromkeys(("statement", "qualifier", "place"), lambda row: row["f"] in f),
        }
        for table, wanted in chosen.items():
            rows = [row for row in _rows(of[1][table]) if wanted(row)]
            for row in rows:
                for name, known_as in (("e", e), ("s", e), ("o", e), ("f", f)):
                    if row.get(name) is not None:
                        row[name] = known_as[row[name]]
            if rows:
                kinds = TABLES[table]
                writer.insert(place, table, [(name, kind, [row[name] for row in rows]) for name, kind in kinds.items()])

    def texts(self) -> Iterable[tuple[str, str, list[str | None]]]:
        """The texts of the rows that are added: table, column, texts."""
        for part in self._edit.added:
            if isinstance(part, Statement):
                yield "statement", "predicate", list(named_in(part))
        yield "entity", "id", list(self._new)
        yield "entity", "name", [self._of[1]["entity"]["name"][self._ids[1].index(ident)] for ident in self._new]
        fresh = set(self._fresh)
        for table in ("statement", "qualifier"):
            for name in ("text", "unit"):
                values = zip(self._of[1][table]["f"], self._of[1][table][name], strict=True)
                yield table, name, [text for f, text in values if f in fresh]

    def _ends(self) -> set[int]:
        """The entities that new statements name, by their numbers in the part."""
        rows = [row for table in ("statement", "qualifier") for row in _rows(self._of[1][table]) if row["f"] in set(self._fresh)]
        return {row[name] for row in rows for name in ("s", "o") if row.get(name) is not None}


def _of(snapshot: Snapshot) -> dict[str, Columns]:
    """The columns of each table but the last, which says what all of them hold."""
    result = {}
    for table, values in columns(snapshot, ""):
        result[table] = values
        if table == "place":
            break
    return result


def _rows(values: Columns) -> list[dict[str, Any]]:
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def _declared(of: dict[str, Columns], ids: list[str]) -> dict[str, list[tuple[Any, ...]]]:
    """How each entity is declared."""
    result: dict[str, list[tuple[Any, ...]]] = {}
    for e, *rest in zip(*of["declared"].values(), strict=True):
        result.setdefault(ids[e], []).append(tuple(rest))
    return result


def _deleted(place: str, table: str, of: exp.Expr, numbers: list[int]) -> exp.Delete:
    return exp.Delete(this=table_of(table, place), where=exp.Where(this=one_of(of, numbers)))


def _last(writer: Writer, place: str, table: str, name: str) -> int:
    """The last number of a table; -1 where there is none."""
    ((last,),) = writer.read(select(exp.Max(this=column(name))).from_(table_of(table, place), copy=False))
    return -1 if last is None else int(last)
