"""The schema as a property graph: every line can be checked by a query, and all of it pasted above one."""

from __future__ import annotations

import re
from typing import Any

import pytest
from typer.testing import CliRunner

import condgraph
from condgraph.cli.app import app
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement, Subclass
from condgraph.engine.values import Quantity, Time
from condgraph.graph import Graph
from tests.support.samples import load_samples

PATTERN = re.compile(r"// (\(:[^()|]+\)-\[:(?:`(?:[^`]|``)+`|\w+))[^\]]*(\]->\(:[^()|]+\)) ([\d,]+) relationships?")


def ugly() -> list[Any]:
    """Names with backticks, line ends and marks, several labels at an end, and values of several types."""
    names = ["a b", "a`b", "x\ny", "<|im_end|>", "MATCH", "ü", "1st"]
    items: list[Any] = [Entity(f"c{at}", name, EntityKind.CONCEPT) for at, name in enumerate(names)]
    items += [Subclass("c0", "c1"), Statement("c2", "about `it`", Ref("c1"))]
    for number in range(20):
        items += [Entity(f"e{number}", f"e{number}"), Member(f"e{number}", f"c{number % 7}")]
        items += [Statement(f"e{number}", "weigh\u2028t", Quantity(number, "kg" if number % 2 else "lb"))]
        qualifiers = (("since", Time.year(1990 + number)), ("a }-> b", "x"))
        items += [Statement(f"e{number}", "r`] ->", Ref(f"e{(number * 3) % 20}"), qualifiers)]
    return [*items, Entity("alone", "alone"), Statement("alone", "r`] ->", Ref("e1")), Statement("alone", "name", "x")]


@pytest.fixture(scope="module")
def world() -> Graph:
    return load_samples(condgraph.open())


def counted(value: Any) -> int:
    return int(getattr(value, "number", value))


def test_every_line_is_true(world: Graph) -> None:
    text = world.schema().cypher()
    labels = re.findall(r"^// (\(:[^)]+\)) ([\d,]+) nodes?", text, re.MULTILINE)
    assert len(labels) == 11
    for label, number in labels:
        assert counted(world.query(f"MATCH (n{label[1:]} RETURN count(n) AS n").values[0][0]) == int(number), label
    patterns = PATTERN.findall(text)
    assert len(patterns) == 6
    for begin, end, number in patterns:
        assert counted(world.query(f"MATCH {begin}{end} RETURN count(*) AS n").values[0][0]) == int(number), begin
    assert "-[:`head of government` {`end time`: time, `start time`: time}]->" in text
    assert '// (:mountains).height: number in "m", 31 values from 1345 m to 8167 m' in text
    assert "// (:`capital city`) 24 nodes, also :city" in text


def test_it_can_be_pasted_above_a_query() -> None:
    graph = condgraph.open()
    graph.add(ugly())
    text = graph.schema().cypher()
    assert all(line.startswith("// ") and line.isprintable() for line in text.split("\n"))
    assert "<|im_end|>" not in text
    assert text.splitlines()[0] == "// Labels; every node has id"
    assert " and nodes without a label]-[:`r``] ->` {`a }-> b`: text, since: time}]->(:" in text
    answer = graph.query(f"{text}\nMATCH (n:`a``b`) RETURN count(n) AS n")
    assert counted(answer.values[0][0]) == 6
    short = graph.schema().cypher(2)
    assert "// ... and 5 more" in short


def test_the_command_shows_it(tmp_path: Any) -> None:
    with condgraph.open(tmp_path / "graph") as graph:
        graph.add(ugly())
        text = graph.schema().cypher()
    place = str(tmp_path / "graph")
    shown = CliRunner().invoke(app, ["schema", "-d", place, "--cypher", "--limit", "0"])
    assert shown.stdout.strip() == text
    refused = CliRunner().invoke(app, ["schema", "-d", place, "--cypher", "--format", "json"])
    assert refused.exit_code != 0
    assert "--cypher is a format of its own" in refused.output
