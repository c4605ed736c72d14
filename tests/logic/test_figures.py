"""Figures by hand, and a model that knows everything."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import condgraph
from condgraph.engine.errors import DeadlineError
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.logic.evaluation.run import AVERAGES, THRESHOLDS, CaseFigures, Evaluation, best_threshold
from condgraph.logic.evaluation.sampler import LogicCase

NAMES = ["n0", "n1", "n2", "n3", "n4", "n5"]
OWN = [("n0", "a", "n1"), ("n1", "b", "n2"), ("n0", "b", "n4")]
HELD = [("n0", "a", "n3"), ("n3", "b", "n5"), ("n1", "b", "n5")]


def opened() -> condgraph.Graph:
    graph = condgraph.open("memory:")
    graph.add([*(Entity(name, name) for name in NAMES), *(Statement(h, r, Ref(t)) for h, r, t in OWN)])
    return graph


class Knowing:
    """A calibrated model that scores missing edges alone, `wrong` ones as well."""

    calibrated = True
    entities, relations = NAMES, ["a", "b"]

    def __init__(self, scores: dict[tuple[str, str, str], float]) -> None:
        self.scores = scores

    def score_tails(self, heads: np.ndarray, relation: int, *, inverse: bool = False) -> np.ndarray:
        found = np.zeros((len(heads), len(NAMES)), np.float32)
        for (h, r, t), score in self.scores.items():
            if r == self.relations[relation]:
                one, other = (t, h) if inverse else (h, t)
                found[heads == NAMES.index(one), NAMES.index(other)] = score
        return found


def figures(kind: str, ranks: list[float], answers: int = 1, above: list[int] | None = None) -> CaseFigures:
    return CaseFigures(kind, np.array(ranks), None, (None,) * len(ranks), answers, tuple(above or [0] * 9))


def test_means_are_of_a_query_then_of_a_structure_then_of_structures() -> None:
    cases = [figures("1p", [1, 2]), figures("1p", [4]), *(figures(kind, [2]) for kind in AVERAGES["avg_p"][1:])]
    found = Evaluation(tuple(cases), 0.5)
    assert found.mrr()["1p"] == pytest.approx((0.75 + 0.25) / 2)
    assert found.mrr()["avg_p"] == pytest.approx((0.5 + 8 * 0.5) / 9)
    assert found.mrr()["avg_ood"] == pytest.approx(0.5)
    assert "avg_n" not in found.mrr()
    assert found.hits(3)["1p"] == pytest.approx(0.5)
    assert found.kinds == list(AVERAGES["avg_p"])


def test_the_threshold_of_cardinality_is_the_best_one() -> None:
    cases = [figures("1p", [1], 4, [9, 8, 5, 4, 3, 2, 1, 0, 0]), figures("1p", [1], 2, [3, 2, 2, 2, 2, 1, 0, 0, 0])]
    assert best_threshold(cases) == 0.4
    assert Evaluation(tuple(cases), 0.3).cardinality() == {"1p": pytest.approx((0.25 + 0.0) / 2)}
    assert best_threshold([]) in THRESHOLDS


CASE = LogicCase("2p", ["n0", ["a", "b"]], ("n2",), ("n5",))


def test_a_model_that_knows_what_is_missing_ranks_it_first() -> None:
    graph = opened()
    found = graph.evaluate_logic([CASE], Knowing(dict.fromkeys(HELD, 0.9)), held=HELD)
    case = found.cases[0]
    assert case.ranks.tolist() == [1]
    assert case.missing is not None
    assert case.missing.tolist() == [1]
    assert case.explained == (True,)
    assert case.answers == 2
    # By n1 the answer has 0.9, by n3 0.81; n2 is observed.
    assert case.above == (2,) * 8 + (1,)
    assert found.by_missing() == {"2p": {1: (1.0, 1)}}
    assert found.explained()["2p"]["@1"] == 1
    assert "2p" in str(found)


def test_an_explanation_by_an_edge_that_is_not_true_does_not_hold() -> None:
    wrong = Knowing({("n0", "a", "n2"): 0.9, ("n2", "b", "n5"): 0.9, ("n1", "b", "n5"): 0.2})
    found = opened().evaluate_logic([CASE], wrong, held=HELD)
    assert found.cases[0].explained == (False,)
    assert found.explained()["2p"]["all"] == 0


def test_without_a_model_hard_answers_tie_with_all_that_is_wrong() -> None:
    case = opened().evaluate_logic([CASE], held=HELD).cases[0]
    # n0, n1, n3, n4 are no answers, and have 0 as well.
    assert case.ranks.tolist() == [1 + 4 / 2]
    assert case.explained == (None,)


def test_no_queries_give_no_figures_and_a_warning() -> None:
    found = opened().evaluate_logic([], held=HELD)
    assert found.mrr() == {}
    assert found.warnings == ("there are no queries, so there are no figures",)


def test_the_negation_scale_is_chosen_on_validation() -> None:
    held = [*HELD, ("n0", "b", "n3")]
    # Half sure of both: only a strong negation puts n5, which b does not lead to, before n3.
    model = Knowing({("n0", "a", "n3"): 0.6, ("n0", "a", "n5"): 0.5, ("n0", "b", "n3"): 0.12})
    case = LogicCase("2in", [["n0", ["a"]], ["n0", ["b", -2]]], ("n1",), ("n5",))
    graph = opened()
    found = graph.evaluate_logic([case], model, validation=[case], held=held)
    assert found.options["alpha"] == 3.0
    assert found.cases[0].ranks.tolist() == [1]
    assert graph.evaluate_logic([case], model, alpha=1.0).cases[0].ranks.tolist() == [2]


def test_a_deadline_is_kept() -> None:
    with pytest.raises(DeadlineError):
        opened().evaluate_logic((CASE for _ in range(10**9)), timeout=0.2)


def test_the_command_line_trains_and_evaluates(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from condgraph.cli.app import app

    triples = [(f"n{i:02}", f"plus{step}", f"n{(i + step) % 20:02}") for i in range(20) for step in (1, 2, 3)]
    held, own = triples[::9], [one for at, one in enumerate(triples) if at % 9]
    (tmp_path / "own.tsv").write_text("".join("\t".join(one) + "\n" for one in own))
    (tmp_path / "held.tsv").write_text("".join("\t".join(one) + "\n" for one in held))
    store, model, queries = (str(tmp_path / name) for name in ("store", "m.npz", "q.jsonl"))

    def run(*words: str) -> str:
        found = CliRunner().invoke(app, list(words))
        assert found.exit_code == 0, found.output
        return found.stdout

    run("load", store, str(tmp_path / "own.tsv"))
    options = ("--rank", "16", "--epochs", "40", "--batch", "20", "--n3", "0.01")
    assert "trained on" in run("train-links", "-d", store, "-o", model, *options)
    common = ("evaluate", "logic", "-d", store, "--held", str(tmp_path / "held.tsv"), "-m", model)
    first = run(*common, "-n", "2", "--write-queries", queries, "--format", "json")
    again = run(*common, "--queries", queries, "--format", "json")
    one, two = ({row["structure"]: row["mrr"] for row in json.loads(text)["structures"]} for text in (first, again))
    assert one == two
    assert one["1p"] > 0.3
    assert "\n1p " in run(*common, "--queries", queries)
    bad = CliRunner().invoke(app, [*common[:-1], str(tmp_path / "own.tsv")])
    assert bad.exit_code == 1
    assert "error[link-model]" in bad.output
