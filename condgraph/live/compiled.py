"""A query as one text of Cypher: its group, and what is made of the solutions (aggregates, order,
what is shown).

What is ordered by numbers and dates is ordered by the server, what is unbound first, as SPARQL has
it. Texts and IRIs, which the server orders otherwise (by UTF-16), are ordered here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from condgraph.languages.sparql.syntax import Aggregate, Bind, Call, Exists, Expression, Query, Var, beyond, parts_of
from condgraph.live.expressions import NUMERIC, Bound, Expressions, Made, Sort
from condgraph.live.groups import Scope, Writer
from condgraph.live.vocabulary import Vocabulary

if TYPE_CHECKING:
    from condgraph.cypher.native.layout import NativeLayout

#: Rows of an answer, at most.
MOST: Final = 100_000


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the rows: what its cells are (None: nothing), and whether one that is null stands
    for the number 0, as the sum of nothing does.
    """

    sort: Sort | None
    zero: bool = False


@dataclass(slots=True)
class Compiled:
    """One query. Rows have a cell for each of the `columns`, and behind these one for each key of
    `order` (its sort, and whether it goes down) where the order is made here; `limit` and `offset`
    are then made here as well.
    """

    text: str
    parameters: dict[str, Any]
    names: list[str] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    order: list[tuple[Sort, bool]] = field(default_factory=list)
    limit: int | None = None
    offset: int = 0
    ask: bool = False


def compiled(query: Query, vocabulary: Vocabulary, layout: NativeLayout, most: int = MOST) -> Compiled:
    """The one query that a query becomes; raises `UnsupportedError` with the reason where none is
    known to mean the same. One row more than `most` comes at most, unless they are ordered here.
    """
    writer = Writer(vocabulary, layout)
    lines, scope = writer.group(query.group, {})
    if not lines:
        raise beyond("an empty group")
    if query.form == "ask":
        text = "\n".join([*lines, "WITH 1 AS one LIMIT 1", "RETURN count(one) > 0 AS found"])
        return Compiled(text, writer.parameters, ask=True)
    return _Select(query, writer, lines, scope).compiled(most)


