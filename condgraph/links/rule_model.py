"""Rules as a link prediction model: scores, explanations that can be checked, and their file."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine import algebra as alg
from condgraph.engine.bounds import cached, changed, check
from condgraph.engine.errors import LinkModelError
from condgraph.engine.snapshot.snapshot import ranges
from condgraph.links import rules as horn
from condgraph.links.edges import Edges, Ends, Ints
from condgraph.links.embeddings import Floats, load_arrays, save_arrays
from condgraph.links.ranks import rank_among
from condgraph.links.train import held_out

if TYPE_CHECKING:
    from condgraph.engine.algebra import Entities

FORMAT: Final = 1
#: The candidates for how many of a link's best rules are combined by noisy-or; held-out edges choose one for each relation and
#: direction. 1 is the maximum aggregation, where the other rules only break ties.
CHOICES: Final = (1, 2, 4, 8, 16)
_MAX_BEST: Final = CHOICES[-1]
_DEFAULT: Final = 2
#: The number of queries that are scored at once, of entries above which only the best rules of each link are kept, and of
#: held-out queries for each choice.
_AT_ONCE, _ENTRIES, _LOOKED_AT = 64, 8_000_000, 40
_ONE: Final = 0x3F800000


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: a body that predicts (subject, relation, object).

    In a cyclic rule `path` has the steps from the subject to the object, each a relation and whether to follow it from
    object to subject. Otherwise `end` ("subject" or "object") is the variable, and `target` the constant at the other
    end; the body is one step, `path[0]`, from the variable to `constant`, or to any entity if that is None. `right` of
    `predicted` predictions are in the graph.
    """

    relation: str
    path: tuple[tuple[str, bool], ...]
    right: int
    predicted: int
    end: str = ""
    constant: str | None = None
    target: str | None = None

    @property
    def confidence(self) -> float:
        """right / (predicted + 5)."""
        return self.right / (self.predicted + horn.UNSEEN)

    def __str__(self) -> str:
        if not self.end:
            names = ["X", *"AB"[: len(self.path) - 1], "Y"]
            return f"{self.relation}(X, Y) <- " + ", ".join(
                _atom(name, inverse, a, b) for (name, inverse), a, b in zip(self.path, names[:-1], names[1:], strict=True)
            )
        variable = "X" if self.end == "subject" else "Y"
        ends = (variable, str(self.target)) if self.end == "subject" else (str(self.target), variable)
        ((name, inverse),) = self.path
        return f"{self.relation}({ends[0]}, {ends[1]}) <- {_atom(name, inverse, variable, self.constant or 'A')}"

    def plan(self, subject: str, object_: str) -> Entities:
        """Return the body for two entities (ids) as a plan, which any store runs. If the body holds, the answer is the
        object (for a rule with a constant, the entity at the variable), else it is empty.
        """
        if not self.end:
            return alg.Intersect((_walked(alg.ById((subject,)), self.path), alg.ById((object_,))))
        entity = alg.ById((subject if self.end == "subject" else object_,))
        name, inverse = self.path[0]
        of = None if self.constant is None else alg.ById((self.constant,))
        ends = ("subject", "object") if inverse else ("object", "subject")
        return alg.Intersect((alg.Reached(alg.Scan(of, (name,), *ends)), entity))  # type: ignore[arg-type]


def _atom(name: str, inverse: bool, a: str, b: str) -> str:
    return f"{name}({b}, {a})" if inverse else f"{name}({a}, {b})"


def _walked(node: Entities, path: Sequence[tuple[str, bool]]) -> Entities:
    for name, inverse in path:
        node = alg.Reached(alg.Scan(node, (name,), *(("object", "subject") if inverse else ("subject", "object"))))
    return node


