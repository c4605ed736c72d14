"""Drawings of statements, subgraphs, plans and schemas, for notebooks and files: one SVG, without scripts, styles or
external addresses, laid out by stress (Gansner, Koren and North, Graph Drawing by Stress Majorization, 2004).
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from condgraph.engine.algebra import Node, postorder
from condgraph.engine.describe import describe
from condgraph.engine.facts import Entity, EntityKind, shown
from condgraph.engine.html import escaped
from condgraph.engine.records import Evidence
from condgraph.engine.values import text_of

Points = NDArray[np.float64]
Kind = Literal["entity", "concept", "value", "group", "answer"]

#: The largest numbers of nodes, of statements examined, and of edges of one predicate at one node that are drawn
#: separately (more are grouped); for schemas, of predicates between two kinds, and in all.
MAX_NODES: Final = 40
MAX_STATEMENTS: Final = 500
MAX_UNGROUPED: Final = 5
MAX_PARALLEL: Final = 12
MAX_ARROWS: Final = 200
_MAX_LABEL: Final = 30
#: Sizes in pixels: of a letter, of a box beyond its text, and between boxes.
_LETTER, _HEIGHT, _PADDING, _GAP, _LENGTH = 6.6, 24.0, 14.0, 22.0, 120.0
#: The ratio of width to height of a component.
_WIDER: Final = 1.5
#: A component with a larger ratio counts as a line.
_LINE: Final = 2.0
#: Positions of a text along its edge, the best first.
_SHARES: Final = (0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74)
_COLOURS: Final[dict[Kind, tuple[str, str]]] = {
    "entity": ("#e8f0fe", "#3367d6"),
    "concept": ("#e6f4ea", "#188038"),
    "value": ("#f8f9fa", "#80868b"),
    "group": ("#f1e6ff", "#8430ce"),
    "answer": ("#fef0c7", "#b06000"),
}


@dataclass(frozen=True, slots=True)
class Box:
    """A node: its text and its kind."""

    text: str
    kind: Kind = "entity"


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge between two nodes, by number, with its text and a smaller one below it."""

    start: int
    end: int
    text: str
    below: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Nodes and edges as a picture; `left_out` describes what it does not show."""

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    left_out: str = ""

    @property
    def svg(self) -> str:
        """The picture as SVG."""
        return _svg(self)

    def save(self, path: str | Path) -> Path:
        """Write the picture to an `.svg` file and return its path."""
        place = Path(path)
        place.write_text(self.svg, encoding="utf-8")
        return place

    def _repr_svg_(self) -> str:
        """The picture, for notebooks."""
        return self.svg

    def __str__(self) -> str:
        names = [box.text for box in self.boxes]
        lines = [f"{names[arrow.start]} --{arrow.text}--> {names[arrow.end]}" for arrow in self.arrows]
        return "\n".join([*lines, *filter(None, [self.left_out])])

    def __repr__(self) -> str:
        return f"<Drawing of {len(self.boxes)} nodes and {len(self.arrows)} edges>"


# -- nodes and edges ---------------------------------------------------------------------------------


class _DrawingBuilder:
    """Collects nodes and edges."""

    def __init__(self, left_out: int = 0) -> None:
        self.boxes: list[Box] = []
        self.arrows: list[Arrow] = []
        self.numbers: dict[Any, int] = {}
        self.left_out = left_out

    def box(self, key: Any, text: str, kind: Kind) -> int | None:
        """Return the number of a node, added if it is new; None if the drawing is full."""
        if key not in self.numbers:
            if len(self.boxes) >= MAX_NODES:
                return None
            self.numbers[key] = len(self.boxes)
            self.boxes.append(Box(text, kind))
        return self.numbers[key]

    def arrow(self, start: int | None, end: int | None, text: str, below: str = "", count: int = 1) -> None:
        """Add an edge, or count it as left out if one of its nodes is."""
        if start is None or end is None:
            self.left_out += count
        else:
            self.arrows.append(Arrow(start, end, text, below))


def of_statements(evidence: Sequence[Evidence], answers: Iterable[str] = (), title: str = "statements") -> Drawing:
    """Draw statements as nodes and edges, up to `MAX_NODES` nodes. `answers` are ids of entities, or texts of
    values, to highlight. More than `MAX_UNGROUPED` edges of one predicate at a node that lead to nothing else are one
    edge to a group.
    """
    statements = list(islice(evidence, MAX_STATEMENTS))
    highlighted = set(answers)
    ends = [(record, _key(record.subject), _key(record.object, record)) for record in statements]
    degree = Counter(key for _, start, end in ends for key in {start, end})
    similar = Counter(
        (key, record.predicate, key == start)
        for record, start, end in ends
        for key in (start, end)
        if degree[_other_end(key, start, end)] == 1
    )
    groups: dict[Any, list[Evidence]] = {}
    single: list[tuple[Evidence, Any, Any]] = []
    for statement, start, end in ends:
        for key in (start, end):
            group_key = (key, statement.predicate, key == start)
            if degree[_other_end(key, start, end)] == 1 and similar[group_key] > MAX_UNGROUPED and degree[key] > 1:
                groups.setdefault(group_key, []).append(statement)
                break
        else:
            single.append((statement, start, end))
    builder = _DrawingBuilder(left_out=len(evidence) - len(statements))

    def node(value: Any, key: Any) -> int | None:
        if isinstance(value, Entity):
            kind: Kind = "answer" if value.id in highlighted else "concept" if value.kind is EntityKind.CONCEPT else "entity"
            return builder.box(key, value.name, kind)
        text = text_of(value)
        return builder.box(key, text, "answer" if text in highlighted else "value")

    for group_key, members in groups.items():
        key, predicate, forward = group_key
        first = members[0]
        near = node(first.subject if forward else first.object, key)
        names = [shown(record.object if forward else record.subject) for record in members]
        group = builder.box(("group", *group_key), f"{len(names):,}: {', '.join(names[:3])}, ...", "group")
        builder.arrow(*((near, group) if forward else (group, near)), predicate, count=len(members))
    for statement, start, end in single:
        below = "; ".join(f"{key}: {shown(value)}" for key, value in statement.qualifiers)
        builder.arrow(node(statement.subject, start), node(statement.object, end), statement.predicate, below)
    more = f"and {builder.left_out:,} more statements" if builder.left_out else ""
    return Drawing(title, tuple(builder.boxes), tuple(builder.arrows), more)


def of_kinds(edges: Iterable[tuple[str, str, str, str]], title: str) -> Drawing:
    """Draw kinds as nodes, by name, and predicates (start, text, end, smaller text) between them: at most
    `MAX_PARALLEL` between two kinds, `MAX_ARROWS` in all.
    """
    builder, between = _DrawingBuilder(), Counter[tuple[str, str]]()
    for start, text, end, below in edges:
        between[start, end] += 1
        if between[start, end] > MAX_PARALLEL or len(builder.arrows) == MAX_ARROWS:
            builder.left_out += 1
            continue
        builder.arrow(builder.box(start, start, "concept"), builder.box(end, end, "concept"), text, below)
    more = f"and {builder.left_out:,} more predicates" if builder.left_out else ""
    return Drawing(title, tuple(builder.boxes), tuple(builder.arrows), more)


def of_plan(root: Node, sizes: Mapping[int, int], title: str) -> Drawing:
    """Draw the operators of a plan as nodes, with edges from their inputs; `sizes` is the number of results of some,
    by identity.
    """
    builder, nodes = _DrawingBuilder(), postorder(root)
    for node in reversed(nodes):
        size = sizes.get(id(node))
        text = describe(node) if size is None else f"{size:,} · {describe(node)}"
        builder.box(id(node), text, "answer" if node is root else "entity")
    for node in nodes:
        for input_node in node.inputs():
            builder.arrow(builder.numbers.get(id(input_node)), builder.numbers.get(id(node)), "", count=0)
    builder.left_out = len(nodes) - len(builder.boxes)
    more = f"and {builder.left_out:,} more operators" if builder.left_out else ""
    return Drawing(title, tuple(builder.boxes), tuple(builder.arrows), more)


def _key(value: Any, of: Evidence | None = None) -> Any:
    """Return the key of a node. An entity is one node; a value is one node for each subject, since equal values are
    not the same thing.
    """
    if isinstance(value, Entity):
        return ("entity", value.id)
    return ("value", of.subject.id if of is not None else "", text_of(value))


def _other_end(key: Any, start: Any, end: Any) -> Any:
    return end if key == start else start


# -- layout ------------------------------------------------------------------------------------------


def _layout(sizes: Points, pairs: NDArray[np.int64], lengths: Points) -> Points:
    """Return the centres of boxes of these sizes (shape (n, 2)): each component laid out separately, the components
    in rows.
    """
    place, part = np.zeros((len(sizes), 2)), _components(len(sizes), pairs)
    corners = []
    for number in range(int(part.max(initial=-1)) + 1):
        members = np.flatnonzero(part == number)
        inside = part[pairs[:, 0]] == number
        place[members] = _connected(sizes[members], np.searchsorted(members, pairs[inside]), lengths[inside])
        low, high = (place[members] - sizes[members] / 2).min(axis=0), (place[members] + sizes[members] / 2).max(axis=0)
        place[members] -= low
        corners.append(high - low + (48, 40))
    total_width = max(float(np.sqrt(sum(width * height for width, height in corners) * 1.8)), *(width for width, _ in corners), 1.0)
    x = y = row_height = 0.0
    for number in sorted(range(len(corners)), key=lambda number: -corners[number][1]):
        width, high = corners[number]
        if x + width > total_width:
            x, y, row_height = 0.0, y + row_height, 0.0
        place[part == number] += (x, y)
        x, row_height = x + width, max(row_height, high)
    return place


def _components(n: int, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of each node's connected component."""
    component = np.arange(n)
    while True:
        low = np.minimum(component[pairs[:, 0]], component[pairs[:, 1]])
        previous = component.copy()
        np.minimum.at(component, pairs[:, 0], low)
        np.minimum.at(component, pairs[:, 1], low)
        if (previous == component).all():
            return np.unique(component, return_inverse=True)[1]


