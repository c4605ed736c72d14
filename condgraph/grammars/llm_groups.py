"""Predicates in groups beside which the same may stand in an LLM query, and the rules of the literals
that their objects and qualifiers are compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Final, Self

from condgraph.engine.errors import OptionError
from condgraph.grammars.kopl import literal_of, literals_of
from condgraph.grammars.llm_texts import names_of, texts, writable, written
from condgraph.grammars.parts import DIGIT, Part, Ref, Repeat, Text, alt, maybe, seq, trie
from condgraph.grammars.vocabulary import Vocabulary

_TIME_WORDS: Final = {"time": ("point in time", "start time", "end time"), "start time": ("start time",), "end time": ("end time",)}


@dataclass(frozen=True, slots=True)
class Group:
    """Predicates beside which the same may stand: `objects` is the rule of literals that their
    objects are compared with ("" for entities alone), `things` whether objects are entities, `keys`
    their qualifiers with the rule of each ("when" for time words), `tables` those whose columns they
    are, and `sources` those of which one has to be said.
    """

    objects: str
    things: bool
    keys: tuple[tuple[str, str], ...]
    tables: tuple[str, ...]
    sources: tuple[str, ...]

    def scopes(self, *, rows: bool) -> tuple[str, ...]:
        """The sources of which one has to be said; of `rows` those that have rows."""
        return tuple(one for one in self.sources if not rows or one in self.tables)


class Groups:
    """The rules while they are made: `groups` are the predicates that the same may stand beside,
    `found` the rules by name.
    """

    def __init__(self, names: Vocabulary, spelled: Callable[[str], str]) -> None:
        self.names, self._spelled = names, spelled
        self.literals = literals_of(names)
        self.found: dict[str, Part] = {one: self.literals[one] for one in ("upto28", "four", "years", "days")}
        self.found |= texts()
        self.found["moment"] = self.found["when"] = alt(Ref("years"), Ref("days"))
        self.found["extreme"], self.found["extreme-time"] = trie(("highest", "lowest")), trie(("earliest", "latest"))
        if (entities := names_of(names.entities)) is not None:
            self.found["entity"] = entities
        self._shared: dict[tuple[str, Hashable], int] = {}
        self._amounts: dict[tuple[str, tuple[str, ...]], int] = {}
        self.groups: dict[Group, list[str]] = {}
        for name in dict.fromkeys([*names.relations, *names.keys]):
            if writable(name):
                self.groups.setdefault(self._group(name), []).append(name)

    @classmethod
    def of(cls, names: Vocabulary, spelled: Callable[[str], str] = written) -> Self:
        """The rules over these names; raises `OptionError` where none can be written. `spelled` is how
        units stand in literals.
        """
        made = cls(names, spelled)
        if not made.groups:
            raise OptionError("there are no predicates for the grammar to name", hint="load something first")
        return made

    def _group(self, name: str) -> Group:
        names = self.names
        kinds = names.keys.get(name)
        qualifiers = names.qualified.get(name, {})
        keys = [(word, "when") for word, those in _TIME_WORDS.items() if any(one in qualifiers for one in those)]
        told = {word for word, _ in keys}
        keys += [(key, self._literal(key, of)) for key, of in qualifiers.items() if key not in told and writable(key)]
        objects = "" if kinds is None else self._literal(name, kinds)
        return Group(objects, name in names.relations, tuple(sorted(keys)), names.columns.get(name, ()), names.scopes.get(name, ()))

    def _literal(self, name: str, kinds: frozenset[str]) -> str:
        """The rule of the literals that values of these types are compared with."""
        kind = literal_of(kinds)
        if "number" not in kind:
            return kind
        units = tuple(unit for unit in self.names.units_of.get(name, ()) if writable(unit))
        rule = f"{kind}-{self._amounts.setdefault((kind, units), len(self._amounts))}"
        if rule not in self.found:
            digits = Repeat(DIGIT, 1, 15)
            amount = seq(maybe(Text("-")), digits, maybe(seq(".", Repeat(DIGIT, 1, 12))))
            if units:
                amount = seq(amount, maybe(seq(" ", trie(map(self._spelled, units)))))
            self.found[rule] = alt(amount, *([Ref("moment")] if kind == "number-or-moment" else []))
        return rule

    def _once(self, kind: str, what: Hashable, line: int, part: Part) -> Part:
        """A part as a rule, which those that say the same share."""
        rule = f"{kind}-{self._shared.setdefault((kind, what), len(self._shared))}-{line}"
        self.found[rule] = part
        return Ref(rule)

    @property
    def times(self) -> list[str]:
        """The time words that some facts have."""
        return sorted({key for group in self.groups for key, literal in group.keys if literal == "when"})

    @property
    def anywhere(self) -> bool:
        """Whether a search without a relation says which source it means."""
        return len(set(self.names.columns.values())) < 2 and not self.names.scopes

    def tables(self) -> dict[str, list[int]]:
        """The groups whose predicates are columns of one table, by that table."""
        found: dict[str, list[int]] = {}
        for number, group in enumerate(self.groups):
            if len(group.tables) == 1 and not group.sources:
                found.setdefault(group.tables[0], []).append(number)
        return found

    def summed(self, numbers: Iterable[int]) -> list[int]:
        """Of some groups those whose values are numbers alone."""
        groups = list(self.groups)
        return [one for one in numbers if groups[one].objects.startswith("number-") and "moment" not in groups[one].objects]