class Rules:
    """Rules over the edges of a graph (`LinkModel`, calibrated). A score is the noisy-or of the confidences of the best
    rules that predict the link.
    """

    calibrated = True

    def __init__(
        self, edges: Edges, cyclic: horn.Cyclic, constant: horn.Constant, choice: NDArray[np.int64], about: dict[str, Any]
    ) -> None:
        self.edges, self.cyclic, self.constant, self.choice, self.about = edges, cyclic, constant, choice, about
        self.entities, self.relations = edges.entities, edges.relations
        self.paths = horn.Paths(edges)
        self.features = horn.Features(self.paths)
        self.warnings: list[str] = list(about.get("warnings", ()))
        self._cyclic_at = np.searchsorted(cyclic.relation, np.arange(len(self.relations) + 1))
        self._confidences = cyclic.confidence
        step = self.features.step[constant.target] if len(constant.target) else np.empty(0, np.int64)
        width = len(self.features.counts)
        #: Rules with a constant, sorted by step of the target and body, and by target.
        self._body_key = step * width + constant.body
        self._by_body = np.argsort(self._body_key, kind="stable")
        self._body_key = self._body_key[self._by_body]
        self._by_target = np.argsort(constant.target, kind="stable")
        self._targets = constant.target[self._by_target]
        self._values = constant.confidence
        # The key (step, constant) of each feature.
        self._feature_key = (self.features.step ^ 1) * self.paths.n + self.features.constant

    @cached
    def fingerprint(self) -> str:
        """Identifies the graph, the options of learning and the number of rules."""
        return (
            f"{self.edges.fingerprint}-{json.dumps(self.about, sort_keys=True)}-{len(self.cyclic.code)}-{len(self.constant.body)}"
        )

    def __len__(self) -> int:
        return len(self.cyclic.code) + len(self.constant.body)

    def __repr__(self) -> str:
        return f"<Rules: {len(self.cyclic.code):,} with paths, {len(self.constant.body):,} with constants>"

    def score_tails(self, heads: NDArray[np.int64], relation: int, *, inverse: bool = False) -> Floats:
        """See `LinkModel.score_tails`."""
        offsets, ids, values = self.rows(heads, relation, inverse=inverse)
        scores = np.zeros((len(heads), len(self.entities)), np.float32)
        scores[np.repeat(np.arange(len(heads)), np.diff(offsets)), ids] = values
        return scores

    def rows(self, heads: Ints, relation: int, *, inverse: bool = False) -> tuple[Ints, Ints, Floats]:
        """Return the rows of heads: offsets (heads + 1), entities ascending in each row, scores."""
        most = int(self.choice[2 * relation + inverse])
        keys, values = [], []
        for begin in range(0, len(heads), _AT_ONCE):
            check()
            key, best = self._best(np.asarray(heads[begin : begin + _AT_ONCE], np.int64), relation, inverse)
            keys.append(key + begin * self.paths.n)
            values.append(_noisy_or(best, most))
        key = np.concatenate(keys) if keys else np.empty(0, np.int64)
        counts = np.bincount(key // self.paths.n, minlength=len(heads))
        offsets = np.append(0, np.cumsum(counts))
        return offsets, key % self.paths.n, np.concatenate(values) if values else np.empty(0, np.float32)

    def _best(self, heads: Ints, relation: int, inverse: bool) -> tuple[Ints, Floats]:
        """Return the links that rules predict, as keys (position of the head, entity), ascending, and the best
        confidences of each, descending, shape (links, 16).
        """
        parts: list[Ints] = []
        total = 0
        for key, confidence in self._entries(heads, relation, inverse):
            no_loop = key % self.paths.n != heads[key // self.paths.n]
            # The bits of positive floats are in the order of their values.
            bits = confidence.view(np.int32) if confidence.ndim else np.full(len(key), confidence, np.float32).view(np.int32)
            parts.append(((key << 30) | (_ONE - bits.astype(np.int64)))[no_loop])
            total += len(parts[-1])
            if total > _ENTRIES:
                parts = [_best_entries(np.concatenate(parts))]
                total = len(parts[0])
        packed = _best_entries(np.concatenate(parts) if parts else np.empty(0, np.int64))
        key = packed >> 30
        first = changed(key) if len(key) else np.zeros(0, bool)
        link = np.cumsum(first) - 1
        begin = np.flatnonzero(first)
        confidences = np.zeros((len(begin), _MAX_BEST), np.float32)
        confidences[link, np.arange(len(key)) - begin[link]] = (_ONE - (packed & (2**30 - 1))).astype(np.int32).view(np.float32)
        return key[begin], confidences

    def _entries(self, heads: Ints, relation: int, inverse: bool) -> Iterator[tuple[Ints, NDArray[np.float32]]]:
        """Yield the predictions of rules: keys (position of the head, entity), and confidences."""
        n, base = self.paths.n, self.paths.steps + 1
        walked: dict[tuple[int, ...], tuple[Ints, Ints]] = {(): (np.arange(len(heads)), heads)}
        for position in range(int(self._cyclic_at[relation]), int(self._cyclic_at[relation + 1])):
            steps = horn.steps_of(int(self.cyclic.code[position]), base)
            if inverse:
                steps = tuple(step ^ 1 for step in reversed(steps))
            i, node = self._walk(steps, walked)
            yield i * n + node, np.float32(self._confidences[position])  # type: ignore[misc]
        place, feature = self.features.having(heads)
        step = 2 * relation + inverse
        bodies = step * len(self.features.counts) + feature
        begin, end = np.searchsorted(self._body_key, bodies), np.searchsorted(self._body_key, bodies, side="right")
        rule = self._by_body[ranges(begin, end)]
        yield np.repeat(place, end - begin) * n + self.features.constant[self.constant.target[rule]], self._values[rule]
        for position, head in enumerate(heads.tolist()):
            for number in self._targeting(step ^ 1, head).tolist():
                entities = self.features.entities(int(self.constant.body[number]))
                yield position * n + entities, np.float32(self._values[number])  # type: ignore[misc]

    def _targeting(self, step: int, constant: int) -> Ints:
        """Return the numbers of the rules that predict a constant by a step."""
        target_key = (step ^ 1) * self.paths.n + constant
        feature = int(np.searchsorted(self._feature_key, target_key))
        if feature >= len(self._feature_key) or self._feature_key[feature] != target_key:
            return np.empty(0, np.int64)
        return self._by_target[np.searchsorted(self._targets, feature) : np.searchsorted(self._targets, feature, side="right")]

    def _walk(self, steps: tuple[int, ...], walked: dict[tuple[int, ...], tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
        reached = walked.get(steps)
        if reached is None:
            i, node = self._walk(steps[:-1], walked)
            counts, ends = self.paths.follow(steps[-1], node)
            key = np.sort(np.repeat(i, counts) * self.paths.n + ends)
            key = key[changed(key)] if len(key) else key
            reached = key // self.paths.n, key % self.paths.n
            if len(steps) < 3:
                walked[steps] = reached
        return reached

    def explain(self, subject: str, relation: str, object_: str, most: int = 5) -> list[Rule]:
        """Return at most `most` rules that predict a link, best first."""
        numbers = self.edges.entity_numbers
        x, y, r = numbers.get(subject), numbers.get(object_), self.edges.relation_numbers.get(relation)
        if x is None or y is None or r is None:
            return []
        matches: list[Rule] = []
        base = self.paths.steps + 1
        walked: dict[tuple[int, ...], tuple[Ints, Ints]] = {(): (np.zeros(1, np.int64), np.array([x]))}
        for at in range(int(self._cyclic_at[r]), int(self._cyclic_at[r + 1])):
            # Cyclic rules come by falling confidence.
            if len(matches) >= most:
                break
            if (self._walk(horn.steps_of(int(self.cyclic.code[at]), base), walked)[1] == y).any():
                matches.append(self._cyclic_rule(at))
        for step, entity, constant in ((2 * r, x, y), (2 * r + 1, y, x)):
            rules = self._targeting(step, constant)
            having = self.features.having(np.array([entity]))[1]
            rules = rules[np.isin(self.constant.body[rules], having)]
            matches += [
                self._constant_rule(int(number)) for number in rules[np.argsort(-self._values[rules], kind="stable")][:most]
            ]
        return sorted(matches, key=lambda rule: -rule.confidence)[:most]

    def _cyclic_rule(self, at: int) -> Rule:
        steps = horn.steps_of(int(self.cyclic.code[at]), self.paths.steps + 1)
        path = tuple((self.relations[step >> 1], bool(step & 1)) for step in steps)
        return Rule(self.relations[self.cyclic.relation[at]], path, int(self.cyclic.right[at]), int(self.cyclic.predicted[at]))

    def _constant_rule(self, number: int) -> Rule:
        target, body = int(self.constant.target[number]), int(self.constant.body[number])
        step = int(self.features.step[target])
        of_any = body >= self.features.size
        body_step = body - self.features.size if of_any else int(self.features.step[body])
        return Rule(
            self.relations[step >> 1], ((self.relations[body_step >> 1], bool(body_step & 1)),),
            int(self.constant.right[number]), int(self.constant.predicted[number]), "object" if step & 1 else "subject",
            None if of_any else self.entities[self.features.constant[body]], self.entities[self.features.constant[target]],
        )  # fmt: skip

    def every(self) -> Iterator[Rule]:
        """Yield all rules: the cyclic ones by relation and confidence, then those with constants."""
        yield from (self._cyclic_rule(at) for at in range(len(self.cyclic.code)))
        yield from (self._constant_rule(at) for at in range(len(self.constant.body)))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the rules to a `.npz` file, completely or not at all. To read them, `load` needs the edges of the
        graph.
        """
        target = Path(path)
        about = {**self.about, "format": FORMAT, "edges": self.edges.fingerprint}
        columns: dict[str, Any] = {f"cyclic_{name}": value for name, value in zip(_COLUMNS, _columns(self.cyclic), strict=True)}
        columns |= {f"constant_{name}": value for name, value in zip(_COLUMNS, _columns(self.constant), strict=True)}
        save_arrays(target, {"rules": np.frombuffer(json.dumps(about).encode(), np.uint8), "choice": self.choice, **columns})
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str], edges: Edges) -> Rules:
        """Read the rules of a graph. Raises `LinkModelError` for a file of another kind, and for rules of another graph
        or of an earlier state of it.
        """
        place = os.fspath(path)
        arrays = load_arrays(place, _HINT)
        try:
            about = json.loads(arrays["rules"].tobytes())
            if about.pop("format") != FORMAT:
                raise LinkModelError(f"{place} is of another format than {FORMAT}", hint=_HINT)
            if about.pop("edges", None) != edges.fingerprint:
                raise LinkModelError(f"the rules in {place} are of another graph, or the graph has changed", hint=_HINT)
            cyclic = horn.Cyclic(*(arrays[f"cyclic_{name}"] for name in _COLUMNS))
            constant = horn.Constant(*(arrays[f"constant_{name}"] for name in _COLUMNS))
            rules = cls(edges, cyclic, constant, arrays["choice"], about)
            rules._check()
        except (ValueError, KeyError, IndexError, AttributeError, TypeError, RecursionError) as error:
            raise LinkModelError(f"{place} cannot be read as rules: {error}", hint=_HINT) from None
        return rules

    def _check(self) -> None:
        """Raise `ValueError` for columns that are not rules of this graph."""
        base, size = self.paths.steps + 1, self.features.size
        ends = {"relation": len(self.relations), "code": base**3, "target": size, "body": size + self.paths.steps}
        for kind, names in ((self.cyclic, ("relation", "code")), (self.constant, ("target", "body"))):
            for name in (*names, "right", "predicted"):
                values, end = getattr(kind, name), ends.get(name, np.inf)
                if values.dtype.kind != "i" or values.ndim != 1 or values.shape != kind.right.shape:
                    raise ValueError(f"{name} is {values.dtype}{values.shape}, and whole numbers as many as the others are needed")
                if len(values) and not 0 <= values.min() <= values.max() < end:
                    raise ValueError(f"{name} has numbers that are not from 0 to {end - 1}")
            if (kind.right > kind.predicted).any():
                raise ValueError("more predictions are right than there are")
        code = self.cyclic.code
        if (code == 0).any() or any(((code % base == 0) & (code > 0)).any() for code in (code, code // base, code // base**2)):
            raise ValueError("code has a path with a step that is none")
        if (np.diff(self.cyclic.relation) < 0).any():
            raise ValueError("the rules are not in the order of their relations")
        if self.choice.shape != (2 * len(self.relations),) or not np.isin(self.choice, CHOICES).all():
            raise ValueError(f"choice is not one of {CHOICES} for each relation and direction")


_COLUMNS: Final = ("first", "second", "right", "predicted")
_HINT: Final = "learn them with `graph.learn_rules(...)`"


def _columns(rules: horn.Cyclic | horn.Constant) -> tuple[Ints, ...]:
    if isinstance(rules, horn.Cyclic):
        return rules.relation, rules.code, rules.right, rules.predicted
    return rules.target, rules.body, rules.right, rules.predicted


def _best_entries(packed: Ints) -> Ints:
    """Return the 16 best entries of each link, sorted."""
    packed = np.sort(packed)
    if not len(packed):
        return packed
    first = changed(packed >> 30)
    begin = np.flatnonzero(first)
    best: Ints = packed[np.arange(len(packed)) - begin[np.cumsum(first) - 1] < _MAX_BEST]
    return best


def _noisy_or(best: Floats, most: int) -> Floats:
    """Return the noisy-or of the `most` best confidences of each link. With `most` = 1 it is the maximum, raised by
    less than 0.0001 by the others.
    """
    if most > 1:
        result = 1.0 - np.prod(1.0 - best[:, :most].astype(np.float64), axis=1)
    else:
        rest_joined = 1.0 - np.prod(1.0 - best[:, 1:].astype(np.float64), axis=1)
        result = best[:, 0] + 9e-5 * rest_joined * (1.0 - best[:, 0])
    scores: Floats = np.minimum(result, 1.0 - 1e-6).astype(np.float32)
    return scores


def learn(edges: Edges, options: horn.Learning | None = None, *, valid: Edges | None = None) -> Rules:
    """Learn rules on the edges of a graph, within a budget of processor time. `valid` are further edges that choose how
    many rules are combined; without them a share of the edges is held out for this, while rules are learned from all.

    `warnings` of the result report what the budget left out. Raises `LinkModelError` for a graph without edges.
    """
    options = options or horn.Learning()
    begin = time.process_time()
    if not len(edges.triples):
        raise LinkModelError("there are no edges to learn rules from", hint="load relations between entities first")
    rng = np.random.default_rng(options.seed)
    warnings: list[str] = []
    paths = horn.Paths(edges)
    features = horn.Features(paths)
    constant, share_counted = horn.learn_constant(features, options, rng, begin + 0.2 * options.seconds)
    middle = time.process_time()
    seconds_left = max(0.0, begin + 0.75 * options.seconds - middle)
    cyclic, share_measured = horn.learn_cyclic(paths, edges, options, rng, middle + seconds_left, middle + 0.2 * seconds_left)
    if share_counted < 1.0:
        warnings.append(
            f"the budget of {options.seconds:g} s allowed {share_counted:.0%} of the rules with constants to be counted"
        )
    if share_measured < 1.0:
        warnings.append(f"the budget of {options.seconds:g} s allowed {share_measured:.0%} of the sampled paths to be measured")
    if not len(constant.body) and not len(cyclic.code):
        warnings.append("no rules were found, so that nothing is predicted")
    about = {"by": "condgraph rules", **asdict(options), "warnings": warnings}
    choice = np.full(2 * len(edges.relations), _DEFAULT, np.int64)
    rules = Rules(edges, cyclic, constant, choice, about)
    if valid is None:
        remaining, valid = held_out(edges, options.validation, rng)
        # The rules were learned from the held-out edges too, but no rule counts as right by the predicted edge itself.
        choosing = Rules(remaining, cyclic, _translated(features, constant, horn.Features(horn.Paths(remaining))), choice, {})
    else:
        choosing = rules
    _choose(choosing, valid, edges, begin + options.seconds, rng, choice)
    return rules


def _translated(old: horn.Features, rules: horn.Constant, new: horn.Features) -> horn.Constant:
    """Translate rules with constants to the features of fewer edges; rules whose features are gone are left out."""
    n = new.paths.n
    keys = (new.step ^ 1) * n + new.constant
    old_keys = (old.step ^ 1) * n + old.constant
    at = np.minimum(np.searchsorted(keys, old_keys), max(len(keys) - 1, 0))
    number = np.where(keys[at] == old_keys, at, -1) if len(keys) else np.full(len(old_keys), -1)
    number = np.append(number, new.size + np.arange(new.paths.steps))
    target, body = number[rules.target], number[rules.body]
    keep = (target >= 0) & (body >= 0)
    return horn.Constant(target[keep], body[keep], rules.right[keep], rules.predicted[keep])


def _choose(model: Rules, valid: Edges, known: Edges, until: float, rng: np.random.Generator, choice: Ints) -> None:
    """Choose, for each relation and direction, the number of combined rules that ranks held-out edges best. Those with
    the most edges come first; after the budget, the rest get the number that is best for the former together.
    """
    n = len(model.entities)
    queries = [(valid.ends(inverse), *np.divmod(valid.ends(inverse).keys, n)) for inverse in (False, True)]
    counts = np.stack([np.bincount(relation, minlength=len(model.relations)) for _, relation, _ in queries], axis=1).ravel()
    overall = np.zeros(len(CHOICES))
    order = np.argsort(-counts, kind="stable")
    for place, key in enumerate(order.tolist()):
        r, inverse = divmod(key, 2)
        if not counts[key] or time.process_time() >= until:
            if overall.any():
                choice[order[place:]] = CHOICES[int(np.argmax(overall))]
            return
        ends, relation, node = queries[inverse]
        groups = np.flatnonzero(relation == r)
        if len(groups) > _LOOKED_AT:
            groups = np.sort(rng.choice(groups, _LOOKED_AT, replace=False))
        total = _reciprocal_ranks(model, known, groups, node[groups], ends, r, bool(inverse))
        overall += total
        choice[key] = CHOICES[int(np.argmax(total))]


def _reciprocal_ranks(
    model: Rules, known: Edges, groups: Ints, nodes: Ints, ends: Ends, relation: int, inverse: bool
) -> NDArray[np.float64]:
    """Return the sum of the filtered reciprocal ranks of some queries, for each number of combined rules."""
    n = len(model.entities)
    offsets, items = known.ends(inverse).of(nodes, relation)
    total = np.zeros(len(CHOICES))
    for begin in range(0, len(groups), _AT_ONCE):
        batch = groups[begin : begin + _AT_ONCE]
        key, best = model._best(nodes[begin : begin + _AT_ONCE], relation, inverse)
        at = np.searchsorted(key, np.arange(len(batch) + 1) * n)
        for choice_number, most in enumerate(CHOICES):
            scores = _noisy_or(best, most)
            for row, group in enumerate(batch.tolist()):
                dense = np.zeros(n, np.float32)
                dense[key[at[row] : at[row + 1]] - row * n] = scores[at[row] : at[row + 1]]
                tails = ends.items[ends.offsets[group] : ends.offsets[group + 1]]
                known_tails = np.concatenate([tails, items[offsets[begin + row] : offsets[begin + row + 1]]])
                total[choice_number] += float((1 / rank_among(dense, tails, known_tails)).sum())
    return total
