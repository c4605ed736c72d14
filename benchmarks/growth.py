"""How memory, disk, loading and queries grow with a graph: in process, and on each store.

    python benchmarks/growth.py [--millions 1 3] [--stores folder bounded neo4j oxigraph virtuoso fuseki] [--memory SIZE]
                                [--folder DIR] [--out DIR]

Each graph has that many million statements of every kind (half relations, a third of them with a qualifier; texts,
quantities and times), drawn from a fixed seed (`neo4j_store.mixed`). "folder" builds a store in its own process,
opens it and queries it. "bounded" does so in 512 MiB of memory (or `--memory "1.5 GiB"`); its files have to equal
those of the folder, unless it is the only store. `tools/` starts the servers, which load the content of that folder
(Neo4j by its import tool, the others over HTTP) and get the same questions, whose answers have to be those of the
folder. A run replaces its own rows in DIR/growth.json and leaves the others, so that stores and sizes can be measured
one after the other. CPU seconds are those of client and server together; unlike wall time, they hardly depend on
other work on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tools")]

from benchmarks import machine  # noqa: E402

STORES = ("folder", "bounded", "neo4j", "oxigraph", "virtuoso", "fuseki")
SEED, ASKED, WARM = 20261123, 40, 8
#: Memory of a load that is bounded.
BOUND = "512 MiB"
#: Of what a question is made: another entity, predicate, concept and year each time.
QUESTIONS = (
    ("one hop", 'Find("entity {e}") Relate("predicate 0 {p}", "forward") Count()'),
    ("by concept", 'Find("entity {e}") Relate("predicate 1 {p}", "backward") FilterConcept("concept {c}") Count()'),
    ("by qualifier", 'Find("entity {e}") Relate("predicate 2 {p}", "backward") QFilterYear("point in time", "{y}", "<") Count()'),
    ("largest of some", 'Find("entity {e}") Relate("predicate 0 {p}", "backward") SelectAmong("predicate 4 {p}", "largest")'),
    ("a year, all", 'FindAll() FilterYear("predicate 5 {p}", "{y}", "=") Count()'),
    ("numbers, all", 'FindAll() FilterNum("predicate 4 {p}", "9950 metre", ">") Count()'),
)
_TICKS = os.sysconf("SC_CLK_TCK")
_LOADING = ["store", "millions", "statements", "load, s", "CPU, s", "statements a CPU s", "peak, GB", "disk, GB", "asked, GB"]


def questions(statements: int) -> dict[str, list[str]]:
    """The programs of each kind, the same for every store."""
    dice, entities = random.Random(SEED), max(statements // 12, 10)

    def one(pattern: str) -> str:
        # The more of them there are, the fewer have many statements; the first hundredth stands in a tenth of all.
        entity = dice.randrange(max(entities // 100, 1))
        return pattern.format(e=entity, p=dice.randrange(20), c=dice.randrange(50), y=dice.randrange(1900, 2020))

    return {name: [one(pattern) for _ in range(WARM + ASKED)] for name, pattern in QUESTIONS}


def ticks(process: int) -> float:
    """CPU seconds of another process so far."""
    fields = Path(f"/proc/{process}/stat").read_text("ascii", errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def gigabytes(process: int, field: str) -> float:
    """Memory of another process: its `VmHWM` (most ever) or `VmRSS` (now)."""
    lines = Path(f"/proc/{process}/status").read_text("ascii", errors="replace").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(f"{field}:"))) / 1e6


def disk(folder: Path) -> float:
    """Gigabytes that the files of a folder take on the disk: holes in them count for nothing."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file()) / 1e9


def spent() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def asked(graph: Any, statements: int, cpu: Callable[[], float]) -> dict[str, Any]:
    """What each kind of question takes: milliseconds (median), CPU milliseconds (mean); and what it gives."""
    found: dict[str, Any] = {}
    for name, programs in questions(statements).items():
        times, texts = [], []
        for number, program in enumerate(programs):
            if number == WARM:
                before = cpu()
            begin = time.perf_counter()
            texts.append(graph.kopl(program, on_unknown="empty").texts)
            times.append((time.perf_counter() - begin) * 1e3)
        found[name] = {"ms": machine.median(times[WARM:]), "cpu": (cpu() - before) * 1e3 / ASKED, "texts": texts}
    return found


