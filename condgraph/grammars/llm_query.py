"""The grammar of LLM queries: numbered lines of get_information, and of functions over the results of
the lines before, as the instructions of `ask` teach them.

A relation decides what may stand beside it: what its objects are (entities, texts, numbers with its
units, times) decides how they are compared, and the qualifiers of its facts are the keys. What a
function takes has to be what the line before gives: functions of rows follow a search for rows in a
table, superlatives of rows one for their values, tables of groups one for rows of that table. Texts
stand in quotes within quotes, with backslashes before quotes of their own.
"""

from __future__ import annotations

from typing import Final

from condgraph.grammars.llm_groups import Group, Groups
from condgraph.grammars.llm_texts import names_of, written
from condgraph.grammars.parts import DIGIT, Part, Ref, Rules, Seq, Text, alt, maybe, reached, seq, trie
from condgraph.grammars.vocabulary import Vocabulary
from condgraph.languages.llm.functions import TABLE

#: Lines of the longest program.
LINES: Final = 9
#: Functions whose operands are more than results, or results of some sorts alone.
_OTHERS: Final = frozenset(
    {
        "get_information", "keep", "if", "previous_row", "next_row", "row_number", "split", "round", "nth_highest", "argmax",
        "argmin", "set_negation", "group_by", "having", "order_by", "limit", "top", "bottom",
    }
)  # fmt: skip
ONE: Final = tuple(one.name for one in TABLE if one.operands[0] == 1 and one.name not in _OTHERS)
TWO: Final = tuple(one.name for one in TABLE if one.operands[0] <= 2 <= one.operands[1] and one.name not in _OTHERS)
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
    made = Made.of(names)
    return reached(made.rules(max(1, min(steps, LINES))))