def _connected(sizes: Points, pairs: NDArray[np.int64], lengths: Points) -> Points:
    """Return the centres of the boxes of one component, with distances close to those along the edges."""
    n = len(sizes)
    if n < 2:
        return np.zeros((n, 2))
    ideal = _distances(n, pairs, lengths)
    weights = 1.0 / np.maximum(ideal, 1.0) ** 2
    np.fill_diagonal(weights, 0.0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.pinv(laplacian)
    # Start from a circle, in the order of the nodes, so that the picture is reproducible.
    angle = np.arange(n) * (2 * np.pi / n)
    place = np.stack([np.cos(angle), np.sin(angle)], axis=1) * _LENGTH * max(n / 4, 1)
    for _ in range(150):
        distances = np.linalg.norm(place[:, None] - place[None], axis=2)
        ratio = np.divide(weights * ideal, distances, out=np.zeros_like(distances), where=distances > 1e-9)
        spread = np.diag(ratio.sum(axis=1)) - ratio
        place = inverse @ (spread @ place)
    # Boxes and texts are wide and low: rotate the longest direction to horizontal.
    place -= place.mean(axis=0)
    direction = np.linalg.eigh(place.T @ place)[1][:, -1]
    direction = direction if direction[np.abs(direction).argmax()] > 0 else -direction
    place = place @ np.array([[direction[0], -direction[1]], [direction[1], direction[0]]])
    extent = np.ptp(place, axis=0)
    if extent[0] > _LINE * extent[1] and extent[0] * _WIDER > 800:
        # Almost a line would make a very wide picture: tilt it, which also stacks the texts.
        place = place @ np.array([[0.87, 0.5], [-0.5, 0.87]])
    else:
        place = place * (_WIDER, 0.75)
    half = sizes / 2 + _GAP / 2
    for _ in range(200):
        delta = place[:, None] - place[None]
        overlap = half[:, None] + half[None] - np.abs(delta)
        overlaps = (overlap > 0).all(axis=2)
        overlaps &= ~np.eye(n, dtype=bool)
        if not overlaps.any():
            break
        axis = overlap.argmin(axis=2)
        push = np.take_along_axis(overlap, axis[..., None], axis=2)[..., 0] * overlaps * 0.5
        sign = np.sign(np.take_along_axis(delta, axis[..., None], axis=2)[..., 0])
        order = np.sign(np.subtract.outer(np.arange(n), np.arange(n)))
        move = push * np.where(sign == 0, order, sign)
        for number in (0, 1):
            place[:, number] += (move * (axis == number)).sum(axis=1)
    result: Points = place
    return result


def _distances(n: int, pairs: NDArray[np.int64], lengths: Points) -> Points:
    """Return the lengths of the shortest paths between all pairs of nodes (Floyd and Warshall)."""
    distances = np.zeros((n, n))
    # Of several edges between two nodes the longest text counts.
    np.maximum.at(distances, (pairs[:, 0], pairs[:, 1]), lengths)
    distances = np.maximum(distances, distances.T)
    distances[distances == 0] = np.inf
    np.fill_diagonal(distances, 0.0)
    for k in range(n):
        np.minimum(distances, distances[:, k, None] + distances[None, k], out=distances)
    return distances


# -- as SVG ------------------------------------------------------------------------------------------


def _shortened_label(text: str, most: int = _MAX_LABEL) -> str:
    collapsed = " ".join(text.split())
    return collapsed if len(collapsed) <= most else collapsed[: most - 1] + "…"


def _width(text: str) -> float:
    return _LETTER * sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _svg(drawing: Drawing) -> str:
    labels = [_shortened_label(box.text) for box in drawing.boxes]
    sizes = np.array([[_width(label) + _PADDING, _HEIGHT] for label in labels]).reshape(-1, 2)
    pairs = np.array([(arrow.start, arrow.end) for arrow in drawing.arrows], np.int64).reshape(-1, 2)
    # Leave room for the text of an edge between two boxes.
    widths = np.array([_wide(arrow) for arrow in drawing.arrows])
    lengths = np.maximum((sizes[pairs, 0].sum(axis=1) / 2 + widths + 44) / _WIDER, 70)
    place = _layout(sizes, pairs, lengths)
    # Areas that texts of edges should not cover (left, top, right, bottom): boxes, and earlier texts.
    occupied = np.empty((len(sizes) + len(pairs), 4))
    occupied[: len(sizes)] = np.hstack([place - sizes / 2, place + sizes / 2])
    curve_counts: Counter[frozenset[int]] = Counter()
    lines, texts = [], []
    for number, arrow in enumerate(drawing.arrows, len(sizes)):
        pair = frozenset((arrow.start, arrow.end))
        curve = _curve(place, sizes, arrow, curve_counts[pair])
        curve_counts[pair] += 1
        lines.append(_stroke(curve))
        half = np.array([widths[number - len(sizes)] / 2, 13.0 if arrow.below else 7.0])
        at = min((_point(curve, share) for share in _SHARES), key=lambda at: _covered(occupied[:number], at - half, at + half))
        occupied[number] = [*(at - half), *(at + half)]
        for text, full, size, shift in zip(
            _lines(arrow), (arrow.text, arrow.below), (11, 9), (4 if not arrow.below else -1, 10), strict=False
        ):
            texts.append(
                f'<text x="{at[0]:.0f}" y="{at[1] + shift:.0f}" font-size="{size}" text-anchor="middle" fill="#202124" '
                f'stroke="#fff" stroke-width="3" stroke-linejoin="round" paint-order="stroke">{escaped(text)}'
                f"<title>{escaped(full)}</title></text>"
            )
    boxes = []
    for box, label, (x, y), (width, height) in zip(drawing.boxes, labels, place, sizes, strict=True):
        fill, stroke = _COLOURS[box.kind]
        radius = 4 if box.kind == "value" else 12
        boxes.append(
            f'<g><title>{escaped(box.text)}</title><rect x="{x - width / 2:.0f}" y="{y - height / 2:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" rx="{radius}" fill="{fill}" stroke="{stroke}"/>'
            f'<text x="{x:.0f}" y="{y + 4:.0f}" font-size="12" text-anchor="middle" fill="#202124">{escaped(label)}</text></g>'
        )
    low, high = occupied[:, :2].min(axis=0, initial=0.0) - 12, occupied[:, 2:].max(axis=0, initial=0.0) + 12
    if drawing.left_out:
        high[1] += 18
        texts.append(
            f'<text x="{low[0] + 12:.0f}" y="{high[1] - 8:.0f}" font-size="11" fill="#5f6368">{escaped(drawing.left_out)}</text>'
        )
    total_width, total_height = high - low
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escaped(drawing.title)}" width="{total_width:.0f}" '
        f'height="{total_height:.0f}" viewBox="{low[0]:.0f} {low[1]:.0f} {total_width:.0f} {total_height:.0f}" '
        'style="max-width:100%;height:auto;background:#fff" font-family="sans-serif">'
        f"<title>{escaped(drawing.title)}</title>{''.join(lines)}{''.join(boxes)}{''.join(texts)}</svg>"
    )


