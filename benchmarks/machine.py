"""The machine that a benchmark runs on, the memory of a process, and where results are written."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent / "out"


def machine() -> dict[str, Any]:
    """The processor, its cores, the memory, the Python and NumPy of this run; nothing that says
    whose machine it is.
    """
    import numpy

    return {
        "cpu": _field(Path("/proc/cpuinfo"), "model name") or platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": _memory(),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
    }


def _field(path: Path, name: str) -> str:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def _memory() -> str | None:
    size = _field(Path("/proc/meminfo"), "MemTotal").removesuffix("kB").strip()
    return f"{int(size) / 2**20:.0f} GiB" if size.isdigit() else None


def resident(process: str = "self") -> float:
    """Megabytes of memory a process has now; of this one, its peak where the system does not say."""
    size = _field(Path(f"/proc/{process}/status"), "VmRSS").removesuffix("kB").strip()
    return int(size) / 1000 if size.isdigit() else peak()


def peak() -> float:
    """The most megabytes of memory this process ever had."""
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (1e6 if sys.platform == "darwin" else 1e3)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values do not exceed."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def median(values: Sequence[float]) -> float:
    """The median; nan of none."""
    return statistics.median(values) if values else float("nan")


def write(name: str, results: list[dict[str, Any]], out: Path | None = None) -> Path:
    """Write results as JSON, with the date and the machine, for `benchmarks/results.py`; returns
    the file.
    """
    folder = out or OUT
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    record = {"name": name, "date": time.strftime("%Y-%m-%d"), "machine": machine(), "results": results}
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def markdown(result: dict[str, Any]) -> str:
    """One result as a table to read."""
    rows = [[_shown(cell) for cell in row] for row in result["rows"]]
    widths = [max(len(str(line[i])) for line in [result["columns"], *rows]) for i in range(len(result["columns"]))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    parts = [f"## {result['title']}", "", line(result["columns"]), "|" + "|".join("-" * (width + 2) for width in widths) + "|"]
    parts += [line(row) for row in rows]
    parts += ["", *(f"- {note}" for note in result.get("notes", ()))]
    return "\n".join(parts) + "\n"


def _shown(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"
    return str(cell)
