"""Rules as a model of links: what is found, against loops over all pairs, and what bad input gives."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import condgraph
from condgraph.engine.errors import LinkModelError, OptionError
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.links.edges import Edges
from condgraph.links.rule_model import CHOICES, Rule, Rules, learn
from condgraph.links.rules import Learning


def _planted() -> list[tuple[str, str, str]]:
    edges = set()
    for i in range(40):
        edges |= {(f"p{i}", "born", f"c{i % 8}"), (f"c{i % 8}", "in", f"n{i % 4}"), (f"n{i % 4}", "part", f"k{i % 2}")}
        if i % 5:
            edges.add((f"p{i}", "national", f"n{i % 4}"))
        if i % 3:
            edges.add((f"p{i}", "from", f"k{i % 2}"))
        edges.add((f"p{i}", "knows", f"p{(7 * i + 3) % 40}"))
        if i % 2:
            edges.add((f"p{(7 * i + 3) % 40}", "knows", f"p{i}"))
    return sorted(edges)


def _random(seed: int) -> list[tuple[str, str, str]]:
    rng = np.random.default_rng(seed)
    return sorted({(f"e{a}", f"r{r}", f"e{b}") for a, r, b in rng.integers(0, [14, 3, 14], (60, 3)).tolist()})


def _predictions(rule: Rule, edges: list[tuple[str, str, str]]) -> set[tuple[str, str]]:
    """All pairs that a rule predicts, by a loop: each pair without the edge that it is."""
    entities = sorted({end for h, _, t in edges for end in (h, t)})
    out: dict[tuple[str, bool, str], set[str]] = defaultdict(set)
    for h, r, t in edges:
        out[r, False, h].add(t)
        out[r, True, t].add(h)

    def holds(x: str, y: str) -> bool:
        own = {(rule.relation, False, x, y), (rule.relation, True, y, x)}
        follow = lambda n, step: {b for b in out[(*step, n)] if (*step, n, b) not in own}  # noqa: E731
        if not rule.end:
            nodes = {x}
            for step in rule.path:
                nodes = {b for a in nodes for b in follow(a, step)}
            return y in nodes
        ends = follow(x if rule.end == "subject" else y, rule.path[0])
        return bool(ends) if rule.constant is None else rule.constant in ends

    if not rule.end:
        return {(x, y) for x in entities for y in entities if x != y and holds(x, y)}
    if rule.end == "subject":
        return {(x, str(rule.target)) for x in entities if holds(x, str(rule.target))}
    return {(str(rule.target), y) for y in entities if holds(str(rule.target), y)}


@pytest.mark.parametrize("triples", [_planted(), _random(1), _random(2)], ids=["planted", "random 1", "random 2"])
def test_every_confidence_equals_that_of_a_loop_over_all_pairs(triples: list[tuple[str, str, str]]) -> None:
    edges = Edges.of(triples)
    rules = list(learn(edges, Learning(body=10**6, support=1, confidence=1e-9)).every())
    true = {(h, r, t) for h, r, t in triples}
    assert {len(rule.path) for rule in rules if not rule.end} == {1, 2, 3}
    assert {(rule.end, rule.constant is None) for rule in rules if rule.end} == {
        (end, free) for end in ("subject", "object") for free in (False, True)
    }
    rng = np.random.default_rng(0)
    for at in rng.permutation(len(rules))[:150].tolist():
        rule = rules[at]
        pairs = _predictions(rule, triples)
        right = sum((x, rule.relation, y) in true for x, y in pairs)
        assert (rule.right, rule.predicted) == (right, len(pairs)), str(rule)


def test_planted_rules_are_the_best_of_their_relations() -> None:
    model = learn(Edges.of(_planted()))
    best = {rule.relation: str(rule) for rule in reversed(list(model.every())) if not rule.end}
    assert best["national"] == "national(X, Y) <- born(X, A), in(A, Y)"
    assert model.warnings == []


def test_scores_are_the_noisy_or_of_the_rules_that_explain_them() -> None:
    model = learn(Edges.of(_planted()))
    r = model.edges.relation_numbers["national"]
    for most in CHOICES[1:]:
        model.choice[:] = most
        for inverse in (False, True):
            heads = np.arange(len(model.entities))
            scores = model.score_tails(heads, r, inverse=inverse)
            for head, tail in np.argwhere(scores > 0)[::7].tolist():
                x, y = (tail, head) if inverse else (head, tail)
                rules = model.explain(model.entities[x], "national", model.entities[y], most)
                assert scores[head, tail] == pytest.approx(1 - np.prod([1 - rule.confidence for rule in rules]), abs=2e-6)


def _graph(triples: list[tuple[str, str, str]], place: str = "memory:") -> condgraph.Graph:
    graph = condgraph.open(place)
    graph.add(Entity(name, name) for name in sorted({end for h, _, t in triples for end in (h, t)}))
    graph.add(Statement(h, r, Ref(t)) for h, r, t in triples)
    return graph


def test_predicted_answers_replay_from_their_rules_and_statements() -> None:
    graph = _graph(_planted())
    count = 0
    for i in range(0, 40, 5):
        answers = graph.logic(f'?x : "national"(<p{i}>, ?x)', predict=True)
        assert answers.texts[0] == f"n{i % 4}"
        for answer in answers:
            for edge in answer.edges:
                assert edge.rules, edge
                for match in edge.rules:
                    assert match.check(), match
                    assert len(match.statements) >= 1
                    count += 1
    assert count > 40
    assert "rule " in answers.explain()


def test_rules_are_stored_with_the_graph_and_learned_again_after_a_change(tmp_path) -> None:
    graph = _graph(_planted(), str(tmp_path / "g"))
    query = '?x : "national"(<p0>, ?x)'
    first = graph.logic(query, predict=True)
    (file,) = (tmp_path / "g").rglob("links.rules.npz")
    before = file.read_bytes()
    again = condgraph.open(str(tmp_path / "g"))
    assert [str(a) for a in again.logic(query, predict=True).data()] == [str(a) for a in first.data()]
    assert file.read_bytes() == before
    graph.add([Statement("p0", "national", Ref("n0"))])
    assert graph.logic(query, predict=True)[0].observed
    after = file.read_bytes()
    assert after != before
    # A graph that is only read learns what it lacks, and leaves its folder as it was.
    file.unlink()
    with condgraph.open(str(tmp_path / "g"), read_only=True) as reader:
        assert reader.logic(query, predict=True)[0].observed
    assert not file.exists()


def test_bad_input_is_an_error_or_a_smaller_model(tmp_path) -> None:
    none = Edges(["a"], ["r"], np.empty((0, 3), np.int64))
    with pytest.raises(LinkModelError, match="no edges"):
        learn(none)
    graph = _graph([(f"a{i}", "r", f"a{i + 1}") for i in range(10)])
    rules = graph.learn_rules(tmp_path / "r.npz", valid=[])
    assert len(graph.logic('?x : "r"(<a0>, ?x)', model=rules)) >= 1
    with pytest.raises(OptionError, match="second"):
        graph.learn_rules(second=1)
    with pytest.raises(OptionError, match="seconds is more than 0"):
        graph.learn_rules(seconds=0)
    for wrong in ("60", None, True):
        with pytest.raises(OptionError, match="seconds is a number, not"):
            graph.learn_rules(seconds=wrong)
        with pytest.raises(OptionError, match="seconds is a number"):
            graph.mix_links(rules, rules, valid=[("a0", "r", "a2")], seconds=wrong)
    with pytest.raises(OptionError, match="seed is a whole number, not 'x'"):
        graph.learn_rules(seed="x")
    assert graph.logic('?x : "r"(<a0>, ?x)', model=rules).warnings == rules.warnings
    graph.add(Statement("a9", "r", Ref("a0")))
    assert any("another state of the graph" in text for text in graph.logic('?x : "r"(<a0>, ?x)', model=rules).warnings)
    alone = _graph([("a", "r", "b")])
    answers = alone.logic('?x : "r"(<a>, ?x)', predict=True)
    assert (answers.texts, answers.warnings) == (["b"], ["no rules were found, so that nothing is predicted"])
    other = Edges.of(_planted())
    with pytest.raises(LinkModelError, match="another graph"):
        Rules.load(tmp_path / "r.npz", other)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "r.npz").read_bytes()[:200])
    with pytest.raises(LinkModelError, match="cannot be read"):
        Rules.load(tmp_path / "cut.npz", rules.edges)


@pytest.mark.parametrize(
    ("column", "change", "message"),
    [
        ("cyclic_first", lambda a: a + 99, "relation has numbers"),
        ("cyclic_second", lambda a: a * 0, "a step that is none"),
        ("cyclic_predicted", lambda a: a * 0, "more predictions are right"),
        ("constant_second", lambda a: a - 10**6, "body has numbers"),
        ("constant_right", lambda a: a.astype(float), "right is float64"),
        ("constant_first", lambda a: a + 10**6, "cannot be read as rules"),
        ("choice", lambda a: a + 100, "choice is not one of"),
    ],
)
def test_a_damaged_file_is_an_error(tmp_path: Any, column: str, change: Any, message: str) -> None:
    rules = learn(Edges.of(_planted()), Learning(seconds=2))
    rules.save(tmp_path / "r.npz")
    assert str(next(rules.every())) == str(next(Rules.load(tmp_path / "r.npz", rules.edges).every()))
    with np.load(tmp_path / "r.npz") as arrays:
        columns = dict(arrays)
    assert len(columns[column])
    np.savez(tmp_path / "damaged.npz", **{**columns, column: change(columns[column])})
    with pytest.raises(LinkModelError, match=message):
        Rules.load(tmp_path / "damaged.npz", rules.edges)


def test_a_budget_that_ends_early_gives_fewer_rules_and_says_so() -> None:
    rng = np.random.default_rng(0)
    edges = Edges.of({(f"e{a}", f"r{r}", f"e{b}") for a, r, b in rng.integers(0, [300, 20, 300], (5000, 3)).tolist()})
    model = learn(edges, Learning(seconds=0.001))
    assert any("the budget of 0.001 s" in warning for warning in model.warnings)
    assert np.isfinite(model.score_tails(np.arange(5), 0)).all()
