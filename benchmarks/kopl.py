"""KoPL programs: condgraph compared with the KoPL package, on the same graph and the same programs, in one run.

    python benchmarks/kopl.py --data DIR [--peer PYTHON] [--rounds N] [--out DIR]

DIR has `oracle/kb.json` and `oracle/programs_dev.jsonl` (or is that folder). Each engine runs in its own process, one
at a time: a block of programs by one, the same block by the other, in turns; the median of the rounds counts.
condgraph is timed from the text of a program to the texts of its answer, and from a parsed program (a list of steps,
as in the data set). The package cannot parse text, and is timed from such a list to its answer. PYTHON is a Python
that has KoPL 0.0.5 and tqdm; without it, pip installs them in a temporary environment. Before that, every program
runs once, and its answer is compared with the expected one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import venv
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from kopl_worker import as_text
from machine import markdown, median, percentile, write

PEER = ("KoPL==0.0.5", "tqdm")
BLOCK = 150


class Worker:
    """An engine in a process of its own (`kopl_worker`)."""

    def __init__(self, python: str, which: str, place: Path, programs: Path) -> None:
        script = Path(__file__).with_name("kopl_worker.py")
        self._process = subprocess.Popen(
            [python, str(script), which, str(place), str(programs)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.told: dict[str, float] = self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a worker ended early; what it said stands above")
        return json.loads(line)

    def ask(self, line: str) -> Any:
        """Send a line, wait for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def peer_python(folder: Path) -> str:
    """A fresh environment with the KoPL package; returns its Python."""
    print("making an environment for the KoPL package ...", file=sys.stderr)
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    subprocess.run([str(python), "-m", "pip", "install", "-q", *PEER], check=True)
    return str(python)


