"""Files that are small and ask for much, each in a process of its own with little memory: a typed
error, and never its end.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import condgraph
from condgraph.engine.errors import LoadError
from tests.support.lanes import by_lane

_HEAD = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"><rdf:Description rdf:about="http://e/a">'
)
_TAIL = "</rdf:Description></rdf:RDF>"
_DOCTYPE = "<!DOCTYPE rdf:RDF [{}]>" + _HEAD + "<e:p>{}</e:p>" + _TAIL
_LAUGHS = '<!ENTITY a0 "lol">' + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))
_LONG = '<!ENTITY a "' + "x" * 60_000 + '">'
_TERM = "<http://e/a> <http://e/b> " + "<<( <http://e/a> <http://e/b> " * 20_000 + "<http://e/c>" + " )>>" * 20_000 + " .\n"
_CONTEXT = {"t0": "http://e/" + "x" * 1000} | {f"t{i}": {"@id": f"t{i - 1}:" + "y" * 1000, "@prefix": True} for i in range(1, 2000)}

#: File, its text, and what is said of it.
TOO_MUCH: dict[str, tuple[str, Callable[[], str], str]] = {
    "a billion laughs": ("a.rdf", lambda: _DOCTYPE.format(_LAUGHS, "&a9;"), "name each other"),
    "laughs behind other spaces": ("a.rdf", lambda: _DOCTYPE.format(_LAUGHS.replace("Y ", "Y\u00a0"), "&a9;"), "name each other"),
    "laughs behind percent signs": ("a.rdf", lambda: _DOCTYPE.format(_LAUGHS.replace("Y ", "Y % "), "&a9;"), "name each other"),
    "one entity named often": ("a.rdf", lambda: _DOCTYPE.format(_LONG, "&a;" * 300_000), "named so often"),
    "a late document type": (
        "a.rdf",
        lambda: _HEAD + '<!DOCTYPE r [<!ENTITY a "x">]><e:p>&a;</e:p>' + _TAIL,
        "within the document",
    ),
    "deep elements": ("a.rdf", lambda: _HEAD + "<e:p><e:D>" * 100_000, "1,000 deep"),
    "a deep literal": ("a.rdf", lambda: _HEAD + '<e:p rdf:parseType="Literal">' + "<b>" * 100_000, "1,000 deep"),
    "deep triple terms": ("a.ttl", lambda: _TERM, "100 deep"),
    "deep triple terms between comments": ("a.ttl", lambda: _TERM.replace("<<( ", "<<( #)>>\n"), "100 deep"),
    "deep triple terms on a line": ("a.nt", lambda: _TERM, "100 deep"),
    "a prefix of a megabyte": (
        "a.ttl",
        lambda: f"@prefix a: <http://{'x' * 1_000_000}> .\n" + "a:b a:c a:d .\n" * 1000,
        "characters",
    ),
    "contexts on themselves": ("a.jsonld", lambda: json.dumps({"@context": _CONTEXT, "t1999": 1}), "contexts"),
    "contexts written twice": (
        "a.jsonld",
        lambda: f'{{"@context": {json.dumps(_CONTEXT)}, "@context": {{}}, "t1999": 1}}',
        "contexts",
    ),
    "deep JSON-LD": ("a.jsonld", lambda: '{"@id": "http://e/a", "http://e/p": ' + "[" * 100_000 + "]" * 100_000 + "}", "deep"),
}
_PROGRAM = """
import resource, sys
import condgraph
from condgraph.engine.errors import CondgraphError
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
for path in sys.argv[1:]:
    for on_error in ("raise", "skip"):
        try:
            print(condgraph.open("memory:").load(path, on_error=on_error))
        except CondgraphError as error:
            print(type(error).__name__, error)
    print("that was", path, flush=True)
"""


#: Each group is a process: some cases in one, where not everything is asked for.
_GROUPS = by_lane([list(TOO_MUCH)[::4]], *[[[case] for case in TOO_MUCH]] * 2)


@pytest.mark.parametrize("cases", _GROUPS, ids=by_lane(["some"], list(TOO_MUCH), list(TOO_MUCH)))
def test_small_files_that_ask_for_much(cases: list[str], tmp_path: Path) -> None:
    """With a gigabyte of memory: `LoadError`, whatever is done with bad records; a line of N-Triples
    is a record, and left out.
    """
    paths = []
    for number, case in enumerate(cases):
        name, content, _ = TOO_MUCH[case]
        paths.append(tmp_path / f"{number}{name}")
        paths[-1].write_text(content(), encoding="utf-8")
    command = [sys.executable, "-c", _PROGRAM, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    said = done.stdout
    for case, path in zip(cases, paths, strict=True):
        errors, _, said = said.partition(f"that was {path}\n")
        left_out = "1 record left out; 1 warning" in errors
        assert errors.count("LoadError") == 2 - left_out, (case, errors, done.stderr[-2000:])
        assert left_out == (path.suffix == ".nt"), (case, errors)
        assert errors.startswith("LoadError"), (case, errors)
        assert TOO_MUCH[case][2] in errors
        assert len(errors) < 6_000
    assert done.returncode == 0, done.stderr[-2000:]


def test_entities_of_ontologies_are_read(tmp_path: Path) -> None:
    """Namespaces by name, thousands of times, beside comments and sections that hold what looks
    like tags.
    """
    facts = "".join(f'<e:p rdf:datatype="&xsd;integer">{i}</e:p><!-- </a> <b> -->' for i in range(20_000))
    entities = '<!ENTITY xsd "http://www.w3.org/2001/XMLSchema#" >\n<!ENTITY e "http://e/"> <!ENTITY f "&e;f/">'
    path = tmp_path / "a.owl"
    path.write_text(f'<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [{entities}]>\n{_HEAD}{facts}<e:q>&f;x &amp; y</e:q>{_TAIL}')
    graph = condgraph.open("memory:")
    graph.load(path)
    assert graph.kopl("Find(http://e/a) QueryAttr(q)").texts == ["http://e/f/x & y"]
    assert len(graph.kopl("Find(http://e/a) QueryAttr(p)").values) == 20_000


def test_many_triple_terms_are_read(tmp_path: Path) -> None:
    """One after the other, beside texts that look like terms within each other."""
    reifies = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>"
    lines = [f'<http://e/{i}> {reifies} <<( <http://e/a> <http://e/b> "{"<<( " * 3}{i}" )>> .' for i in range(500)]
    path = tmp_path / "a.ttl"
    path.write_text("\n".join(lines))
    assert condgraph.open("memory:").load(path).statements == 500


def test_a_packed_file_that_is_mostly_air(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpacking ends where it is more than any data; data that packs well is read."""
    monkeypatch.setattr("condgraph.loaders.files.MOST_UNPACKED", 10 << 20)
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b'{"concepts": {}, "entities": {' + b" " * (40 << 20) + b"}}", 9))
    with pytest.raises(LoadError, match="times its size"):
        condgraph.open("memory:").load(path, format="kqapro")
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"name,size\n" + b"Ann,1\n" * 10_000, 9))
    assert condgraph.open("memory:").load(path).entities == 10_000


@pytest.mark.parametrize("year", ["999999999999", "-999999999999", "290000000002"])
def test_years_that_no_clock_reaches(year: str, tmp_path: Path) -> None:
    """A time whose seconds 64 bits do not hold is none."""
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"condgraph": 1}}\n{{"s": "a", "p": "born", "o": {{"t": "{year}"}}}}\n')
    with pytest.raises(LoadError, match="years away"):
        condgraph.open("memory:").load(path)
