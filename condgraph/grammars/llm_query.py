"""The grammar of LLM queries, as numbered lines and as trees for servers that accept a JSON schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from condgraph.engine.errors import OptionError, ParseError, shortened
from condgraph.grammars.kopl import literal_of, literals_of
from condgraph.grammars.parts import (
    DIGIT,
    Chars,
    Part,
    Ref,
    Repeat,
    Rules,
    Seq,
    Text,
    alt,
    maybe,
    object_schema,
    reached,
    regex,
    seq,
    single,
    tree_in,
    trie,
)
from condgraph.grammars.vocabulary import Vocabulary
from condgraph.languages.llm.functions import FUNCTIONS, TABLE
from condgraph.languages.llm.syntax.tokens import DOUBLE, SINGLE

# -- names and texts in quotes ---------------------------------------------------------------------
# The quoted parts of LLM queries: names as written, texts that are values, the words of a step.


#: Longest text that is a value, and longest description of a step, in characters.
MAX_TEXT: Final = 100
MAX_WORDS: Final = 160
_MENTION: Final = re.compile(r"output_?(?:of_?)?query_?\d", re.IGNORECASE)
_QUOTES: Final = SINGLE + DOUBLE
_UNSEEN: Final = (("\x00", "\x1f"), ("\x7f", "\x9f"), ("\u2028", "\u2029"))


def writable(name: str) -> bool:
    """Tell whether a name can be quoted in an LLM query."""
    return bool(name.strip()) and name.isprintable() and not name.endswith("\\") and _MENTION.search(name) is None


def written(name: str) -> str:
    """Return a name as it is written between quotes."""
    return re.sub(rf"([\\{_QUOTES}])", r"\\\1", name)


def names_of(names: Iterable[str]) -> Part | None:
    """Return a choice of the names that can be written; None if none can."""
    result = [written(name) for name in names if writable(name)]
    return trie(result) if result else None


def texts() -> dict[str, Part]:
    """Return the rules of words and of texts that are values, none of which reads as a reference to a result."""
    quotes = tuple((quote, quote) for quote in _QUOTES)
    words = Chars((*_UNSEEN, ("{", "{"), ("}", "}")), negated=True)
    first = Chars((*_UNSEEN, *quotes, ("\\", "\\"), ("`", "`"), (" ", " "), ("\xa0", "\xa0"), ("Y", "Y"), ("y", "y")), negated=True)
    letter = Chars((*_UNSEEN, *quotes, ("\\", "\\"), ("`", "`"), ("Y", "Y"), ("y", "y")), negated=True)
    # No digit follows a y, so that no text is `output_of_query` with a number.
    after_y = Chars((*_UNSEEN, *quotes, ("\\", "\\"), ("`", "`"), ("0", "9"), ("_", "_")), negated=True)
    letter_y = Chars((("Y", "Y"), ("y", "y")))
    escaped = seq("\\", Chars((("'", "'"), ('"', '"'))))
    return {
        "words": seq(Chars((*_UNSEEN, ("{", "{"), ("}", "}"), (" ", " ")), negated=True), Repeat(words, 0, MAX_WORDS)),
        "text": Seq(
            (
                alt(first, escaped, seq(letter_y, maybe(after_y))),
                Repeat(alt(letter, escaped, seq(letter_y, after_y)), 0, MAX_TEXT),
                maybe(letter_y),
            )
        ),
        "result-text": alt("yes", "no", "equal"),
        "plain-number": seq(maybe(Text("-")), Repeat(DIGIT, 1, 12), maybe(seq(".", Repeat(DIGIT, 1, 6)))),
        "few": seq(Chars((("1", "9"),)), maybe(DIGIT)),
    }


# -- predicates by what fits them ------------------------------------------------------------------
# Groups of predicates that take the same arguments in an LLM query, and rules of the literals that their
# objects and qualifiers are compared with.


_TIME_WORDS: Final = {"time": ("point in time", "start time", "end time"), "start time": ("start time",), "end time": ("end time",)}


@dataclass(frozen=True, slots=True)
class Group:
    """Predicates that take the same arguments.

    `objects` is the rule of literals that their objects are compared with ("" for entities alone), `of_entities` tells
    whether objects are entities, `keys` are their qualifiers with the rule of each ("when" for time words), `tables`
    those whose columns they are, and `sources` those of which one has to be named.
    """

    objects: str
    of_entities: bool
    keys: tuple[tuple[str, str], ...]
    tables: tuple[str, ...]
    sources: tuple[str, ...]

    def scopes(self, *, rows: bool) -> tuple[str, ...]:
        """Return the sources of which one has to be named; with `rows`, only those with rows."""
        return tuple(source for source in self.sources if not rows or source in self.tables)


class Groups:
    """The rules under construction: `groups` are predicates that take the same arguments, `by_name` the rules."""

    def __init__(self, names: Vocabulary, spelled: Callable[[str], str]) -> None:
        self.names, self._spelled = names, spelled
        self.literals = literals_of(names)
        self.by_name: dict[str, Part] = {item: self.literals[item] for item in ("upto28", "four", "years", "days")}
        self.by_name |= texts()
        self.by_name["moment"] = self.by_name["when"] = alt(Ref("years"), Ref("days"))
        self.by_name["extreme"], self.by_name["extreme-time"] = trie(("highest", "lowest")), trie(("earliest", "latest"))
        if (entities := names_of(names.entities)) is not None:
            self.by_name["entity"] = entities
        self._shared: dict[tuple[str, Hashable], int] = {}
        self._amounts: dict[tuple[str, tuple[str, ...]], int] = {}
        self.groups: dict[Group, list[str]] = {}
        for name in dict.fromkeys([*names.relations, *names.keys]):
            if writable(name):
                self.groups.setdefault(self._group(name), []).append(name)

    @classmethod
    def of(cls, names: Vocabulary, spelled: Callable[[str], str] = written) -> Self:
        """Build the rules over some names; raises `OptionError` if none can be written. `spelled` writes units in literals."""
        groups = cls(names, spelled)
        if not groups.groups:
            raise OptionError("there are no predicates for the grammar to name", hint="load something first")
        return groups

    def _group(self, name: str) -> Group:
        names = self.names
        kinds = names.keys.get(name)
        qualifiers = names.qualified.get(name, {})
        keys = [
            (word, "when") for word, qualifier_names in _TIME_WORDS.items() if any(item in qualifiers for item in qualifier_names)
        ]
        listed = {word for word, _ in keys}
        keys += [
            (key, self._literal(key, value_types)) for key, value_types in qualifiers.items() if key not in listed and writable(key)
        ]
        objects = "" if kinds is None else self._literal(name, kinds)
        return Group(objects, name in names.relations, tuple(sorted(keys)), names.columns.get(name, ()), names.scopes.get(name, ()))

    def _literal(self, name: str, kinds: frozenset[str]) -> str:
        """Return the rule of literals that values of these types are compared with."""
        kind = literal_of(kinds)
        if "number" not in kind:
            return kind
        units = tuple(unit for unit in self.names.units_of.get(name, ()) if writable(unit))
        rule = f"{kind}-{self._amounts.setdefault((kind, units), len(self._amounts))}"
        if rule not in self.by_name:
            digits = Repeat(DIGIT, 1, 15)
            amount = seq(maybe(Text("-")), digits, maybe(seq(".", Repeat(DIGIT, 1, 12))))
            if units:
                amount = seq(amount, maybe(seq(" ", trie(map(self._spelled, units)))))
            self.by_name[rule] = alt(amount, *([Ref("moment")] if kind == "number-or-moment" else []))
        return rule

    def _shared_rule(self, kind: str, what: Hashable, line: int, part: Part) -> Part:
        """Return a reference to a part as a rule, which is shared by equal parts."""
        rule = f"{kind}-{self._shared.setdefault((kind, what), len(self._shared))}-{line}"
        self.by_name[rule] = part
        return Ref(rule)

    @property
    def times(self) -> list[str]:
        """The time words that some facts have."""
        return sorted({key for group in self.groups for key, literal in group.keys if literal == "when"})

    @property
    def anywhere(self) -> bool:
        """Whether a search without a relation needs no source."""
        return len(set(self.names.columns.values())) < 2 and not self.names.scopes

    def tables(self) -> dict[str, list[int]]:
        """Return the groups whose predicates are columns of one table, by table."""
        result: dict[str, list[int]] = {}
        for number, group in enumerate(self.groups):
            if len(group.tables) == 1 and not group.sources:
                result.setdefault(group.tables[0], []).append(number)
        return result

    def summed(self, numbers: Iterable[int]) -> list[int]:
        """Return those of the groups whose values are only numbers."""
        groups = list(self.groups)
        return [
            number for number in numbers if groups[number].objects.startswith("number-") and "moment" not in groups[number].objects
        ]


# -- programs as lines -----------------------------------------------------------------------------
# A relation determines its arguments: the type of its objects (entities, texts, numbers with units,
# times) determines comparisons, and the qualifiers of its facts are the keys. A function has to match the
# result of the line before: functions of rows follow a search for rows in a table, superlatives of rows
# one for their values, tables of groups one for rows of that table. Texts are in quotes within quotes,
# with their own quotes escaped by backslashes.


#: Lines of the longest program.
LINES: Final = 9
#: Functions whose operands are not only results, or are results of certain sorts.
_SPECIAL: Final = frozenset(
    {
        "get_information", "keep", "if", "previous_row", "next_row", "row_number", "split", "round", "nth_highest", "argmax",
        "argmin", "set_negation", "group_by", "having", "order_by", "limit", "top", "bottom",
    }
)  # fmt: skip
UNARY: Final = tuple(item.name for item in TABLE if item.operands[0] == 1 and item.name not in _SPECIAL)
TWO: Final = tuple(item.name for item in TABLE if item.operands[0] <= 2 <= item.operands[1] and item.name not in _SPECIAL)
#: Functions of the rows of a search, and of the values of rows or entities.
OF_ROWS: Final = ("previous_row", "next_row", "row_number")
OF_VALUES: Final = ("argmax", "argmin")
#: Functions whose second operand may be a number, and those where it may be an entity.
WITH_NUMBER: Final = ("compare", "difference", "add", "multiply", "divide", "percentage", "equal")
WITH_ENTITY: Final = ("set_difference", "is_in", "equal")
ALL_OPERATORS: Final = ("=", "!=", ">", "<", ">=", "<=")
SAME_OPERATORS: Final = ("=", "!=")


def rules(names: Vocabulary, *, steps: int) -> Rules:
    """Return the rules of LLM queries of at most `steps` lines; raises `OptionError` if none can be written."""
    line_rules = LineRules.of(names)
    return reached(line_rules.rules(max(1, min(steps, LINES))))


class LineRules(Groups):
    """The rules of lines under construction."""

    # -- lines -------------------------------------------------------------------------------------

    def rules(self, lines: int) -> dict[str, Part]:
        """Return all rules."""
        result = self.by_name
        result |= {"one": trie(UNARY), "two": trie(TWO), "with-number": trie(WITH_NUMBER), "with-entity": trie(WITH_ENTITY)}
        result["of-rows"], result["of-values"] = trie(OF_ROWS), trie(OF_VALUES)
        for number, members in enumerate(self.groups.values()):
            result[f"relation-{number}"] = trie(map(written, members))
        for line in range(lines, 0, -1):
            result |= self._line(line, lines)
        target = seq("## Target type: {", Ref("words"), "}\n")
        result["root"] = seq(maybe(target), Ref("line-1"))
        return result

    def _line(self, line: int, lines: int) -> dict[str, Part]:
        line_rules: dict[str, Part] = {}
        if line > 1:
            line_rules[f"result-{line}"] = seq("output_of_query", alt(*(str(item) for item in range(1, line))))
        searches = self._searches(line)
        line_rules[f"search-{line}"] = alt(*searches)
        calls: list[Part] = [Ref(f"search-{line}")]
        if line > 1:
            calls += self._functions(Ref(f"result-{line}"))
        line_rules[f"call-{line}"] = _numbered(line, alt(*calls))
        next_line = Seq((Text("\n"), Ref(f"line-{line + 1}"))) if line < lines else None
        one_line: Part = Ref(f"call-{line}") if next_line is None else Seq((Ref(f"call-{line}"), maybe(next_line)))
        choices = [one_line]
        if line < lines:
            line_rules[f"pair-{line}"] = alt(*self._pairs(line))
            after = maybe(Seq((Text("\n"), Ref(f"line-{line + 2}")))) if line + 1 < lines else Text("")
            choices.append(Seq((Ref(f"pair-{line}"), after)))
            choices += self._groups_of_rows(line)
        line_rules[f"line-{line}"] = alt(*choices)
        return line_rules

    def _functions(self, result: Ref) -> list[Part]:
        """Return calls of functions over results of any sort."""
        one_set, two_sets = ("(set='", result, "')"), ("(set1='", result, "', set2='")
        calls = [seq(Ref("one"), *one_set), seq(Ref("two"), *two_sets, result, "')")]
        calls.append(seq(alt("set_union", "set_intersection"), *two_sets, result, "', set3='", result, "')"))
        calls.append(seq(Ref("with-number"), *two_sets, Ref("plain-number"), "')"))
        if "entity" in self.by_name:
            calls.append(seq(Ref("with-entity"), *two_sets, Ref("entity"), "')"))
        calls.append(seq("keep(set='", result, "', value", alt(*ALL_OPERATORS), "'", result, "')"))
        calls.append(seq("sort(set='", result, "', order='", alt("ascending", "descending"), "')"))
        calls.append(seq("round(set='", result, "', digits='", DIGIT, "')"))
        calls.append(seq("compare", *two_sets, result, "', operator='", alt(*ALL_OPERATORS), "')"))
        calls.append(seq(alt("difference", "duration"), *two_sets, result, "', unit='", alt("years", "months", "days"), "')"))
        sides = alt(Seq((Text("'"), Ref("result-text"), Text("'"))), result)
        test = seq(result, " ", alt(*ALL_OPERATORS), " ", alt(result, Ref("plain-number")))
        calls.append(seq("if(", test, ", ", sides, ", ", sides, ")"))
        return calls

    # -- get_information ---------------------------------------------------------------------------

    def _searches(self, line: int) -> list[Part]:
        """Return searches by relation, and those by an entity alone."""
        return [*(self._search(number, group, line) for number, group in enumerate(self.groups)), *self._anywhere(line)]

    def _head(self, line: int) -> Part | None:
        ends = [Ref(item) for item in ("entity", f"result-{line}") if item in self.by_name or (item != "entity" and line > 1)]
        return self._shared_rule("head", None, line, seq("head_entity='", alt(*ends), "'")) if ends else None

    def _search(self, number: int, group: Group, line: int) -> Part:
        relation = seq("relation='", Ref(f"relation-{number}"), "'")
        head = self._head(line)
        begin = relation if head is None else alt(Seq((relation, maybe(seq(", ", head)))), seq(head, ", ", relation))
        conditions = [maybe(seq(", ", tail))] if (tail := self._tail(group, line)) is not None else []
        conditions += [maybe(seq(", ", key))] if (key := self._key(group, line)) is not None else []
        return seq("get_information(", begin, *conditions, self._scope(group), ")")

    def _tail(self, group: Group, line: int) -> Part | None:
        """Return a condition on the object."""
        results = [Ref(f"result-{line}")] if line > 1 else []
        equal_literals: list[Part] = [Ref("entity")] if group.of_entities and "entity" in self.by_name else []
        ordered: list[Part] = []
        if group.objects:
            (equal_literals if group.objects == "text" else ordered).append(Ref(group.objects))
        if not ordered:
            equal_literals += results
        conditions = [seq("tail_entity", alt(*SAME_OPERATORS), "'", alt(*equal_literals), "'")] if equal_literals else []
        if ordered:
            conditions.append(seq("tail_entity", alt(*ALL_OPERATORS), "'", alt(*ordered, *results), "'"))
            conditions.append(seq("tail_entity='", Ref("extreme-time" if group.objects == "moment" else "extreme"), "'"))
        return self._shared_rule("tail", (group.objects, group.of_entities), line, alt(*conditions)) if conditions else None

    def _key(self, group: Group, line: int) -> Part | None:
        """Return a qualifier that is requested, or has a value."""
        results = [Ref(f"result-{line}")] if line > 1 else []
        pairs: dict[str, list[str]] = {}
        for key, literal in group.keys:
            pairs.setdefault(literal, []).append(written(key))
        choices = []
        for literal, keys in pairs.items():
            operators = SAME_OPERATORS if literal == "text" else ALL_OPERATORS
            value = seq(", value", alt(*operators), "'", alt(Ref(literal), *results), "'")
            if literal == "when":
                value = alt(value, seq(", value='", Ref("extreme-time"), "'"))
            choices.append(seq("key='", trie(keys), "'", maybe(value)))
        return self._shared_rule("key", group.keys, line, alt(*choices)) if choices else None

    def _scope(self, group: Group, *, rows: bool = False) -> Part:
        """Return the source, if the relation alone does not identify it; with `rows`, one with rows."""
        sources = names_of(group.scopes(rows=rows))
        return Text("") if sources is None else seq(", source='", sources, "'")

    def _anywhere(self, line: int) -> list[Part]:
        """Return searches without a relation: facts about an entity, relations between two, and when it was."""
        head, tail = self._head(line), seq("tail_entity='", Ref("entity"), "'")
        if "entity" not in self.by_name or head is None or not self.anywhere:
            return []
        choices = [Seq((head, maybe(seq(", ", tail)))), tail]
        if self.times:
            choices.append(seq(head, ", key='", trie(self.times), "'"))
        return [seq("get_information(", alt(*choices), ")")]

    # -- two lines that belong together ------------------------------------------------------------

    def _pairs(self, line: int) -> list[Part]:
        """Return a search with a function of rows or values that takes its result."""
        subjects: list[Part] = []
        rows: list[Part] = []
        values: list[Part] = []
        for number, group in enumerate(self.groups):
            search = self._rows(number, group, line)
            subjects.append(search)
            if group.tables:
                rows.append(self._rows(number, group, line, alone=True))
            relation = seq("get_information(relation='", Ref(f"relation-{number}"), "'")
            if (head := self._head(line)) is not None:
                relation = Seq((relation, maybe(seq(", ", head))))
            if group.objects and group.objects != "text":
                values.append(seq(relation, self._scope(group), ")"))
        first_output = f"output_of_query{line}"
        filters = [self._conditioned(number, group, line) for number, group in enumerate(self.groups)]
        negated = _numbered(line + 1, seq(f"set_negation(set='{first_output}')"))
        result: list[Part] = [
            Seq((_numbered(line, alt(*subjects)), Text("\n"), negated)),
            *(item for item in filters if item is not None),
        ]
        if rows:
            result.append(
                Seq((_numbered(line, alt(*rows)), Text("\n"), _numbered(line + 1, seq(Ref("of-rows"), f"(set='{first_output}')"))))
            )
        if values:
            calls = alt(
                seq(Ref("of-values"), f"(set='{first_output}')"), seq(f"nth_highest(set='{first_output}', n='", Ref("few"), "')")
            )
            result.append(Seq((_numbered(line, alt(*values)), Text("\n"), _numbered(line + 1, calls))))
        return result

    def _conditioned(self, number: int, group: Group, line: int) -> Part | None:
        """Return a search for values, or for times of facts, with a condition that they have to satisfy."""
        head = self._head(line)
        search: Part = seq("get_information(relation='", Ref(f"relation-{number}"), "'", maybe(seq(", ", head)) if head else "")
        choices = [(search, group.objects)] if group.objects else []
        if times := [written(key) for key, literal in group.keys if literal == "when"]:
            choices.append((seq(search, ", key='", trie(times), "'"), "when"))
        result: list[Part] = []
        for begin, literal in choices:
            test = seq("', value", alt(*(SAME_OPERATORS if literal == "text" else ALL_OPERATORS)), "'", Ref(literal), "')")
            call = _numbered(line + 1, seq(f"keep(set='output_of_query{line}", test))
            result.append(Seq((_numbered(line, seq(begin, self._scope(group), ")")), Text("\n"), call)))
        return alt(*result) if result else None

    def _rows(self, number: int, group: Group, line: int, *, alone: bool = False) -> Part:
        """Return a search for subjects; with `alone`, for those that are rows of a table."""
        tail = self._tail(group, line)
        condition = Text("") if tail is None else seq(", ", tail)
        part = seq("get_information(relation='", Ref(f"relation-{number}"), "'", condition, self._scope(group, rows=alone), ")")
        return self._shared_rule("rows", (number, group.scopes(rows=alone)), line, part)

    def _groups_of_rows(self, line: int) -> list[Part]:
        """Return a search for rows with the table built from them, which ends a program."""
        return [self._grouped(line, numbers) for numbers in self.tables().values()]

    def _grouped(self, line: int, numbers: list[int]) -> Part:
        groups = list(self.groups)
        rows = alt(*(self._rows(number, groups[number], line) for number in numbers))
        key = alt(*(Ref(f"relation-{number}") for number in numbers))
        summed = [Ref(f"relation-{number}") for number in self.summed(numbers)]
        arguments = f"(set='output_of_query{line}', key='"
        calls = [seq("group_by", arguments, key, "', aggregate='count')"), seq("order_by", arguments, key, "')")]
        if summed:
            numeric = alt(*summed)
            calls.append(
                seq("group_by", arguments, key, "', aggregate='", alt("sum", "mean", "max", "min"), "', of='", numeric, "')")
            )
            calls.append(seq(alt("top", "bottom"), arguments, numeric, "', n='", Ref("few"), "')"))
        return Seq((_numbered(line, rows), Text("\n"), _numbered(line + 1, alt(*calls))))


def _numbered(line: int, call: Part) -> Part:
    """Return a numbered call, with an optional description of its step."""
    step = maybe(seq(f"Step{line}: ", Ref("words"), "\n"))
    return Seq((step, Text(f'Query{line}: "'), call, Text('"')))


# -- programs as trees -----------------------------------------------------------------------------
# LLM queries for servers that accept a JSON schema: the last query is a tree, in which each call contains
# the calls that it takes; and numbered lines from such trees.
#
# `{"program": {"count": {"set": {"get_information": {"relation": "country", "head_entity": null,
# "tail_entity": {"is": "=", "value": "Italy"}}}}}}` is
#
#     Query1: "get_information(relation='country', tail_entity='Italy')"
#     Query2: "count(set='output_of_query1')"
#
# A tree has no numbers, so that nothing can refer to a query that does not exist. What occurs twice
# becomes one line.


#: Instructions for a model that writes programs as trees.
INSTRUCTIONS: Final = (
    "The program is written as JSON: the last call, which holds the calls whose results it takes in place of output_of_query1 and "
    'so on; conditions are {"is": ">", "value": ...}, a qualifier is {"key": ..., "value": ...}, and what is not given is null. '
    'Such as: {"program": {"count": {"set": {"get_information": {"relation": "country", "head_entity": null, "tail_entity": '
    '{"is": "=", "value": "Italy"}}}}}}; where nothing answers, {"program": null}.'
)
#: Most nested calls of a tree that is read, and most lines of a program.
_MAX_DEPTH: Final = 100
_LINES: Final = 200
#: Texts that are values: no digit follows a y, so that none is `output_of_query` with a number.
_LETTER: Final = r"(?:[^{first}\x7f-\xa0\\yY]|[yY][^\x00-\x1f\x7f-\xa0\\0-9_])"
_TEXT: Final = _LETTER.replace("{first}", r"\x00-\x20") + _LETTER.replace("{first}", r"\x00-\x1f") + "{0,99}"
_NULL: Final = {"type": "null"}
#: The operators of a condition, by their number.
_OPERATORS: Final = {1: {"enum": ["="]}, 2: {"$ref": "#/$defs/same"}, 6: {"$ref": "#/$defs/operator"}}
_RESULT: Final = {"$ref": "#/$defs/result"}
_WORDS: Final = ("yes", "no", "equal")
_SUMS: Final = ("sum", "mean", "max", "min")


def schema(names: Vocabulary, *, none: bool = False) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of programs over some names; with `none`, null is one.

    Raises `OptionError` if no program can be written.
    """
    # A tree has plain texts; they are quoted when it is read.
    made = _Schema(LineRules.of(names, str))
    nothing = [_NULL] if none else []
    program = {"anyOf": [_RESULT, *made.tables(), *nothing]}
    return {**object_schema({"program": program}), "$defs": made.definitions}


