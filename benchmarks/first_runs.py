"""The cost of the first run of a program on a Neo4j server, and of a known text with other names.

    python benchmarks/first_runs.py --data DIR [--beside CHECKOUT] [--sample 1000] [--rounds 2] [--version 2026.08.1] [--out DIR]

DIR holds `oracle/`. CHECKOUT is another checkout of condgraph, such as a git worktree of an earlier revision. Each
compiles the programs in its own process, and one server runs the texts of both in turns; its plans are discarded
before each turn. "Planned ahead" is this revision with the most common shapes planned before (`Graph.warm`), as after
a load. CPU is that of the server's process, read from `/proc` (Linux), so nothing else may query the server. Three
things are measured: programs in random order on a warmed server; with `--control`, the same texts with every
relationship type a parameter (`-[r:$($types.t1)]->`), so that texts of one shape are equal; and texts that ran
before, with names of lengths that the server distinguishes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "tools")]

SEED = 20261123
GRAPH = "benchmark of first runs"
#: What is asked with its shapes planned before.
AHEAD = "planned ahead"
#: Programs of each way that warm the server before anything is measured, twice with no plan there: its
#: compiler works for minutes until the planner is what it is on a server that runs for days.
WARMING = 1000
#: Texts that are run with other names.
AGAIN = 25
#: Lengths of names; the server tells apart texts of more than 1, 10 and 100 characters.
LENGTHS = (1, 7, 50, 150)
_COMMAND = "python benchmarks/first_runs.py --data DIR --beside CHECKOUT"
Query = tuple[str, dict[str, Any]]
_TYPE = re.compile(r"-\[(\w*):`((?:[^`]|``)*)`\]")
#: As a checkout compiles programs: run with its code, and with that of no other.
_COMPILE = """
import json, sys
from pathlib import Path
import condgraph
from condgraph.cypher.compile.plan import compile_plan
from condgraph.engine.passes import optimise
from condgraph.engine.stored_schema import StoredSchema, describe_schema
from condgraph.languages.kopl.lower import lower
data, graph, out = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
local = condgraph.open()
local.load(data / "oracle" / "kb.json")
schema = StoredSchema(json.loads(json.dumps(describe_schema(local.current))))
found = []
with (data / "oracle" / "programs_dev.jsonl").open(encoding="utf-8") as lines:
    for line in lines:
        made = compile_plan(optimise(lower(json.loads(line)["program"], schema).plan)[0], graph, schema)
        found.append((made.text, made.parameters))
out.write_text(json.dumps(found))
"""


def compiled(checkout: Path, data: Path) -> list[Query]:
    """The texts of all programs with their parameters, as a checkout makes them."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "texts"
        environment = os.environ | {"PYTHONPATH": str(checkout.resolve())}
        command = [sys.executable, "-c", _COMPILE, str(data), GRAPH, str(out)]
        subprocess.run(command, env=environment, cwd=checkout, check=True)
        return [(text, parameters) for text, parameters in json.loads(out.read_text())]


def with_types_given(query: Query) -> Query:
    """A query whose relationship types are parameters, where a pattern has one type."""
    text, parameters = query
    types: dict[str, str] = {}

    def one(found: re.Match[str]) -> str:
        name = f"t{len(types) + 1}"
        types[name] = found[2].replace("``", "`")
        return f"-[{found[1]}:$($types.{name})]"

    return _TYPE.sub(one, text), {**parameters, "types": types}


def renamed(value: Any, length: int) -> Any:
    """Parameters with names of one length."""
    if isinstance(value, dict):
        return {key: one if key == "graph" else renamed(one, length) for key, one in value.items()}
    return "x" * length if isinstance(value, str) else value


def kinds(parameters: dict[str, Any]) -> tuple[Any, ...]:
    """What the server takes the types of parameters for."""
    return tuple(
        (name, type(value).__name__, sum(len(value) > most for most in (1, 10, 100)) if isinstance(value, (str, list)) else 0)
        for name, value in sorted(parameters.items())
    )


def repeats(keys: Sequence[Any], before: Sequence[Any] = ()) -> float:
    """The share of what was there before, in percent."""
    return 100 * (1 - len(set(keys) - set(before)) / len(keys))


