"""The grammar of logical queries: formulas whose variables form a tree, by the rules of
`languages.logic.convert`, over the names of a graph.

    ?x : exists ?a. capital("Nepal", ?a) and twin(?a, ?x) and not port(?x)

What stands at one level speaks of one variable: `?x`, below an `exists` `?a`, below another `?b`. A
level is joined to the one above by one atom, so that there are no cycles; and something always says
what the answers are, so that no query is unsafe. `exists` that is joined by a negated atom is left
out: a graph answers it, and the stores do not.
"""

from __future__ import annotations

from typing import Final

from condgraph.engine.errors import OptionError
from condgraph.grammars.kopl import quoted
from condgraph.grammars.parts import Part, Ref, Repeat, Rules, Seq, Text, alt, seq, trie
from condgraph.grammars.vocabulary import Vocabulary
from condgraph.languages.logic.formula import name_text
from condgraph.languages.logic.text import MOST_ATOMS

#: The variables by how many `exists` stand around them.
VARIABLES: Final = ("?x", "?a", "?b", "?c", "?d")
#: Atoms in brackets, parts that `and` joins, and parts that `or` joins at the answer.
_GROUPED: Final = 3
_JOINED: Final = 3
_BRANCHES: Final = 3


def rules(names: Vocabulary, *, depth: int) -> Rules:
    """The rules of logical queries over these names, with so many `exists` within each other; raises
    `OptionError` where none can be written.
    """
    if not names.relations and not names.concepts:
        raise OptionError("the graph has no names that a logical query could hold", hint="load something first")
    found: dict[str, Part] = {}
    if names.relations:
        found["relation"] = trie(map(name_text, names.relations))
    if names.entities:
        found["name"] = trie(map(quoted, names.entities))
    if names.concepts:
        found["concept"] = trie(map(name_text, names.concepts))
    deepest = depth if names.relations else 0
    for level in range(deepest, -1, -1):
        found |= _level(found, level, deepest)
    most = max(1, min(_BRANCHES, MOST_ATOMS // (_JOINED * _atoms(0, deepest))))
    either = [_either(Ref("all-0"), most)]
    if most == 1 and "atom-0" in found:
        # Where one part may have too many atoms for several, there are several of plain ones.
        either.append(_either(Seq((Ref("atom-0"), Repeat(Seq((Text(" and "), Ref("atom-0"))), 0, _JOINED - 1))), _BRANCHES))
    found["root"] = seq(f"{VARIABLES[0]} : ", alt(*either, *([Ref("some-0")] if "some-0" in found else [])))
    return {name: part for name, part in found.items() if name != "name" or names.relations}


def _either(part: Part, most: int) -> Part:
    return Seq((part, Repeat(Seq((Text(" or "), part)), 0, most - 1)))


def _level(found: dict[str, Part], level: int, deepest: int) -> dict[str, Part]:
    """The rules of what is said of the variable of a level: `atom`, `group` (atoms in brackets),
    `said` (one of these, or an `exists`), `any` (that, or its negation), `all` (joined by `and`),
    `some` (an `exists` without brackets around it).
    """
    mine = VARIABLES[level]
    atoms: list[Part] = []
    if "name" in found and "relation" in found:
        atoms += [
            seq(Ref("relation"), "(", Ref("name"), f", {mine})"),
            seq(Ref("relation"), f"({mine}, ", Ref("name"), ")"),
        ]
    if "concept" in found:
        atoms.append(seq(Ref("concept"), f"({mine})"))
    made: dict[str, Part] = {}
    said: list[Part] = []
    both: list[Part] = []
    if atoms:
        atom, group = Ref(f"atom-{level}"), Ref(f"group-{level}")
        made[atom.name] = alt(*atoms)
        made[group.name] = seq("(", atom, Repeat(Seq((Text(" or "), atom)), 1, _GROUPED - 1), ")")
        said += [atom, group]
        both = [seq("(", atom, Repeat(Seq((Text(" and "), atom)), 1, _GROUPED - 1), ")")]
    if "relation" in found and (level < deepest or not atoms):
        made[f"some-{level}"] = _some(level, deepest, f"any-{level + 1}" in found)
        said.append(seq("(", Ref(f"some-{level}"), ")"))
    made[f"said-{level}"] = alt(*said)
    negated = seq("not ", alt(Ref(f"said-{level}"), *both))
    made[f"any-{level}"] = alt(Ref(f"said-{level}"), negated)
    if level == 0:
        # What is named stands first or behind what is not.
        made["all-0"] = alt(
            Seq((Ref("said-0"), Repeat(Seq((Text(" and "), Ref("any-0"))), 0, _JOINED - 1))),
            Seq((negated, Text(" and "), Ref("said-0"), Repeat(Seq((Text(" and "), Ref("any-0"))), 0, _JOINED - 2))),
        )
    return made


def _some(level: int, deepest: int, further: bool) -> Part:
    """An `exists`: the atom that joins its variable to the one above, with what is said of it before
    and behind.
    """
    mine, below = VARIABLES[level], VARIABLES[level + 1]
    link = seq(Ref("relation"), alt(f"({below}, {mine})", f"({mine}, {below})"))
    begin = Text(f"exists {below}. ")
    if not further or level == deepest:
        return Seq((begin, link))
    more, most = Ref(f"any-{level + 1}"), _beside(level)
    before = Seq((Repeat(Seq((more, Text(" and "))), 0, most), link))
    return Seq((begin, alt(before, Seq((link, Repeat(Seq((Text(" and "), more)), 1, most))))))


def _beside(level: int) -> int:
    """The most parts beside the atom that joins an `exists` to its level: fewer the deeper it is, so
    that the whole stays within the limit of atoms.
    """
    return max(3 - level, 1)


def _atoms(level: int, deepest: int) -> int:
    """The most atoms of what is said of the variable of a level."""
    return _GROUPED if level >= deepest else max(_GROUPED, 1 + _beside(level) * _atoms(level + 1, deepest))
