"""What a user gets of logical queries: order, observed and predicted, explanations, counts, errors of
models, deadlines, the command line.
"""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

import condgraph
from condgraph.cli.app import app
from condgraph.engine.errors import (
    DeadlineError,
    LinkModelError,
    ModelError,
    OptionError,
    UnknownNameError,
    UnsafeQueryError,
    UnsupportedError,
)
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.graph import Graph
from condgraph.languages.logic.convert import tree_of
from condgraph.languages.logic.text import read
from condgraph.logic.ask import ranked
from condgraph.logic.predicted import Predicted
from condgraph.logic.propagation import Forward, Vector, adjacency, either
from tests.support import logic as judge
from tests.support.lanes import by_lane
from tests.support.samples import load_samples

N = 6


def small(edges: list[tuple[str, str, str]]) -> Graph:
    graph = condgraph.open()
    graph.add([*(Entity(one, one) for one in judge.ids(N)), *(Statement(h, r, Ref(t)) for h, r, t in edges)])
    return graph


def model_of(scores: dict[tuple[int, int, int], float], relations: int = 2, n: int = N) -> judge.Model:
    found = np.zeros((relations, n, n), np.float32)
    for (relation, head, tail), score in scores.items():
        found[relation, head, tail] = score
    return judge.Model(judge.ids(n), judge.names(relations), found, np.ascontiguousarray(found.transpose(0, 2, 1)))


@pytest.fixture(scope="module")
def world() -> Graph:
    return load_samples(condgraph.open())


def test_a_union_of_near_certain_predictions_is_not_certain() -> None:
    """In float32 the union of two 0.9999 is 1, and so is float16(0.9999); of many it is 1 in float64,
    and an answer is still told from an observed one."""
    graph = small([("e000", "r0", "e005"), ("e001", "r0", "e004")])
    model = model_of({(0, i, 3): 1.0 for i in range(5)})
    text = "?x : " + " or ".join(f"r0(<e00{i}>, ?x)" for i in range(2))
    found = {one.entity.id: one for one in graph.logic(text, model=model)}
    assert found["e003"].score == pytest.approx(1 - 1e-8, abs=1e-11)
    assert found["e003"].score < 1 == found["e005"].score
    many = graph.logic("?x : " + " or ".join(f"r0(<e00{i}>, ?x)" for i in range(5)), model=model)
    assert [one.entity.id for one in many] == ["e004", "e005", "e003"]
    assert [one.observed for one in many] == [True, True, False]
    assert many[2].score < 1
    assert np.float16(0.9999) == 1.0  # which is why no score says what is observed
    two = Vector(0.0, np.array([1]), np.array([0.9999]))
    assert either([two, two]).values[0] < 1


def test_answers_that_k_leaves_out_are_told() -> None:
    """The threshold that found k answers says nothing of those below it."""
    graph = small([("e000", "r0", "e001"), ("e000", "r1", "e001")])
    model = model_of({(0, 0, 2): 0.9, (0, 0, 3): 0.004})
    assert [graph.logic("1p", ["e000", "r0"], model=model, k=k).more for k in (1, 2, 3, 4, None)] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert not graph.logic("1p", ["e000", "r1"], model=model, k=1).more


def test_scores_of_a_query_worked_out_by_hand() -> None:
    # e0 -r0-> e1 is known, e0 -r0-> e2 is predicted by 0.5; e1 -r1-> e3 by 0.4, e2 -r1-> e3 by 0.9.
    graph = small([("e000", "r0", "e001"), ("e004", "r1", "e005")])
    model = model_of({(0, 0, 2): 0.5, (1, 1, 3): 0.4, (1, 2, 3): 0.9})
    (best,) = graph.logic("2p", ["e000", "r0", "r1"], model=model)
    assert (best.entity.id, best.observed) == ("e003", False)
    assert best.score == pytest.approx(0.45, rel=1e-6)
    assert best.assignment == [("v1", graph.current.entity(2))]
    last, first = best.edges
    assert (first.subject.id, first.object.id, first.observed, first.statements) == ("e000", "e002", False, ())
    assert last.score * first.score == pytest.approx(best.score)
    # The negated edge e1 -r1-> e3 leaves 1 - 3 * 0.4 < 0: nothing; with alpha 1 it leaves 0.6.
    text = "?x : r1(<e002>, ?x) and not r1(<e001>, ?x)"
    assert len(graph.logic(text, model=model, alpha=3)) == 0
    (left,) = graph.logic(text, model=model)
    assert left.score == pytest.approx(0.9 * 0.6, rel=1e-6)
    assert "not, as far as 0.6" in left.explain()


