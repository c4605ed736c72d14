"""What a grammar is made of, independent of the form that it is written in; and names as tries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Text:
    """Just this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Ref:
    """What the rule of a name gives."""

    name: str


@dataclass(frozen=True, slots=True)
class Seq:
    """One after the other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """One of these."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """From `least` to `most` times."""

    part: Part
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Chars:
    """One character: of these ranges, or of none of them."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False


Part: TypeAlias = Text | Ref | Seq | Alt | Repeat | Chars
#: The rules of a grammar by name; `root` is what it accepts.
Rules: TypeAlias = Mapping[str, Part]

DIGIT = Chars((("0", "9"),))


def seq(*parts: Part | str) -> Part:
    """One after the other; texts stand for themselves."""
    return Seq(tuple(Text(one) if isinstance(one, str) else one for one in parts))


def alt(*parts: Part | str) -> Part:
    """One of these; texts stand for themselves."""
    found = tuple(Text(one) if isinstance(one, str) else one for one in parts)
    return found[0] if len(found) == 1 else Alt(found)


def maybe(part: Part) -> Part:
    """This, or nothing."""
    return Repeat(part, 0, 1)


def trie(names: Iterable[str]) -> Part:
    """One of some texts, factored by what they begin with: a reader decides at each letter between
    those that differ there. At least one text is needed.
    """
    ordered = sorted(set(names))
    return _branch(ordered, 0, len(ordered), 0)


def _branch(names: list[str], start: int, end: int, depth: int) -> Part:
    if end - start == 1:
        return Text(names[start][depth:])
    shared = _shared(names[start], names[end - 1])
    ended = len(names[start]) == len(shared)
    parts: list[Part] = [Text("")] if ended else []
    at = start + 1 if ended else start
    while at < end:
        letter, first = names[at][len(shared)], at
        while at < end and names[at][len(shared)] == letter:
            at += 1
        parts.append(_branch(names, first, at, len(shared)))
    choice = alt(*parts)
    return Seq((Text(shared[depth:]), choice)) if len(shared) > depth else choice


def _shared(one: str, two: str) -> str:
    """What two different texts begin with alike."""
    most = min(len(one), len(two))
    return one[: next((at for at in range(most) if one[at] != two[at]), most)]


def reached(found: Mapping[str, Part]) -> Rules:
    """The rules that the root needs."""
    needed, pending = {"root"}, ["root"]
    while pending:
        for name in mentioned(found[pending.pop()]):
            if name not in needed:
                needed.add(name)
                pending.append(name)
    return {name: part for name, part in found.items() if name in needed}


def mentioned(part: Part) -> set[str]:
    """The names of the rules that a part refers to."""
    if isinstance(part, Ref):
        return {part.name}
    if isinstance(part, Seq | Alt):
        return {name for one in part.parts for name in mentioned(one)}
    return mentioned(part.part) if isinstance(part, Repeat) else set()