def _lines(arrow: Arrow) -> list[str]:
    return [_shortened_label(arrow.text), *([_shortened_label(arrow.below, _MAX_LABEL + 14)] if arrow.below else [])]


def _wide(arrow: Arrow) -> float:
    """Return the width of the texts of an edge; the one below is smaller."""
    return max(share * _width(text) for share, text in zip((0.95, 0.75), _lines(arrow), strict=False))


def _curve(place: Points, sizes: Points, arrow: Arrow, number: int) -> Points:
    """Return an edge as the four points of a Bezier curve (shape (4, 2)); of several edges between two nodes all but
    the first are bent.
    """
    a, b = place[arrow.start], place[arrow.end]
    if arrow.start == arrow.end:
        top, high = a - np.array([0, sizes[arrow.start][1] / 2]), 36 + 24 * number
        result: Points = top + np.array([(-12, 0), (-34, -high), (34, -high), (12, 0)])
        return result
    across = np.array([a[1] - b[1], b[0] - a[0]]) * (1 if arrow.start < arrow.end else -1)
    across = across / max(float(np.linalg.norm(across)), 1e-9)
    bend = across * ((76 if arrow.below else 52) * ((number + 1) // 2) * (1 if number % 2 else -1))
    middle = (a + b) / 2 + bend
    start, end = _border(a, sizes[arrow.start], middle), _border(b, sizes[arrow.end], middle)
    return np.array([start, (start + 2 * middle) / 3, (end + 2 * middle) / 3, end])


def _point(curve: Points, share: float) -> Points:
    rest = 1 - share
    result: Points = np.array([rest**3, 3 * rest**2 * share, 3 * rest * share**2, share**3]) @ curve
    return result


def _stroke(curve: Points) -> str:
    start, first, second, end = (f"{x:.0f},{y:.0f}" for x, y in curve)
    return f'<path d="M{start} C{first} {second} {end}" fill="none" stroke="#80868b"/>{_head(curve[3], curve[3] - curve[2])}'


def _covered(taken: Points, low: Points, high: Points) -> float:
    """Return the area in square pixels that a text between two corners would cover."""
    sizes = np.minimum(taken[:, 2:], high) - np.maximum(taken[:, :2], low)
    return float(np.maximum(sizes, 0).prod(axis=1).sum())


def _border(middle: Points, size: Points, towards: Points) -> Points:
    """Return the point where a line from the centre of a box leaves it."""
    delta = towards - middle
    share = np.min(np.divide(size / 2 + 2, np.abs(delta), out=np.full(2, np.inf), where=np.abs(delta) > 1e-9))
    result: Points = middle + delta * min(float(share), 1.0)
    return result


def _head(tip: Points, direction: Points) -> str:
    along = direction / max(float(np.linalg.norm(direction)), 1e-9)
    side = np.array([-along[1], along[0]])
    points = [tip, tip - along * 8 + side * 3.5, tip - along * 8 - side * 3.5]
    return f'<polygon points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="#80868b"/>'
