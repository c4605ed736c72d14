"""The grammar of LLM queries, as numbered lines and as trees for servers that take a JSON schema."""

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
# What the quotes of LLM queries contain: names as they are written, texts that are values, the
# words of a step.


#: Characters of the longest text that is a value, and of the words of a step.
LONGEST_TEXT: Final = 100
LONGEST_WORDS: Final = 160
_MENTION: Final = re.compile(r"output_?(?:of_?)?query_?\d", re.IGNORECASE)
_QUOTES: Final = SINGLE + DOUBLE
_UNSEEN: Final = (("\x00", "\x1f"), ("\x7f", "\x9f"), ("\u2028", "\u2029"))


def writable(name: str) -> bool:
    """Whether a name can be quoted in an LLM query."""
    return bool(name.strip()) and name.isprintable() and not name.endswith("\\") and _MENTION.search(name) is None


def written(name: str) -> str:
    """A name as it is written between the quotes."""
    return re.sub(rf"([\\{_QUOTES}])", r"\\\1", name)


def names_of(names: Iterable[str]) -> Part | None:
    """One of these names, as far as they can be written; None where none can."""
    result = [written(name) for name in names if writable(name)]
    return trie(result) if result else None


def texts() -> dict[str, Part]:
    """The rules of words and of texts that are values: none of these reads as a result."""
    shut = tuple((quote, quote) for quote in _QUOTES)
    words = Chars((*_UNSEEN, ("{", "{"), ("}", "}")), negated=True)
    first = Chars((*_UNSEEN, *shut, ("\\", "\\"), ("`", "`"), (" ", " "), ("\xa0", "\xa0"), ("Y", "Y"), ("y", "y")), negated=True)
    plain = Chars((*_UNSEEN, *shut, ("\\", "\\"), ("`", "`"), ("Y", "Y"), ("y", "y")), negated=True)
    # No digit follows a y, so that no text is an output of a query.
    behind = Chars((*_UNSEEN, *shut, ("\\", "\\"), ("`", "`"), ("0", "9"), ("_", "_")), negated=True)
    why = Chars((("Y", "Y"), ("y", "y")))
    escaped = seq("\\", Chars((("'", "'"), ('"', '"'))))
    return {
        "words": seq(Chars((*_UNSEEN, ("{", "{"), ("}", "}"), (" ", " ")), negated=True), Repeat(words, 0, LONGEST_WORDS)),
        "text": Seq(
            (
                alt(first, escaped, seq(why, maybe(behind))),
                Repeat(alt(plain, escaped, seq(why, behind)), 0, LONGEST_TEXT),
                maybe(why),
            )
        ),
        "result-text": alt("yes", "no", "equal"),
        "plain-number": seq(maybe(Text("-")), Repeat(DIGIT, 1, 12), maybe(seq(".", Repeat(DIGIT, 1, 6)))),
        "few": seq(Chars((("1", "9"),)), maybe(DIGIT)),
    }


# -- predicates by what fits them ------------------------------------------------------------------
# Predicates in groups beside which the same may stand in an LLM query, and the rules of the literals
# that their objects and qualifiers are compared with.


_TIME_WORDS: Final = {"time": ("point in time", "start time", "end time"), "start time": ("start time",), "end time": ("end time",)}


@dataclass(frozen=True, slots=True)
class Group:
    """Predicates beside which the same may stand: `objects` is the rule of literals that their
    objects are compared with ("" for entities alone), `of_entities` whether these are entities, `keys`
    their qualifiers with the rule of each ("when" for time words), `tables` those whose columns they
    are, and `sources` those of which one has to be said.
    """

    objects: str
    of_entities: bool
    keys: tuple[tuple[str, str], ...]
    tables: tuple[str, ...]
    sources: tuple[str, ...]

    def scopes(self, *, rows: bool) -> tuple[str, ...]:
        """The sources of which one has to be said; of `rows` those that have rows."""
        return tuple(source for source in self.sources if not rows or source in self.tables)


