"""Grammars over names that nobody would choose: whatever is written under one parses and resolves, in all
languages, as text and as a tree.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import condgraph
from condgraph.engine.errors import CondgraphError, OptionError
from condgraph.engine.facts import Member, Ref, Statement
from condgraph.engine.values import Quantity, Time
from tests.support.gbnf import Gbnf
from tests.support.lanes import by_lane
from tests.support.schemas import Schemas

#: Letters and words that one of the languages, or a form of a grammar, gives a meaning.
_PIECES = [
    *"aA1 \"'\\()[]{}<>,;:=|-_?!.\n\t#&~^*`´’“”«»/%$\u2028\u202e\x7fé中😀",
    *("output_of_query1", "Query1: ", "?x", "and", "not", "exists", "UNKNOWN ", "-> "),
]
NAMES = st.lists(st.sampled_from(_PIECES), min_size=1, max_size=6).map("".join)
VALUES = st.one_of(
    NAMES,
    st.integers(-5, 5000).map(Quantity),
    st.tuples(st.integers(0, 9), NAMES).map(lambda one: Quantity(one[0], one[1].strip() or "m")),
    st.integers(1, 2030).map(Time.year),
)


@settings(max_examples=by_lane(6, 60, 600), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=3),
    st.lists(st.tuples(NAMES, NAMES, VALUES, NAMES, VALUES), max_size=3),
    NAMES,
    st.integers(0, 2**32),
)
def test_what_is_written_resolves(relations: list[Any], values: list[Any], concept: str, seed: int) -> None:
    graph, rng = condgraph.open(), Random(seed)
    items: list[Any] = [Statement(head, relation, Ref(tail)) for head, relation, tail in relations]
    items += [Statement(head, key, value, ((qualifier, of),)) for head, key, value, qualifier, of in values]
    try:
        graph.add([*items, Member(relations[0][0], concept)])
    except CondgraphError:
        # Names that are nothing but white space.
        return
    names = sorted({end for head, _, tail in relations for end in (head, tail)} | {one[0] for one in values})
    forms: list[tuple[Any, Any, dict[str, Any]]] = [
        (language, form, {}) for language in ("kopl", "llm_query", "pattern", "logic") for form in ("gbnf", "json-schema")
    ]
    aware = [("kopl", form, {"aware": True}) for form in ("gbnf", "json-schema")]
    for language, form, more in [*forms, *aware]:
        try:
            made = graph.grammar(language, entities=names, format=form, depth=1, steps=3, **more)
        except OptionError:
            # None of the names can stand in this language.
            continue
        grammar: Any = Gbnf(made.text) if form == "gbnf" else Schemas(made.schema or {})
        for _ in range(4):
            written = grammar.derive(rng)
            program = made.program(written if form == "gbnf" else json.dumps(written))
            if language == "pattern":
                assert condgraph.Pattern.of(program).edges
            else:
                # What stands in a column is looked up when the program is asked, and may be nothing.
                options = {"on_unknown": "empty"} if language == "llm_query" else {}
                graph.explain(program, language=language, **options)
