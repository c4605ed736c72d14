"""Calibrated, thresholded rows of a link prediction model in a mapped folder (QTO, Eq. 3 and 4)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.bounds import check
from condgraph.engine.errors import LinkModelError, OptionError, StoreDamagedError, StoreMissingError, StoreVersionError, nearest
from condgraph.engine.snapshot.container import ArrayFile, write_arrays
from condgraph.engine.snapshot.snapshot import ranges
from condgraph.links.edges import Edges, Ints
from condgraph.links.embeddings import Floats, check_scores, rows_of
from condgraph.links.model import LinkModel

# -- alignment ---------------------------------------------------------------------------------------
# Whose entities a model knows: the numbers of a graph's entities and relations in a model.


_SAME = "entities of a model are named by the ids of the graph's, relations by its predicates"


class Alignment:
    """The edges of a graph in the numbers of a model. Raises `LinkModelError` for a model of
    another graph: none of its entities, or none of its relations, is in this one.
    """

    def __init__(self, model: LinkModel, edges: Edges) -> None:
        self.model = model
        self._numbers = {name: number for number, name in enumerate(model.entities)}
        self._relations = {name: number for number, name in enumerate(model.relations)}
        places = [self._numbers.get(name, -1) for name in edges.entities]
        #: The model's number of each entity of the graph, and of each relation; -1 for none.
        self.entities: Ints = np.array(places, np.int64)
        self.relations: Ints = np.array([self._relations.get(name, -1) for name in edges.relations], np.int64)
        for what, mine, theirs in (("entities", self.entities, model.entities), ("relations", self.relations, model.relations)):
            if not (mine >= 0).any():
                raise LinkModelError(
                    f"the model is of another graph: none of its {len(theirs):,} {what} is in this one", hint=_SAME
                )
        triples = np.stack(
            [self.entities[edges.triples[:, 0]], self.relations[edges.triples[:, 1]], self.entities[edges.triples[:, 2]]], axis=1
        )
        #: The graph's edges that the model can number.
        self.edges = Edges(model.entities, model.relations, triples[(triples >= 0).all(axis=1)])

    @property
    def warnings(self) -> list[str]:
        """What of the graph the model does not know."""
        result: list[str] = []
        for what, numbers in (("entities", self.entities), ("relations", self.relations)):
            unknown = int((numbers < 0).sum())
            if unknown:
                result.append(
                    f"the model does not know {unknown:,} of the graph's {len(numbers):,} {what}; nothing is predicted of them"
                )
        return result

    def relation(self, name: str) -> int:
        """The model's number of a relation; raises `LinkModelError` for one that it lacks."""
        return relation_of(self.model, self._relations, name)


def relation_of(model: Any, numbers: dict[str, int], name: str) -> int:
    """The number of a relation; raises `LinkModelError` where there is none."""
    result = numbers.get(name)
    if result is None:
        raise LinkModelError(
            f"the model has no relation {name!r}",
            candidates=nearest(name, model.relations),
            hint=f"it was trained on {len(model.relations)} relations; train one on a graph that has it",
        )
    return result


# -- calibration -------------------------------------------------------------------------------------
# From raw scores of links to how true they are (QTO, Eq. 3 and 4), and which are kept.
#
#     r(h, t) = min(exp f(h, t) * N / sum over e of exp f(h, e), 1 - delta),    N = max(1, tails that h has)
#
# An edge of the graph is 1 whatever a model says; that is left to those who know the graph, since no
# score may mean "observed".


#: The defaults of the paper for how far below 1 a prediction stays, and of the least that is kept.
DELTA: Final = 1e-4
EPSILON: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Threshold:
    """What is kept of a row: scores of at least `epsilon`, at most `cap` of them, the best (all
    where None), none above 1 - `delta`.
    """

    epsilon: float = EPSILON
    delta: float = DELTA
    cap: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < 1:
            raise OptionError(f"epsilon is more than 0 and less than 1, not {self.epsilon}")
        # Scores are float32, whose next number below 1 is 6e-8 away.
        if not 1e-6 <= self.delta < 1:
            raise OptionError(f"delta is at least 0.000001 and less than 1, not {self.delta}")
        if self.epsilon > 1 - self.delta:
            raise OptionError(f"no score is {self.epsilon} or more, since none is above 1 - delta, {1 - self.delta}")
        if self.cap is not None and self.cap < 1:
            raise OptionError(f"cap is at least 1, or None for no limit, not {self.cap}")


