"""Reads a workbook with calamine, in parts: the sheets, then the merged cells and rows of each.

Run as a program, it writes these parts to standard output, a line of JSON each, within limits of memory and processor
time: calamine allocates what a workbook declares, and aborts its process if there is not enough. So
this module imports nothing of the package.

    python spreadsheet_reader.py '["sys.path", ...]' PATH '["sheet", ...]' BYTES SECONDS
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from typing import Any, TypeAlias

#: ("sheets", [(name, holds cells, is shown)]), ("sheet", name, merged ranges), ("rows", rows), ("error", text),
#: ("end",)
Part: TypeAlias = tuple[Any, ...]
#: The most cells of a part.
_CELLS = 100_000
#: The exit status if there is not enough memory; calamine itself aborts.
NO_MEMORY = 77


def parts(path: str, wanted: Sequence[str]) -> Generator[Part, None, None]:
    """Yield the parts of a workbook, of all sheets or of those wanted.

    An error that calamine raises, including a panic of its Rust code, becomes the last part.
    """
    import python_calamine as calamine

    # Its errors have several base classes, and a panic of its Rust code has none of them.
    try:
        with calamine.CalamineWorkbook.from_path(path) as book:
            about = [
                (item.name, item.typ == calamine.SheetTypeEnum.WorkSheet, item.visible == calamine.SheetVisibleEnum.Visible)
                for item in book.sheets_metadata
            ]
            yield "sheets", about
            for name in [name for name, cells, _ in about if cells and (not wanted or name in wanted)]:
                sheet = book.get_sheet_by_name(name)
                grid = sheet.to_python(skip_empty_area=False)
                yield "sheet", name, sheet.merged_cell_ranges or []
                rows_per_part = max(1, _CELLS // max(1, len(grid[0]))) if grid else 1
                for at in range(0, len(grid), rows_per_part):
                    yield "rows", grid[at : at + rows_per_part]
            yield ("end",)
    except (calamine.CalamineError, OSError, ValueError) as error:
        yield "error", str(error)
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        yield "error", str(error)


def _written(value: Any) -> dict[str, Any]:
    """Return a date or a time as JSON."""
    if isinstance(value, timedelta):
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    return {type(value).__name__: value.isoformat()}


def read_part(line: bytes) -> Part:
    """Parse a part from its line."""
    return tuple(json.loads(line, object_hook=_read))


def _read(found: dict[str, Any]) -> Any:
    ((kind, value),) = found.items()
    if kind == "timedelta":
        return timedelta(*value)
    return _TIMES[kind](value)


_TIMES: dict[str, Callable[[str], Any]] = {
    "date": date.fromisoformat, "datetime": datetime.fromisoformat, "time": time.fromisoformat,
}  # fmt: skip


def _main(path: str, wanted: list[str], memory: int, seconds: int) -> None:
    try:
        import resource
    except ImportError:  # pragma: no cover - Windows has no limits of this kind
        pass
    else:
        for what, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_CORE, 0)):
            hard = resource.getrlimit(what)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            # Some systems lack some of the limits.
            with suppress(OSError, ValueError):
                resource.setrlimit(what, (most, hard))
    try:
        for part in parts(path, wanted):
            sys.stdout.write(json.dumps(part, default=_written) + "\n")
        sys.stdout.flush()
    except MemoryError:
        sys.exit(NO_MEMORY)


if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[1])
    _main(sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
