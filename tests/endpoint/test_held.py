"""Stores that the processes hold in memory: they have the quads of those on disk, and are held only
where they are small.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyoxigraph as ox
import pytest

import condgraph.sparql.workers.pool as workers
from condgraph.engine.errors import UnknownNameError
from condgraph.sparql.workers.pool import Query, WorkerPool

X = "http://x.org/"
UGLY = f"""
@prefix : <{X}> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:a :n 01, 1, 1.0, 1.00, 1e0, "1", "1"@en, "1"@de-AT, "x"^^xsd:integer, "2020-02-30"^^xsd:date, "-0"^^xsd:double, "INF"^^xsd:double .
:a :t "", " ", "a\\u0000b", "a\\nb\\"c\\\\", "\\U0001F600", "{"long " * 1_000}" .
:a :list (1 2 (3)), [:n [:n ()]], _:same . _:same :n _:same .
:b :said << :a :n 1 >>, << << :a :n 1 >> :t "x"@en >> . :c :when "2020-01-01T00:00:00+14:00"^^xsd:dateTime, "P1Y"^^xsd:duration .
:g {{ :a :n 1 . :g :in :g . _:same :n 2 }} :h {{ :a :n 1 }}
"""
LOOK = """
import json, sys
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("process", sys.argv[1])
process = module_from_spec(spec)
spec.loader.exec_module(process)
import pyoxigraph as ox
for most in map(int, sys.argv[3:]):
    kept = ox.Store.read_only(sys.argv[2])
    found = process.in_memory(ox, kept, sys.argv[2], most)
    print(json.dumps(None if found is None else [len(found), sorted(map(str, found)), sorted(map(str, found.named_graphs()))]))
"""


def kept(folder: Path, *, of: str = UGLY) -> ox.Store:
    store = ox.Store(str(folder))
    store.load(of, ox.RdfFormat.TRIG)
    store.add_graph(ox.NamedNode(X + "empty"))
    store.flush()
    store.optimize()
    del store
    return ox.Store.read_only(str(folder))


def looked(folder: Path, *most: int) -> list[list[object] | None]:
    """What `held` makes of a store: its quads and graphs."""
    script = Path(workers.__file__).with_name("process.py")
    said = subprocess.run([sys.executable, "-c", LOOK, script, folder, *map(str, most)], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in said.stdout.splitlines()]


def test_what_is_held_is_what_is_kept(tmp_path: Path) -> None:
    store = kept(tmp_path)
    [found] = looked(tmp_path, 1_000)
    assert found == [len(store), sorted(map(str, store)), sorted(map(str, store.named_graphs()))]
    assert f"<{X}empty>" in found[2]  # type: ignore[operator]


def test_only_small_stores_are_held(tmp_path: Path) -> None:
    size = len(kept(tmp_path / "ugly"))
    assert [one is not None for one in looked(tmp_path / "ugly", size, size - 1, 0)] == [True, False, False]
    # Few quads with long texts, which could be compressed.
    kept(tmp_path / "long", of="\n".join(f'<{X}a> <{X}t> "{"x" * 50_000}{number}" .' for number in range(100)))
    assert [one is not None for one in looked(tmp_path / "long", 1_000, 20_000)] == [False, True]


def test_what_is_held_counts_for_no_query(tmp_path: Path) -> None:
    """A process may have 256 MiB; what a store of 80,000 quads takes comes on top of that."""
    kept(tmp_path, of="\n".join(f"<{X}s{n % 10_000}> <{X}p{n % 8}> <{X}o{n}> ." for n in range(80_000)))
    count = Query("SELECT (COUNT(DISTINCT ?o) AS ?n) { ?s ?p ?o }", solutions="csv")
    for held in (0, 100_000):
        with WorkerPool({"store": str(tmp_path), "held": held}, workers=1, memory=256 << 20) as pool:
            assert pool.query(count, timeout=60).read() == b"n\r\n80000\r\n", held


@pytest.mark.parametrize("held", [0, 1_000])
def test_queries_are_answered_from_it(tmp_path: Path, held: int) -> None:
    store = kept(tmp_path)
    with WorkerPool({"store": str(tmp_path), "held": held}, workers=1) as pool:
        pool.prepare()
        found = pool.query(Query("SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }", solutions="tsv"), timeout=20).read()
        assert len(found.splitlines()) == len(store) + 1
        whole = pool.query(Query("", triples="nquads", dataset=True), timeout=20).read()
        assert sorted(whole.splitlines()) == sorted((store.dump(format=ox.RdfFormat.N_QUADS) or b"").splitlines())
        for graph, lines in (("g", 3), ("empty", 0)):
            assert pool.query(Query("", triples="ntriples", graph=X + graph), timeout=20).read().count(b"\n") == lines
        with pytest.raises(UnknownNameError):
            pool.query(Query("", graph=X + "none"), timeout=20)
