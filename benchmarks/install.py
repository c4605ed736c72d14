"""The cost of a wheel in an empty environment: its size and that of its dependencies, the time to install and import
it, and the time of `condgraph demo` and `condgraph doctor`.

    python benchmarks/install.py

The wheel is built from this checkout; packages come from the index that pip uses, without a cache.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from machine import write

ROOT = Path(__file__).parent.parent


def timed(*command: str | Path, cwd: str) -> tuple[float, float]:
    """Seconds that a command takes, and those of the processor; it has to succeed."""
    begin, before = time.perf_counter(), os.times()
    subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - begin, used


def size(folder: Path) -> float:
    """Megabytes of the files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


def measured(folder: str) -> list[list[object]]:
    """Rows of what was measured, how much, and the seconds of the processor."""
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", "dist", ROOT)
    subprocess.run(pip, cwd=folder, check=True)
    (wheel,) = Path(folder).glob("dist/*.whl")
    subprocess.run((sys.executable, "-m", "venv", "venv"), cwd=folder, check=True)
    programs, packages = Path(folder) / "venv" / "bin", next(Path(folder).glob("venv/lib/python*/site-packages"))
    empty = size(packages)
    install = timed(programs / "python", "-m", "pip", "install", "-q", "--no-cache-dir", wheel, cwd=folder)
    largest = sorted(((size(path), path.name) for path in packages.iterdir() if path.is_dir()), reverse=True)
    shown = [(f"of these {name}", amount) for amount, name in largest[:6] if name not in ("pip", "setuptools")]
    rows: list[list[object]] = [["the wheel, MB", round(wheel.stat().st_size / 1e6, 1), ""]]
    rows.append(["all that it installs, MB", round(size(packages) - empty, 1), ""])
    rows += [[f"{name}, MB", round(amount, 1), ""] for name, amount in shown]
    rows.append(["pip install, s", *(round(one, 1) for one in install)])
    for name, *command in (
        ("import condgraph, s", programs / "python", "-c", "import condgraph"),
        ("condgraph demo, s", programs / "condgraph", "demo"),
        ("condgraph doctor, s", programs / "condgraph", "doctor"),
    ):
        runs = [timed(*command, cwd=folder) for _ in range(5)]
        rows.append([name, round(min(run[0] for run in runs), 2), round(min(run[1] for run in runs), 2)])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(folder)
    result = {
        "name": "install",
        "title": "A wheel in an empty environment",
        "command": "python benchmarks/install.py",
        "columns": ["what", "measured", "of the processor, s"],
        "rows": rows,
        "notes": [
            "The least of five runs of each command; the second and later ones find compiled modules. The time to install is "
            "that of one run, and depends on the network and the load of the machine.",
        ],
    }
    write("install", [result])
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
