"""The grammar of LLM queries: numbered lines of get_information, and of functions over the results of
the lines before.

It is a part of the language: of the 32 cases those with a relation and one of its ends, and the
functions of the table that take results alone. Names with quotes or backslashes are left out, since
texts stand in quotes within quotes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from condgraph.engine.errors import OptionError
from condgraph.grammars.parts import Part, Ref, Rules, Seq, Text, alt, maybe, seq, trie
from condgraph.grammars.vocabulary import Vocabulary
from condgraph.languages.llm.functions import TABLE

#: Lines of a program.
LINES: Final = 5
#: Functions whose operands are more than results: conditions, rows, texts, values that rows have.
_OTHERS: Final = frozenset(
    {
        "get_information", "keep", "if", "previous_row", "next_row", "row_number", "split", "round", "nth_highest", "argmax",
        "argmin",
    }
)  # fmt: skip
ONE: Final = tuple(one.name for one in TABLE if one.operands[0] == 1 and one.name not in _OTHERS)
TWO: Final = tuple(one.name for one in TABLE if one.operands[0] <= 2 <= one.operands[1] and one.name not in _OTHERS)


def plain(names: Iterable[str]) -> list[str]:
    """The names that can stand in the quotes of an LLM query."""
    return [name for name in names if name.isprintable() and not set(name) & set("'\"\\‘’“”") and not name.startswith("output_of")]


def rules(names: Vocabulary) -> Rules:
    """The rules of LLM queries over these names; raises `OptionError` where none can be written."""
    predicates = plain(dict.fromkeys([*names.relations, *names.keys]))
    entities = plain(names.entities)
    if not predicates or not entities:
        missing = "predicates" if entities else "entities"
        raise OptionError(f"there are no {missing} for the grammar to name", hint="name them with entities=, or load some")
    found: dict[str, Part] = {"relation": trie(predicates), "entity": trie(entities), "one": trie(ONE), "two": trie(TWO)}
    ending: Part = Text("")
    for line in range(LINES, 0, -1):
        who = Ref(f"who-{line}")
        search = seq("get_information(relation='", Ref("relation"), "', ", alt("head_entity", "tail_entity"), "='", who, "')")
        earlier = Ref(f"result-{line}")
        calls: list[Part] = [search]
        found[f"who-{line}"] = Ref("entity")
        if line > 1:
            found[f"result-{line}"] = seq("output_of_query", alt(*(str(one) for one in range(1, line))))
            found[f"who-{line}"] = alt(Ref("entity"), earlier)
            calls.append(seq(Ref("one"), "(set='", earlier, "')"))
            calls.append(seq(Ref("two"), "(set1='", earlier, "', set2='", earlier, "')"))
        found[f"line-{line}"] = Seq((Text(f'Query{line}: "'), alt(*calls), Text('"'), ending))
        ending = maybe(seq("\n", Ref(f"line-{line}")))
    found["root"] = Ref("line-1")
    return found
