"""An independent judge of chains: it reads a text and the triples of a graph itself, and shares no code with what it
judges.

Quoted texts are replaced by placeholders first; the remaining text is split at arrows and brackets. A head or tail is
looked up by name (if one entity has it) or by id.
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
    """A statement: ids, the kind of its object (`entity`, `text` or `other`), and qualifiers as (key, kind, text)."""

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
        for entity_id, name in self.names.items():
            self.by_name.setdefault(name, []).append(entity_id)

    @classmethod
    def of_pipes(cls, path: Path) -> Judge:
        """Read a file of `subject|relation|object` lines, where each name is an entity."""
        rows = [line.split("|") for line in path.read_text("utf-8").splitlines() if line]
        names = {name: name for row in rows for name in (row[0], row[2])}
        return cls(names, [Fact(row[0], row[1], "entity", row[2]) for row in rows])

    def problem(self, text: str, query: Iterable[str], *, most: int | None = None, repeat: bool = True) -> str | None:
        """Describe what is wrong with a chain, one triple a line; return None if it is well formed."""
        visited, used = set(query), set()
        lines = [line for line in text.split("\n") if line.strip()]
        if not lines:
            return "nothing"
        if most is not None and len(lines) > most:
            return "too long"
        for line in lines:
            facts = self.read(line)
            if isinstance(facts, str):
                return f"{line}: {facts}"
            if len(facts) != 1:
                return f"{line}: {len(facts)} facts"
            (fact,) = facts
            ends = {fact.head} | ({fact.tail} if fact.kind == "entity" else set())
            if not ends & visited:
                return f"{line}: touches nothing"
            if not repeat and fact in used:
                return f"{line}: again"
            used.add(fact)
            visited |= ends
        return None

    def read(self, line: str) -> set[Fact] | str:
        """Return the facts that a line may state, or why it states none."""
        texts: list[str] = []

        def replace(found: re.Match[str]) -> str:
            texts.append(found[0])
            return f"\0{len(texts) - 1}\0"

        template = _STRING.sub(replace, line.strip())
        if (
            not (template.startswith("< ") and template.endswith(" >"))
            or template.count("<") != 1
            or template.count(">") != 1 + template.count("->")
        ):
            return "not the form"
        body, *brackets = template[2:-2].split(" [")
        if any(not bracket.endswith("]") for bracket in brackets):
            return "brackets"
        parts = body.split(" -> ")
        if len(parts) != 3:
            return f"{len(parts)} parts"
        head, relation, tail = parts
        heads = self._entities(head, texts)
        if not heads:
            return "no such head"
        pairs = sorted(tuple(bracket[:-1].split(": ", 1)) for bracket in brackets)
        facts = set()
        for head_id in heads:
            for fact in self.by_head.get((head_id, self._plain(relation, texts)), ()):
                if self._is(fact.kind, fact.tail, tail, texts) and self._qualified(fact, pairs, texts):
                    facts.add(fact)
        return facts or "no such triple"

    def _qualified(self, fact: Fact, wanted: list[tuple[str, ...]], kept: list[str]) -> bool:
        remaining = list(fact.qualifiers)
        for pair in wanted:
            if len(pair) != 2:
                return False
            candidates = [
                qualifier
                for qualifier in remaining
                if qualifier[0] == self._plain(pair[0], kept) and self._is(qualifier[1], qualifier[2], pair[1], kept)
            ]
            if not candidates:
                return False
            remaining.remove(candidates[0])
        return not remaining

    def _is(self, kind: str, tail: str, text: str, kept: list[str]) -> bool:
        if kind == "entity":
            return tail in self._entities(text, kept)
        if kind == "text":
            return text.startswith("\0") and self._plain(text, kept) == tail
        return self._plain(text.removeprefix("="), kept) == tail and not text.startswith("\0")

    def _entities(self, text: str, kept: list[str]) -> list[str]:
        if " #" in text:
            name, entity_id = text.rsplit(" #", 1)
            entity_id = self._plain(entity_id, kept)
            return [entity_id] if self.names.get(entity_id) == self._plain(name, kept) else []
        if "\0" in text:
            return []
        ids = self.by_name.get(text, [])
        return ids if len(ids) == 1 else []

    @staticmethod
    def _plain(text: str, kept: list[str]) -> str:
        if text.startswith("\0") and text.endswith("\0") and text.count("\0") == 2:
            return str(json.loads(kept[int(text[1:-1])]))
        return text
