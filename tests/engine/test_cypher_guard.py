"""The check of a foreign Cypher text by its tokens: what it refuses, what it lets through, what it
says, how long it takes.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress

import pytest

from condgraph.cypher.guard import check_plan, check_text
from condgraph.engine.errors import CondgraphError, OptionError, ReadOnlyError
from tests.support.cypher_attacks import HARMLESS, PLACES, attacks
from tests.support.lanes import by_lane, sample
from tests.support.pace import quick_enough

ATTACKS = list(attacks("http://127.0.0.1:9"))


def test_there_are_many_attacks() -> None:
    assert len({attack.text for attack in ATTACKS}) == len(ATTACKS) >= 600


def test_attacks_are_refused_without_a_server() -> None:
    through = []
    for attack in ATTACKS:
        try:
            check_text(attack.text)
        except ReadOnlyError as error:
            if error.span is not None and 0 <= error.span[0] < len(attack.text):
                continue
        through.append(attack)
    assert not through


@pytest.mark.parametrize("text", HARMLESS)
def test_texts_that_only_read(text: str) -> None:
    check_text(text)


@pytest.mark.parametrize("place", PLACES)
def test_places_of_subqueries_are_no_attacks_themselves(place: str) -> None:
    check_text(PLACES[place].replace("#", "MATCH (l:Person) RETURN l"))
    check_text(PLACES[place].replace("#", "CALL db.labels() YIELD label AS l RETURN l"))


@pytest.mark.parametrize(
    ("text", "says", "place"),
    [
        ("MATCH (n) SET n.x = 1", "SET N is not a reading clause", 10),
        ("RETURN [x IN [1] | COLLECT { LOAD CSV FROM 'a' AS l RETURN l }]", "LOAD CSV is not a reading clause", 29),
        ("CALL db.info()", "CALL of 'db.info'", 0),
        ("RETURN apoc.load.json('x')", "function 'apoc.load.json' is not on the list", 7),
        ("RETURN '\\u0041', n S\\u0045T x", "escape outside of quotes", 20),
        ("RETURN '\\u0041\\u0042\\u0027 SET n.x = 1 //'", "SET N", 27),
        ("RETURN s'{1}'", "a string right after 's'", 8),
        ("RETURN 'a", "a string begins here and does not end", 7),
        ("RETURN 1 /* a", "a comment begins here and does not end", 9),
        ("/*/ RETURN 1 AS x /*/ RETURN 2 AS x", "a comment begins here", 0),
        ("RETURN `a", "a name in backticks begins here and does not end", 7),
        ("RETURN 1\u200b", "U+200B", 8),
        ("RETURN 1 AS x; RETURN 2", "a second statement", 15),
        ("CYPHER debug=ast RETURN 1", "the option 'debug'", 7),
        ("RETURN 1 AS x\ud800", "an unpaired surrogate", 13),
    ],
)
def test_what_is_said_of_it(text: str, says: str, place: int) -> None:
    with pytest.raises(ReadOnlyError, match=re.escape(says)) as caught:
        check_text(text)
    assert caught.value.span is not None
    assert caught.value.span[0] == place
    assert f"(at character {place + 1})" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["RETURN " + "a" * 1_000_000 + "'x'", "RETURN " + "a." * 500_000 + "b()", "CALL " + "a" * 1_000_000]
)
def test_what_is_said_of_long_words(text: str) -> None:
    with pytest.raises(ReadOnlyError) as caught:
        check_text(text)
    assert len(str(caught.value)) < 500


def test_names_in_backticks_are_let_through() -> None:
    with pytest.raises(ReadOnlyError, match="write it in backticks"):
        check_text("MATCH (set) WITH DISTINCT set RETURN set")
    check_text("MATCH (`set`) WITH DISTINCT `set` RETURN `set`")


def test_only_texts() -> None:
    with pytest.raises(OptionError, match="a query is a text"):
        check_text(b"RETURN 1")  # type: ignore[arg-type]


PIECES = (
    *"'\"`()[]{}\\$.,:;|&!?~-+*/%^=<>a1_ \n\r\t\0\x7f\u00e9\u0301\u200b\u3000\ud800",
    *(
        "/*",
        "//",
        "/**/",
        "''",
        '""',
        "``",
        "'a'+",
        "`a`.",
        "\\u0041",
        "\\\\",
        "'\\u0041'",
        "`\\u0060",
        "1.",
        "1e",
        "0x",
        "a.",
        "a(",
    ),
    *("a.a(", "call ", "CALL (a", "CALL (", "call a.", "cypher ", "a=b ", "union ", "set ", "create,", "load csv ", "as set "),
    *("return ", "return distinct ", "with a ", "e\u0301", "in transactions ", "} in transactions ", "using index a:b("),
)


MEGABYTE = by_lane(100_000, 1_000_000, 1_000_000)


@pytest.mark.parametrize("piece", sample(PIECES, 4), ids=repr)
def test_a_megabyte_of_nonsense(piece: str) -> None:
    """Linear: ten times the text takes about ten times as long, and a megabyte some seconds at most
    on a slow machine. Where little is asked for it is a tenth of that.
    """
    took = []
    for size in (MEGABYTE // 10, MEGABYTE):
        text, begin = "RETURN " + piece * (size // len(piece)), time.thread_time()
        with suppress(CondgraphError):
            check_text(text)
        took.append(time.thread_time() - begin)
    assert quick_enough(took[1], 30 * took[0] + 0.5)


@pytest.mark.parametrize("piece", ["LOAD ", "CALL a.", "CALL ", "a.", "ResolvedCall( ", "`", "SHOW ", "'", "a`.", "\n"])
def test_a_megabyte_in_a_plan(piece: str) -> None:
    took = []
    for size in (MEGABYTE // 10, MEGABYTE):
        text, begin = piece * (size // len(piece)), time.thread_time()
        plan = {"operatorType": "Projection@neo4j", "args": {"Details": text}, "children": []}
        with suppress(CondgraphError):
            check_plan("r", plan, [text])
        took.append(time.thread_time() - begin)
    assert quick_enough(took[1], 30 * took[0] + 0.5)
