"""An independent reader of GBNF grammars: random derivations, and whether a text is accepted. No code is shared with
the package.
"""

from __future__ import annotations

import random
import re
from functools import cache
from typing import Any

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\[\^?(?:[^\]\\]|\\.)*\]|::=|[\w-]+|\{\d+,\d+\}|[()|?*+]|\n|[ \t]+', re.S)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|(.))", re.S)
Node = tuple[Any, ...]


def _plain(text: str) -> str:
    def unescape(found: re.Match[str]) -> str:
        return chr(int(found[1], 16)) if found[1] else {"n": "\n", "r": "\r", "t": "\t"}.get(found[2], found[2])

    return _ESCAPE.sub(unescape, text)


def _members(text: str) -> tuple[bool, list[tuple[str, str]]]:
    negated = text.startswith("^")
    letters = [(_plain(letter), len(letter) == 1) for letter in re.findall(r"\\x[0-9A-Fa-f]{2}|\\.|.", text[negated:], re.S)]
    ranges, at = [], 0
    while at < len(letters):
        if at + 2 < len(letters) and letters[at + 1] == ("-", True):
            ranges.append((letters[at][0], letters[at + 2][0]))
            at += 3
        else:
            ranges.append((letters[at][0], letters[at][0]))
            at += 1
    return negated, ranges


class Gbnf:
    """The rules of a grammar."""

    def __init__(self, text: str) -> None:
        tokens, at = [], 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            assert match, text[at : at + 40]
            at = match.end()
            if match[0].strip(" \t"):
                tokens.append(match[0])
        self.rules: dict[str, Node] = {}
        self._tokens, self._at = tokens, 0
        while self._at < len(tokens):
            if tokens[self._at] == "\n":
                self._at += 1
                continue
            name = tokens[self._at]
            assert tokens[self._at + 1] == "::=", tokens[self._at : self._at + 3]
            assert name not in self.rules
            self._at += 2
            self.rules[name] = self._choice()

    def _choice(self) -> Node:
        branches = [self._sequence()]
        while self._at < len(self._tokens) and self._tokens[self._at] == "|":
            self._at += 1
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else ("alt", *branches)

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._at < len(self._tokens) and self._tokens[self._at] not in ("|", ")", "\n"):
            token = self._tokens[self._at]
            self._at += 1
            if token == "(":
                parts.append(self._choice())
                assert self._tokens[self._at] == ")"
                self._at += 1
            elif token in ("?", "*", "+") or token.startswith("{"):
                least, most = {"?": (0, 1), "*": (0, 9), "+": (1, 9)}.get(token) or map(int, token[1:-1].split(","))
                parts[-1] = ("repeat", parts[-1], least, most)
            elif token.startswith('"'):
                parts.append(("text", _plain(token[1:-1])))
            elif token.startswith("["):
                parts.append(("class", *_members(token[1:-1])))
            else:
                parts.append(("rule", token))
        return ("seq", *parts)

    def derive(self, rng: random.Random, node: Node = ("rule", "root")) -> str:
        """Return a random text of the grammar."""
        kind = node[0]
        if kind == "text":
            return str(node[1])
        if kind == "rule":
            return self.derive(rng, self.rules[node[1]])
        if kind == "seq":
            return "".join(self.derive(rng, part) for part in node[1:])
        if kind == "alt":
            return self.derive(rng, rng.choice(node[1:]))
        if kind == "repeat":
            most = min(node[3], node[2] + rng.choice((0, 1, 1, 2, 3, 8)))
            return "".join(self.derive(rng, node[1]) for _ in range(rng.randint(node[2], most)))
        negated, ranges = node[1:]
        if not negated:
            low, high = rng.choice(ranges)
            return chr(rng.randint(ord(low), ord(high)))
        while True:
            letter = rng.choice("abcXYZ019 ,()'-:;|<>=é漢{}[]_output_of_query\t\x7f")
            if not any(low <= letter <= high for low, high in ranges):
                return letter

    def accepts(self, text: str) -> bool:
        """Return whether a text belongs to the grammar."""

        @cache
        def rule(name: str, at: int) -> frozenset[int]:
            return ends(self.rules[name], at)

        def ends(node: Node, at: int) -> frozenset[int]:
            kind = node[0]
            if kind == "text":
                return frozenset([at + len(node[1])]) if text.startswith(node[1], at) else frozenset()
            if kind == "rule":
                return rule(node[1], at)
            if kind == "alt":
                return frozenset(end for part in node[1:] for end in ends(part, at))
            if kind == "class":
                negated, ranges = node[1:]
                inside = at < len(text) and any(low <= text[at] <= high for low, high in ranges) is not negated
                return frozenset([at + 1]) if inside else frozenset()
            positions = frozenset([at])
            if kind == "seq":
                for part in node[1:]:
                    positions = frozenset(end for start in positions for end in ends(part, start))
                return positions
            result = positions if node[2] == 0 else frozenset()
            for number in range(1, node[3] + 1):
                positions = frozenset(end for start in positions for end in ends(node[1], start))
                if not positions:
                    break
                result |= positions if number >= node[2] else frozenset()
            return result

        return len(text) in rule("root", 0)