def calibrated(scores: NDArray[Any], tails: Ints, delta: float = DELTA) -> NDArray[np.float64]:
    """Scores in [0, 1 - delta] of raw scores, shape (heads, entities); `tails` (heads,) is how many
    tails each head has in the graph.
    """
    result = scores.astype(np.float64)
    result -= result.max(axis=1, keepdims=True)
    np.exp(result, out=result)
    result *= np.maximum(tails, 1)[:, None] / result.sum(axis=1, keepdims=True)
    return np.minimum(result, 1 - delta, out=result)


def kept_of(scores: NDArray[np.float32], tails: Ints, epsilon: float) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """The entries of raw scores whose calibrated score is at least `epsilon`: row, entity and score
    (not yet held below 1), by row. As `calibrated`, without float64 for all that is not kept.
    """
    top = scores.max(axis=1, keepdims=True)
    powers = scores - top
    np.exp(powers, out=powers)
    share = np.maximum(tails, 1) / powers.sum(axis=1, dtype=np.float64)
    # A little less, so that rounding loses nothing; what is kept is looked at again.
    row, entity = np.nonzero(powers >= (0.9999 * epsilon / share)[:, None].astype(np.float32))
    result = np.exp(scores[row, entity].astype(np.float64) - top[row, 0]) * share[row]
    right = (result >= epsilon) & (result > 0)
    return row[right], entity[right], result[right]


def thresholded(
    heads: int, row: Ints, column: Ints, values: NDArray[np.float64], keep: Threshold
) -> tuple[Ints, Ints, NDArray[np.float32]]:
    """What a threshold keeps of the entries of calibrated rows, ascending by row and entity:
    offsets (heads + 1), entities, values. Equal values at the cap are kept by the smaller number.
    """
    result = np.minimum(values, 1 - keep.delta)
    if keep.cap is not None and len(row):
        order = np.lexsort((column, -result, row))
        counts = np.bincount(row, minlength=heads)
        place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        order = np.sort(order[place < keep.cap])
        row, column, result = row[order], column[order], result[order]
    offsets = np.append(0, np.cumsum(np.bincount(row, minlength=heads)))
    return offsets.astype(np.int64), column.astype(np.int64), result.astype(np.float32)


# -- store -------------------------------------------------------------------------------------------
# FOLDER/rows.json      of which model, graph and threshold, and the table of the arrays
#     FOLDER/HASH.arrays    for each relation and direction: the heads that have a row (ascending),
#                           offsets, entities (uint16 where they are few, else int32), values (float32)
#
# New folders are written next to the old ones, and switched by renaming `rows.json`.


FORMAT: Final = 1
_AGAIN: Final = "make the rows again with `keep_rows`"
#: Hears how many rows are done, of how many.
OnRows = Callable[[int, int], None]


def fingerprint_of(model: LinkModel) -> str:
    """A hash of a model: its own `fingerprint`, else of its names and of scores of a few heads."""
    own = getattr(model, "fingerprint", None)
    if isinstance(own, str):
        return own
    result = blake2b(json.dumps([list(model.entities), list(model.relations), model.calibrated]).encode(), digest_size=16)
    heads = np.unique(np.linspace(0, len(model.entities) - 1, 4).astype(np.int64))
    for relation in range(len(model.relations)):
        result.update(np.ascontiguousarray(model.score_tails(heads, relation), np.float32).data.cast("B"))
    return result.hexdigest()


def keyed(model: LinkModel, edges: Edges, keep: Threshold) -> str:
    """The key of rows: a hash of model, graph and threshold."""
    text = json.dumps([fingerprint_of(model), edges.fingerprint, asdict(keep), FORMAT])
    return blake2b(text.encode(), digest_size=16).hexdigest()