def test_every_branch_is_explained_and_a_negated_one_says_why(world: Graph) -> None:
    found = world.logic(
        '?x : exists ?h. "head of government"(?x, ?h) and "educated at"(?h, "University of Oxford") and not capital(?x, "Canberra")'
    )
    assert found.texts == ["Canada", "India", "United Kingdom", "United States"]
    assert all(one.observed and one.score == 1 for one in found)
    first = found[0]
    assert [name for name, _ in first.assignment] == ["h"]
    negated, government, educated = first.edges
    assert negated.negated and not negated.observed and "no such edge" in str(negated)  # noqa: PT018
    assert government.statements[0].sources[0][0].name == "governments"
    assert educated.subject.name == first.assignment[0][1].name
    assert {str(one) for one in found.evidence} >= {str(government.statements[0]), str(educated.statements[0])}
    assert found.texts == world.query(found.query).texts
    assert found.data()[0]["edges"][0]["negated"]
    assert found.to_arrow().num_rows == 4
    union = world.logic('?x : capital("France", ?x) or capital("Nepal", ?x)')[0]
    assert [part.score for part in union.derivation.parts].count(0.0) == 1
    assert "no capital leads there" in union.explain()


def test_the_picture_is_well_formed_and_escaped() -> None:
    graph = condgraph.open()
    graph.add([Entity("a", "<b>&\"'"), Statement("a", "<r>", Ref("b")), Statement("b", "s", Ref("c"))])
    found = graph.logic('?x : exists ?v. "<r>"(<a>, ?v) and s(?v, ?x) and not "<r>"(<a>, ?x)')
    picture = found[0]._repr_html_()
    root = ElementTree.fromstring(picture)
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "<b>&\"'" in texts
    assert "not <r>" in texts
    assert found._repr_html_().count("<svg") == 1


