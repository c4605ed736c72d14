"""Formulas as users write them on graphs as they come: homonyms, names of relations that are words and
marks of the language, self-loops, values that look like entities, models that lack entities or have
others; beside a dense recursion over the formula itself. And models whose scores are none.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

import condgraph
from condgraph.engine.errors import CondgraphError, ModelError, OptionError, ParseError, UnknownNameError, UnsafeQueryError
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.values import Quantity
from condgraph.graph import Graph
from tests.support.lanes import by_lane

Scores: TypeAlias = NDArray[np.float64]
#: A formula of one variable: its text, and how true it is (or its negation) of every entity.
Truth: TypeAlias = Callable[[bool], Scores]
RELATIONS = ("r", "in", "not", "exists", 'a "b"', "ü–ß", "^r", "and", "says\\so", "r r", "-2")
NAMES = ("A", "A", "B", "Ç", "?x", "<e1>", 'a"b', "  ", "and")


class Given:
    """A calibrated model of whatever scores."""

    calibrated = True

    def __init__(self, entities: list[str], relations: list[str], scores: Any) -> None:
        self.entities, self.relations, self.scores = entities, relations, scores

    def score_tails(self, heads: Any, relation: int, *, inverse: bool = False) -> Any:
        found = self.scores[relation]
        return (found.T if inverse else found)[heads]


@dataclass
class Ugly:
    """A graph, its edges, and a model of it or none."""

    dice: random.Random

    def __post_init__(self) -> None:
        dice = self.dice
        self.n = dice.randint(3, 9)
        self.ids = [f"e{i}" for i in range(self.n)]
        self.names = [dice.choice(NAMES) for _ in self.ids]
        self.relations = dice.sample(RELATIONS, 3)
        every = range(self.n)
        self.edges = {(dice.choice(every), dice.choice(self.relations), dice.choice(every)) for _ in range(2 * self.n)}
        self.edges |= {(dice.choice(every), one, dice.choice(every)) for one in self.relations} | {(1, self.relations[0], 1)}
        self.graph = condgraph.open()
        self.graph.add(Entity(one, name) for one, name in zip(self.ids, self.names, strict=True))
        for head, relation, tail in sorted(self.edges):
            found = self.ids[head], relation, Ref(self.ids[tail])
            self.graph.add([Statement(*found)])
            if dice.random() < 0.2:
                self.graph.add([Statement(*found, (("since", Quantity(3)),))])
            if dice.random() < 0.2:  # a value by the same predicate, and one that is written as a name
                self.graph.add([Statement(self.ids[head], relation, Quantity(4)), Statement(self.ids[head], "says", "A")])

    def model(self) -> Given:
        """One that lacks some entities and has others; some of its scores are 0, and some 1."""
        dice, rng = self.dice, np.random.default_rng(self.dice.randrange(10**9))
        entities = [
            self.ids[0],
            *(one for one in self.ids[1:] if dice.random() < 0.8),
            *["other 1", "other 2"][: dice.randint(0, 2)],
        ]
        dice.shuffle(entities)
        scores = rng.random((3, len(entities), len(entities))).astype(np.float32)
        scores[rng.random(scores.shape) < 0.4] = 0.0
        scores[rng.random(scores.shape) < 0.05] = 1.0
        return Given(entities, self.relations, scores)

    def matrices(self, model: Given | None, epsilon: float) -> dict[str, Scores]:
        """The whole matrix of each relation, entry by entry."""
        found = {one: np.zeros((self.n, self.n)) for one in self.relations}
        if model is not None and epsilon <= 0.9999:
            for number, relation in enumerate(self.relations):
                for i, head in enumerate(model.entities):
                    for j, tail in enumerate(model.entities):
                        score = float(model.scores[number, i, j])
                        if head in self.ids and tail in self.ids and score > 0 and score >= epsilon:
                            found[relation][self.ids.index(head), self.ids.index(tail)] = np.float32(min(score, 0.9999))
        for head, relation, tail in self.edges:
            found[relation][head, tail] = 1.0
        return found

    def formula(self, x: str, depth: int, matrices: dict[str, Scores], alpha: float) -> tuple[str, Truth]:
        """A random formula of ?x."""
        dice, kind = self.dice, self.dice.random()

        def scaled(scores: Scores, negated: bool) -> Scores:
            return 1 - np.where(scores >= 1, 1, np.minimum(1, alpha * scores)) if negated else scores

        relation, inverse = dice.choice(self.relations), dice.random() < 0.5
        matrix = matrices[relation].T if inverse else matrices[relation]

        def atom(left: str, right: str) -> str:
            return f"{json.dumps(relation, ensure_ascii=False)}({right if inverse else left}, {left if inverse else right})"

        if depth == 0 or kind < 0.25:
            number = dice.randrange(self.n)
            by_id = dice.random() < 0.5
            of = [number] if by_id else [i for i in range(self.n) if self.names[i] == self.names[number]]
            shown = f"<{self.ids[number]}>" if by_id else json.dumps(self.names[number], ensure_ascii=False)
            return atom(shown, f"?{x}"), lambda negated: scaled(matrix[of].max(axis=0), negated)
        if kind < 0.55:
            word = dice.choice(["and", "or"])
            parts = [self.formula(x, depth - 1, matrices, alpha) for _ in range(dice.randint(1, 3))]

            def joined(negated: bool) -> Scores:
                every = [truth(negated) for _, truth in parts]
                if (word == "and") != negated:
                    return np.prod(every, axis=0)
                return 1 - np.prod([1 - one for one in every], axis=0)

            return f"({f' {word} '.join(text for text, _ in parts)})", joined
        if kind < 0.7:
            text, inner = self.formula(x, depth - 1, matrices, alpha)
            return f"{dice.choice(['not ', '¬', '! '])}{text}", lambda negated: inner(not negated)
        v = dice.choice(["v", "v2", "é"]) if x == "x" else dice.choice([f"{x}w", "x"])
        anti = dice.random() < 0.25
        said = [("not " if anti else "") + atom(f"?{v}", f"?{x}")]
        below = beside = None
        if dice.random() < 0.9:
            text, below = self.formula(v, depth - 1, matrices, alpha)
            said.append(text)
        if v != "x" and dice.random() < 0.2:
            text, beside = self.formula(x, depth - 1, matrices, alpha)
            said.append(text)
        dice.shuffle(said)

        def exists(negated: bool) -> Scores:
            start = np.ones(self.n) if below is None else below(False)
            found: Scores = (start[:, None] * scaled(matrix, anti)).max(axis=0)
            return scaled(found if beside is None else found * beside(False), negated)

        return f"(exists ?{v}. {' and '.join(said)})", exists


def test_formulas_on_ugly_graphs_are_a_dense_recursion() -> None:
    asked = 0
    for seed in range(by_lane(30, 150, 600)):
        dice = random.Random(seed)
        ugly = Ugly(dice)
        assert ugly.graph.current.entities == ugly.n
        model = ugly.model() if dice.random() < 0.8 else None
        for _ in range(3):
            epsilon, alpha = dice.choice([0, 0.001, 0.3, 0.9, 1]), dice.choice([0.5, 1, 3, 6])
            matrices = ugly.matrices(model, epsilon)
            text, truth = ugly.formula("x", dice.randint(1, 3), matrices, alpha)
            options: dict[str, Any] = {"model": model, "alpha": alpha, **({"epsilon": epsilon} if model else {})}
            wanted = {one: score for one, score in zip(ugly.ids, truth(False).tolist(), strict=True) if score > 1e-12}
            try:
                found = ugly.graph.logic(f"?x : {text}", k=None, **options)
            except UnsafeQueryError:
                continue
            asked += 1
            given = {one.entity.id: one.score for one in found if one.score > 1e-12}
            assert given.keys() == wanted.keys(), (seed, text)
            assert all(abs(given[one] - wanted[one]) < 1e-9 for one in given), (seed, text)
            assert all(one.derivation.multiplied() == pytest.approx(one.score, abs=1e-9) for one in found), (seed, text)
            few = ugly.graph.logic(f"?x : {text}", k=2, **options)
            assert [(one.entity.id, one.score) for one in few] == [(one.entity.id, one.score) for one in found][:2], (seed, text)
            assert few.more == (len(found) > 2), (seed, text)
            again = ugly.graph.logic(found.query, k=None, **options)
            assert [(one.entity.id, one.score) for one in again] == [(one.entity.id, one.score) for one in found], (seed, text)
    assert asked > by_lane(50, 300, 1300)


@pytest.fixture(scope="module")
def three() -> Graph:
    graph = condgraph.open()
    graph.add(
        [*(Entity(f"e{i}", "ABC"[i]) for i in range(3)), Statement("e0", "r", Ref("e2")), Statement("e0", "high", Quantity(3))]
    )
    return graph


HALF = np.full((1, 3, 3), 0.5, np.float32)


@pytest.mark.parametrize(
    ("entities", "relations", "scores", "said"),
    [
        (["e0", "e0", "e2"], ["r"], HALF, "entities of the model have 'e0' twice"),
        (["e0", "e1", "e2"], ["r", "r"], np.concatenate([HALF, HALF]), "relations of the model have 'r' twice"),
        (["e0", "e1", "e2"], ["r"], 6 * HALF, "calibrated, and gave 'r' a score of 3"),
        (["e0", "e1", "e2"], ["r"], -HALF, "calibrated, and gave 'r' a score of -0.5"),
        (["e0", "e1", "e2"], ["r"], HALF.astype(complex), "that are not numbers, but complex128"),
        (["e0", "e1", "e2"], ["r"], HALF.astype(object), "that are not numbers, but object"),
        (["e0", "e1", "e2"], ["r"], HALF.astype(str), "that are not numbers, but <U"),
        (["e0", "e1", "e2"], ["r"], np.full((1, 3, 3), np.nan), "a score for 'r' that is not a number"),
        (["e0", "e1", "e2"], ["r"], np.full((1, 3, 3), np.inf), "a score for 'r' that is not a number"),
        (["e0", "e1", "e2"], ["r"], HALF[:, :, :2], "scores of shape"),
    ],
)
def test_models_whose_scores_are_none_are_errors(
    three: Graph, entities: list[str], relations: list[str], scores: Any, said: str
) -> None:
    with pytest.raises(ModelError, match=said):
        three.logic('?x : r("A", ?x)', model=Given(entities, relations, scores))


def test_bounds_that_a_kept_model_would_let_through(three: Graph) -> None:
    """True is equal to 1, which the rows of this model are kept for."""
    model = Given(["e0", "e1", "e2"], ["r"], HALF)
    assert len(three.logic('?x : r("A", ?x)', model=model, epsilon=1, cap=1)) == 1
    for bad in ({"epsilon": True, "cap": 1}, {"epsilon": 1, "cap": True}, {"alpha": float("inf")}):
        with pytest.raises(OptionError):
            three.logic('?x : r("A", ?x)', model=model, **bad)  # type: ignore[arg-type]
    for alpha in (0, -1.0, float("nan"), float("inf"), True):
        with pytest.raises(OptionError, match="alpha scales"):
            three.evaluate_logic([], model, alpha=alpha)
    found = three.logic('?x : r("A", ?x)', model=model)
    for threshold in ("0.5", None, True, -0.1, 1, float("nan")):
        with pytest.raises(OptionError, match="a threshold of scores"):
            found.cardinality(threshold)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('?x : high("A", ?x)', "high is an attribute"),
        ("?x : r(?x)", r"r is a relation, between two: r\(\?x, ...\)"),
    ],
)
def test_a_name_of_another_use_says_which(three: Graph, text: str, hint: str) -> None:
    for ask in (three.logic, three.query, lambda asked: three.logic(asked, model=Given(["e0"], ["r"], HALF[:, :1, :1]))):
        with pytest.raises(UnknownNameError, match=hint):
            ask(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10**6, "not " * 10**5, "exists ?v. " * 10**5, '"' + "\\" * 10**6, "∧∨¬" * 10**5, "<" + "a" * 10**6, "<>",
        'r("A", ?x) and ' * 6000, "(" * 49_000 + ")" * 49_000, "😀" * 99_000, 'r("A", ?x)\0',
    ],
)  # fmt: skip
def test_nonsense_is_an_error_that_is_short(three: Graph, text: str) -> None:
    with pytest.raises(ParseError) as caught:
        three.logic(f"?x : {text}", timeout=5)
    assert len(str(caught.value)) < 400
    with pytest.raises(CondgraphError) as unknown:
        three.logic(f'?x : {json.dumps("z" * 99_000)}("A", ?x)', timeout=5)
    assert len(str(unknown.value)) < 2200


def test_the_rows_of_a_table_are_a_type() -> None:
    graph = condgraph.open()
    graph.load([{"team": "Reds", "town": "Ulm"}, {"team": "Blues", "town": "Bonn"}], name="teams", key="team")
    graph.load([{"id": "a", "team": "Reds"}, {"id": "b", "team": "Blues"}], name="players", key="id", refs=["team"])
    asked = {
        "?x : players(?x)": ["a", "b"],
        "?x : exists ?p. (players(?p) and team(?p, ?x))": ["Blues", "Reds"],
        '?x : teams(?x) and not team("a", ?x)': ["Blues"],
    }
    for text, answers in asked.items():
        assert graph.query(text).texts == graph.logic(text).texts == answers
    for ask in (graph.query, graph.logic):
        assert ask("?x : player(?x)").texts == ["a", "b"]
        assert any("players" in warning for warning in ask("?x : player(?x)").warnings)
        with pytest.raises(UnknownNameError, match="nearest: 'players'"):
            ask("?x : plaiers(?x)")