class StoredRows:
    """Kept rows as a model (`LinkModel`), calibrated: what was not kept is 0. Made by `keep_rows`,
    opened by `open_rows`.
    """

    def __init__(self, about: dict[str, Any], arrays: ArrayFile) -> None:
        self.entities: Sequence[str] = tuple(about["entities"])
        self.relations: Sequence[str] = tuple(about["relations"])
        self.key: str = about["key"]
        self.threshold = Threshold(**about["threshold"])
        self.warnings: tuple[str, ...] = tuple(about["warnings"])
        self._whole: bool = about["heads"] is None
        self._asked: set[tuple[int, bool]] = {(int(relation), bool(inverse)) for relation, inverse in about["kept"]}
        self._only: Ints | None = None if self._whole else np.asarray(about["heads"], np.int64)
        self._arrays = arrays

    @property
    def calibrated(self) -> bool:
        """Always."""
        return True

    @property
    def fingerprint(self) -> str:
        """Its key."""
        return self.key

    @property
    def entries(self) -> int:
        """How many scores are kept."""
        return sum(len(self._arrays.get(f"{_name(*item)}.ids")) for item in self._asked)

    @property
    def size(self) -> int:
        """Bytes of the arrays."""
        return int(self._arrays.size)

    def rows(self, heads: Ints, relation: int, *, inverse: bool = False) -> tuple[Ints, Ints, Floats]:
        """The rows of heads: offsets (heads + 1), entities ascending in each row, values.

        Raises `LinkModelError` for rows that were not asked to be kept.
        """
        if (relation, inverse) not in self._asked:
            raise LinkModelError(f"no rows are kept of {self.relations[relation]!r}", hint=_AGAIN)
        if self._only is not None and not np.isin(heads, self._only).all():
            missing = int(heads[~np.isin(heads, self._only)][0])
            raise LinkModelError(f"no row is kept of the entity {self.entities[missing]!r}", hint=_AGAIN)
        name = _name(relation, inverse)
        known, offsets = self._arrays.get(f"{name}.heads"), self._arrays.get(f"{name}.offsets")
        if not len(known):
            return np.zeros(len(heads) + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
        at = np.minimum(np.searchsorted(known, heads), len(known) - 1)
        there = known[at] == heads
        begin, end = np.where(there, offsets[at], 0), np.where(there, offsets[at + 1], 0)
        entries = ranges(begin, end)
        ids = self._arrays.get(f"{name}.ids")[entries].astype(np.int64)
        return np.append(0, np.cumsum(end - begin)), ids, self._arrays.get(f"{name}.values")[entries]

    def score_tails(self, heads: NDArray[np.int64], relation: int, *, inverse: bool = False) -> Floats:
        """See `LinkModel.score_tails`."""
        offsets, ids, values = self.rows(heads, relation, inverse=inverse)
        result = np.zeros((len(heads), len(self.entities)), np.float32)
        result[np.arange(len(heads)).repeat(np.diff(offsets)), ids] = values
        return result


def keep_rows(
    model: LinkModel,
    edges: Edges,
    folder: str | os.PathLike[str],
    keep: Threshold | None = None,
    *,
    relations: Sequence[str] | None = None,
    heads: Sequence[str] | None = None,
    on_rows: OnRows | None = None,
) -> StoredRows:
    """Score heads by all relations (or by some), calibrate, and keep what is above the threshold.

    Rows that the folder has already, of the same model, graph, threshold and choice, are taken as
    they are. `edges` are those of the graph: they say how many tails a head has. Raises
    `LinkModelError` for a model of another graph, a relation or entity it lacks, or NaN.
    """
    keep = keep or Threshold()
    place = Path(folder)
    aligned = Alignment(model, edges)
    chosen = range(len(model.relations)) if relations is None else sorted({aligned.relation(name) for name in relations})
    numbers = _heads(model, heads)
    wanted = [[relation, inverse] for relation in chosen for inverse in (False, True)]
    key = keyed(model, edges, keep)
    about = {
        "format": FORMAT,
        "key": key,
        "threshold": asdict(keep),
        "entities": list(model.entities),
        "relations": list(model.relations),
        "kept": wanted,
        "heads": None if heads is None else numbers.tolist(),
        "warnings": [*aligned.warnings, *getattr(model, "warnings", ())],
    }
    before = _about(place)
    if before is not None and all(before.get(name) == about[name] for name in ("format", "key", "kept", "heads")):
        return open_rows(place)
    narrow = len(model.entities) <= 1 << 16
    arrays: dict[str, NDArray[Any]] = {}
    done, total = 0, len(wanted) * len(numbers)
    for relation, inverse in wanted:
        parts = list(_scored(model, aligned.edges, numbers, int(relation), bool(inverse), keep))
        name = _name(relation, bool(inverse))
        counts = np.concatenate([np.diff(offsets) for offsets, _, _ in parts]) if parts else np.empty(0, np.int64)
        there = counts > 0
        arrays[f"{name}.heads"] = numbers[there].astype(np.int32)
        arrays[f"{name}.offsets"] = np.append(0, np.cumsum(counts[there]))
        ids = np.concatenate([ids for _, ids, _ in parts]) if parts else np.empty(0, np.int64)
        arrays[f"{name}.ids"] = ids.astype(np.uint16 if narrow else np.int32)
        arrays[f"{name}.values"] = np.concatenate([values for _, _, values in parts]) if parts else np.empty(0, np.float32)
        done += len(numbers)
        if on_rows is not None:
            on_rows(done, total)
    _write(place, about, arrays)
    return open_rows(place)


def open_rows(folder: str | os.PathLike[str], *, model: LinkModel | None = None, edges: Edges | None = None) -> StoredRows:
    """The rows of a folder; raises `LinkModelError` where `model` and `edges` are given and these
    are rows of others, `StoreError` for a folder without rows, or damaged ones.
    """
    place = Path(folder)
    about = _about(place)
    if about is None:
        raise StoreMissingError(f"there are no rows of links in {place}", hint=_AGAIN)
    if about.get("format") != FORMAT:
        raise StoreVersionError(f"{place / 'rows.json'} has format {about.get('format')}, this version reads {FORMAT}", hint=_AGAIN)
    try:
        result = StoredRows(about, ArrayFile(place / about["file"], about["arrays"]))
    except (KeyError, TypeError) as error:
        raise StoreDamagedError(f"{place / 'rows.json'} lacks {error}", hint=_AGAIN) from None
    if model is not None and edges is not None and result.key != keyed(model, edges, result.threshold):
        raise LinkModelError(f"the rows in {place} are of another model or graph, or the graph has changed", hint=_AGAIN)
    return result


def _heads(model: LinkModel, heads: Sequence[str] | None) -> Ints:
    if heads is None:
        return np.arange(len(model.entities), dtype=np.int64)
    numbers = {name: number for number, name in enumerate(model.entities)}
    unknown = [name for name in heads if name not in numbers]
    if unknown:
        raise LinkModelError(f"the model does not know the entity {unknown[0]!r}")
    return np.unique(np.array([numbers[name] for name in heads], np.int64))


def _scored(
    model: LinkModel, edges: Edges, heads: Ints, relation: int, inverse: bool, keep: Threshold
) -> Iterator[tuple[Ints, Ints, Floats]]:
    n = len(model.entities)
    step = rows_of(len(heads), n)
    for start in range(0, len(heads), step):
        check()
        part = heads[start : start + step]
        scores = np.asarray(model.score_tails(part, relation, inverse=inverse))
        if scores.shape != (len(part), n):
            raise LinkModelError(f"the model gave scores of shape {scores.shape}, not {(len(part), n)}")
        check_scores(scores, model, relation)
        if model.calibrated:
            row, entity = np.nonzero(scores >= keep.epsilon)
            result = scores[row, entity].astype(np.float64)
        else:
            row, entity, result = kept_of(scores, np.diff(edges.ends(inverse).of(part, relation)[0]), keep.epsilon)
        yield thresholded(len(part), row, entity, result, keep)


def _name(relation: int, inverse: bool) -> str:
    return f"{relation}{'-' if inverse else '+'}"


def _about(place: Path) -> dict[str, Any] | None:
    path = place / "rows.json"
    try:
        result = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise StoreDamagedError(f"{path} cannot be read: {error}", hint=_AGAIN) from None
    if not isinstance(result, dict):
        raise StoreDamagedError(f"{path} is no JSON object", hint=_AGAIN)
    return result


def _write(place: Path, about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    place.mkdir(parents=True, exist_ok=True)
    name = f"{about['key'][:24]}.{os.getpid()}.arrays"
    before = _about(place)
    fresh = place / f".{name}"
    fresh.unlink(missing_ok=True)
    table = write_arrays(fresh, arrays)
    os.replace(fresh, place / name)
    manifest = place / f".rows.json.{os.getpid()}"
    manifest.write_text(json.dumps({**about, "file": name, "arrays": table}), "utf-8")
    os.replace(manifest, place / "rows.json")
    if before is not None and before.get("file") not in (None, name):
        # A name alone: a manifest of others may say anything.
        (place / Path(str(before["file"])).name).unlink(missing_ok=True)
