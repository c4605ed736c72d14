"""Columns of the files for Neo4j's import tool: texts, and what the layout makes of values, each
distinct one once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.layout.schema import LONGEST_KEY, index_key, inner_ranks, text_order, tie_break, time_text
from condgraph.cypher.load.cells import CELL
from condgraph.engine.execute.spans import span_precision
from condgraph.engine.snapshot.cells import PARTS
from condgraph.engine.values import NO_UNIT, UNKNOWN, UNKNOWN_END, UNKNOWN_START, Kind, Quantity, parse_number

if TYPE_CHECKING:
    import pyarrow as pa

    from condgraph.engine.snapshot.snapshot import Snapshot

#: What stands between the parts of a list; a control character, so that names may hold anything
#: else.
SEPARATOR: Final = "\x1f"
#: Statements whose columns are made together.
_CHUNK: Final = 250_000

Ints = NDArray[Any]
Columns = dict[str, Any]


class PoolColumns:
    """The pool of texts as Arrow columns, what the layout makes of texts, each text once, and the
    properties of values.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        import pyarrow as pa

        self._snapshot, self._get = snapshot, snapshot.arrays.get
        get = self._get
        offsets, data = np.ascontiguousarray(get("pool.offsets"), np.int64), np.ascontiguousarray(get("pool.bytes"), np.uint8)
        size = max(len(offsets) - 1, 0)
        self._pool = (
            pa.LargeStringArray.from_buffers(size, pa.py_buffer(offsets), pa.py_buffer(data))
            if size
            else pa.array([], pa.large_string())
        )
        self._long = np.flatnonzero(np.diff(offsets) > LONGEST_KEY)
        self._keys: pa.Array | None = None
        self._orders = _Made(self._pool, lambda text: None if (found := text_order(text)) == text else found)
        self._ranks = _Made(self._pool, lambda text: None if (found := inner_ranks(text)) is None else SEPARATOR.join(found))

    def take(self, numbers: Ints) -> pa.Array:
        """The texts of numbers; null where a number is negative."""
        return self._pool.take(_index(numbers))

    def keys(self, numbers: Ints) -> pa.Array:
        """The texts as they are indexed."""
        if self._keys is None:
            self._keys = self._pool
            if len(self._long):
                import pyarrow as pa

                found = self._pool.to_pylist()
                for i in self._long.tolist():
                    found[i] = index_key(found[i])
                self._keys = pa.array(found, pa.large_string())
        return self._keys.take(_index(numbers))

    def orders(self, numbers: Ints) -> pa.Array:
        """How texts are ordered, where they do not say it themselves."""
        return self._orders.take(numbers)

    def ranks(self, numbers: Ints) -> pa.Array:
        """The numbers of texts that begin with one."""
        return self._ranks.take(numbers)

    def cells(self, family: str, part: slice) -> Columns:
        """The properties of values, as `cells.CELL` names them."""
        import pyarrow as pa
        import pyarrow.compute as pc

        snapshot = self._snapshot
        kind, a, b, ref, unit, precision = (self._get(f"{family}.{name}")[part] for name, _ in PARTS)
        n = len(kind)
        text, quantity, time, entity = (kind == one for one in (Kind.TEXT, Kind.QUANTITY, Kind.TIME, Kind.ENTITY))
        shown_at = np.where(text, ref, -1)
        if entity.any():
            shown_at[entity] = snapshot.entity_name[ref[entity]]
        shown = self.take(shown_at)
        made: list[str | None] | None = None
        exact: list[str | None] = [None] * n
        order_of: list[str | None] | None = None
        if not (text | entity).all():
            made = [None] * n
            self._quantities(np.flatnonzero(quantity), a, ref, unit, made, exact)
            for i, *key in zip(np.flatnonzero(time).tolist(), *(c[time].tolist() for c in (a, b, precision)), strict=True):
                made[i] = time_text(*key)
            for i in np.flatnonzero(kind == Kind.UNKNOWN).tolist():
                made[i] = str(UNKNOWN)
            shown = pc.coalesce(shown, pa.array(made, pa.large_string()))
            if any(one is not None for one in exact):
                order_of = [None if one is None else tie_break(parse_number(one)) for one in exact]
        words = pa.array([one.name.lower() for one in Kind], pa.large_string())
        units = self.take(np.where(quantity, unit, -1))
        columns = {
            "kind": words.take(pa.array(kind.astype(np.int64))),
            "text": shown,
            "key": self.keys(shown_at),
            "number": _numbers(a.view(np.float64), ~quantity),
            "exact": pa.array(exact, pa.large_string()),
            "unit": pc.if_else(pa.array(quantity), pc.fill_null(units, NO_UNIT), units),
            "start": pa.array(a, mask=~time),
            "end": pa.array(b, mask=~time),
            "precision": pa.array(precision.astype(np.int64), mask=~time),
            "order": self.orders(np.where(text, ref, -1)),
            "ranks": self.ranks(np.where(text, ref, -1)),
        }
        if order_of is not None:
            columns["order"] = pc.coalesce(columns["order"], pa.array(order_of, pa.large_string()))
        assert tuple(columns) == CELL
        return columns

    def _quantities(self, at: Ints, a: Ints, ref: Ints, unit: Ints, made: list[str | None], exact: list[str | None]) -> None:
        floats, units = a.view(np.float64), {-1: NO_UNIT}
        found: dict[tuple[float, int, int], tuple[str, str | None]] = {}
        for i, x, exactly, one in zip(at.tolist(), floats[at].tolist(), ref[at].tolist(), unit[at].tolist(), strict=True):
            key = x, exactly, one
            pair = found.get(key)
            if pair is None:
                if one not in units:
                    units[one] = self._snapshot.texts[one]
                number = x if exactly < 0 else parse_number(self._snapshot.texts[exactly])
                same = exactly < 0 or tie_break(number) == "1"
                pair = found[key] = str(Quantity(number, units[one])), None if same else str(number)
            made[i], exact[i] = pair