def load(kb: Path, store: Path) -> float:
    """Seconds to load the graph from its source into a store, in a fresh process, imports apart."""
    code = (
        "import sys, time, condgraph, condgraph.loaders.recognise\n"
        "begin = time.perf_counter(); condgraph.open(sys.argv[2]).load(sys.argv[1]); print(time.perf_counter() - begin)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(kb), str(store)], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def openings(store: Path, times: int = 30) -> list[float]:
    """Seconds to open the store, again and again."""
    import condgraph

    found = []
    for _ in range(times):
        begin = time.perf_counter()
        condgraph.open(store)
        found.append(time.perf_counter() - begin)
    return found


def check(store: Path, records: list[dict[str, Any]]) -> tuple[int, int]:
    """How many of the unflagged programs there are, and how many answers are the expected ones."""
    import condgraph

    graph = condgraph.open(store)
    plain = [record for record in records if not record.get("flags")]
    right = sum(sorted(set(graph.kopl(as_text(record["program"])).texts)) == sorted(record["answer"]) for record in plain)
    return len(plain), right


def measure(ours: Worker, peer: Worker, count: int, rounds: int) -> tuple[list[float], ...]:
    """The median seconds of each program: condgraph from text, the package, condgraph from programs
    that are read already.

    Block by block in turns, after a round that does not count.
    """
    found: dict[int, list[list[float]]] = {which: [[] for _ in range(count)] for which in range(3)}
    turns = [(0, ours, "run"), (1, peer, "run"), (2, ours, "read")]
    for turn in range(rounds + 1):
        print(f"round {turn} of {rounds}", file=sys.stderr)
        for number, first in enumerate(range(0, count, BLOCK)):
            last = min(first + BLOCK, count)
            for which, worker, how in turns if (number + turn) % 2 else turns[::-1]:
                if turn == 0 and which == 1:
                    continue  # the package keeps nothing that a first round would fill
                for at, seconds in enumerate(worker.ask(f"{how} {first} {last}"), first):
                    if turn:
                        found[which][at].append(seconds)
    return tuple([median(times) for times in found[which]] for which in range(3))


def speeds(
    records: list[dict[str, Any]], ours: list[float], peer: list[float], read: list[float], notes: list[str]
) -> dict[str, Any]:
    """The table of speeds."""
    kinds: dict[str, list[int]] = defaultdict(list)
    for at, record in enumerate(records):
        kinds[record["kind"]].append(at)
    short = [at for at, r in enumerate(records) if [step["function"] for step in r["program"]] == ["Find", "QueryAttr"]]

    def row(what: str, how: Callable[[list[float]], float], places: Sequence[int] = range(len(records))) -> list[Any]:
        text, theirs, steps = (how([times[at] for at in places]) for times in (ours, peer, read))
        return [what, theirs * 1e3, text * 1e3, theirs / text, steps * 1e3, theirs / steps]

    rows = [row(f"all {len(records)} programs, total", sum)]
    rows.append(row("median program", median))
    rows.append(row("95th percentile", lambda times: percentile(times, 0.95)))
    rows.append(row("slowest program", max))
    rows.append(row("Find, QueryAttr: median", median, short))
    for kind, places in sorted(kinds.items()):
        rows.append(row(f"{kind}: total of {len(places)}", sum, places))
    columns = ["programs", "KoPL 0.0.5, ms", "condgraph from text, ms", "times faster", "from steps, ms", "times faster"]
    return {"title": "KoPL programs", "columns": columns, "rows": rows, "notes": notes}


def main() -> None:
    """Measure, print, write."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    arguments.add_argument("--data", type=Path, required=True, metavar="DIR")
    arguments.add_argument("--peer", metavar="PYTHON", help="a Python that has KoPL 0.0.5 and tqdm")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--out", type=Path, metavar="DIR")
    given = arguments.parse_args()
    folder = given.data / "oracle" if (given.data / "oracle").is_dir() else given.data
    kb = folder / "kb.json"
    records = [json.loads(line) for line in (folder / "programs_dev.jsonl").read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        python = given.peer or peer_python(place / "peer")
        listing = place / "programs.json"
        listing.write_text(json.dumps([record["program"] for record in records]), encoding="utf-8")
        store = place / "store"
        loading = load(kb, store)
        plain, right = check(store, records)
        opening = openings(store)
        ours, peer = Worker(sys.executable, "ours", store, listing), Worker(python, "peer", kb, listing)
        mine, theirs, read = measure(ours, peer, len(records), given.rounds)
        memory = ours.ask("memory"), peer.ask("memory")
        ours.close()
        peer.close()
    start = peer.told["start"]
    notes = [
        f"{right} of the {plain} programs without a flag give the expected answer. A flag marks a "
        "program whose expected answer depends on a quirk of the package.",
        f'The engines take turns in one run, block by block; the median of {given.rounds} rounds counts. "From text" includes '
        'parsing, which the package cannot do; "from steps" starts where the package starts.',
    ]
    others: dict[str, Any] = {
        "title": "KoPL programs: start and memory",
        "columns": ["what", "KoPL 0.0.5", "condgraph", "times less"],
        "rows": [
            ["from the source (JSON) to the first program, s", start, loading, start / loading],
            ["open what was loaded, ms", start * 1e3, median(opening) * 1e3, start / median(opening)],
            ["open in a fresh process, ms", start * 1e3, ours.told["start"] * 1e3, start / ours.told["start"]],
            ["import, s", peer.told["import"], ours.told["import"], peer.told["import"] / ours.told["import"]],
            ["memory while asking, MB", memory[1]["now"], memory[0]["now"], memory[1]["now"] / memory[0]["now"]],
            ["memory at its peak, MB", memory[1]["peak"], memory[0]["peak"], memory[1]["peak"] / memory[0]["peak"]],
        ],
        "notes": [
            "The package stores nothing and starts from the source each time. condgraph loads once, into a store.",
            "Memory is that of the whole process after all programs, Python and the programs included.",
        ],
    }
    results = [speeds(records, mine, theirs, read, notes), others]
    for result in results:
        result["command"] = "python benchmarks/kopl.py --data DIR"
        print(markdown(result))
    print(write("kopl", results, given.out), file=sys.stderr)


if __name__ == "__main__":
    main()