class Groups:
    """The rules while they are made: `groups` are the predicates that take the same arguments,
    `by_name` the rules.
    """

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
        keys = [(word, "when") for word, those in _TIME_WORDS.items() if any(item in qualifiers for item in those)]
        listed = {word for word, _ in keys}
        keys += [(key, self._literal(key, of)) for key, of in qualifiers.items() if key not in listed and writable(key)]
        objects = "" if kinds is None else self._literal(name, kinds)
        return Group(objects, name in names.relations, tuple(sorted(keys)), names.columns.get(name, ()), names.scopes.get(name, ()))

    def _literal(self, name: str, kinds: frozenset[str]) -> str:
        """The rule of the literals that values of these types are compared with."""
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

    def _once(self, kind: str, what: Hashable, line: int, part: Part) -> Part:
        """A part as a rule, which those that say the same share."""
        rule = f"{kind}-{self._shared.setdefault((kind, what), len(self._shared))}-{line}"
        self.by_name[rule] = part
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
        result: dict[str, list[int]] = {}
        for number, group in enumerate(self.groups):
            if len(group.tables) == 1 and not group.sources:
                result.setdefault(group.tables[0], []).append(number)
        return result

    def summed(self, numbers: Iterable[int]) -> list[int]:
        """Of some groups those whose values are numbers alone."""
        groups = list(self.groups)
        return [
            number for number in numbers if groups[number].objects.startswith("number-") and "moment" not in groups[number].objects
        ]


# -- programs as lines -----------------------------------------------------------------------------
# A relation decides what may stand beside it: what its objects are (entities, texts, numbers with its
# units, times) decides how they are compared, and the qualifiers of its facts are the keys. What a
# function takes has to be what the line before gives: functions of rows follow a search for rows in a
# table, superlatives of rows one for their values, tables of groups one for rows of that table. Texts
# stand in quotes within quotes, with backslashes before quotes of their own.


#: Lines of the longest program.
LINES: Final = 9
#: Functions whose operands are more than results, or results of some sorts alone.
_OTHERS: Final = frozenset(
    {
        "get_information", "keep", "if", "previous_row", "next_row", "row_number", "split", "round", "nth_highest", "argmax",
        "argmin", "set_negation", "group_by", "having", "order_by", "limit", "top", "bottom",
    }
)  # fmt: skip
ONE: Final = tuple(item.name for item in TABLE if item.operands[0] == 1 and item.name not in _OTHERS)
TWO: Final = tuple(item.name for item in TABLE if item.operands[0] <= 2 <= item.operands[1] and item.name not in _OTHERS)
#: Functions of the rows that a search gave, and of the values that rows or entities have.
OF_ROWS: Final = ("previous_row", "next_row", "row_number")
OF_VALUES: Final = ("argmax", "argmin")
#: Functions of which the second operand may be a number, and those of which it may be an entity.
WITH_NUMBER: Final = ("compare", "difference", "add", "multiply", "divide", "percentage", "equal")
WITH_ENTITY: Final = ("set_difference", "is_in", "equal")
ALL_OPERATORS: Final = ("=", "!=", ">", "<", ">=", "<=")
SAME_OPERATORS: Final = ("=", "!=")


def rules(names: Vocabulary, *, steps: int) -> Rules:
    """The rules of LLM queries over these names, of at most so many lines; raises `OptionError` where
    none can be written.
    """
    made = LineRules.of(names)
    return reached(made.rules(max(1, min(steps, LINES))))


