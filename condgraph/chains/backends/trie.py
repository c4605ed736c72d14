"""Alternatives as a grammar, always factored by their beginnings: as flat alternatives ten thousand
of them take seconds to a first token, and some servers refuse more than 2,000.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from condgraph.chains.chain import Parts
from condgraph.chains.tokens import Ids

_Some = TypeVar("_Some", str, Ids)


def gbnf_of_parts(parts: Parts) -> str:
    """Token sequences as GBNF with token ids: what is accepted has exactly these tokens. What follows
    several heads is one rule.
    """
    written = _Tokens()
    rules: list[str] = []
    uses = Counter(end for _, end in parts.heads)
    behind: dict[int, str] = {}
    for end, many in uses.items():
        followed = _trie(parts.ends[end], [""] * len(parts.ends[end]), written.of, rules)
        if many > 1 and " " in followed:
            rules.append(f"e{end} ::= {followed}")
            followed = f"e{end}"
        behind[end] = followed
    heads = [head for head, _ in parts.heads]
    root = _trie(heads, [behind[end] for _, end in parts.heads], written.of, rules)
    return "\n".join([f"root ::= {root}", *rules]) + "\n"


def gbnf_of_texts(texts: Iterable[str]) -> str:
    """Texts as GBNF."""
    rules: list[str] = []
    sequences = sorted(set(texts))
    root = _trie(sequences, [""] * len(sequences), _literal, rules)
    return "\n".join([f"root ::= {root}", *rules]) + "\n"


class _Tokens(dict[int, str]):
    """Token ids as they are written, each put together once."""

    def __missing__(self, ident: int) -> str:
        found = self[ident] = f"<[{ident}]>"
        return found

    def of(self, ids: Sequence[int]) -> str:
        """Several, one behind the other."""
        return " ".join([self[one] for one in ids])


def _literal(text: str) -> str:
    out = []
    for sign in text:
        if sign in '"\\':
            out.append("\\" + sign)
        elif sign.isprintable() and ord(sign) < 0x10000:
            out.append(sign)
        else:
            code = ord(sign)
            out.append(f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}")
    return '"' + "".join(out) + '"'


def _trie(sequences: Sequence[_Some], behind: Sequence[str], write: Callable[[_Some], str], rules: list[str]) -> str:
    """Sorted sequences, each followed by something, as one alternative; a rule is added for each
    place where they part. In one pass: what a sequence shares with the one before says which places
    are left behind, what it shares with the next where it begins.
    """
    if not sequences:
        raise ValueError("a grammar of nothing")
    depths: list[int] = [0]
    alternatives: list[list[str]] = [[]]

    def up(depth: int, sequence: _Some) -> None:
        """Leave the places that lie deeper: each becomes a rule, and a part of the one above."""
        while depths[-1] > depth:
            low = depths.pop()
            name = f"r{len(rules)}"
            rules.append(f"{name} ::= {' | '.join(alternatives.pop())}")
            if depths[-1] < depth:
                depths.append(depth)
                alternatives.append([])
            alternatives[-1].append(f"{write(sequence[depths[-1] : low])} {name}")

    last = len(sequences) - 1
    for at, sequence in enumerate(sequences):
        following = _shared(sequence, sequences[at + 1]) if at < last else 0
        if following > depths[-1]:
            depths.append(following)
            alternatives.append([])
        own, then = sequence[depths[-1] :], behind[at]
        text = write(own) if own else then or '""'
        alternatives[-1].append(f"{text} {then}" if own and then else text)
        if depths[-1] > following:
            up(following, sequence)
    found = alternatives[0]
    if len(found) > 1:
        name = f"r{len(rules)}"
        rules.append(f"{name} ::= {' | '.join(found)}")
        return name
    return found[0]


def _shared(one: Sequence[object], two: Sequence[object]) -> int:
    """How many things two sequences begin with alike."""
    found = 0
    for mine, other in zip(one, two, strict=False):
        if mine != other:
            break
        found += 1
    return found


def regex_of(texts: Iterable[str]) -> str:
    """Texts as one regular expression, factored by their beginnings."""
    return _regex(sorted(set(texts)), 0)


def _regex(texts: Sequence[str], depth: int) -> str:
    first, last = texts[0], texts[-1]
    shared = depth
    while shared < min(len(first), len(last)) and first[shared] == last[shared]:
        shared += 1
    head = _escaped(first[depth:shared])
    if len(texts) == 1:
        return head
    parts, at, optional = [], 0, False
    while at < len(texts):
        if len(texts[at]) == shared:
            optional, at = True, at + 1
            continue
        end = at
        while end < len(texts) and texts[end][shared] == texts[at][shared]:
            end += 1
        parts.append(_regex(texts[at:end], shared))
        at = end
    body = f"({'|'.join(parts)})"
    return head + body + ("?" if optional else "")


def _escaped(text: str) -> str:
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)


def enum_schema(field: str, values: Sequence[str]) -> dict[str, object]:
    """A JSON schema of one field with one of some values, and nothing else."""
    return {
        "type": "object",
        "properties": {field: {"type": "string", "enum": list(values)}},
        "required": [field],
        "additionalProperties": False,
    }


def enum_value(text: str, field: str, values: Iterable[str]) -> str | None:
    """The value of the field in a model's JSON; None where it is none of the values."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    value = found.get(field) if isinstance(found, dict) else None
    return value if isinstance(value, str) and value in set(values) else None
