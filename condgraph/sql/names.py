"""The names of a graph in a SQL database, for `names.linking.NameReader`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from condgraph.engine import algebra as alg
from condgraph.engine.facts import EntityKind, Ref
from condgraph.engine.schema import MAX_COMPARED, NEARBY, Kinds
from condgraph.engine.values import NO_UNIT, Kind, Value
from condgraph.sql.plan import Plans
from condgraph.sql.tables import Row, value_of
from condgraph.sql.terms import is_text

_ALL = alg.AllEntities((EntityKind.ENTITY, EntityKind.CONCEPT, EntityKind.ROW))


class SqlNames:
    """The names of one graph, read with separate queries."""

    def __init__(self, read: Callable[[exp.Expr | str], list[Row]], plans: Plans) -> None:
        self._read, self._plans = read, plans

    def kinds(self, predicates: tuple[str, ...] | None, source: str | None) -> Kinds:
        """Count the objects by type and unit."""
        objects = alg.Objects(alg.Scan(None, predicates, source=source))
        result: Kinds = {}
        for _, number, unit, count in self._read(self._plans.tallies([(0, objects)])):
            kind = Kind(number)
            key = kind, unit if kind is Kind.QUANTITY else NO_UNIT
            result[key] = result.get(key, 0) + count
        return result

    def refers(self, predicates: tuple[str, ...] | None, source: str | None, table: str) -> bool:
        """Tell whether some object is a row of a table."""
        rows = alg.AllEntities((EntityKind.ROW,), table, own=True)
        return bool(self._read(self._plans.some(alg.Where(alg.Scan(None, predicates, source=source), alg.Among(rows)))))

    def objects(self, predicates: tuple[str, ...] | None, source: str | None) -> Iterator[tuple[str, Value | str, str | None]]:
        """Yield every distinct object: its predicate, its value (for an entity, the name), and its raw text."""
        rows = self._read(self._plans.cells(alg.Scan(None, predicates, source=source)))
        for name in dict.fromkeys(row[3] for row in rows if row[1]):
            yield "", name, None
        for predicate, is_entity, *cell, raw in rows:
            if not is_entity:
                value = value_of(cell)
                assert not isinstance(value, Ref)
                yield predicate, value, raw

    def heads(self, predicates: tuple[str, ...]) -> Iterator[str]:
        """Yield the names of subjects."""
        return self._names(alg.Reached(alg.Scan(None, predicates)))

    def _names(self, node: alg.Entities) -> Iterator[str]:
        return iter(dict.fromkeys(name for _, name, *_ in self._read(self._plans.entities(node))))

    def names(self) -> Iterator[str]:
        """Yield the names of all entities and concepts except table rows."""
        return self._names(alg.AllEntities((EntityKind.ENTITY, EntityKind.CONCEPT)))

    def has_name(self, name: str) -> bool:
        """Tell whether an entity or concept has exactly this name."""
        return is_text(name) and next(self._names(alg.ByName((name,))), None) is not None

    def has_text(self, text: str) -> bool:
        """Tell whether an entity has this name or id, or an attribute this text."""
        if not is_text(text):
            return False
        if self.has_name(text) or self.name_of(text) is not None:
            return True
        values = alg.Where(alg.Scan(None, None, family="attribute"), alg.Compare("=", text))
        return bool(self._read(self._plans.some(values)))

    def name_of(self, ident: str) -> str | None:
        """Return the name of the entity with this id, or None."""
        return next(self._names(alg.ById((ident,))), None) if is_text(ident) else None

    def without(self, names: Sequence[str]) -> list[str]:
        """Return those of the names that no entity or concept has, with one query."""
        possible = tuple(name for name in names if is_text(name))
        existing = set(self._names(alg.ByName(possible))) if possible else set()
        return [name for name in names if name not in existing]

    names_repeat = True

    def all_names(self, around: Sequence[str]) -> list[str]:
        """Return the names of all entities, concepts and rows; in a large graph, only those that sort next to some texts."""
        ((count,),) = self._read(self._plans.count(_ALL))
        if count <= MAX_COMPARED:
            return [name for _, name, *_ in self._read(self._plans.entities(_ALL))]
        result: list[str] = []
        for text in filter(is_text, around):
            for below in (False, True):
                result += [name for (name,) in self._read(self._plans.names_near(text, NEARBY, below=below))]
        return result