class _Select:
    """The end of a SELECT."""

    def __init__(self, query: Query, writer: Writer, lines: list[str], scope: Scope) -> None:
        self._query, self._writer, self._lines, self._scope = query, writer, lines, scope
        self._known: dict[Expression, Made] = {}
        self._zero: set[Expression] = set()

    def compiled(self, most: int) -> Compiled:
        query, writer = self._query, self._writer
        said = [one for _, one in query.columns if one is not None] + query.having + [one for one, _ in query.order]
        aggregates = list(dict.fromkeys(part for one in said for part in parts_of(one) if isinstance(part, Aggregate)))
        if any(isinstance(part, Exists) for one in said for part in parts_of(one)):
            raise beyond("EXISTS outside of FILTER")
        if aggregates or query.grouped:
            self._group(aggregates)
        elif query.having:
            raise beyond("HAVING without groups")
        for variable, expression in query.columns:
            if expression is not None:
                self._make(variable, expression)
        kept = [(variable, self._scope.get(variable)) for variable, _ in query.columns]
        names = [f"c{number}" for number in range(len(kept))]
        order = self._order(dict(zip([one for one, _ in kept], names, strict=True)))
        columns = [Column(None if bound is None else bound.sort, self._zeroed(variable)) for variable, bound in kept]
        # Keys of the order that are no columns.
        more = [(f"k{number}", text) for number, (text, *_) in enumerate(order)]
        listed = [f"{'null' if bound is None else bound.text} AS {name}" for name, (_, bound) in zip(names, kept, strict=True)]
        if query.distinct:
            if any(text not in names for _, text in more):
                raise beyond("DISTINCT with an order by what is not selected")
            if any(self._computed(variable) for variable, _ in kept):
                raise beyond("DISTINCT of arithmetic")
            self._lines.append(f"WITH DISTINCT {', '.join(listed)}")
            self._lines.append("WITH *, " + ", ".join(f"{text} AS {key}" for key, text in more) if more else "WITH *")
        else:
            self._lines.append(f"WITH {', '.join([*listed, *(f'{text} AS {key}' for key, text in more)])}")
        here = any(sort not in (*NUMERIC, "date") for _, sort, _ in order)
        returned = [self._shown(name, column.sort) for name, column in zip(names, columns, strict=True)]
        found = Compiled("", writer.parameters, [one.name for one, _ in kept], columns)
        tail = f"RETURN {', '.join(f'{text} AS {name}' for text, name in zip(returned, names, strict=True))}"
        if here:
            found.order = [(sort, down) for _, sort, down in order]
            found.limit, found.offset = query.limit, query.offset
            keys = [f"{self._shown(key, sort)} AS {key}" for (key, _), (_, sort, _) in zip(more, order, strict=True)]
            self._lines.append(", ".join([tail, *keys]) + f" LIMIT {MOST + 1}")
        else:
            if order:
                keys = [
                    f"{key} IS NULL, {key} DESC" if down else f"{key} IS NOT NULL, {key}"
                    for (key, _), (_, _, down) in zip(more, order, strict=True)
                ]
                self._lines.append(f"WITH * ORDER BY {', '.join(keys)}")
            limit = most + 1 if query.limit is None else min(query.limit, most + 1)
            self._lines.append(f"{tail}{f' SKIP {query.offset}' if query.offset else ''} LIMIT {limit}")
        found.text = "\n".join(self._lines)
        return found

    def _expressions(self) -> Expressions:
        return self._writer.expressions(self._scope, self._known)

    def _make(self, variable: Var, expression: Expression) -> None:
        """A column that is worked out."""
        if variable in self._scope:
            raise beyond(f"AS ?{variable.name}, which is bound before")
        made = self._expressions().made(expression)
        if made.sort == "boolean":
            raise beyond("a truth value as a result", "FILTER keeps the rows that it is true of")
        name = self._writer.variable(variable)
        self._lines.append(f"WITH *, {made.text} AS {name}")
        self._scope[variable] = Bound(made.sort, name, made.certain)
        if expression in self._zero:
            self._zero.add(variable)

    def _zeroed(self, variable: Var) -> bool:
        return variable in self._zero

    def _computed(self, variable: Var) -> bool:
        binds = [part for part in self._query.group.parts if isinstance(part, Bind) and part.variable == variable]
        made = [expression for one, expression in self._query.columns if one == variable] + [part.expression for part in binds]
        return any(isinstance(one, Call) and one.name in ("+", "-", "*") for one in made)

    def _group(self, aggregates: list[Aggregate]) -> None:
        query, scope = self._query, self._scope
        keys: Scope = {}
        for one, expression in query.grouped:
            if expression is not None:
                raise beyond("GROUP BY an expression, live", "BIND it to a variable")
            if one not in scope:
                raise beyond(f"GROUP BY ?{one.name}, which nothing binds")
            if self._computed(one):
                raise beyond("GROUP BY of arithmetic")
            keys[one] = scope[one]
        made = []
        alone = not query.grouped
        for wanted in aggregates:
            text, sort = self._aggregate(wanted)
            name = self._writer.fresh()
            made.append(f"{text} AS {name}")
            self._known[wanted] = Made(name, sort, wanted.name == "COUNT" or not alone)
            if wanted.name in ("SUM", "AVG") and alone:
                self._zero.add(wanted)
        said = [
            *query.having,
            *(e for e, _ in query.order),
            *(e for _, e in query.columns if e is not None and e not in self._zero),
        ]
        if any(part in self._zero for e in said for part in parts_of(e)):
            raise beyond("a sum of all rows in an expression")
        if any(e is None and variable not in keys for variable, e in query.columns):
            raise beyond("a variable beside aggregates that no group has")
        self._lines.append("WITH " + ", ".join([*(bound.text for bound in keys.values()), *made] or ["count(*) AS all_rows"]))
        self._scope = keys
        if query.having:
            tests = [f"({self._expressions().condition(one)})" for one in query.having]
            self._lines.append(f"WITH * WHERE {' AND '.join(tests)}")

    def _aggregate(self, one: Aggregate) -> tuple[str, Sort]:
        once = "DISTINCT " if one.distinct else ""
        if one.of is None:
            if one.distinct:
                raise beyond("COUNT(DISTINCT *)")
            return "count(*)", "integer"
        made = self._writer.expressions(self._scope).made(one.of)
        if one.name in ("SAMPLE", "GROUP_CONCAT"):
            raise beyond(f"{one.name}, live", "the replica (without --live) has it")
        if one.name == "COUNT":
            if not isinstance(one.of, Var):
                raise beyond("COUNT of an expression")
            return f"count({once}{made.text})", "integer"
        if made.sort != "number" or not made.certain:
            raise beyond(f"{one.name} of anything but numbers that are always bound")
        if one.name in ("SUM", "AVG"):
            many = f"sum({once}{made.text})"
            # Their own mean is summed up in another way, and is less exact.
            many = many if one.name == "SUM" else f"{many} / count({once}{made.text})"
            return f"CASE WHEN count(*) > 0 THEN {many} END", "number"
        return f"{one.name.lower()}({made.text})", "number"

    def _order(self, columns: dict[Var, str]) -> list[tuple[str, Sort, bool]]:
        """The keys of the order: what each is, its sort, and whether it goes down."""
        found = []
        for expression, down in self._query.order:
            if isinstance(expression, Var) and expression in columns and expression in self._scope:
                bound = self._scope[expression]
                # Only behind DISTINCT are the columns what there is.
                found.append((columns[expression] if self._query.distinct else bound.text, bound.sort, down))
            elif isinstance(expression, Var) and expression not in self._scope:
                continue
            else:
                made = self._expressions().made(expression)
                if made.sort == "boolean":
                    raise beyond("an order by truth values")
                found.append((made.text, made.sort, down))
        return found

    def _shown(self, name: str, sort: Sort | None) -> str:
        """What is sent of a cell."""
        if sort == "node":
            return f"CASE WHEN {name} IS NOT NULL THEN {self._writer.layout.id(name)} END"
        return f"toString({name})" if sort in ("date", "value:day") else name
