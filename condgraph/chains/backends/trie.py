"""Alternatives as a grammar, always factored by their beginnings: as flat alternatives ten thousand
of them take seconds to a first token, and some servers refuse more than 2,000.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any


def gbnf_of_tokens(sequences: Iterable[Sequence[int]]) -> str:
    """Token sequences as GBNF with token ids: what is accepted has exactly these tokens."""
    return _gbnf(sorted(set(map(tuple, sequences))), lambda ids: " ".join(f"<[{one}]>" for one in ids))


def gbnf_of_texts(texts: Iterable[str]) -> str:
    """Texts as GBNF."""
    return _gbnf(sorted(set(map(tuple, texts))), lambda signs: _literal("".join(signs)))


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


def _gbnf(sequences: Sequence[tuple[Any, ...]], write: Callable[[tuple[Any, ...]], str]) -> str:
    """The rules, one for each place where sequences part. Without sequences nothing is accepted."""
    if not sequences:
        raise ValueError("a grammar of nothing")
    rules: list[str] = []

    def rule(low: int, high: int, depth: int) -> str:
        """What follows a beginning that the sequences of a range share, as one alternative."""
        first, last = sequences[low], sequences[high - 1]
        shared = depth
        most = min(len(first), len(last))
        while shared < most and first[shared] == last[shared]:
            shared += 1
        head = write(first[depth:shared]) if shared > depth else ""
        if high - low == 1:
            return head or '""'
        parts: list[str] = []
        at = low
        while at < high:
            if len(sequences[at]) == shared:
                parts.append('""')
                at += 1
                continue
            end = _upper(sequences, at, high, shared)
            parts.append(rule(at, end, shared))
            at = end
        name = f"r{len(rules)}"
        rules.append(f"{name} ::= {' | '.join(parts)}")
        return f"{head} {name}" if head else name

    root = rule(0, len(sequences), 0)
    return "\n".join([f"root ::= {root}", *rules]) + "\n"


def _upper(sequences: Sequence[tuple[Any, ...]], low: int, high: int, depth: int) -> int:
    """Where the sequences that have one thing at a depth end."""
    wanted, step, end = sequences[low][depth], 1, low + 1
    while end < high and sequences[end][depth] == wanted:
        low, end, step = end, min(end + step, high), step * 2
    while low + 1 < end:
        middle = (low + end) // 2
        if sequences[middle][depth] == wanted:
            low = middle
        else:
            end = middle
    return end


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
    except ValueError:
        return None
    value = found.get(field) if isinstance(found, dict) else None
    return value if isinstance(value, str) and value in set(values) else None