class LineRules(Groups):
    """The rules of lines while they are made."""

    # -- lines -------------------------------------------------------------------------------------

    def rules(self, lines: int) -> dict[str, Part]:
        """All rules."""
        result = self.by_name
        result |= {"one": trie(ONE), "two": trie(TWO), "with-number": trie(WITH_NUMBER), "with-entity": trie(WITH_ENTITY)}
        result["of-rows"], result["of-values"] = trie(OF_ROWS), trie(OF_VALUES)
        for number, members in enumerate(self.groups.values()):
            result[f"relation-{number}"] = trie(map(written, members))
        for line in range(lines, 0, -1):
            result |= self._line(line, lines)
        target = seq("## Target type: {", Ref("words"), "}\n")
        result["root"] = seq(maybe(target), Ref("line-1"))
        return result

    def _line(self, line: int, lines: int) -> dict[str, Part]:
        made: dict[str, Part] = {}
        if line > 1:
            made[f"result-{line}"] = seq("output_of_query", alt(*(str(item) for item in range(1, line))))
        searches = self._searches(line)
        made[f"search-{line}"] = alt(*searches)
        calls: list[Part] = [Ref(f"search-{line}")]
        if line > 1:
            calls += self._functions(Ref(f"result-{line}"))
        made[f"call-{line}"] = _said(line, alt(*calls))
        more = Seq((Text("\n"), Ref(f"line-{line + 1}"))) if line < lines else None
        single: Part = Ref(f"call-{line}") if more is None else Seq((Ref(f"call-{line}"), maybe(more)))
        choices = [single]
        if line < lines:
            made[f"pair-{line}"] = alt(*self._pairs(line))
            after = maybe(Seq((Text("\n"), Ref(f"line-{line + 2}")))) if line + 1 < lines else Text("")
            choices.append(Seq((Ref(f"pair-{line}"), after)))
            choices += self._groups_of_rows(line)
        made[f"line-{line}"] = alt(*choices)
        return made

    def _functions(self, result: Ref) -> list[Part]:
        """Calls of functions over results of any sort."""
        first, two = ("(set='", result, "')"), ("(set1='", result, "', set2='")
        calls = [seq(Ref("one"), *first), seq(Ref("two"), *two, result, "')")]
        calls.append(seq(alt("set_union", "set_intersection"), *two, result, "', set3='", result, "')"))
        calls.append(seq(Ref("with-number"), *two, Ref("plain-number"), "')"))
        if "entity" in self.by_name:
            calls.append(seq(Ref("with-entity"), *two, Ref("entity"), "')"))
        calls.append(seq("keep(set='", result, "', value", alt(*ALL_OPERATORS), "'", result, "')"))
        calls.append(seq("sort(set='", result, "', order='", alt("ascending", "descending"), "')"))
        calls.append(seq("round(set='", result, "', digits='", DIGIT, "')"))
        calls.append(seq("compare", *two, result, "', operator='", alt(*ALL_OPERATORS), "')"))
        calls.append(seq(alt("difference", "duration"), *two, result, "', unit='", alt("years", "months", "days"), "')"))
        sides = alt(Seq((Text("'"), Ref("result-text"), Text("'"))), result)
        test = seq(result, " ", alt(*ALL_OPERATORS), " ", alt(result, Ref("plain-number")))
        calls.append(seq("if(", test, ", ", sides, ", ", sides, ")"))
        return calls

    # -- get_information ---------------------------------------------------------------------------

    def _searches(self, line: int) -> list[Part]:
        """Searches by relation, and those by an entity alone."""
        return [*(self._search(number, group, line) for number, group in enumerate(self.groups)), *self._anywhere(line)]

    def _head(self, line: int) -> Part | None:
        ends = [Ref(item) for item in ("entity", f"result-{line}") if item in self.by_name or (item != "entity" and line > 1)]
        return self._once("head", None, line, seq("head_entity='", alt(*ends), "'")) if ends else None

    def _search(self, number: int, group: Group, line: int) -> Part:
        relation = seq("relation='", Ref(f"relation-{number}"), "'")
        head = self._head(line)
        begin = relation if head is None else alt(Seq((relation, maybe(seq(", ", head)))), seq(head, ", ", relation))
        rest = [maybe(seq(", ", tail))] if (tail := self._tail(group, line)) is not None else []
        rest += [maybe(seq(", ", key))] if (key := self._key(group, line)) is not None else []
        return seq("get_information(", begin, *rest, self._scope(group), ")")

    def _tail(self, group: Group, line: int) -> Part | None:
        """A condition on the object."""
        results = [Ref(f"result-{line}")] if line > 1 else []
        same: list[Part] = [Ref("entity")] if group.of_entities and "entity" in self.by_name else []
        ordered: list[Part] = []
        if group.objects:
            (same if group.objects == "text" else ordered).append(Ref(group.objects))
        if not ordered:
            same += results
        conditions = [seq("tail_entity", alt(*SAME_OPERATORS), "'", alt(*same), "'")] if same else []
        if ordered:
            conditions.append(seq("tail_entity", alt(*ALL_OPERATORS), "'", alt(*ordered, *results), "'"))
            conditions.append(seq("tail_entity='", Ref("extreme-time" if group.objects == "moment" else "extreme"), "'"))
        return self._once("tail", (group.objects, group.of_entities), line, alt(*conditions)) if conditions else None

    def _key(self, group: Group, line: int) -> Part | None:
        """A qualifier that is asked for, or has a value."""
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
        return self._once("key", group.keys, line, alt(*choices)) if choices else None

    def _scope(self, group: Group, *, rows: bool = False) -> Part:
        """The source, where the relation alone does not say which is meant; of `rows` one that has such."""
        sources = names_of(group.scopes(rows=rows))
        return Text("") if sources is None else seq(", source='", sources, "'")

    def _anywhere(self, line: int) -> list[Part]:
        """Searches without a relation: what is known of an entity, what joins two, when it was."""
        head, tail = self._head(line), seq("tail_entity='", Ref("entity"), "'")
        if "entity" not in self.by_name or head is None or not self.anywhere:
            return []
        choices = [Seq((head, maybe(seq(", ", tail)))), tail]
        if self.times:
            choices.append(seq(head, ", key='", trie(self.times), "'"))
        return [seq("get_information(", alt(*choices), ")")]

    # -- two lines that belong together ------------------------------------------------------------

    def _pairs(self, line: int) -> list[Part]:
        """A search, and a function of rows or values that takes what it gives."""
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
        mine = f"output_of_query{line}"
        filters = [self._kept(number, group, line) for number, group in enumerate(self.groups)]
        negated = _said(line + 1, seq(f"set_negation(set='{mine}')"))
        result: list[Part] = [
            Seq((_said(line, alt(*subjects)), Text("\n"), negated)),
            *(item for item in filters if item is not None),
        ]
        if rows:
            result.append(Seq((_said(line, alt(*rows)), Text("\n"), _said(line + 1, seq(Ref("of-rows"), f"(set='{mine}')")))))
        if values:
            calls = alt(seq(Ref("of-values"), f"(set='{mine}')"), seq(f"nth_highest(set='{mine}', n='", Ref("few"), "')"))
            result.append(Seq((_said(line, alt(*values)), Text("\n"), _said(line + 1, calls))))
        return result

    def _kept(self, number: int, group: Group, line: int) -> Part | None:
        """A search for values, or for when facts hold, and those of them that satisfy a condition."""
        head = self._head(line)
        search: Part = seq("get_information(relation='", Ref(f"relation-{number}"), "'", maybe(seq(", ", head)) if head else "")
        choices = [(search, group.objects)] if group.objects else []
        if times := [written(key) for key, literal in group.keys if literal == "when"]:
            choices.append((seq(search, ", key='", trie(times), "'"), "when"))
        result: list[Part] = []
        for begin, literal in choices:
            test = seq("', value", alt(*(SAME_OPERATORS if literal == "text" else ALL_OPERATORS)), "'", Ref(literal), "')")
            call = _said(line + 1, seq(f"keep(set='output_of_query{line}", test))
            result.append(Seq((_said(line, seq(begin, self._scope(group), ")")), Text("\n"), call)))
        return alt(*result) if result else None

    def _rows(self, number: int, group: Group, line: int, *, alone: bool = False) -> Part:
        """A search for subjects; `alone` for those that are rows of a table."""
        tail = self._tail(group, line)
        condition = Text("") if tail is None else seq(", ", tail)
        part = seq("get_information(relation='", Ref(f"relation-{number}"), "'", condition, self._scope(group, rows=alone), ")")
        return self._once("rows", (number, group.scopes(rows=alone)), line, part)

    def _groups_of_rows(self, line: int) -> list[Part]:
        """Rows of a table, and the table that they are put into: the end of a program."""
        return [self._grouped(line, numbers) for numbers in self.tables().values()]

    def _grouped(self, line: int, numbers: list[int]) -> Part:
        groups = list(self.groups)
        rows = alt(*(self._rows(number, groups[number], line) for number in numbers))
        key = alt(*(Ref(f"relation-{number}") for number in numbers))
        summed = [Ref(f"relation-{number}") for number in self.summed(numbers)]
        mine = f"(set='output_of_query{line}', key='"
        calls = [seq("group_by", mine, key, "', aggregate='count')"), seq("order_by", mine, key, "')")]
        if summed:
            numeric = alt(*summed)
            calls.append(seq("group_by", mine, key, "', aggregate='", alt("sum", "mean", "max", "min"), "', of='", numeric, "')"))
            calls.append(seq(alt("top", "bottom"), mine, numeric, "', n='", Ref("few"), "')"))
        return Seq((_said(line, rows), Text("\n"), _said(line + 1, alt(*calls))))


