"""The grammar of logical queries, as formulas and as trees for servers that take a JSON schema."""

from __future__ import annotations

from itertools import count
from typing import Any, Final

from condgraph.engine.errors import OptionError, ParseError, shortened
from condgraph.grammars.kopl import quoted
from condgraph.grammars.parts import Part, Ref, Repeat, Rules, Seq, Text, alt, object_schema, seq, single, tree_in, trie
from condgraph.grammars.vocabulary import Vocabulary
from condgraph.languages.logic.formula import And, Atom, Constant, Exists, Formula, Not, Or, Query, Typed, Variable, name_text
from condgraph.languages.logic.text import MOST_ATOMS

# -- queries as formulas ---------------------------------------------------------------------------
# ?x : exists ?a. capital("Nepal", ?a) and twin(?a, ?x) and not port(?x)
#
# Each level is about one variable: `?x`, below an `exists` `?a`, below another `?b`. A
# level is joined to the one above by one atom, so that there are no cycles; and something always says
# what the answers are, so that no query is unsafe. `exists` that is joined by a negated atom is left
# out: a graph answers it, and the stores do not.


#: The variables by the number of `exists` around them.
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
    result: dict[str, Part] = {}
    if names.relations:
        result["relation"] = trie(map(name_text, names.relations))
    if names.entities:
        result["name"] = trie(map(quoted, names.entities))
    if names.concepts:
        result["concept"] = trie(map(name_text, names.concepts))
    deepest = depth if names.relations else 0
    for level in range(deepest, -1, -1):
        result |= _level(result, level, deepest)
    most = max(1, min(_BRANCHES, MOST_ATOMS // (_JOINED * _atoms(0, deepest))))
    either = [_either(Ref("all-0"), most)]
    if most == 1 and "atom-0" in result:
        # Where one part may have too many atoms for several, there are several of plain ones.
        either.append(_either(Seq((Ref("atom-0"), Repeat(Seq((Text(" and "), Ref("atom-0"))), 0, _JOINED - 1))), _BRANCHES))
    result["root"] = seq(f"{VARIABLES[0]} : ", alt(*either, *([Ref("some-0")] if "some-0" in result else [])))
    return {name: part for name, part in result.items() if name != "name" or names.relations}


def _either(part: Part, most: int) -> Part:
    return Seq((part, Repeat(Seq((Text(" or "), part)), 0, most - 1)))


def _level(rules: dict[str, Part], level: int, deepest: int) -> dict[str, Part]:
    """The rules of what is said of the variable of a level: `atom`, `group` (atoms in brackets),
    `said` (one of these, or an `exists`), `any` (that, or its negation), `all` (joined by `and`),
    `some` (an `exists` without brackets around it).
    """
    mine = VARIABLES[level]
    atoms: list[Part] = []
    if "name" in rules and "relation" in rules:
        atoms += [
            seq(Ref("relation"), "(", Ref("name"), f", {mine})"),
            seq(Ref("relation"), f"({mine}, ", Ref("name"), ")"),
        ]
    if "concept" in rules:
        atoms.append(seq(Ref("concept"), f"({mine})"))
    made: dict[str, Part] = {}
    choices: list[Part] = []
    both: list[Part] = []
    if atoms:
        atom, group = Ref(f"atom-{level}"), Ref(f"group-{level}")
        made[atom.name] = alt(*atoms)
        made[group.name] = seq("(", atom, Repeat(Seq((Text(" or "), atom)), 1, _GROUPED - 1), ")")
        choices += [atom, group]
        both = [seq("(", atom, Repeat(Seq((Text(" and "), atom)), 1, _GROUPED - 1), ")")]
    if "relation" in rules and (level < deepest or not atoms):
        made[f"some-{level}"] = _some(level, deepest, f"any-{level + 1}" in rules)
        choices.append(seq("(", Ref(f"some-{level}"), ")"))
    made[f"said-{level}"] = alt(*choices)
    negated = seq("not ", alt(Ref(f"said-{level}"), *both))
    made[f"any-{level}"] = alt(Ref(f"said-{level}"), negated)
    if level == 0:
        # What is named comes first, or after what is not.
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


# -- queries as trees ------------------------------------------------------------------------------
# Logical queries for servers that take a JSON schema: queries as trees of sets, and from a tree back
# to a query.
#
# `{"query": {"step": {"of": {"entity": "Nepal"}, "relation": "capital", "direction": "forward"}}}` is
# `?x : capital("Nepal", ?x)`. A set is what a relation leads to from a set or an entity, the members
# of a type, what two sets share, what one of two has, or what one has and the other has not. So each
# tree says what its answers are, and its variables form a tree.


#: Instructions for a model that writes queries as trees.
TOLD: Final = (
    'The query is written as JSON, as sets within sets: {"entity": ...} (only where a step begins), {"type": ...}, '
    '{"step": {"of": ..., "relation": ..., "direction": "forward"}} ("forward" leads from subject to object), '
    '{"both": {"of": ..., "with": ...}}, {"either": {"of": ..., "with": ...}}, {"without": {"of": ..., "with": ...}}. '
    'Such as: {"query": {"step": {"of": {"entity": "Nepal"}, "relation": "capital", "direction": "forward"}}}; where nothing '
    'answers, {"query": null}.'
)
_DIRECTIONS: Final = ("forward", "backward")
_JOINS: Final = ("both", "either", "without")
#: Sets within sets of the deepest tree that is read.
_DEEPEST: Final = 50


def schema(names: Vocabulary, *, none: bool = False) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of queries over these names; with `none`, null is one. Raises
    `OptionError` where none can be written.
    """
    sets: list[dict[str, Any]] = []
    definitions: dict[str, Any] = {}
    some = {"$ref": "#/$defs/set"}
    begin = some
    if names.relations:
        if names.entities:
            definitions["name"] = {"enum": list(names.entities)}
            definitions["start"] = {"anyOf": [object_schema({"entity": {"$ref": "#/$defs/name"}}), some]}
            begin = {"$ref": "#/$defs/start"}
        definitions["relation"] = {"enum": list(names.relations)}
        leads = {"of": begin, "relation": {"$ref": "#/$defs/relation"}, "direction": {"enum": list(_DIRECTIONS)}}
        sets.append(object_schema({"step": object_schema(leads)}))
    if names.concepts:
        definitions["concept"] = {"enum": list(names.concepts)}
        sets.append(object_schema({"type": {"$ref": "#/$defs/concept"}}))
    if not names.concepts and not (names.relations and names.entities):
        raise OptionError("the graph has no names that a logical query could hold", hint="name them with entities=, or load some")
    sets += [object_schema({join: object_schema({"of": some, "with": some})}) for join in _JOINS]
    definitions["set"] = {"anyOf": sets}
    return {**object_schema({"query": {"anyOf": [some, {"type": "null"}]} if none else some}), "$defs": definitions}


def program(text: str) -> str:
    """The query of a tree, as text, empty for null; raises `ParseError` for what is no tree."""
    tree = tree_in(text, "query")
    if tree is None:
        return ""
    answer = Variable("x")
    return str(Query(answer, _Reader().formula(tree, answer, 0)))


class _Reader:
    """Reads one tree; its variables are numbered."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def formula(self, tree: Any, of: Variable, depth: int) -> Formula:
        """What a set says of a variable."""
        kind, given = single(tree)
        if depth > _DEEPEST:
            raise ParseError("the query is nested too deeply")
        if kind == "type" and isinstance(given, str):
            return Typed(given, of)
        if kind == "step" and isinstance(given, dict):
            return self._step(given, of, depth)
        if kind in _JOINS and isinstance(given, dict):
            value, two = (self.formula(given.get(name), of, depth + 1) for name in ("of", "with"))
            return Or((value, two)) if kind == "either" else And((value, two if kind == "both" else Not(two)))
        raise ParseError(f"a set is expected, not {shortened(repr(tree), 100)}")

    def _step(self, given: dict[str, Any], of: Variable, depth: int) -> Formula:
        relation, direction, begin = given.get("relation"), given.get("direction"), given.get("of")
        if not isinstance(relation, str) or direction not in _DIRECTIONS:
            raise ParseError('a step has a "relation", and a "direction": "forward" or "backward"')
        if isinstance(begin, dict) and isinstance(name := begin.get("entity"), str) and len(begin) == 1:
            return _atom(relation, Constant(name), of, direction)
        below = Variable(f"v{next(self._numbers)}")
        return Exists((below,), And((self.formula(begin, below, depth + 1), _atom(relation, below, of, direction))))


def _atom(relation: str, of: Variable | Constant, to: Variable, direction: str) -> Atom:
    return Atom(relation, of, to) if direction == "forward" else Atom(relation, to, of)