class StatementColumns:
    """Where statements stand, and when they are valid, as columns; `sources` are the names of the sources."""

    def __init__(self, snapshot: Snapshot, sources: Sequence[str]) -> None:
        self._snapshot, self._get, self._source_names = snapshot, snapshot.arrays.get, sources

    def places(self, numbers: Ints) -> Columns:
        """`sources` and `rows` of statements, side by side."""
        import pyarrow as pa
        import pyarrow.compute as pc

        names = pa.array(self._source_names, pa.large_string())
        sources = names.take(pa.array(self._snapshot.source[numbers].astype(np.int64)))
        rows = pc.cast(pa.array(self._snapshot.row[numbers].astype(np.int64)), pa.large_string())
        owners = self._get("prov.stmt")
        begin, end = np.searchsorted(owners, [numbers[0], numbers[-1] + 1]) if len(numbers) else (0, 0)
        if begin < end:
            # Few statements have further sources: those lists are put together one by one.
            all_sources, all_rows = sources.to_pylist(), rows.to_pylist()
            more = zip(*(self._get(f"prov.{name}")[begin:end].tolist() for name in ("stmt", "src", "row")), strict=True)
            for statement, source, row in more:
                at = statement - int(numbers[0])
                all_sources[at] += SEPARATOR + self._source_names[source]
                all_rows[at] += f"{SEPARATOR}{row}"
            sources, rows = pa.array(all_sources, pa.large_string()), pa.array(all_rows, pa.large_string())
        return {"sources": sources, "rows": rows}

    def validity(self, numbers: Ints) -> Columns:
        """`since`, `until`, `span` and `valid` of statements."""
        import pyarrow as pa

        owners = self._get("val.stmt")
        if not len(owners) or not len(numbers):
            return {}
        at = np.minimum(owners.searchsorted(numbers), len(owners) - 1)
        start, end, missing = self._get("val.start")[at], self._get("val.end")[at], owners[at] != numbers
        if missing.all():
            return {name: pa.nulls(len(numbers), pa.int64()) for name in ("since", "until", "span")} | {
                "valid": pa.nulls(len(numbers), pa.large_string())
            }
        span = span_precision(start, end)
        known = ~missing & (start != UNKNOWN_START) & (end != UNKNOWN_END)
        valid: list[str | None] = [None] * len(numbers)
        for i in np.flatnonzero(known).tolist():
            valid[i] = time_text(int(start[i]), int(end[i]), int(span[i]))
        columns = {"since": start, "until": end, "span": span.astype(np.int64)}
        return {name: pa.array(column, mask=missing) for name, column in columns.items()} | {
            "valid": pa.array(valid, pa.large_string())
        }


class _Made:
    """What a function makes of texts of the pool, worked out for those that are asked for."""

    def __init__(self, pool: pa.Array, make: Callable[[str], str | None]) -> None:
        self._pool, self._make = pool, make
        self._known = np.zeros(len(pool), bool)
        self._made: dict[int, str] = {}

    def take(self, numbers: Ints) -> pa.Array:
        import pyarrow as pa

        wanted = np.unique(numbers[numbers >= 0])
        for number in wanted[~self._known[wanted]].tolist():
            found = self._make(self._pool[number].as_py())
            if found is not None:
                self._made[number] = found
        self._known[wanted] = True
        if not self._made:
            return pa.nulls(len(numbers), pa.large_string())
        get = self._made.get
        return pa.array([get(number) for number in numbers.tolist()], pa.large_string())


def _index(numbers: Ints) -> pa.Array:
    import pyarrow as pa

    return pa.array(numbers.astype(np.int64), mask=numbers < 0)


def _numbers(floats: NDArray[np.float64], missing: NDArray[np.bool_]) -> pa.Array:
    """Floats; as texts where one is infinite, which the tool spells in its own way."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pa.array(floats, mask=missing)
    if not np.isinf(floats[~missing]).any():
        return column
    return pc.replace_substring(pc.cast(column, pa.large_string()), "inf", "Infinity")


def chunks(size: int) -> Iterator[tuple[int, int]]:
    """Runs of numbers whose columns are made together."""
    for low in range(0, size, _CHUNK):
        yield low, min(low + _CHUNK, size)