class Made(Groups):
    """The rules of lines while they are made, `found` by name."""

    # -- lines -------------------------------------------------------------------------------------

    def rules(self, lines: int) -> dict[str, Part]:
        """All rules."""
        found = self.found
        found |= {"one": trie(ONE), "two": trie(TWO), "with-number": trie(WITH_NUMBER), "with-entity": trie(WITH_ENTITY)}
        found["of-rows"], found["of-values"] = trie(OF_ROWS), trie(OF_VALUES)
        for number, members in enumerate(self.groups.values()):
            found[f"relation-{number}"] = trie(map(written, members))
        for line in range(lines, 0, -1):
            found |= self._line(line, lines)
        target = seq("## Target type: {", Ref("words"), "}\n")
        found["root"] = seq(maybe(target), Ref("line-1"))
        return found

    def _line(self, line: int, lines: int) -> dict[str, Part]:
        made: dict[str, Part] = {}
        if line > 1:
            made[f"result-{line}"] = seq("output_of_query", alt(*(str(one) for one in range(1, line))))
        searches = self._searches(line)
        made[f"search-{line}"] = alt(*searches)
        calls: list[Part] = [Ref(f"search-{line}")]
        if line > 1:
            calls += self._functions(Ref(f"result-{line}"))
        made[f"call-{line}"] = _said(line, alt(*calls))
        more = Seq((Text("\n"), Ref(f"line-{line + 1}"))) if line < lines else None
        single: Part = Ref(f"call-{line}") if more is None else Seq((Ref(f"call-{line}"), maybe(more)))
        ways = [single]
        if line < lines:
            made[f"pair-{line}"] = alt(*self._pairs(line))
            after = maybe(Seq((Text("\n"), Ref(f"line-{line + 2}")))) if line + 1 < lines else Text("")
            ways.append(Seq((Ref(f"pair-{line}"), after)))
            ways += self._groups_of_rows(line)
        made[f"line-{line}"] = alt(*ways)
        return made

    def _functions(self, result: Ref) -> list[Part]:
        """Calls of functions over results of any sort."""
        first, two = ("(set='", result, "')"), ("(set1='", result, "', set2='")
        calls = [seq(Ref("one"), *first), seq(Ref("two"), *two, result, "')")]
        calls.append(seq(alt("set_union", "set_intersection"), *two, result, "', set3='", result, "')"))
        calls.append(seq(Ref("with-number"), *two, Ref("plain-number"), "')"))
        if "entity" in self.found:
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
        ends = [Ref(one) for one in ("entity", f"result-{line}") if one in self.found or (one != "entity" and line > 1)]
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
        same: list[Part] = [Ref("entity")] if group.things and "entity" in self.found else []
        ordered: list[Part] = []
        if group.objects:
            (same if group.objects == "text" else ordered).append(Ref(group.objects))
        if not ordered:
            same += results
        conditions = [seq("tail_entity", alt(*SAME_OPERATORS), "'", alt(*same), "'")] if same else []
        if ordered:
            conditions.append(seq("tail_entity", alt(*ALL_OPERATORS), "'", alt(*ordered, *results), "'"))
            conditions.append(seq("tail_entity='", Ref("extreme-time" if group.objects == "moment" else "extreme"), "'"))
        return self._once("tail", (group.objects, group.things), line, alt(*conditions)) if conditions else None

    def _key(self, group: Group, line: int) -> Part | None:
        """A qualifier that is asked for, or has a value."""
        results = [Ref(f"result-{line}")] if line > 1 else []
        pairs: dict[str, list[str]] = {}
        for key, literal in group.keys:
            pairs.setdefault(literal, []).append(written(key))
        ways = []
        for literal, keys in pairs.items():
            operators = SAME_OPERATORS if literal == "text" else ALL_OPERATORS
            value = seq(", value", alt(*operators), "'", alt(Ref(literal), *results), "'")
            if literal == "when":
                value = alt(value, seq(", value='", Ref("extreme-time"), "'"))
            ways.append(seq("key='", trie(keys), "'", maybe(value)))
        return self._once("key", group.keys, line, alt(*ways)) if ways else None

    def _scope(self, group: Group, *, rows: bool = False) -> Part:
        """The source, where the relation alone does not say which is meant; of `rows` one that has such."""
        sources = names_of(group.scopes(rows=rows))
        return Text("") if sources is None else seq(", source='", sources, "'")

    def _anywhere(self, line: int) -> list[Part]:
        """Searches without a relation: what is known of an entity, what joins two, when it was."""
        head, tail = self._head(line), seq("tail_entity='", Ref("entity"), "'")
        if "entity" not in self.found or head is None or not self.anywhere:
            return []
        ways = [Seq((head, maybe(seq(", ", tail)))), tail]
        if self.times:
            ways.append(seq(head, ", key='", trie(self.times), "'"))
        return [seq("get_information(", alt(*ways), ")")]

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
        kept = [self._kept(number, group, line) for number, group in enumerate(self.groups)]
        negated = _said(line + 1, seq(f"set_negation(set='{mine}')"))
        found: list[Part] = [Seq((_said(line, alt(*subjects)), Text("\n"), negated)), *(one for one in kept if one is not None)]
        if rows:
            found.append(Seq((_said(line, alt(*rows)), Text("\n"), _said(line + 1, seq(Ref("of-rows"), f"(set='{mine}')")))))
        if values:
            calls = alt(seq(Ref("of-values"), f"(set='{mine}')"), seq(f"nth_highest(set='{mine}', n='", Ref("few"), "')"))
            found.append(Seq((_said(line, alt(*values)), Text("\n"), _said(line + 1, calls))))
        return found

    def _kept(self, number: int, group: Group, line: int) -> Part | None:
        """A search for values, or for when facts hold, and those of them that satisfy a condition."""
        head = self._head(line)
        search: Part = seq("get_information(relation='", Ref(f"relation-{number}"), "'", maybe(seq(", ", head)) if head else "")
        ways = [(search, group.objects)] if group.objects else []
        if times := [written(key) for key, literal in group.keys if literal == "when"]:
            ways.append((seq(search, ", key='", trie(times), "'"), "when"))
        found: list[Part] = []
        for begin, literal in ways:
            test = seq("', value", alt(*(SAME_OPERATORS if literal == "text" else ALL_OPERATORS)), "'", Ref(literal), "')")
            call = _said(line + 1, seq(f"keep(set='output_of_query{line}", test))
            found.append(Seq((_said(line, seq(begin, self._scope(group), ")")), Text("\n"), call)))
        return alt(*found) if found else None

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