# -- in process, each step in a process of its own -------------------------------------------------


def build(statements: int, place: str, memory: int | None = None) -> dict[str, Any]:
    """Make a folder."""
    import condgraph
    from benchmarks.neo4j_store import mixed
    from condgraph.engine.changes import Change
    from condgraph.engine.facts import Source
    from condgraph.engine.origins import API

    def read(builder: Any) -> None:
        builder.begin(Source("mixed", "", API))
        builder.add(mixed(statements))

    graph = condgraph.open(place)
    begin, before = time.perf_counter(), spent()
    if memory is None:
        graph._storage.build(read, 0.0)
    else:
        graph._storage.build_spilling(read, 0.0, lambda known: Change(), memory)  # type: ignore[attr-defined]
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "cpu": spent() - before, "statements": graph.status().statements, "peak": machine.peak() / 1e3}


def ask(statements: int, place: str) -> dict[str, Any]:
    """Open a folder and ask it."""
    import condgraph

    graph = condgraph.open(place)
    found = asked(graph, statements, spent)
    return {"questions": found, "memory": machine.resident() / 1e3}


def step(name: str, statements: int, place: Path, memory: str) -> dict[str, Any]:
    """Run one of these; what it gives."""
    command = [sys.executable, __file__, "--memory", memory, "--step", name, str(statements), str(place)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def folder(statements: int, place: Path, memory: str, how: str = "build") -> dict[str, Any]:
    """Build, and ask."""
    made = step(how, statements, place, memory)
    return made | step("ask", statements, place, memory) | {"disk": disk(place)}


# -- servers ---------------------------------------------------------------------------------------


def server_of(store: str) -> Any:
    """A server that is not started yet, with memory for some million statements."""
    if store == "neo4j":
        from neo4j_server import Neo4jServer

        return Neo4jServer(memory="2g", settings={"server.memory.pagecache.size": "2g"})
    if store == "oxigraph":
        from oxigraph_server import OxigraphServer

        return OxigraphServer(limit=600)
    if store == "virtuoso":
        from virtuoso_server import VirtuosoServer

        return VirtuosoServer(buffers=340_000)
    from fuseki_server import FusekiServer

    return FusekiServer(limit=600, memory="4g")


@contextmanager
def filled(store: str, server: Any, local: Any) -> Iterator[Any]:
    """The graph on a server: by the import tool on Neo4j, over HTTP elsewhere."""
    import condgraph

    if store != "neo4j":
        server.start()
        options = {} if store == "virtuoso" else {"update": server.update, "store": server.store}
        with condgraph.open(f"sparql+{server.query}", graph="growth", **options) as remote:
            remote.push(local)  # type: ignore[attr-defined]
            yield remote
        return
    with tempfile.TemporaryDirectory(prefix="condgraph-import-") as files:
        local.export(files, to="neo4j-import")
        server.admin(*Path(files, "import.args").read_text("utf-8").splitlines(), folder=Path(files))
    server.start()
    with condgraph.open(server.uri) as remote:
        remote.status()
        yield remote


def serve(store: str, statements: int, place: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """What a server takes; raises where it answers otherwise than the folder."""
    import condgraph

    server = server_of(store)
    try:
        with condgraph.open(place, read_only=True) as local:
            begin, before = time.perf_counter(), spent()

            def cpu() -> float:
                return spent() + ticks(server.pid)

            with filled(store, server, local) as remote:
                seconds, used = time.perf_counter() - begin, cpu() - before
                counts, held = local.status().counts, local.status().statements
                there = remote.status().counts
                if {name: there[name] for name in counts} != counts:
                    raise SystemExit(f"{store} holds {there}, not {counts}")
                peak = gigabytes(server.pid, "VmHWM")
                if store == "virtuoso":
                    # It would go on with the plans that it made while the graph was empty.
                    server.restart()
                found = asked(remote, statements, cpu)
                memory = gigabytes(server.pid, "VmRSS")
        for name, one in found.items():
            if one["texts"] != wanted[name]["texts"]:
                raise SystemExit(f"{store}, {name}: other answers than in process")
        about = {"seconds": seconds, "cpu": used, "statements": held, "peak": peak}
        return about | {"questions": found, "memory": memory, "disk": disk(server.home)}
    finally:
        server.stop()
        server.remove()


# -- all of it -------------------------------------------------------------------------------------


def loading(store: str, millions: float, found: dict[str, Any]) -> list[Any]:
    """A row of the table of loading."""
    rate = round(found["statements"] / found["cpu"])
    return [
        store,
        millions,
        found["statements"],
        found["seconds"],
        found["cpu"],
        rate,
        found["peak"],
        found["disk"],
        found["memory"],
    ]


def asking(store: str, millions: float, found: dict[str, Any]) -> list[Any]:
    """A row of the table of asking."""
    return [store, millions, *(found["questions"][name]["cpu"] for name, _ in QUESTIONS)]


def waiting(store: str, millions: float, found: dict[str, Any]) -> list[Any]:
    """The same as it was waited for."""
    return [store, millions, *(found["questions"][name]["ms"] for name, _ in QUESTIONS)]


def written(rows: dict[str, list[list[Any]]], out: Path | None) -> Path:
    """Put rows in the place of those of the same store and size, and keep the others."""
    path = (out or machine.OUT) / "growth.json"
    kept = json.loads(path.read_text("utf-8"))["results"] if path.exists() else []
    names = [name for name, _ in QUESTIONS]
    tables = [
        ("Growth: loading", _LOADING, [f"Seconds are as the machine was: it had other work. {_NOTE}"]),
        (
            "Growth: asking, CPU",
            ["store", "millions", *names],
            [f"CPU milliseconds a question, the mean of {ASKED}. {_NOTE}", _SMALL],
        ),
        ("Growth: asking", ["store", "millions", *names], [f"Milliseconds from text to texts, the median of {ASKED}.", _SMALL]),
    ]
    results = []
    for title, columns, notes in tables:
        before = next((one["rows"] for one in kept if one["title"] == title), [])
        new = {tuple(row[:2]): row for row in [*before, *rows[title]]}
        ordered = [new[key] for key in sorted(new, key=lambda key: (STORES.index(key[0]), key[1]))]
        command = "python benchmarks/growth.py"
        results.append({"title": title, "command": command, "columns": columns, "rows": ordered, "notes": notes})
    for result in results:
        print(machine.markdown(result))
    return machine.write("growth", results, out)


_NOTE = "CPU is that of client and server together."
_SMALL = "Below 0.3 million statements some kinds are missing, and questions about them ask for names that do not exist."


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=float, nargs="+", default=[1, 3])
    parser.add_argument("--stores", nargs="+", default=list(STORES), choices=STORES)
    parser.add_argument("--memory", default=BOUND, metavar="SIZE", help="what a bounded load may take (default: %(default)s)")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="keep the folders there, and take those that are there")
    parser.add_argument("--out", type=Path, metavar="DIR")
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        from condgraph.spilling import memory_bound

        name, statements, place = options.step
        steps: dict[str, Callable[[int, str], dict[str, Any]]] = {
            "build": build,
            "bounded": partial(build, memory=memory_bound(options.memory)),
            "ask": ask,
        }
        print(json.dumps(steps[name](int(statements), place)))
        return
    with tempfile.TemporaryDirectory(prefix="condgraph-growth-") as temporary:
        root = options.folder or Path(temporary)
        root.mkdir(parents=True, exist_ok=True)
        for millions in options.millions:
            place, known = root / f"{millions:g}", root / f"{millions:g}.json"
            alone = options.stores == ["bounded"]
            if not alone and not known.exists():
                known.write_text(json.dumps(folder(int(millions * 1e6), place, options.memory)))
            here = {} if alone else json.loads(known.read_text())
            for store in options.stores:
                if store == "bounded":
                    bounded = root / f"{millions:g}-bounded"
                    found = folder(int(millions * 1e6), bounded, options.memory, store)
                    if not alone:
                        subprocess.run(["cmp", *(next(one.rglob("columns")) for one in (place, bounded))], check=True)
                else:
                    found = here if store == "folder" else serve(store, int(millions * 1e6), place, here["questions"])
                tables = (("Growth: loading", loading), ("Growth: asking, CPU", asking), ("Growth: asking", waiting))
                print(written({title: [row(store, millions, found)] for title, row in tables}, options.out), file=sys.stderr)


if __name__ == "__main__":
    main()
