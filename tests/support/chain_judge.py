"""An independent judge of chains: it reads a text and the triples of a graph by itself, and shares
no code with what it judges.

Quoted texts are put aside first; what is left is split at arrows and brackets. A head or tail is
looked up by name (where one entity has it) or by id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

_STRING = re.compile(r'"(?:\\.|[^"\\])*"')


@dataclass(frozen=True)
class Fact:
    """A statement: ids, the kind of its object (`entity`, `text` or `other`), and qualifiers as
    (key, kind, text).
    """

    head: str
    relation: str
    kind: str
    tail: str
    qualifiers: tuple[tuple[str, str, str], ...] = ()


@dataclass
class Judge:
    names: dict[str, str]
    facts: Iterable[Fact]
    by_head: dict[tuple[str, str], list[Fact]] = field(init=False)
    by_name: dict[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.by_head, self.by_name = {}, {}
        for fact in self.facts:
            self.by_head.setdefault((fact.head, fact.relation), []).append(fact)
        for ident, name in self.names.items():
            self.by_name.setdefault(name, []).append(ident)

    @classmethod
    def of_pipes(cls, path: Path) -> Judge:
        """Of a file of `subject|relation|object`, where a name is an entity."""
        rows = [line.split("|") for line in path.read_text("utf-8").splitlines() if line]
        names = {name: name for row in rows for name in (row[0], row[2])}
        return cls(names, [Fact(row[0], row[1], "entity", row[2]) for row in rows])

    def problem(self, text: str, query: Iterable[str], *, most: int | None = None, repeat: bool = True) -> str | None:
        """What is wrong with a chain, a triple a line; None where it is well formed."""
        visited, seen = set(query), set()
        lines = [line for line in text.split("\n") if line.strip()]
        if not lines:
            return "nothing"
        if most is not None and len(lines) > most:
            return "too long"
        for line in lines:
            read = self.read(line)
            if isinstance(read, str):
                return f"{line}: {read}"
            if len(read) != 1:
                return f"{line}: {len(read)} facts"
            (fact,) = read
            ends = {fact.head} | ({fact.tail} if fact.kind == "entity" else set())
            if not ends & visited:
                return f"{line}: touches nothing"
            if not repeat and fact in seen:
                return f"{line}: again"
            seen.add(fact)
            visited |= ends
        return None

    def read(self, line: str) -> set[Fact] | str:
        """The facts that a line is, or why it is none."""
        kept: list[str] = []

        def put(found: re.Match[str]) -> str:
            kept.append(found[0])
            return f"\0{len(kept) - 1}\0"

        bare = _STRING.sub(put, line.strip())
        if not (bare.startswith("< ") and bare.endswith(" >")) or bare.count("<") != 1 or bare.count(">") != 1 + bare.count("->"):
            return "not the form"
        body, *brackets = bare[2:-2].split(" [")
        if any(not one.endswith("]") for one in brackets):
            return "brackets"
        parts = body.split(" -> ")
        if len(parts) != 3:
            return f"{len(parts)} parts"
        head, relation, tail = parts
        heads = self._entities(head, kept)
        if not heads:
            return "no such head"
        wanted = sorted(tuple(one[:-1].split(": ", 1)) for one in brackets)
        found = set()
        for ident in heads:
            for fact in self.by_head.get((ident, self._plain(relation, kept)), ()):
                if self._is(fact.kind, fact.tail, tail, kept) and self._qualified(fact, wanted, kept):
                    found.add(fact)
        return found or "no such triple"

    def _qualified(self, fact: Fact, wanted: list[tuple[str, ...]], kept: list[str]) -> bool:
        left = list(fact.qualifiers)
        for pair in wanted:
            if len(pair) != 2:
                return False
            fits = [one for one in left if one[0] == self._plain(pair[0], kept) and self._is(one[1], one[2], pair[1], kept)]
            if not fits:
                return False
            left.remove(fits[0])
        return not left

    def _is(self, kind: str, tail: str, text: str, kept: list[str]) -> bool:
        if kind == "entity":
            return tail in self._entities(text, kept)
        if kind == "text":
            return text.startswith("\0") and self._plain(text, kept) == tail
        return self._plain(text.removeprefix("="), kept) == tail and not text.startswith("\0")

    def _entities(self, text: str, kept: list[str]) -> list[str]:
        if " #" in text:
            name, ident = text.rsplit(" #", 1)
            ident = self._plain(ident, kept)
            return [ident] if self.names.get(ident) == self._plain(name, kept) else []
        if "\0" in text:
            return []
        found = self.by_name.get(text, [])
        return found if len(found) == 1 else []

    @staticmethod
    def _plain(text: str, kept: list[str]) -> str:
        if text.startswith("\0") and text.endswith("\0") and text.count("\0") == 2:
            return str(json.loads(kept[int(text[1:-1])]))
        return text
