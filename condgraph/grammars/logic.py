"""The grammar of logical queries, as formulas and as trees for servers that accept a JSON schema."""

from __future__ import annotations

from itertools import count
from typing import Any, Final

from condgraph.engine.errors import OptionError, ParseError, shortened
from condgraph.grammars.kopl import quoted
from condgraph.grammars.parts import Part, Ref, Repeat, Rules, Seq, Text, alt, object_schema, seq, single, tree_in, trie
from condgraph.grammars.vocabulary import Vocabulary
from condgraph.languages.logic.formula import And, Atom, Constant, Exists, Formula, Not, Or, Query, Typed, Variable, name_text
from condgraph.languages.logic.text import MAX_ATOMS

# -- queries as formulas ---------------------------------------------------------------------------
# ?x : exists ?a. capital("Nepal", ?a) and twin(?a, ?x) and not port(?x)
#
# Each level is about one variable: `?x`, within an `exists` `?a`, within another one `?b`. A level is linked to the one above
# by one atom, so that there are no cycles; and some atom always binds the answers, so that no query is unsafe. An `exists`
# linked by a negated atom is omitted: a graph in process answers it, but other stores do not.


#: The variables by the number of enclosing `exists`.
VARIABLES: Final = ("?x", "?a", "?b", "?c", "?d")
#: Most atoms in brackets, parts joined by `and`, and parts joined by `or` at the answer.
_GROUPED: Final = 3
_MAX_JOINED: Final = 3
_BRANCHES: Final = 3


def rules(names: Vocabulary, *, depth: int) -> Rules:
    """Return the rules of logical queries over some names with nested `exists` up to `depth`.

    Raises `OptionError` if no query can be written.
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
    most = max(1, min(_BRANCHES, MAX_ATOMS // (_MAX_JOINED * _atoms(0, deepest))))
    either = [_either(Ref("all-0"), most)]
    if most == 1 and "atom-0" in result:
        # If one part may have too many atoms to be repeated, plain ones may be.
        either.append(_either(Seq((Ref("atom-0"), Repeat(Seq((Text(" and "), Ref("atom-0"))), 0, _MAX_JOINED - 1))), _BRANCHES))
    result["root"] = seq(f"{VARIABLES[0]} : ", alt(*either, *([Ref("some-0")] if "some-0" in result else [])))
    return {name: part for name, part in result.items() if name != "name" or names.relations}


def _either(part: Part, most: int) -> Part:
    return Seq((part, Repeat(Seq((Text(" or "), part)), 0, most - 1)))


def _level(rules: dict[str, Part], level: int, deepest: int) -> dict[str, Part]:
    """Return the rules of formulas about the variable of a level.

    `atom`, `group` (atoms in brackets), `said` (one of these, or an `exists`), `any` (that, or its negation), `all` (joined by
    `and`), `some` (an `exists` without brackets).
    """
    variable = VARIABLES[level]
    atoms: list[Part] = []
    if "name" in rules and "relation" in rules:
        atoms += [
            seq(Ref("relation"), "(", Ref("name"), f", {variable})"),
            seq(Ref("relation"), f"({variable}, ", Ref("name"), ")"),
        ]
    if "concept" in rules:
        atoms.append(seq(Ref("concept"), f"({variable})"))
    level_rules: dict[str, Part] = {}
    choices: list[Part] = []
    conjunctions: list[Part] = []
    if atoms:
        atom, group = Ref(f"atom-{level}"), Ref(f"group-{level}")
        level_rules[atom.name] = alt(*atoms)
        level_rules[group.name] = seq("(", atom, Repeat(Seq((Text(" or "), atom)), 1, _GROUPED - 1), ")")
        choices += [atom, group]
        conjunctions = [seq("(", atom, Repeat(Seq((Text(" and "), atom)), 1, _GROUPED - 1), ")")]
    if "relation" in rules and (level < deepest or not atoms):
        level_rules[f"some-{level}"] = _some(level, deepest, f"any-{level + 1}" in rules)
        choices.append(seq("(", Ref(f"some-{level}"), ")"))
    level_rules[f"said-{level}"] = alt(*choices)
    negated = seq("not ", alt(Ref(f"said-{level}"), *conjunctions))
    level_rules[f"any-{level}"] = alt(Ref(f"said-{level}"), negated)
    if level == 0:
        # A positive formula comes first, or after a negated one.
        level_rules["all-0"] = alt(
            Seq((Ref("said-0"), Repeat(Seq((Text(" and "), Ref("any-0"))), 0, _MAX_JOINED - 1))),
            Seq((negated, Text(" and "), Ref("said-0"), Repeat(Seq((Text(" and "), Ref("any-0"))), 0, _MAX_JOINED - 2))),
        )
    return level_rules


def _some(level: int, deepest: int, further: bool) -> Part:
    """Return an `exists`: the atom that links its variable to the one above, with further formulas before and after."""
    variable, inner = VARIABLES[level], VARIABLES[level + 1]
    link = seq(Ref("relation"), alt(f"({inner}, {variable})", f"({variable}, {inner})"))
    opening = Text(f"exists {inner}. ")
    if not further or level == deepest:
        return Seq((opening, link))
    formula, most = Ref(f"any-{level + 1}"), _max_siblings(level)
    before = Seq((Repeat(Seq((formula, Text(" and "))), 0, most), link))
    return Seq((opening, alt(before, Seq((link, Repeat(Seq((Text(" and "), formula)), 1, most))))))


def _max_siblings(level: int) -> int:
    """Return the most formulas next to the linking atom: fewer at deeper levels, to keep within the limit of atoms."""
    return max(3 - level, 1)


def _atoms(level: int, deepest: int) -> int:
    """Return the most atoms of a formula about the variable of a level."""
    return _GROUPED if level >= deepest else max(_GROUPED, 1 + _max_siblings(level) * _atoms(level + 1, deepest))


# -- queries as trees ------------------------------------------------------------------------------
# Logical queries for servers that accept a JSON schema: queries are trees of sets; and queries from such
# trees.
#
# `{"query": {"step": {"of": {"entity": "Nepal"}, "relation": "capital", "direction": "forward"}}}` is `?x
# : capital("Nepal", ?x)`. A set is reached by a relation from a set or an entity, has the members of a
# type, or is an intersection, union or difference of two sets. So each tree binds its answers, and its
# variables form a tree.


#: Instructions for a model that writes queries as trees.
INSTRUCTIONS: Final = (
    'The query is written as JSON, as sets within sets: {"entity": ...} (only where a step begins), {"type": ...}, '
    '{"step": {"of": ..., "relation": ..., "direction": "forward"}} ("forward" leads from subject to object), '
    '{"both": {"of": ..., "with": ...}}, {"either": {"of": ..., "with": ...}}, {"without": {"of": ..., "with": ...}}. '
    'Such as: {"query": {"step": {"of": {"entity": "Nepal"}, "relation": "capital", "direction": "forward"}}}; where nothing '
    'answers, {"query": null}.'
)
_DIRECTIONS: Final = ("forward", "backward")
_JOINS: Final = ("both", "either", "without")
#: Most nested sets of a tree that is read.
_MAX_DEPTH: Final = 50


def schema(names: Vocabulary, *, none: bool = False) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of queries over some names; with `none`, null is one.

    Raises `OptionError` if no query can be written.
    """
    sets: list[dict[str, Any]] = []
    definitions: dict[str, Any] = {}
    set_ref = {"$ref": "#/$defs/set"}
    start_ref = set_ref
    if names.relations:
        if names.entities:
            definitions["name"] = {"enum": list(names.entities)}
            definitions["start"] = {"anyOf": [object_schema({"entity": {"$ref": "#/$defs/name"}}), set_ref]}
            start_ref = {"$ref": "#/$defs/start"}
        definitions["relation"] = {"enum": list(names.relations)}
        step = {"of": start_ref, "relation": {"$ref": "#/$defs/relation"}, "direction": {"enum": list(_DIRECTIONS)}}
        sets.append(object_schema({"step": object_schema(step)}))
    if names.concepts:
        definitions["concept"] = {"enum": list(names.concepts)}
        sets.append(object_schema({"type": {"$ref": "#/$defs/concept"}}))
    if not names.concepts and not (names.relations and names.entities):
        raise OptionError("the graph has no names that a logical query could hold", hint="name them with entities=, or load some")
    sets += [object_schema({join: object_schema({"of": set_ref, "with": set_ref})}) for join in _JOINS]
    definitions["set"] = {"anyOf": sets}
    return {**object_schema({"query": {"anyOf": [set_ref, {"type": "null"}]} if none else set_ref}), "$defs": definitions}