def _call(function: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    return object_schema({function: object_schema(properties)})


class _Schema:
    """Builds the definitions, as `LineRules` builds rules."""

    def __init__(self, made: LineRules) -> None:
        self.made, self.names = made, made.names
        self._listed: dict[tuple[str, ...], int] = {}
        self.definitions: dict[str, Any] = {
            "operator": {"enum": list(ALL_OPERATORS)},
            "same": {"enum": list(SAME_OPERATORS)},
            "extreme": {"enum": ["highest", "lowest"]},
            "extreme-time": {"enum": ["earliest", "latest"]},
        }
        entities = [name for name in self.names.entities if writable(name)]
        if entities:
            self.definitions["entity"] = {"enum": entities}
        for number, members in enumerate(made.groups.values()):
            self.definitions[f"relation-{number}"] = {"enum": list(members)}
        searches = [self._search(number) for number in range(len(made.groups))]
        if entities and made.anywhere:
            entity = {"$ref": "#/$defs/entity"}
            searches.append(_call("get_information", {"head_entity": entity, "tail_entity": {"anyOf": [entity, _NULL]}}))
            searches.append(_call("get_information", {"head_entity": _RESULT, "tail_entity": {"anyOf": [entity, _NULL]}}))
            if made.times:
                key = object_schema({"key": self._name_list(made.times), "value": _NULL})
                searches.append(_call("get_information", {"head_entity": {"anyOf": [entity, _RESULT]}, "qualifier": key}))
            searches.append(_call("get_information", {"head_entity": _NULL, "tail_entity": entity}))
        self.definitions["number"] = {"type": "string", "pattern": f"^{self._pattern('plain-number')}$"}
        self.definitions["result"] = {"anyOf": [*searches, *self._functions()]}

    def _pattern(self, rule: str) -> str:
        return regex({**self.made.by_name, "root": self.made.by_name[rule]})

    def _ends(self) -> dict[str, Any]:
        entity = [{"$ref": "#/$defs/entity"}] if "entity" in self.definitions else []
        return {"anyOf": [*entity, _RESULT, _NULL]}

    def _literal(self, rule: str) -> dict[str, Any]:
        if rule not in self.definitions:
            pattern = _TEXT if rule == "text" else self._pattern(rule)
            self.definitions[rule] = {"type": "string", "pattern": f"^{pattern}$"}
        return {"$ref": f"#/$defs/{rule}"}

    # -- get_information ---------------------------------------------------------------------------

    def _search(self, number: int, *, head: bool = True, tail: bool = True, key: bool = True, rows: bool = False) -> dict[str, Any]:
        name = f"search-{number}{'' if head else '-of-rows'}{'' if tail else '-of-values'}{'' if key else '-alone'}"
        name += "-in-a-table" if rows else ""
        if name not in self.definitions:
            arguments = self._arguments(number, head=head, tail=tail, rows=rows)
            if key and (keys := list(self.made.groups)[number].keys):
                arguments["qualifier"] = {"anyOf": [*self._keys(keys), _NULL]}
            self.definitions[name] = _call("get_information", arguments)
        return {"$ref": f"#/$defs/{name}"}

    def _arguments(self, number: int, *, head: bool, tail: bool, rows: bool = False) -> dict[str, Any]:
        group = list(self.made.groups)[number]
        arguments: dict[str, Any] = {"relation": {"$ref": f"#/$defs/relation-{number}"}}
        arguments["head_entity"] = self._ends() if head else _NULL
        arguments["tail_entity"] = {"anyOf": [*(self._conditions(number) if tail else []), _NULL]}
        if sources := [scope for scope in group.scopes(rows=rows) if writable(scope)]:
            arguments["source"] = self._name_list(sources)
        return arguments

    def _name_list(self, names: Sequence[str]) -> dict[str, Any]:
        """Return a reference to some names, listed once."""
        rule = f"names-{self._listed.setdefault(tuple(names), len(self._listed))}"
        self.definitions[rule] = {"enum": list(names)}
        return {"$ref": f"#/$defs/{rule}"}

    def _conditions(self, number: int) -> list[dict[str, Any]]:
        group = list(self.made.groups)[number]
        result = []
        equal_values: list[dict[str, Any]] = (
            [{"$ref": "#/$defs/entity"}] if group.of_entities and "entity" in self.definitions else []
        )
        if group.objects and group.objects != "text":
            result.append(_condition(ALL_OPERATORS, [self._literal(group.objects), _RESULT]))
            result.append(_condition(("=",), [{"$ref": f"#/$defs/{'extreme-time' if group.objects == 'moment' else 'extreme'}"}]))
        else:
            equal_values += [*([self._literal("text")] if group.objects else []), _RESULT]
        return [*result, *([_condition(SAME_OPERATORS, equal_values)] if equal_values else [])]

    def _keys(self, keys: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
        keys_by_literal: dict[str, list[str]] = {}
        for key, literal in keys:
            keys_by_literal.setdefault(literal, []).append(key)
        result = []
        for literal, key_names in keys_by_literal.items():
            operators = SAME_OPERATORS if literal == "text" else ALL_OPERATORS
            values = [_condition(operators, [self._literal(literal), _RESULT])]
            values += [_condition(("=",), [{"$ref": "#/$defs/extreme-time"}])] if literal == "when" else []
            result.append(object_schema({"key": self._name_list(key_names), "value": {"anyOf": [*values, _NULL]}}))
        return result

    # -- functions ---------------------------------------------------------------------------------

    def _functions(self) -> list[dict[str, Any]]:
        number, entity = {"$ref": "#/$defs/number"}, {"$ref": "#/$defs/entity"}
        operators = _OPERATORS[len(ALL_OPERATORS)]
        result = [_call(item, {"set": _RESULT}) for item in UNARY]
        for function in TWO:
            second_operands = [_RESULT, *([number] if function in WITH_NUMBER else [])]
            second_operands += [entity] if function in WITH_ENTITY and "entity" in self.definitions else []
            arguments: dict[str, Any] = {"set1": _RESULT, "set2": {"anyOf": second_operands}}
            result.append(_call(function, arguments))
        result.append(_call("compare", {"set1": _RESULT, "set2": _RESULT, "operator": operators}))
        result += [
            _call(item, {"set1": _RESULT, "set2": _RESULT, "unit": {"enum": ["years", "months", "days"]}})
            for item in ("difference", "duration")
        ]
        result.append(_call("keep", {"set": _RESULT, "value": _condition(ALL_OPERATORS, [_RESULT])}))
        result += self._conditioned()
        result.append(_call("sort", {"set": _RESULT, "order": {"enum": ["ascending", "descending"]}}))
        result.append(_call("round", {"set": _RESULT, "digits": {"enum": list("0123456789")}}))
        branch = {"anyOf": [_RESULT, {"enum": list(_WORDS)}]}
        test = {"left": _RESULT, "is": operators, "right": {"anyOf": [_RESULT, number]}}
        result.append(_call("if", {**test, "then": branch, "else": branch}))
        groups = list(self.made.groups)
        self.definitions["subjects"] = {"anyOf": [self._search(at, head=False, key=False) for at in range(len(groups))]}
        result.append(_call("set_negation", {"set": {"$ref": "#/$defs/subjects"}}))
        if rows := [self._search(at, head=False, key=False, rows=True) for at, group in enumerate(groups) if group.tables]:
            self.definitions["rows"] = {"anyOf": rows}
            result += [_call(item, {"set": {"$ref": "#/$defs/rows"}}) for item in OF_ROWS]
        compared = [at for at, group in enumerate(groups) if group.objects not in ("", "text")]
        if compared:
            self.definitions["values"] = {"anyOf": [self._search(at, tail=False, key=False) for at in compared]}
            values = {"$ref": "#/$defs/values"}
            result += [_call(item, {"set": values}) for item in OF_VALUES]
            result.append(_call("nth_highest", {"set": values, "n": {"$ref": "#/$defs/few"}}))
        self.definitions["few"] = {"type": "string", "pattern": "^[1-9][0-9]?$"}
        return result

    def _conditioned(self) -> list[dict[str, Any]]:
        """Return calls that filter values, and times of facts, by a condition."""
        result = []
        for number, group in enumerate(self.made.groups):
            if group.objects:
                operators = SAME_OPERATORS if group.objects == "text" else ALL_OPERATORS
                test = _condition(operators, [self._literal(group.objects)])
                result.append(_call("keep", {"set": self._search(number, tail=False, key=False), "value": test}))
            if times := [key for key, literal in group.keys if literal == "when"]:
                key = object_schema({"key": self._name_list(times), "value": _NULL})
                search = _call("get_information", {**self._arguments(number, head=True, tail=False), "qualifier": key})
                result.append(_call("keep", {"set": search, "value": _condition(ALL_OPERATORS, [self._literal("when")])}))
        return result

    def tables(self) -> list[dict[str, Any]]:
        """Return tables of groups, which end a program."""
        result = []
        for numbers in self.made.tables().values():
            rows = {"anyOf": [self._search(at, head=False, key=False) for at in numbers]}
            key = {"anyOf": [{"$ref": f"#/$defs/relation-{at}"} for at in numbers]}
            result.append(_call("group_by", {"set": rows, "key": key, "aggregate": {"enum": ["count"]}}))
            result.append(_call("order_by", {"set": rows, "key": key}))
            if numeric := self.made.summed(numbers):
                numeric_column = {"anyOf": [{"$ref": f"#/$defs/relation-{at}"} for at in numeric]}
                result.append(
                    _call("group_by", {"set": rows, "key": key, "aggregate": {"enum": list(_SUMS)}, "of": numeric_column})
                )
                few = {"$ref": "#/$defs/few"}
                result += [_call(item, {"set": rows, "key": numeric_column, "n": few}) for item in ("top", "bottom")]
        return result


def _condition(operators: Sequence[str], values: list[dict[str, Any]]) -> dict[str, Any]:
    return object_schema({"is": _OPERATORS[len(operators)], "value": values[0] if len(values) == 1 else {"anyOf": values}})


# -- from trees to lines ---------------------------------------------------------------------------


def program(text: str) -> str:
    """Return the program of a tree as numbered lines, empty for null; raises `ParseError` for other texts."""
    tree = tree_in(text, "program")
    if tree is None:
        return ""
    lines = _Lines()
    lines.line(tree, 0)
    return "\n".join(f'Query{number}: "{call}"' for call, number in lines.numbers.items())


class _Lines:
    """The lines of a tree, each call once, after those that it takes."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def line(self, tree: Any, depth: int) -> str:
        """Add the lines of a call, and return the reference to its result."""
        function, arguments = single(tree)
        if function not in FUNCTIONS or not isinstance(arguments, dict):
            raise ParseError(f"a call of a function is expected, not {shortened(repr(tree), 100)}")
        if depth > _MAX_DEPTH or len(self.numbers) >= _LINES:
            raise ParseError("the program is too long, or nested too deeply")
        if function == "if":
            call = self._test(arguments, depth)
        else:
            call = (
                f"{function}({', '.join(part for name, value in arguments.items() for part in self._argument(name, value, depth))})"
            )
        return f"output_of_query{self.numbers.setdefault(call, len(self.numbers) + 1)}"

    def _text(self, value: Any, depth: int) -> str:
        if not isinstance(value, str):
            return self.line(value, depth + 1)
        if not writable(value):
            raise ParseError(f"{shortened(repr(value), 100)} cannot be written in quotes")
        return written(value)

    def _argument(self, name: str, value: Any, depth: int) -> list[str]:
        """Return an argument as it is written; none for null."""
        if value is None:
            return []
        if name == "qualifier" and isinstance(value, dict):
            return [part for item in ("key", "value") for part in self._argument(item, value.get(item), depth)]
        if isinstance(value, dict) and value.keys() == {"is", "value"}:
            if value["is"] not in ALL_OPERATORS:
                raise ParseError(f"a condition has one of {' '.join(ALL_OPERATORS)}, not {shortened(repr(value['is']), 100)}")
            return [f"{name}{value['is']}'{self._text(value['value'], depth)}'"]
        return [f"{name}='{self._text(value, depth)}'"]

    def _test(self, given: Mapping[str, Any], depth: int) -> str:
        operator, right = given.get("is"), given.get("right")
        if operator not in ALL_OPERATORS:
            raise ParseError("if compares by an operator")
        left = self._text(given.get("left"), depth)
        sides = [f"'{self._text(given.get(name), depth)}'" for name in ("then", "else")]
        return f"if({left} {operator} {self._text(right, depth)}, {', '.join(sides)})"
