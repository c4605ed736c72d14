"""Prepared programs: paths of one, two and three hops over MetaQA, from a name to the texts of the answer, compared
with the same steps by hand in NumPy, and with other engines in process, in one run.

    python benchmarks/prepared.py --data DIR [--number N] [--rounds N] [--only cypher] [--out DIR]

DIR has `metaqa` (or is that folder). By hand: a dictionary of names, and for each predicate and direction the objects
of each subject as two arrays; a hop is one or several slices, and `np.unique`. The other engines are kglite, duckdb
and ladybug, if they can be imported: their own statement of the path, with a parameter, compiled once if they can.
The script first checks that all engines give the same names. Engines take turns, name by name; the median over the
names of each one's best round counts.

Then Cypher from text, with the name in it: the same paths, groups and the largest of them, and hubs, compared with
kglite, real_ladybug and grafeo, if they can be imported. The time is CPU time, and the rows of all engines are
compared.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from machine import markdown, median, percentile, write

#: The hops of each path from a director: predicate and direction.
HOPS = [("directed_by", "backward"), ("starred_actors", "forward"), ("starred_actors", "backward")]
#: One answers in so many more times what the same steps take by hand, at most (one, two, three
#: hops).
TARGETS = (1.5, 1.5, 2.0)

Ask = Callable[[str], list[str]]


def triples(folder: Path) -> list[tuple[str, str, str]]:
    lines = (folder / "kb.txt").read_text("utf-8").splitlines()
    return [(s, p, o) for s, p, o in (line.split("|") for line in lines)]


class ByHand:
    """What somebody writes who knows the steps: no parsing, no evidence, no checks."""

    def __init__(self, facts: list[tuple[str, str, str]]) -> None:
        self.names = sorted({name for s, _, o in facts for name in (s, o)})
        self.number = {name: number for number, name in enumerate(self.names)}
        self.adjacent = {}
        for predicate in {p for _, p, _ in facts}:
            pairs = np.array([(self.number[s], self.number[o]) for s, p, o in facts if p == predicate], np.int32)
            for direction, (near, far) in {"forward": (0, 1), "backward": (1, 0)}.items():
                order = np.lexsort((pairs[:, far], pairs[:, near]))
                offsets = np.zeros(len(self.names) + 1, np.int32)
                np.cumsum(np.bincount(pairs[:, near], minlength=len(self.names)), out=offsets[1:])
                self.adjacent[predicate, direction] = offsets, pairs[order, far]

    def ask(self, hops: int) -> Ask:
        names, number, path = self.names, self.number, [self.adjacent[hop] for hop in HOPS[:hops]]

        def run(name: str) -> list[str]:
            at = number[name]
            offsets, ends = path[0]
            found = np.unique(ends[offsets[at] : offsets[at + 1]])
            for offsets, ends in path[1:]:
                begin, end = offsets[found], offsets[found + 1]
                counts = end - begin
                last = counts.cumsum()
                places = np.arange(last[-1] if len(last) else 0) + (begin - last + counts).repeat(counts)
                found = np.unique(ends[places])
            return [names[one] for one in found.tolist()]

        return run


def condgraph_asks(folder: Path, hops: int, *, graphs: dict[str, Any]) -> dict[str, Ask]:
    import condgraph

    if "graph" not in graphs:
        graphs["graph"] = condgraph.open("memory:")
        graphs["graph"].load(folder / "kb.txt", name="films")
    graph = graphs["graph"]
    steps = " ".join(f"Relate({predicate}, {direction})" for predicate, direction in HOPS[:hops])
    prepared = graph.prepare(f"Find($person) {steps} QueryName()")
    return {
        "prepared": lambda name: prepared(person=name).texts,
        "from text": lambda name: graph.kopl(f'Find("{name}") {steps} QueryName()').texts,
    }


def kglite_ask(facts: list[tuple[str, str, str]], hops: int, kept: dict[str, Any]) -> Ask:
    kglite, pandas = importlib.import_module("kglite"), importlib.import_module("pandas")
    if "kglite" not in kept:
        graph = kept["kglite"] = kglite.KnowledgeGraph()
        number = {name: at for at, name in enumerate(sorted({name for s, _, o in facts for name in (s, o)}))}
        graph.add_nodes(pandas.DataFrame({"id": list(number.values()), "name": list(number)}), "Node", "id", "name")
        for predicate in sorted({p for _, p, _ in facts}):
            pairs = [(number[s], number[o]) for s, p, o in facts if p == predicate]
            frame = pandas.DataFrame(pairs, columns=["s", "o"]).drop_duplicates()
            graph.add_connections(frame, predicate, "Node", "s", "Node", "o")
        graph.create_index("Node", "title")
    graph = kept["kglite"]
    # A clause for each hop: within one clause no relation is walked twice.
    path = " ".join(
        f"MATCH (n{at - 1})-[:{predicate}]->(n{at})" if direction == "forward" else f"MATCH (n{at - 1})<-[:{predicate}]-(n{at})"
        for at, (predicate, direction) in enumerate(HOPS[:hops], 1)
    )
    text = f"MATCH (n0:Node {{title: $name}}) {path} RETURN DISTINCT n{hops}.title AS name"
    return lambda name: [row["name"] for row in graph.cypher(text, params={"name": name})]


def duckdb_ask(facts: list[tuple[str, str, str]], hops: int, kept: dict[str, Any]) -> Ask:
    duckdb, pandas = importlib.import_module("duckdb"), importlib.import_module("pandas")
    if "duckdb" not in kept:
        base = kept["duckdb"] = duckdb.connect()
        base.execute("SET threads = 1")
        frame = pandas.DataFrame(facts, columns=["s", "p", "o"])
        base.execute("CREATE TABLE facts AS SELECT * FROM frame ORDER BY p, s")
        base.execute("CREATE INDEX by_s ON facts(s)")
        base.execute("CREATE INDEX by_o ON facts(o)")
        del frame
    base = kept["duckdb"]
    near, clauses, tables = "$1", [], []
    for at, (predicate, direction) in enumerate(HOPS[:hops]):
        here, there = ("s", "o") if direction == "forward" else ("o", "s")
        tables.append(f"facts f{at}")
        clauses.append(f"f{at}.p = '{predicate}' AND f{at}.{here} = {near}")
        near = f"f{at}.{there}"
    text = f"SELECT DISTINCT {near} FROM {', '.join(tables)} WHERE {' AND '.join(clauses)}"
    return lambda name: [row[0] for row in base.execute(text, [name]).fetchall()]


# -- Cypher from text --------------------------------------------------------------------------------

_ONE = "MATCH (a{label} {{{name}: '{given}'}})<-[:directed_by]-(m)"
_TWO = f"{_ONE}-[:starred_actors]->(b)"
_FIXED = "MATCH (a{label} {{{name}: '%s'}})<-[:%s]-(m)"
#: What is asked; those without `given` in them are asked once.
CYPHER = {
    "1 hop": f"{_ONE} RETURN m.{{name}} AS x",
    "2 hops": f"{_TWO} RETURN DISTINCT b.{{name}} AS x",
    "3 hops": f"{_TWO} MATCH (b)<-[:starred_actors]-(n) RETURN DISTINCT n.{{name}} AS x",
    "2 hops, groups": f"{_TWO} RETURN b.{{name}} AS x, count(*) AS n",
    "2 hops, largest 5 groups": f"{_TWO} RETURN b.{{name}} AS x, count(*) AS n ORDER BY n DESC, x LIMIT 5",
    "hub": f"{_FIXED % ('English', 'in_language')} RETURN m.{{name}} AS x",
    "hub, counted": f"{_FIXED % ('English', 'in_language')} RETURN count(*) AS n",
    "hub, 2 hops, largest 10 groups": (
        f"{_FIXED % ('Drama', 'has_genre')}-[:starred_actors]->(b) "
        "RETURN b.{name} AS x, count(*) AS n ORDER BY n DESC, x LIMIT 10"
    ),
    "all, largest 10 groups": (
        "MATCH (m{label})-[:directed_by]->(b{label}) RETURN b.{name} AS x, count(*) AS n ORDER BY n DESC, x LIMIT 10"
    ),
}
#: Rows of a query text, how a node is labelled in it, and what the name of a node is called.
Engine = tuple[Callable[[str], list[tuple[Any, ...]]], str, str]


def condgraph_cypher(folder: Path, facts: list[tuple[str, str, str]]) -> Engine:
    import condgraph

    graph = condgraph.open("memory:")
    graph.load(folder / "kb.txt", name="films")
    return lambda text: graph.cypher(text).values, "", "name"


def kglite_cypher(folder: Path, facts: list[tuple[str, str, str]]) -> Engine:
    kept: dict[str, Any] = {}
    kglite_ask(facts, 1, kept)
    return lambda text: [tuple(row.values()) for row in kept["kglite"].cypher(text)], ":Node", "title"


def ladybug_cypher(folder: Path, facts: list[tuple[str, str, str]]) -> Engine:
    ladybug, pandas = importlib.import_module("real_ladybug"), importlib.import_module("pandas")
    place = tempfile.mkdtemp()
    connection = ladybug.Connection(ladybug.Database(f"{place}/db"), num_threads=1)
    connection.execute("CREATE NODE TABLE N(name STRING, PRIMARY KEY(name))")
    names = sorted({name for s, _, o in facts for name in (s, o)})
    pandas.DataFrame({"name": names}).to_csv(f"{place}/n.csv", index=False)
    connection.execute(f"COPY N FROM '{place}/n.csv' (header=true)")
    for predicate in sorted({p for _, p, _ in facts}):
        connection.execute(f"CREATE REL TABLE {predicate}(FROM N TO N)")
        pairs = sorted({(s, o) for s, p, o in facts if p == predicate})
        pandas.DataFrame(pairs, columns=["s", "o"]).to_csv(f"{place}/e.csv", index=False)
        connection.execute(f"COPY {predicate} FROM '{place}/e.csv' (header=true)")
    return lambda text: [tuple(row) for row in connection.execute(text).get_all()], ":N", "name"


def grafeo_cypher(folder: Path, facts: list[tuple[str, str, str]]) -> Engine:
    base = importlib.import_module("grafeo").GrafeoDB()
    nodes = {name: base.create_node(["N"], {"name": name}).id for name in sorted({name for s, _, o in facts for name in (s, o)})}
    for s, p, o in sorted(set(facts)):
        base.create_edge(nodes[s], nodes[o], p)
    base.create_property_index("name")
    return lambda text: [tuple(row.values()) for row in base.execute_cypher(text)], ":N", "name"


ENGINES = {"condgraph": condgraph_cypher, "kglite": kglite_cypher, "real_ladybug": ladybug_cypher, "grafeo": grafeo_cypher}


def cypher(folder: Path, facts: list[tuple[str, str, str]], names: list[str], rounds: int) -> dict[str, Any]:
    """The table of Cypher from text."""
    made = {name: engine(folder, facts) for name, engine in ENGINES.items() if importlib.util.find_spec(name) is not None}
    # A quote would be written otherwise by each.
    names = [name for name in names if "'" not in name]
    rows = []
    for what, text in CYPHER.items():
        asked = names if "{given}" in text else names[:1]
        texts = {
            which: [text.format(label=label, name=own, given=name) for name in asked] for which, (_, label, own) in made.items()
        }
        sizes = []
        for at in range(len(asked)):
            wanted = sorted(made["condgraph"][0](texts["condgraph"][at]))
            sizes.append(len(wanted))
            for which, (ask, _, _) in made.items():
                assert sorted(ask(texts[which][at])) == wanted, (what, which, asked[at])
        best = {which: [float("inf")] * len(asked) for which in made}
        for turn in range(rounds if len(asked) > 1 else 3 * rounds):
            for at in range(len(asked)):
                for which in list(made) if turn % 2 else list(made)[::-1]:
                    if which == "real_ladybug" and (at > 20 or turn > 2):
                        continue
                    ask, own = made[which][0], texts[which][at]
                    ask(own)
                    begin = time.process_time()
                    ask(own)
                    best[which][at] = min(best[which][at], time.process_time() - begin)
        taken = {which: median([one for one in seconds if one < float("inf")]) * 1e6 for which, seconds in best.items()}
        others = min(one for which, one in taken.items() if which != "condgraph") if len(taken) > 1 else float("nan")
        row: dict[str, Any] = {"query": what, "rows, median": median(sizes)}
        row |= {f"{which}, µs": one for which, one in taken.items()}
        row["times the best of the others"] = taken["condgraph"] / others
        rows.append(row)
        print(row, file=sys.stderr)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in made if name != "condgraph")
    return {
        "title": "Cypher from text",
        "command": "python benchmarks/prepared.py --data DIR --only cypher",
        "columns": list(rows[0]),
        "rows": [list(row.values()) for row in rows],
        "notes": [
            f"{versions}, in process, Ladybug with one thread. Processor time from a text to a list of rows; the median over "
            f"{len(names)} directors of MetaQA of the best of {rounds} rounds, of a hub the best of {3 * rounds}.",
            "Every engine has names in an index and gets its own spelling of the query; all return the same rows.",
            "The others label each node. condgraph returns rows in a fixed order.",
            "Texts repeat, apart from their constants. The first text of a new shape takes 0.5 to 3 ms.",
        ],
    }


def measure(asks: dict[str, Ask], names: list[str], rounds: int) -> dict[str, list[float]]:
    """The best seconds of each engine for each name."""
    best = {which: [float("inf")] * len(names) for which in asks}
    for turn in range(rounds):
        for at, name in enumerate(names):
            for which in list(asks) if turn % 2 else list(asks)[::-1]:
                ask = asks[which]
                # Once without looking at the clock, so that each starts with its own data at hand.
                ask(name)
                begin = time.perf_counter()
                ask(name)
                best[which][at] = min(best[which][at], time.perf_counter() - begin)
    return best


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--number", type=int, default=200, help="names that are asked for")
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument("--only", choices=["cypher"])
    arguments.add_argument("--out", type=Path)
    given = arguments.parse_args()
    folder = given.data / "metaqa" if (given.data / "metaqa").is_dir() else given.data
    facts = triples(folder)
    directors = sorted({o for _, p, o in facts if p == HOPS[0][0]})
    names = random.Random(1).sample(directors, min(given.number, len(directors)))
    results = [cypher(folder, facts, names, given.rounds)]
    if given.only is None:
        results.insert(0, prepared(folder, facts, names, given.rounds))
    print("\n\n".join(map(markdown, results)))
    print(write("prepared", results, given.out), file=sys.stderr)


def prepared(folder: Path, facts: list[tuple[str, str, str]], names: list[str], rounds: int) -> dict[str, Any]:
    """The table of prepared programs."""
    hand = ByHand(facts)
    kept: dict[str, Any] = {}
    rows = []
    for hops in (1, 2, 3):
        asks: dict[str, Ask] = {"by hand": hand.ask(hops), **condgraph_asks(folder, hops, graphs=kept)}
        for package, engine in (("kglite", kglite_ask), ("duckdb", duckdb_ask)):
            if importlib.util.find_spec(package) is not None:
                asks[package] = engine(facts, hops, kept)
        for name in names:
            wanted = asks["by hand"](name)
            for which, ask in asks.items():
                assert sorted(ask(name)) == sorted(wanted), (which, hops, name)
        # The slow ones are asked for fewer names.
        best = measure({which: ask for which, ask in asks.items() if which != "duckdb"}, names, rounds)
        if "duckdb" in asks:
            best |= measure({"duckdb": asks["duckdb"]}, names[:20], 2)
        ratios = [ours / theirs for ours, theirs in zip(best["prepared"], best["by hand"], strict=True)]
        row: dict[str, Any] = {
            "path": f"{hops} hop{'s' if hops > 1 else ''}",
            "answers, median": median([len(asks["by hand"](n)) for n in names]),
        }
        for which, seconds in best.items():
            row[f"{which}, µs"] = median(seconds) * 1e6
        row |= {
            "prepared, 95th percentile, µs": percentile(best["prepared"], 0.95) * 1e6,
            "times by hand": median(ratios),
            "times by hand, 95th percentile": percentile(ratios, 0.95),
            "target": TARGETS[hops - 1],
        }
        rows.append(row)
    versions = {name: importlib.metadata.version(name) for name in ("kglite", "duckdb") if importlib.util.find_spec(name)}
    notes = [
        f"{len(names)} directors of MetaQA, seed 1; the median over them of the best of {rounds} rounds, from a name to "
        "a list of names.",
        "By hand: NumPy on arrays of ends for each predicate and direction, with all names decoded before.",
        *[f"{name} {version}, in process: the same path with a parameter." for name, version in versions.items()],
    ]
    return {
        "title": "Prepared programs",
        "command": "python benchmarks/prepared.py --data DIR",
        "columns": list(rows[0]),
        "rows": [list(row.values()) for row in rows],
        "notes": notes,
    }


if __name__ == "__main__":
    main()