def _said(line: int, call: Part) -> Part:
    """A numbered call, with the words of its step where a model writes them."""
    step = maybe(seq(f"Step{line}: ", Ref("words"), "\n"))
    return Seq((step, Text(f'Query{line}: "'), call, Text('"')))


# -- programs as trees -----------------------------------------------------------------------------
# LLM queries for servers that take a JSON schema: the last query as a tree, in which each call holds
# those that it takes; and from a tree back to numbered lines.
#
# `{"program": {"count": {"set": {"get_information": {"relation": "country", "head_entity": null,
# "tail_entity": {"is": "=", "value": "Italy"}}}}}}` is
#
#     Query1: "get_information(relation='country', tail_entity='Italy')"
#     Query2: "count(set='output_of_query1')"
#
# A tree refers to no number, so that nothing can refer to a query that is not there. What stands in
# it twice is one line.


#: Instructions for a model that writes programs as trees.
TOLD: Final = (
    "The program is written as JSON: the last call, which holds the calls whose results it takes in place of output_of_query1 and "
    'so on; conditions are {"is": ">", "value": ...}, a qualifier is {"key": ..., "value": ...}, and what is not given is null. '
    'Such as: {"program": {"count": {"set": {"get_information": {"relation": "country", "head_entity": null, "tail_entity": '
    '{"is": "=", "value": "Italy"}}}}}}; where nothing answers, {"program": null}.'
)
#: Calls within calls of the deepest tree that is read, and lines of the longest program.
_DEEPEST: Final = 100
_LINES: Final = 200
#: Texts that are values: no digit follows a y, so that none is an output of a query.
_LETTER: Final = r"(?:[^{first}\x7f-\xa0\\yY]|[yY][^\x00-\x1f\x7f-\xa0\\0-9_])"
_TEXT: Final = _LETTER.replace("{first}", r"\x00-\x20") + _LETTER.replace("{first}", r"\x00-\x1f") + "{0,99}"
_NULL: Final = {"type": "null"}
#: The operators of a condition, by how many there are.
_OPERATORS: Final = {1: {"enum": ["="]}, 2: {"$ref": "#/$defs/same"}, 6: {"$ref": "#/$defs/operator"}}
_RESULT: Final = {"$ref": "#/$defs/result"}
_WORDS: Final = ("yes", "no", "equal")
_SUMS: Final = ("sum", "mean", "max", "min")


