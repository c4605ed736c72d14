"""A query computation tree with its assignment as SVG: the answer on top, constants below.

Observed edges are drawn in full, predicted ones dashed with their score, negated ones dotted in red.
Every text from data is escaped, and there is no script.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from condgraph.engine.html import escaped
from condgraph.logic.derivation import Derivation

#: Pixels: of a leaf, of a box, and from one level to the next.
WIDTH, BOX, HEIGHT, LEVEL = 190, 170, 42, 96
#: Characters of a name that a box has room for, and leaves that a picture has.
LETTERS, MOST_LEAVES = 24, 24
_JOINED: Final = {"and": "and", "or": "or", "not": "not"}


def drawn(root: Derivation, name: Callable[[int], str]) -> str:
    """The picture of a derivation; `name` gives the name of a node."""
    leaves = _leaves(root)
    if leaves > MOST_LEAVES:
        return f"<div>a tree of {leaves} branches is not drawn</div>"
    parts: list[str] = []
    _draw(root, 0.0, 0, parts, name)
    width, height = leaves * WIDTH, _depth(root) * LEVEL + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12" role="img"><title>{escaped("query computation tree")}</title>'
        f"{''.join(parts)}</svg>"
    )


def _below(one: Derivation) -> tuple[Derivation, ...]:
    return one.parts


def _leaves(one: Derivation) -> int:
    return max(1, sum(map(_leaves, _below(one))))


def _depth(one: Derivation) -> int:
    return 1 + max(map(_depth, _below(one)), default=0) + (1 if _bare(one) else 0)


def _bare(one: Derivation) -> bool:
    """A negated edge whose constant has no box of its own below it."""
    return one.kind == "not" and one.edge is not None


def _draw(one: Derivation, left: float, level: int, parts: list[str], name: Callable[[int], str]) -> float:
    """Draw a node and what is below it; the middle of its box."""
    middle, top = left + _leaves(one) * WIDTH / 2, level * LEVEL + 5
    at = left
    for part in _below(one):
        below = _draw(part, at, level + 1, parts, name)
        at += _leaves(part) * WIDTH
        _line(one, below, level + 1, middle, level, parts)
    if _bare(one) and one.edge is not None:
        other = one.edge.object if one.edge.subject == one.node else one.edge.subject
        _box(middle, (level + 1) * LEVEL + 5, name(other), "", parts)
        _line(one, middle, level + 1, middle, level, parts)
    word = _JOINED.get(one.kind, "")
    title = f"?{one.variable} = " if one.variable else ""
    text = title + ("" if one.node is None else name(one.node))
    _box(middle, top, text, " ".join(filter(None, (word if not _bare(one) else "", _score(one.score), one.reason))), parts)
    return middle


def _box(middle: float, top: float, text: str, small: str, parts: list[str]) -> None:
    short = text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"
    parts.append(
        f'<rect x="{middle - BOX / 2:.0f}" y="{top}" width="{BOX}" height="{HEIGHT}" rx="6" fill="#f6f6f6" stroke="#888"/>'
        f'<text x="{middle:.0f}" y="{top + 18}" text-anchor="middle">{escaped(short)}<title>{escaped(text)}</title></text>'
        f'<text x="{middle:.0f}" y="{top + 34}" text-anchor="middle" fill="#666" font-size="10">{escaped(small)}</text>'
    )


def _line(one: Derivation, x: float, level: int, above_x: float, above_level: int, parts: list[str]) -> None:
    """The edge from a node up to the one above it, with its label."""
    edge = one.edge
    begin, end = level * LEVEL + 5, above_level * LEVEL + 5 + HEIGHT
    style, colour, label = "", "#444", ""
    if edge is not None:
        label = f"{'not ' if edge.negated else ''}{edge.relation}"
        if edge.negated:
            style, colour = ' stroke-dasharray="2 3"', "#b00"
        elif not edge.observed:
            style, colour = ' stroke-dasharray="6 4"', "#06c"
            label += f" {_score(edge.score)}"
    parts.append(f'<line x1="{x:.0f}" y1="{begin}" x2="{above_x:.0f}" y2="{end}" stroke="{colour}"{style}/>')
    if label:
        middle_x, middle_y = (x + above_x) / 2, (begin + end) / 2 + 4
        parts.append(
            f'<text x="{middle_x:.0f}" y="{middle_y:.0f}" text-anchor="middle" fill="{colour}" font-size="11" stroke="#fff" '
            f'stroke-width="3" paint-order="stroke">{escaped(label)}</text>'
        )


def _score(score: float) -> str:
    return "1" if score >= 1.0 else f"{score:.3f}" if score < 0.9995 else f"{score:.7f}"