def test_the_picture_of_the_page_is_that_of_its_answer(world: Graph, tmp_path: Path) -> None:
    """The page's graph, without Slovenia's continent, and the score that is worked out there by hand."""
    world.export(tmp_path / "all.jsonl")
    lines = (tmp_path / "all.jsonl").read_text("utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not ('"Slovenia"' in line and '"continent"' in line)]
    assert len(kept) == len(lines) - 1
    (tmp_path / "less.jsonl").write_text("".join(kept), "utf-8")
    less = condgraph.open()
    less.load(tmp_path / "less.jsonl")
    slovenia = next(one.id for one in less.logic("?x : country(?x)", k=None).entities if one.name == "Slovenia")
    europe = less.logic("1p", ["France", "continent"]).entities[0].id
    scores = np.zeros((2, 2, 2), np.float32)
    scores[1, 0, 1] = 0.75
    model = judge.Model([slovenia, europe], ["country", "continent"], scores, np.ascontiguousarray(scores.transpose(0, 2, 1)))
    found = less.logic('?x : exists ?c. country(?x, ?c) and continent(?c, "Europe")', model=model, k=None)
    picture = next(one for one in found if one.entity.name == "Triglav")._repr_html_()
    page = Path(__file__).parents[2] / "docs" / "assets" / "logic.svg"
    assert picture.strip() == page.read_text("utf-8").strip()


def test_unsafe_queries_are_bounded_by_k_or_a_type(world: Graph) -> None:
    with pytest.raises(UnsafeQueryError):
        world.query('?x : not capital(?x, "Canberra")')
    with pytest.raises(UnsafeQueryError):
        world.logic('?x : not capital(?x, "Canberra")', k=None)
    assert len(world.logic('?x : not capital(?x, "Canberra")', k=3)) == 3
    typed = '?x : country(?x) and not capital(?x, "Canberra")'
    assert "Australia" not in world.query(typed).texts
    assert world.query(typed).texts == world.logic(typed, k=None).texts


def test_both_negations_differ() -> None:
    graph = small(
        [("e000", "r0", "e001"), ("e000", "r0", "e002"), ("e001", "r1", "e003"), ("e004", "r0", "e003"), ("e004", "r0", "e005")]
    )
    of_all = graph.logic("pni", ["e000", "r0", "r1"], ["e004", "r0"])
    of_one = graph.logic("?x : exists ?v. r0(<e000>, ?v) and not r1(?v, ?x) and r0(<e004>, ?x)")
    assert of_all.texts == ["e005"]
    assert of_one.texts == ["e003", "e005"]
    assert of_one[0].assignment[0][1].id == "e002"
    with pytest.raises(UnsupportedError, match="negated atom"):
        graph.query(of_one.query)


def test_cardinality_counts_scores_above_a_threshold() -> None:
    dice = random.Random(2)
    graph, edges = judge.random_graph(dice, 40, 3, 60)
    model = judge.random_model(3, 40, 3)
    matrices = judge.dense_matrices(model, edges, 40, 3, 0.001)
    for text in ("?x : exists ?v. r0(<e001>, ?v) and r1(?v, ?x)", "?x : r0(<e001>, ?x) and not r1(<e002>, ?x)"):
        found = graph.logic(text, model=model, k=1)
        wanted = judge.dense(tree_of(read(text)), matrices, 40, 1.0)
        for threshold in (0.0, 0.1, 0.5, 0.9):
            assert found.cardinality(threshold) == (wanted > threshold).sum()
    with pytest.raises(OptionError):
        found.cardinality(1.5)


def test_at_a_threshold_of_1_fuzzy_is_symbolic() -> None:
    dice = random.Random(9)
    for seed in range(10):
        graph, _ = judge.random_graph(dice, 30, 3, 80)
        own = adjacency(graph.current)
        for _ in range(10):
            tree = judge.random_tree(dice, 30, 3, 3, anti=False)
            # No prediction is above 0.9999, not even one that a model is sure of.
            model = judge.random_model(seed, 30, 3, 0.5)
            sure = [np.where(one > 0.5, np.float32(1), one) for one in (model.scores, model.inverse_scores)]
            model = replace(model, scores=sure[0], inverse_scores=sure[1])
            fuzzy = Predicted(own, model, epsilon=dice.choice((1.0, 0.99999)))
            left, right = Forward(graph.current, fuzzy).run(tree), Forward(graph.current, own).run(tree)
            np.testing.assert_array_equal(left.at(np.arange(30)), right.at(np.arange(30)))
    found = graph.logic("2p", ["e001", "r0", "r1"], model=model, epsilon=1.0, k=None)
    assert found.texts == graph.logic("2p", ["e001", "r0", "r1"], k=None).texts
    assert all(one.observed for one in found)


def test_pruned_is_unpruned_on_500_queries() -> None:
    dice = random.Random(4)
    for seed in range(by_lane(3, 10, 10)):
        graph, _ = judge.random_graph(dice, 80, 3, 200)
        matrix = Predicted(adjacency(graph.current), judge.random_model(seed, 80, 3, 0.1), epsilon=0.001)
        for _ in range(50):
            tree = judge.random_tree(dice, 80, 3, dice.randint(1, 4))
            k, alpha = dice.choice((1, 3, 10)), dice.choice((1.0, 3.0))
            quick = ranked(tree, graph.current, matrix, k=k, alpha=alpha)
            whole = ranked(tree, graph.current, matrix, k=k, alpha=alpha, pruned=False)
            assert quick.ids.tolist() == whole.ids.tolist()
            assert quick.scores.tolist() == whole.scores.tolist()
            assert quick.observed.tolist() == whole.observed.tolist()


def test_an_empty_answer_says_why(world: Graph) -> None:
    found = world.logic('?x : capital("Kathmandu", ?x)')
    assert not found.texts
    assert any("'Kathmandu' has no 'capital' forward" in one for one in found.warnings)
    assert not world.logic('?x : capital("Nepal", ?x)').warnings
    open_end = world.logic("?x : not exists ?v. (country(?x, ?v))", k=1).warnings
    assert not any("empty" in one for one in open_end)
    graph = small([("e000", "r0", "e001")])
    with_model = graph.logic("?x : r0(<e002>, ?x)", model=model_of({}))
    assert not with_model.texts
    assert any("nor the model" in one for one in with_model.warnings)


def test_options_that_make_no_sense(world: Graph, tmp_path: Path) -> None:
    text = '?x : capital("Nepal", ?x)'
    for wrong in ({"k": "a"}, {"k": 1.5}, {"k": True}, {"alpha": "a"}, {"timeout": "a"}):
        with pytest.raises(OptionError):
            world.logic(text, **wrong)  # type: ignore[arg-type]
    assert world.logic(text, k=np.int64(1)).texts == ["Kathmandu"]  # type: ignore[arg-type]
    assert any("without one" in one for one in world.logic(text, epsilon=0.5).warnings)
    with pytest.raises(LinkModelError, match="there is no such file"):
        world.logic(text, model=tmp_path / "none.npz")
    with pytest.raises(LinkModelError, match="cannot be read"):
        world.logic(text, model=tmp_path)


def test_models_that_do_not_fit_say_so() -> None:
    graph = small([("e000", "r0", "e001"), ("e000", "r9", "e001")])
    model = model_of({(0, 0, 2): 0.5})
    with pytest.raises(UnknownNameError, match="relation of the model 'r9'"):
        graph.logic("1p", ["e000", "r9"], model=model)
    with pytest.raises(ModelError, match="another graph"):
        graph.logic("1p", ["e000", "r0"], model=replace(model, entities=[f"x{i}" for i in range(N)]))
    broken = model_of({(0, 0, 2): float("nan")})
    with pytest.raises(ModelError, match="not a number"):
        graph.logic("1p", ["e000", "r0"], model=broken)
    part = graph.logic("1p", ["e000", "r0"], model=replace(model, entities=[*judge.ids(N - 1), "other"]))
    assert any("are not in the graph" in one for one in part.warnings)
    for wrong in ({"k": 0}, {"alpha": 0.0}, {"epsilon": 1.1}, {"epsilon": -0.1}, {"epsilon": "a"}, {"cap": 0}, {"cap": 1.5}):
        with pytest.raises(OptionError):
            graph.logic("1p", ["e000", "r0"], **({"model": model} | wrong))
    with pytest.raises(OptionError, match="score_tails"):
        graph.logic("1p", ["e000", "r0"], model=object())


def test_raw_scores_are_calibrated_as_equation_3_says() -> None:
    graph = small([("e000", "r0", "e001"), ("e000", "r0", "e002")])
    raw = model_of({(0, 0, i): score for i, score in enumerate((0.1, 2.0, 1.0, 3.0, -1.0, 0.5))})
    raw = replace(raw, calibrated=False)
    logits = raw.scores[0, 0].astype(np.float64)
    wanted = np.exp(logits) / np.exp(logits).sum() * 2  # two tails are known
    found = {one.entity.id: one.score for one in graph.logic("1p", ["e000", "r0"], model=raw, epsilon=0.05)}
    assert found["e001"] == found["e002"] == 1.0
    assert found["e003"] == pytest.approx(min(wanted[3], 1 - 1e-4), rel=1e-6)
    assert found["e005"] == pytest.approx(wanted[5], rel=1e-6)
    assert set(found) == {judge.ids(N)[i] for i in range(N) if wanted[i] >= 0.05}
    capped = graph.logic("1p", ["e000", "r0"], model=raw, epsilon=0.05, cap=1)
    assert [one.entity.id for one in capped] == ["e001", "e002", "e003"]


def test_a_deadline_holds() -> None:
    graph, _ = judge.random_graph(random.Random(1), 60, 3, 100)
    tree = " and ".join(f"(exists ?v ?w. r0(?v, ?x) and r1(?w, ?v) and r2(<e00{i}>, ?w))" for i in range(9))
    with pytest.raises(DeadlineError):
        graph.logic(f"?x : {tree}", model=judge.random_model(1, 60, 3, 0.9), timeout=1e-6)


def test_the_command_line(tmp_path: Path, world: Graph) -> None:
    place = str(tmp_path / "store")
    with condgraph.open(place) as graph:
        load_samples(graph)
    run = CliRunner().invoke
    said = run(app, ["logic", "-d", place, '?x : capital("France", ?x)', "--explain"])
    assert said.exit_code == 0
    assert "Paris" in said.output
    assert "France | capital | Paris" in said.output
    said = run(
        app, ["logic", "-d", place, "--structure", "2u", '[["France", "capital"], ["Nepal", "capital"]]', "--format", "json"]
    )
    assert [one["name"] for one in json.loads(said.output)["answers"]] == ["Kathmandu", "Paris"]
    said = run(app, ["logic", "-d", place, '?x : exists ?v. capital("France", ?v) and capital(?x, ?v) and country(?v, ?x)'])
    assert said.exit_code == 1
    assert "error[cyclic-query]" in said.output


def test_awaited(world: Graph) -> None:
    async def ask() -> Any:
        return await condgraph.AsyncGraph(world).logic("1p", ["France", "capital"])

    assert asyncio.run(ask()).texts == ["Paris"]
