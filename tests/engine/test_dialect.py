"""Texts of Cypher in the words of other servers. Those of Memgraph are by its documentation; none was sent to a real one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from condgraph.cypher.compile.plan import compile_plan
from condgraph.cypher.dialect import _read, _written, translated
from condgraph.cypher.layout.schema import layout_on
from condgraph.cypher.servers import ARCADEDB, MEMGRAPH, NEO4J, engine_of
from condgraph.engine.errors import UnsupportedError
from tests.engine.test_compiled_texts import SCHEMA, plans
from tests.support import golden

SUBQUERIES = (
    "CALL () {\nMATCH (e1)\nRETURN collect(e1) AS s2\n}\n"
    "CALL (s2) {\nUNWIND s2 AS e3\nWITH e3 LIMIT 2\nMATCH (e3)-->(e4) WHERE NOT e4 IN s2\nRETURN e4\n"
    "UNION ALL\nMATCH (e4) WHERE e4 IN s2\nRETURN e4\n}\nRETURN e4"
)
FORMS = [
    ("RETURN e.x IS :: INTEGER NOT NULL | FLOAT NOT NULL", "RETURN (e.x IS :: INTEGER NOT NULL OR e.x IS :: FLOAT NOT NULL)"),
    ("WHERE NOT x[k[0]] IS :: STRING | LIST<ANY> RETURN x", "WHERE NOT (x[k[0]] IS :: STRING OR x[k[0]] IS :: LIST<ANY>) RETURN x"),
    ("RETURN [x IN l WHERE x IS :: STRING | x]", "RETURN [x IN l WHERE x IS :: STRING | x]"),
    ("RETURN split(x, ['a', ',', ' '])", "RETURN split(replace(replace(x, ',', 'a'), ' ', 'a'), 'a')"),
    ("RETURN split(x, ' ')", "RETURN split(x, ' ')"),
    ("RETURN datetime({date: x[k], timezone: 'Z'})", "RETURN datetime({date: date(toString(x[k])), timezone: 'Z'})"),
    ("RETURN datetime.truncate('second', x)", "RETURN datetime.truncate('second', datetime(toString(x)))"),
    ("RETURN localdatetime.truncate('second', x)", "RETURN localdatetime.truncate('second', x)"),
    ("RETURN 'x IS :: A | B', `split(x, [a, b])`, e.valueType", "RETURN 'x IS :: A | B', `split(x, [a, b])`, e.valueType"),
    ("CALL (s1) {\nWITH DISTINCT e2\nRETURN e2, x.s1\n}", "CALL (s1) {\nWITH DISTINCT e2\nRETURN e2, x.s1\n}"),
    ("CALL (s1) {\nWITH DISTINCT e2\nRETURN e2, s1\n}", "CALL (s1) {\nWITH DISTINCT s1, e2\nRETURN e2, s1\n}"),
    ("CALL (s1) {\nWITH *, 1 AS x2 WHERE x2 IN s1\nRETURN x2\n}", "CALL (s1) {\nWITH *, 1 AS x2 WHERE x2 IN s1\nRETURN x2\n}"),
    (
        "CALL (s1) {\nMATCH (e) WHERE e.n STARTS WITH s1\nRETURN e\n}",
        "CALL (s1) {\nMATCH (e) WHERE e.n STARTS WITH s1\nRETURN e\n}",
    ),
]


@pytest.mark.parametrize(("text", "expected"), FORMS)
def test_forms_of_arcadedb(text: str, expected: str) -> None:
    assert translated(text, ARCADEDB) == expected
    assert translated(expected, ARCADEDB) == expected
    assert translated(text, NEO4J) == text


def test_a_grouped_part_that_looks_a_list_up_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"ArcadeDB.*a grouped part of a query looks up"):
        translated("CALL (s1) {\nMATCH (e2)\nWITH count(e2) AS n3\nRETURN n3 + size(s1) AS n4\n}", ARCADEDB)
    # A subquery within it groups by itself.
    text = "CALL (s1) {\nMATCH (e2)\nWITH COLLECT { RETURN count(e2) } AS n3\nRETURN n3, s1\n}"
    assert "WITH s1, COLLECT {" in translated(text, ARCADEDB)


def test_subqueries_of_memgraph() -> None:
    assert translated(SUBQUERIES, MEMGRAPH).replace("  ", " ") == (
        "CALL {\nMATCH (e1)\nRETURN collect(e1) AS s2\n}\n"
        "CALL { WITH s2\nUNWIND s2 AS e3\nWITH s2, e3 LIMIT 2\nMATCH (e3)-->(e4) WHERE NOT e4 IN s2\nRETURN e4\n"
        "UNION ALL WITH s2\nMATCH (e4) WHERE e4 IN s2\nRETURN e4\n}\nRETURN e4"
    )


@pytest.mark.parametrize("engine", [ARCADEDB, MEMGRAPH], ids=lambda engine: engine.name)
def test_compiled_texts(engine: object) -> None:
    """What becomes of each operator and program whose text has a form that the server does not read."""
    assert engine in (ARCADEDB, MEMGRAPH)
    texts = {}
    for name, plan in plans().items():
        layout = layout_on(engine)  # type: ignore[arg-type]
        try:
            text = compile_plan(plan, "world", SCHEMA, layout=layout).text
        except UnsupportedError:
            continue
        assert translated(text, layout.engine) == text
        if "CALL" in text:
            texts[name] = text
    few = dict(sorted(texts.items())[::12])
    golden.check(Path(__file__).parent / "golden" / f"cypher-{layout.engine.name.lower()}.txt", few)


def test_a_text_is_read_whole() -> None:
    """Whatever stands in it: brackets that never close, quotes, and what no text of ours holds."""
    dice = random.Random(5)
    pieces = [
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "`a``b`",
        "'it\\'s'",
        '"',
        "'",
        "`",
        "é",
        "IS",
        "::",
        "|",
        " ",
        "\n",
        "1e5",
        "$p.x",
        "--",
    ]
    for _ in range(400):
        text = "".join(dice.choice(pieces) for _ in range(dice.randrange(40)))
        assert _written(_read(text, NEO4J)) == text
    deep = "(" * 20_000 + "x IS :: A" + ")" * 20_000
    assert translated(deep, ARCADEDB) == deep


def test_servers_are_known_by_what_they_say() -> None:
    assert engine_of("Neo4j/v5.11.0 compatible graph database server - Memgraph") is MEMGRAPH
    assert MEMGRAPH.refusal
    assert not ARCADEDB.refusal