class Server:
    """A server whose work is counted."""

    def __init__(self, uri: str, pid: int) -> None:
        import neo4j

        self._pid, self.driver = pid, neo4j.GraphDatabase.driver(uri, notifications_min_severity="OFF")
        self.session = self.driver.session(default_access_mode="READ")

    def cpu(self) -> float:
        """Seconds that its process worked so far."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def forget(self) -> None:
        """Throw all plans away."""
        self.session.run("CALL db.clearQueryCaches()").consume()

    def run(self, queries: Sequence[Query]) -> tuple[float, list[str]]:
        """Milliseconds of work a query, and what each gave, in an order of its own."""
        begin, found = self.cpu(), []
        for text, parameters in queries:
            rows = [repr([sorted(map(repr, value)) if isinstance(value, list) else value for value in row.values()])
                    for row in self.session.run(text, parameters)]  # fmt: skip
            found.append(repr(sorted(rows)))
        return 1000 * (self.cpu() - begin) / len(queries), found


def first_runs(
    server: Server, ways: dict[str, list[Query]], rounds: int, ahead: Sequence[Query], notes: list[str]
) -> list[list[Any]]:
    """Each way of asking by turns: the work of first runs and of second ones. `AHEAD` has the texts
    `ahead` planned before.
    """
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    planning: list[float] = []
    answers: dict[str, list[str]] = {}
    for turn in range(rounds):
        for name in list(ways)[:: 1 if turn % 2 == 0 else -1]:
            server.forget()
            if name == AHEAD:
                planning.append(server.run([(f"EXPLAIN {text}", given) for text, given in ahead])[0] * len(ahead) / 1000)
            first, answers[name] = server.run(ways[name])
            spent[name].append((first, server.run(ways[name])[0]))
    expected = answers[next(iter(ways))]
    rows = []
    for name, queries in ways.items():
        different = sum(one != two for one, two in zip(answers[name], expected, strict=True))
        first, again = (sum(column) / rounds for column in zip(*spent[name], strict=True))
        before = [(text, kinds(given)) for text, given in ahead] if name == AHEAD else []
        planned = [(text, kinds(given)) for text, given in queries]
        texts = [text for text, _ in planned]
        seen = [repeats(column, old) for column, old in ((texts, [text for text, _ in before]), (planned, before))]
        rows.append([name, len(queries), first, again, *seen, different])
    if planning:
        notes.append(f"{AHEAD}: {len(ahead)} texts, which takes {sum(planning) / rounds:.1f} s of the server's CPU.")
    return rows


def with_other_names(server: Server, ways: dict[str, list[Query]], rounds: int) -> list[list[Any]]:
    """The work of texts that were run before, for names of other lengths."""
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, queries in ways.items():
            server.forget()
            server.run([(text, renamed(given, 5)) for text, given in queries])
            spent[name].append(server.run([(text, renamed(given, n)) for n in LENGTHS for text, given in queries])[0])
    return [[name, len(ways[name]) * len(LENGTHS), sum(found) / rounds] for name, found in spent.items()]


def sampled(queries: Sequence[Query], most: int) -> list[Query]:
    """The same programs of any checkout, in the same random order."""
    order = random.Random(SEED).sample(range(len(queries)), len(queries))
    return [queries[number] for number in order[:most]]


def measure(
    server: Server, asked: dict[str, list[Query]], ahead: Sequence[Query], sample: int, rounds: int, control: bool
) -> list[dict[str, Any]]:
    for _ in range(2):
        for queries in asked.values():
            server.forget()
            server.run(sampled(queries, WARMING))
    ways = {name: sampled(queries, sample) for name, queries in asked.items()}
    ways |= {AHEAD: ways["this"]}
    if control:
        ways |= {"types as parameters": [with_types_given(one) for one in ways["this"]]}
    notes: list[str] = []
    rows = first_runs(server, ways, rounds, ahead, notes)
    single = {
        name: sampled(list({text: (text, given) for text, given in queries}.values()), AGAIN) for name, queries in asked.items()
    }
    return [
        {
            "title": "Neo4j: first runs of programs",
            "command": _COMMAND,
            "columns": ["revision", "programs", "first run, ms", "second run, ms", "texts seen, %", "plans seen, %", "differ"],
            "rows": rows,
            "notes": [
                "The server's CPU for a program, in random order; its plans are discarded before each turn; the mean of the turns.",
                "A plan is seen if the text is, with parameters of the same types. The last column counts answers that differ.",
                *notes,
            ],
        },
        {
            "title": "Neo4j: texts seen before, with names of other lengths",
            "command": _COMMAND,
            "columns": ["revision", "runs", "ms of CPU"],
            "rows": with_other_names(server, single, rounds),
            "notes": [f"{AGAIN} texts that ran with names of 5 characters, with names of {', '.join(map(str, LENGTHS))}."],
        },
    ]  # fmt: skip


def main() -> None:
    import neo4j_server
    from machine import markdown, write

    import condgraph
    from condgraph.cypher.shapes import TEXTS, Shapes
    from condgraph.remote_neo4j import Neo4jGraph

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--sample", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--control", action="store_true", help="also with every relationship type a parameter")
    parser.add_argument("--version", default=neo4j_server.LTS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    asked = {"beside": compiled(options.beside, options.data)} if options.beside else {}
    asked["this"] = compiled(HERE.parent, options.data)
    local = condgraph.open()
    local.load(options.data / "oracle" / "kb.json")
    with ExitStack() as stack:
        started = stack.enter_context(neo4j_server.Neo4jServer(options.version, memory="1500m"))
        with condgraph.open(started.uri, graph=GRAPH) as remote:
            assert isinstance(remote, Neo4jGraph)
            remote.push(local)
            shapes = Shapes(GRAPH, remote.store.schema, remote.store.layout).texts(TEXTS)
        ahead = [(one.text, one.parameters) for one in shapes]
        results = measure(Server(started.uri, started.pid), asked, ahead, options.sample, options.rounds, options.control)
    for result in results:
        result["notes"].append(f"Neo4j {options.version}.")
        print(markdown(result))
    print(json.dumps({"written": str(write("first_runs", results, options.out))}))


if __name__ == "__main__":
    main()