def program(text: str) -> str:
    """Return the query of a tree as text, empty for null; raises `ParseError` for other texts."""
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
        """Return the formula that a set states about a variable."""
        kind, content = single(tree)
        if depth > _MAX_DEPTH:
            raise ParseError("the query is nested too deeply")
        if kind == "type" and isinstance(content, str):
            return Typed(content, of)
        if kind == "step" and isinstance(content, dict):
            return self._step(content, of, depth)
        if kind in _JOINS and isinstance(content, dict):
            first, second = (self.formula(content.get(name), of, depth + 1) for name in ("of", "with"))
            return Or((first, second)) if kind == "either" else And((first, second if kind == "both" else Not(second)))
        raise ParseError(f"a set is expected, not {shortened(repr(tree), 100)}")

    def _step(self, given: dict[str, Any], of: Variable, depth: int) -> Formula:
        relation, direction, start = given.get("relation"), given.get("direction"), given.get("of")
        if not isinstance(relation, str) or direction not in _DIRECTIONS:
            raise ParseError('a step has a "relation", and a "direction": "forward" or "backward"')
        if isinstance(start, dict) and isinstance(name := start.get("entity"), str) and len(start) == 1:
            return _atom(relation, Constant(name), of, direction)
        inner = Variable(f"v{next(self._numbers)}")
        return Exists((inner,), And((self.formula(start, inner, depth + 1), _atom(relation, inner, of, direction))))


def _atom(relation: str, of: Variable | Constant, to: Variable, direction: str) -> Atom:
    return Atom(relation, of, to) if direction == "forward" else Atom(relation, to, of)
