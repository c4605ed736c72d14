"""Calibrated, thresholded rows of a link prediction model, stored in a memory-mapped folder (QTO, Eq. 3 and 4)."""

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
# The numbers of a graph's entities and relations in a model.


_HINT_NAMES = "entities of a model are named by the ids of the graph's, relations by its predicates"


class Alignment:
    """The edges of a graph in the numbers of a model. Raises `LinkModelError` for a model of another graph, which
    shares no entity or no relation with this one.
    """

    def __init__(self, model: LinkModel, edges: Edges) -> None:
        self.model = model
        self._numbers = {name: number for number, name in enumerate(model.entities)}
        self._relations = {name: number for number, name in enumerate(model.relations)}
        entity_numbers = [self._numbers.get(name, -1) for name in edges.entities]
        #: The model's number of each entity of the graph, and of each relation; -1 if it has none.
        self.entities: Ints = np.array(entity_numbers, np.int64)
        self.relations: Ints = np.array([self._relations.get(name, -1) for name in edges.relations], np.int64)
        for kind, numbers, model_names in (
            ("entities", self.entities, model.entities),
            ("relations", self.relations, model.relations),
        ):
            if not (numbers >= 0).any():
                raise LinkModelError(
                    f"the model is of another graph: none of its {len(model_names):,} {kind} is in this one", hint=_HINT_NAMES
                )
        triples = np.stack(
            [self.entities[edges.triples[:, 0]], self.relations[edges.triples[:, 1]], self.entities[edges.triples[:, 2]]], axis=1
        )
        #: The edges of the graph between entities, and by relations, that the model has.
        self.edges = Edges(model.entities, model.relations, triples[(triples >= 0).all(axis=1)])

    @property
    def warnings(self) -> list[str]:
        """Messages about entities and relations of the graph that the model does not know."""
        messages: list[str] = []
        for kind, numbers in (("entities", self.entities), ("relations", self.relations)):
            unknown = int((numbers < 0).sum())
            if unknown:
                messages.append(
                    f"the model does not know {unknown:,} of the graph's {len(numbers):,} {kind}; nothing is predicted of them"
                )
        return messages

    def relation(self, name: str) -> int:
        return relation_of(self.model, self._relations, name)


def relation_of(model: Any, numbers: dict[str, int], name: str) -> int:
    """Return the number of a relation of a model; raises `LinkModelError` if it has no such relation."""
    number = numbers.get(name)
    if number is None:
        raise LinkModelError(
            f"the model has no relation {name!r}",
            candidates=nearest(name, model.relations),
            hint=f"it was trained on {len(model.relations)} relations; train one on a graph that has it",
        )
    return number


# -- calibration -------------------------------------------------------------------------------------
# From raw scores of links to degrees of truth (QTO, Eq. 3 and 4), and which of them are stored.
#
#     r(h, t) = min(exp f(h, t) * N / sum over e of exp f(h, e), 1 - delta),    N = max(1, tails that h has)
#
# Edges of the graph have score 1 whatever a model predicts: callers that know the graph set it, and no
# predicted score is 1.


#: The defaults of the paper: the distance of predictions from 1, and the lowest score that is stored.
DELTA: Final = 1e-4
EPSILON: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Threshold:
    """The scores of a row that are stored: those of at least `epsilon`, the best `cap` of them (None: all), lowered to
    at most 1 - `delta`. Raises `OptionError` for invalid values.
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
    """Return raw scores, shape (heads, entities), as scores in [0, 1 - delta]. `tails`, shape (heads,), is the number
    of tails of each head in the graph.
    """
    result = scores.astype(np.float64)
    result -= result.max(axis=1, keepdims=True)
    np.exp(result, out=result)
    result *= np.maximum(tails, 1)[:, None] / result.sum(axis=1, keepdims=True)
    return np.minimum(result, 1 - delta, out=result)


def kept_of(scores: NDArray[np.float32], tails: Ints, epsilon: float) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """Return the entries of raw scores whose calibrated score is at least `epsilon`: row, entity and score (not yet
    limited to 1 - delta), by row. Same result as `calibrated`, without converting the other scores to float64.
    """
    top = scores.max(axis=1, keepdims=True)
    powers = scores - top
    np.exp(powers, out=powers)
    share = np.maximum(tails, 1) / powers.sum(axis=1, dtype=np.float64)
    # Compare with slightly less, so that rounding loses no entry; the exact test follows.
    row, entity = np.nonzero(powers >= (0.9999 * epsilon / share)[:, None].astype(np.float32))
    calibrated_scores = np.exp(scores[row, entity].astype(np.float64) - top[row, 0]) * share[row]
    valid = (calibrated_scores >= epsilon) & (calibrated_scores > 0)
    return row[valid], entity[valid], calibrated_scores[valid]


def thresholded(
    heads: int, row: Ints, column: Ints, values: NDArray[np.float64], keep: Threshold
) -> tuple[Ints, Ints, NDArray[np.float32]]:
    """Apply a threshold to the entries of calibrated rows, sorted by row and entity. Returns offsets (heads + 1),
    entities and values. Of equal values at the cap the entity with the lower number is kept.
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
#     FOLDER/rows.json      the model, graph and threshold, and the table of the arrays
#     FOLDER/HASH.arrays    for each relation and direction: the heads that have a row (ascending),
#                           offsets, entities (uint16 if there are few, else int32), values (float32)
#
# New arrays are written next to the old ones; renaming `rows.json` switches to them.


