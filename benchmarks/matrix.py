"""Every program on a server compared with the same program in process: equal answers, different ones, typed errors.

    python benchmarks/matrix.py --data DIR [--store neo4j] [--uri ADDRESS] [--programs kopl|metaqa|wtq|temporal|all] [--every N]

DIR holds `oracle/` and `data/`. `tools/` starts the server, unless an address is given. Each data set is one graph:
the knowledge base of the oracle, the movies, all tables together (each program is restricted to its own), the
temporal facts. `--every` takes each N-th program. The comparison covers what a user gets: values, texts and entities,
or the type of the error. Prints, and writes `out/matrix.json`; exits with 1 if anything differs. All programs take a
quarter of an hour on two cores.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools"), str(ROOT / "benchmarks")]

import llm_query  # noqa: E402
import neo4j_server  # noqa: E402
import wtq  # noqa: E402

import condgraph  # noqa: E402
from tests.support.differential import Comparison  # noqa: E402

#: A program with the options it is asked with.
Asked = tuple[Any, dict[str, Any]]
#: Loads a graph, and gives the programs over it by kind.
DataSet = Callable[[Path, condgraph.Graph], dict[str, list[Asked]]]


def kopl(data: Path, graph: condgraph.Graph) -> dict[str, list[Asked]]:
    """The oracle programs."""
    graph.load(data / "oracle" / "kb.json")
    found: dict[str, list[Asked]] = {}
    with (data / "oracle" / "programs_dev.jsonl").open(encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            found.setdefault(f"KoPL, {record['kind']}", []).append((record["program"], {}))
    return found


def metaqa(data: Path, graph: condgraph.Graph) -> dict[str, list[Asked]]:
    """Questions about movies."""
    graph.load(data / "data" / "metaqa" / "kb.txt", name="films")
    return {
        f"MetaQA, {hops} hops": [(one, {}) for one in llm_query.programs(data / "data", f"metaqa_{hops}hop").values()]
        for hops in (1, 2, 3)
    }


def temporal(data: Path, graph: condgraph.Graph) -> dict[str, list[Asked]]:
    """Questions in time over facts of Wikidata."""
    graph.load(data / "data" / "cronquestions" / "derived_facts.tsv")
    found: dict[str, list[Asked]] = {}
    for question in llm_query.temporal_questions(data / "data"):
        found.setdefault(f"in time: {question.template}", []).append((question.program, {}))
    return found


def wikidata(data: Path, graph: condgraph.Graph) -> dict[str, list[Asked]]:
    """What held, and who held it, at a time, by facts of wikidata12k."""
    path = data / "data" / "wikidata12k" / "train.txt"
    graph.load(path)
    asked: list[Asked] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines()[::50]):
        head, relation, tail = line.split("\t")[:3]
        year = (1900, 1950, 1990, 2005)[number % 4]
        at = {"relation": relation, "tail_entity": tail, "key": "time"}
        for queries in (
            [llm_query.search(**at, value=str(year))],
            [llm_query.search(**at, value=f"<{year}")],
            [llm_query.search(head_entity=head, relation=relation, key="start time"), "min(set='output_of_query1')"],
        ):
            asked.append((llm_query.lines(*queries), {}))
    return {"in time: wikidata12k": asked}


def tables(data: Path, graph: condgraph.Graph) -> dict[str, list[Asked]]:
    """Questions about tables, all in one graph."""
    folder = data / "data" / "wikitablequestions"
    questions = [one for one in wtq.questions(data / "data") if one.program is not None]
    graph.load([folder / table for table in sorted({one.table for one in questions})], format="csv")
    names = {Path(source.location): source.name for source in graph.status().sources}
    return {"WikiTableQuestions": [(one.program, {"source": names[folder / one.table]}) for one in questions]}


DATA_SETS: dict[str, list[DataSet]] = {"kopl": [kopl], "metaqa": [metaqa], "temporal": [temporal, wikidata], "wtq": [tables]}


def neo4j(stack: ExitStack) -> str:
    """A server of its own."""
    return stack.enter_context(neo4j_server.Neo4jServer(memory="2g")).uri


#: Stores, each with what starts one and gives its address.
STORES: dict[str, Callable[[ExitStack], str]] = {"neo4j": neo4j}


def compare(data: Path, uri: str, make: DataSet, every: int) -> Iterator[tuple[list[Any], list[str]]]:
    """A row for each kind of program, and what differed."""
    here = condgraph.open()
    kinds = make(data, here)
    there: Any = condgraph.open(uri, graph=f"matrix {make.__name__}")
    there.store.delete()
    there.push(here)
    for kind, asked in kinds.items():
        found = Comparison(here, there)
        begin = time.perf_counter()
        for program, options in asked[::every]:
            found.ask(program, **options)
        seconds = time.perf_counter() - begin
        errors, different = sum(found.errors.values()), len(found.different)
        row = [kind, len(asked[::every]), found.equal - errors, errors, different, round(seconds, 1)]
        print(*row, sep="\t", flush=True)
        yield row, [found.report()] if different else []
    there.store.delete()
    there.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--store", choices=sorted(STORES), default="neo4j")
    parser.add_argument("--uri")
    parser.add_argument("--programs", choices=[*DATA_SETS, "all"], default="all")
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    chosen = DATA_SETS if options.programs == "all" else {options.programs: DATA_SETS[options.programs]}
    rows: list[list[Any]] = []
    reports: list[str] = []
    with ExitStack() as stack:
        uri = options.uri or STORES[options.store](stack)
        for makes in chosen.values():
            for make in makes:
                for row, report in compare(options.data, uri, make, options.every):
                    rows.append(row)
                    reports.extend(report)
    rows.append(["all", *(round(sum(row[at] for row in rows), 1) for at in range(1, 6))])
    result = {
        "name": "matrix",
        "title": f"The same answers on a server ({options.store})",
        "command": f"python benchmarks/matrix.py --data DIR --store {options.store}",
        "date": time.strftime("%Y-%m-%d"),
        "machine": {"python": platform.python_version(), "system": platform.machine()},
        "columns": ["programs", "asked", "equal answers", "the same typed error", "different", "seconds for both"],
        "rows": rows,
        "notes": ["Values, texts and entities are compared, in order; each program is one query to the server."],
    }
    out = ROOT / "benchmarks" / "out"
    out.mkdir(exist_ok=True)
    name = "matrix" if options.store == "neo4j" else f"matrix_{options.store}"
    (out / f"{name}.json").write_text(json.dumps(result | {"name": name}, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(rows[-1]))
    print("\n".join(reports))
    return 1 if reports else 0


if __name__ == "__main__":
    sys.exit(main())