def schema(names: Vocabulary, *, none: bool = False) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of programs over these names; with `none`, null is one. Raises
    `OptionError` where none can be written.
    """
    # A tree has texts as they are; they are put in quotes as it is read.
    made = _Schema(LineRules.of(names, str))
    nothing = [_NULL] if none else []
    program = {"anyOf": [_RESULT, *made.tables(), *nothing]}
    return {**object_schema({"program": program}), "$defs": made.definitions}


def _call(function: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    return object_schema({function: object_schema(properties)})


class _Schema:
    """Makes the definitions, as `llm_query` makes rules."""

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
                key = object_schema({"key": self._names(made.times), "value": _NULL})
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
            given = self._given(number, head=head, tail=tail, rows=rows)
            if key and (keys := list(self.made.groups)[number].keys):
                given["qualifier"] = {"anyOf": [*self._keys(keys), _NULL]}
            self.definitions[name] = _call("get_information", given)
        return {"$ref": f"#/$defs/{name}"}

    def _given(self, number: int, *, head: bool, tail: bool, rows: bool = False) -> dict[str, Any]:
        group = list(self.made.groups)[number]
        given: dict[str, Any] = {"relation": {"$ref": f"#/$defs/relation-{number}"}}
        given["head_entity"] = self._ends() if head else _NULL
        given["tail_entity"] = {"anyOf": [*(self._conditions(number) if tail else []), _NULL]}
        if sources := [scope for scope in group.scopes(rows=rows) if writable(scope)]:
            given["source"] = self._names(sources)
        return given

    def _names(self, names: Sequence[str]) -> dict[str, Any]:
        """Some names, listed once."""
        rule = f"names-{self._listed.setdefault(tuple(names), len(self._listed))}"
        self.definitions[rule] = {"enum": list(names)}
        return {"$ref": f"#/$defs/{rule}"}

    def _conditions(self, number: int) -> list[dict[str, Any]]:
        group = list(self.made.groups)[number]
        result = []
        same: list[dict[str, Any]] = [{"$ref": "#/$defs/entity"}] if group.of_entities and "entity" in self.definitions else []
        if group.objects and group.objects != "text":
            result.append(_condition(ALL_OPERATORS, [self._literal(group.objects), _RESULT]))
            result.append(_condition(("=",), [{"$ref": f"#/$defs/{'extreme-time' if group.objects == 'moment' else 'extreme'}"}]))
        else:
            same += [*([self._literal("text")] if group.objects else []), _RESULT]
        return [*result, *([_condition(SAME_OPERATORS, same)] if same else [])]

    def _keys(self, keys: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
        of: dict[str, list[str]] = {}
        for key, literal in keys:
            of.setdefault(literal, []).append(key)
        result = []
        for literal, those in of.items():
            operators = SAME_OPERATORS if literal == "text" else ALL_OPERATORS
            values = [_condition(operators, [self._literal(literal), _RESULT])]
            values += [_condition(("=",), [{"$ref": "#/$defs/extreme-time"}])] if literal == "when" else []
            result.append(object_schema({"key": self._names(those), "value": {"anyOf": [*values, _NULL]}}))
        return result

    # -- functions ---------------------------------------------------------------------------------

    def _functions(self) -> list[dict[str, Any]]:
        number, entity = {"$ref": "#/$defs/number"}, {"$ref": "#/$defs/entity"}
        operators = _OPERATORS[len(ALL_OPERATORS)]
        result = [_call(item, {"set": _RESULT}) for item in ONE]
        for two in TWO:
            others = [_RESULT, *([number] if two in WITH_NUMBER else [])]
            others += [entity] if two in WITH_ENTITY and "entity" in self.definitions else []
            given: dict[str, Any] = {"set1": _RESULT, "set2": {"anyOf": others}}
            result.append(_call(two, given))
        result.append(_call("compare", {"set1": _RESULT, "set2": _RESULT, "operator": operators}))
        result += [
            _call(item, {"set1": _RESULT, "set2": _RESULT, "unit": {"enum": ["years", "months", "days"]}})
            for item in ("difference", "duration")
        ]
        result.append(_call("keep", {"set": _RESULT, "value": _condition(ALL_OPERATORS, [_RESULT])}))
        result += self._kept()
        result.append(_call("sort", {"set": _RESULT, "order": {"enum": ["ascending", "descending"]}}))
        result.append(_call("round", {"set": _RESULT, "digits": {"enum": list("0123456789")}}))
        side = {"anyOf": [_RESULT, {"enum": list(_WORDS)}]}
        test = {"left": _RESULT, "is": operators, "right": {"anyOf": [_RESULT, number]}}
        result.append(_call("if", {**test, "then": side, "else": side}))
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

    def _kept(self) -> list[dict[str, Any]]:
        """Values, and times of facts, that satisfy a condition."""
        result = []
        for at, group in enumerate(self.made.groups):
            if group.objects:
                operators = SAME_OPERATORS if group.objects == "text" else ALL_OPERATORS
                test = _condition(operators, [self._literal(group.objects)])
                result.append(_call("keep", {"set": self._search(at, tail=False, key=False), "value": test}))
            if times := [key for key, literal in group.keys if literal == "when"]:
                key = object_schema({"key": self._names(times), "value": _NULL})
                search = _call("get_information", {**self._given(at, head=True, tail=False), "qualifier": key})
                result.append(_call("keep", {"set": search, "value": _condition(ALL_OPERATORS, [self._literal("when")])}))
        return result

    def tables(self) -> list[dict[str, Any]]:
        """Tables of groups, which end a program."""
        result = []
        for numbers in self.made.tables().values():
            rows = {"anyOf": [self._search(at, head=False, key=False) for at in numbers]}
            key = {"anyOf": [{"$ref": f"#/$defs/relation-{at}"} for at in numbers]}
            result.append(_call("group_by", {"set": rows, "key": key, "aggregate": {"enum": ["count"]}}))
            result.append(_call("order_by", {"set": rows, "key": key}))
            if numeric := self.made.summed(numbers):
                of = {"anyOf": [{"$ref": f"#/$defs/relation-{at}"} for at in numeric]}
                result.append(_call("group_by", {"set": rows, "key": key, "aggregate": {"enum": list(_SUMS)}, "of": of}))
                few = {"$ref": "#/$defs/few"}
                result += [_call(item, {"set": rows, "key": of, "n": few}) for item in ("top", "bottom")]
        return result


def _condition(operators: Sequence[str], values: list[dict[str, Any]]) -> dict[str, Any]:
    return object_schema({"is": _OPERATORS[len(operators)], "value": values[0] if len(values) == 1 else {"anyOf": values}})


# -- from trees to lines ---------------------------------------------------------------------------


def program(text: str) -> str:
    """The program of a tree, as numbered lines, empty for null; raises `ParseError` for what is no
    tree.
    """
    tree = tree_in(text, "program")
    if tree is None:
        return ""
    lines = _Lines()
    lines.line(tree, 0)
    return "\n".join(f'Query{number}: "{call}"' for call, number in lines.numbers.items())


class _Lines:
    """The lines of a tree, each call once, those before it first."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def line(self, tree: Any, depth: int) -> str:
        """The name of what a call gives."""
        function, given = single(tree)
        if function not in FUNCTIONS or not isinstance(given, dict):
            raise ParseError(f"a call of a function is expected, not {shortened(repr(tree), 100)}")
        if depth > _DEEPEST or len(self.numbers) >= _LINES:
            raise ParseError("the program is too long, or nested too deeply")
        if function == "if":
            call = self._test(given, depth)
        else:
            call = f"{function}({', '.join(part for name, value in given.items() for part in self._argument(name, value, depth))})"
        return f"output_of_query{self.numbers.setdefault(call, len(self.numbers) + 1)}"

    def _text(self, value: Any, depth: int) -> str:
        if not isinstance(value, str):
            return self.line(value, depth + 1)
        if not writable(value):
            raise ParseError(f"{shortened(repr(value), 100)} is no text that stands in quotes")
        return written(value)

    def _argument(self, name: str, value: Any, depth: int) -> list[str]:
        """An argument as it is written; none for null."""
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