FORMAT: Final = 1
_HINT: Final = "make the rows again with `keep_rows`"
#: Called with the number of rows done, and of all.
OnRows = Callable[[int, int], None]


def fingerprint_of(model: LinkModel) -> str:
    """Return a hash of a model: its own `fingerprint` if it has one, else a hash of its names and the scores of a few
    heads.
    """
    model_fingerprint = getattr(model, "fingerprint", None)
    if isinstance(model_fingerprint, str):
        return model_fingerprint
    digest = blake2b(json.dumps([list(model.entities), list(model.relations), model.calibrated]).encode(), digest_size=16)
    heads = np.unique(np.linspace(0, len(model.entities) - 1, 4).astype(np.int64))
    for relation in range(len(model.relations)):
        digest.update(np.ascontiguousarray(model.score_tails(heads, relation), np.float32).data.cast("B"))
    return digest.hexdigest()


def keyed(model: LinkModel, edges: Edges, keep: Threshold) -> str:
    """Return the key of stored rows: a hash of the model, the graph and the threshold."""
    text = json.dumps([fingerprint_of(model), edges.fingerprint, asdict(keep), FORMAT])
    return blake2b(text.encode(), digest_size=16).hexdigest()


class StoredRows:
    """Stored rows as a model (`LinkModel`), calibrated; scores that were not stored are 0. Made by `keep_rows` or
    `open_rows`.
    """

    def __init__(self, about: dict[str, Any], arrays: ArrayFile) -> None:
        self.entities: Sequence[str] = tuple(about["entities"])
        self.relations: Sequence[str] = tuple(about["relations"])
        self.key: str = about["key"]
        self.threshold = Threshold(**about["threshold"])
        self.warnings: tuple[str, ...] = tuple(about["warnings"])
        self._is_complete: bool = about["heads"] is None
        self._stored: set[tuple[int, bool]] = {(int(relation), bool(inverse)) for relation, inverse in about["kept"]}
        self._heads: Ints | None = None if self._is_complete else np.asarray(about["heads"], np.int64)
        self._arrays = arrays

    @property
    def calibrated(self) -> bool:
        """True."""
        return True

    @property
    def fingerprint(self) -> str:
        return self.key

    @property
    def entries(self) -> int:
        """The number of stored scores."""
        return sum(len(self._arrays.get(f"{_name(*item)}.ids")) for item in self._stored)

    @property
    def size(self) -> int:
        """The size of the arrays in bytes."""
        return int(self._arrays.size)

    def rows(self, heads: Ints, relation: int, *, inverse: bool = False) -> tuple[Ints, Ints, Floats]:
        """Return the rows of heads: offsets (heads + 1), entities ascending in each row, values.

        Raises `LinkModelError` for rows that were not stored.
        """
        if (relation, inverse) not in self._stored:
            raise LinkModelError(f"no rows are stored for {self.relations[relation]!r}", hint=_HINT)
        if self._heads is not None and not np.isin(heads, self._heads).all():
            missing = int(heads[~np.isin(heads, self._heads)][0])
            raise LinkModelError(f"no row is stored for the entity {self.entities[missing]!r}", hint=_HINT)
        name = _name(relation, inverse)
        stored_heads, offsets = self._arrays.get(f"{name}.heads"), self._arrays.get(f"{name}.offsets")
        if not len(stored_heads):
            return np.zeros(len(heads) + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
        at = np.minimum(np.searchsorted(stored_heads, heads), len(stored_heads) - 1)
        present = stored_heads[at] == heads
        begin, end = np.where(present, offsets[at], 0), np.where(present, offsets[at + 1], 0)
        entries = ranges(begin, end)
        ids = self._arrays.get(f"{name}.ids")[entries].astype(np.int64)
        return np.append(0, np.cumsum(end - begin)), ids, self._arrays.get(f"{name}.values")[entries]

    def score_tails(self, heads: NDArray[np.int64], relation: int, *, inverse: bool = False) -> Floats:
        """See `LinkModel.score_tails`."""
        offsets, ids, values = self.rows(heads, relation, inverse=inverse)
        scores = np.zeros((len(heads), len(self.entities)), np.float32)
        scores[np.arange(len(heads)).repeat(np.diff(offsets)), ids] = values
        return scores


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
    """Score heads by all relations (or some), calibrate the scores, and store those above the threshold.

    Rows that the folder already has, for the same model, graph, threshold and selection, are reused. `edges` are those
    of the graph: the calibration needs the number of tails of a head. Raises `LinkModelError` for a model of another
    graph, an unknown relation or entity, or NaN.
    """
    keep = keep or Threshold()
    path = Path(folder)
    alignment = Alignment(model, edges)
    chosen = range(len(model.relations)) if relations is None else sorted({alignment.relation(name) for name in relations})
    numbers = _heads(model, heads)
    directions = [[relation, inverse] for relation in chosen for inverse in (False, True)]
    key = keyed(model, edges, keep)
    about = {
        "format": FORMAT,
        "key": key,
        "threshold": asdict(keep),
        "entities": list(model.entities),
        "relations": list(model.relations),
        "kept": directions,
        "heads": None if heads is None else numbers.tolist(),
        "warnings": [*alignment.warnings, *getattr(model, "warnings", ())],
    }
    stored = _about(path)
    if stored is not None and all(stored.get(name) == about[name] for name in ("format", "key", "kept", "heads")):
        return open_rows(path)
    fits_uint16 = len(model.entities) <= 1 << 16
    arrays: dict[str, NDArray[Any]] = {}
    done, total = 0, len(directions) * len(numbers)
    for relation, inverse in directions:
        parts = list(_scored(model, alignment.edges, numbers, int(relation), bool(inverse), keep))
        name = _name(relation, bool(inverse))
        counts = np.concatenate([np.diff(offsets) for offsets, _, _ in parts]) if parts else np.empty(0, np.int64)
        nonempty = counts > 0
        arrays[f"{name}.heads"] = numbers[nonempty].astype(np.int32)
        arrays[f"{name}.offsets"] = np.append(0, np.cumsum(counts[nonempty]))
        ids = np.concatenate([ids for _, ids, _ in parts]) if parts else np.empty(0, np.int64)
        arrays[f"{name}.ids"] = ids.astype(np.uint16 if fits_uint16 else np.int32)
        arrays[f"{name}.values"] = np.concatenate([values for _, _, values in parts]) if parts else np.empty(0, np.float32)
        done += len(numbers)
        if on_rows is not None:
            on_rows(done, total)
    _write(path, about, arrays)
    return open_rows(path)


def open_rows(folder: str | os.PathLike[str], *, model: LinkModel | None = None, edges: Edges | None = None) -> StoredRows:
    """Open the rows of a folder. Raises `LinkModelError` if `model` and `edges` are given and the rows were made from
    others, `StoreError` for a folder without rows or with damaged ones.
    """
    path = Path(folder)
    about = _about(path)
    if about is None:
        raise StoreMissingError(f"{path} has no rows of links", hint=_HINT)
    if about.get("format") != FORMAT:
        raise StoreVersionError(f"{path / 'rows.json'} has format {about.get('format')}, this version reads {FORMAT}", hint=_HINT)
    try:
        rows = StoredRows(about, ArrayFile(path / about["file"], about["arrays"]))
    except (KeyError, TypeError) as error:
        raise StoreDamagedError(f"{path / 'rows.json'} lacks {error}", hint=_HINT) from None
    if model is not None and edges is not None and rows.key != keyed(model, edges, rows.threshold):
        raise LinkModelError(f"the rows in {path} are of another model or graph, or the graph has changed", hint=_HINT)
    return rows


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
        batch = heads[start : start + step]
        scores = np.asarray(model.score_tails(batch, relation, inverse=inverse))
        if scores.shape != (len(batch), n):
            raise LinkModelError(f"the model gave scores of shape {scores.shape}, not {(len(batch), n)}")
        check_scores(scores, model, relation)
        if model.calibrated:
            row, entity = np.nonzero(scores >= keep.epsilon)
            kept_scores = scores[row, entity].astype(np.float64)
        else:
            row, entity, kept_scores = kept_of(scores, np.diff(edges.ends(inverse).of(batch, relation)[0]), keep.epsilon)
        yield thresholded(len(batch), row, entity, kept_scores, keep)


def _name(relation: int, inverse: bool) -> str:
    return f"{relation}{'-' if inverse else '+'}"


def _about(place: Path) -> dict[str, Any] | None:
    path = place / "rows.json"
    try:
        about = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise StoreDamagedError(f"{path} cannot be read: {error}", hint=_HINT) from None
    if not isinstance(about, dict):
        raise StoreDamagedError(f"{path} is not a JSON object", hint=_HINT)
    return about


def _write(place: Path, about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    place.mkdir(parents=True, exist_ok=True)
    name = f"{about['key'][:24]}.{os.getpid()}.arrays"
    previous = _about(place)
    temporary = place / f".{name}"
    temporary.unlink(missing_ok=True)
    table = write_arrays(temporary, arrays)
    os.replace(temporary, place / name)
    manifest = place / f".rows.json.{os.getpid()}"
    manifest.write_text(json.dumps({**about, "file": name, "arrays": table}), "utf-8")
    os.replace(manifest, place / "rows.json")
    if previous is not None and previous.get("file") not in (None, name):
        # Take only the file name: the manifest may have been tampered with.
        (place / Path(str(previous["file"])).name).unlink(missing_ok=True)
