"""A Neo4j database with unexpected labels, relationship types and properties: quotes, commas, line ends, words of the
languages and of Cypher, numbers and dates, names that differ only in case, and one name for a label, a type and a
property.
"""

from __future__ import annotations

import random
from typing import Any, Final

import neo4j

LABELS: Final = ("it's", 'q"q', "a, b", "tick`ed", "Entity", "id", "2019", "same", "SAME", "Find(x)", "é🙂")
TYPES: Final = ("same", "KNOWS", "knows", "x\ny", "it's", "instance of", "relation", "1.5", "WHERE n", "backward", "p" * 120)
KEYS: Final = (
    "same", "name", "a, b", "x\ny", "source", "value", "count", "2019-01-01", "% of total", "weight [kg]", "n.name", "{x}", "$x",
    "tail_entity", "output_of_query1", "id", "row_number",
)  # fmt: skip
NAMES: Final = (
    "Ann", "ann", "Ann", "O'Brien", 'The "Best"', "a\nb", "5", "2019-01-01", "yes", "output_of_query1", "Find(x)",
    " lead", "`t`", "\\", "100 kg", "é", "E\u0301", "🙂", "{0}", "<b>", "x" * 300, "same", "it's", "NULL", "a, b",
    "UNKNOWN", "\u202eabc", "-", "1e5", "//",
)  # fmt: skip


def awkward(driver: neo4j.Driver, *, seed: int = 3) -> None:
    """Create 60 nodes with up to three labels, and 150 relationships with up to two properties."""
    dice = random.Random(seed)

    def value() -> Any:
        return dice.choice([dice.randrange(9), dice.randrange(9) / 4, dice.choice(NAMES[:20]), True, f"{dice.randrange(30)}"])

    with driver.session() as session:
        for number in range(60):
            row: dict[str, Any] = {key: value() for key in dice.sample(KEYS, 5)}
            row["name"] = NAMES[number % len(NAMES)]
            labels = dice.sample(LABELS, 1 + number % 3)
            session.run("CREATE (n:$($labels)) SET n = $row, n.`№` = $number", labels=labels, row=row, number=number).consume()
        for _ in range(150):
            row = {key: value() for key in dice.sample(KEYS, dice.randrange(3))}
            session.run(
                "MATCH (a {`№`: $a}), (b {`№`: $b}) CREATE (a)-[r:$($type)]->(b) SET r = $row",
                a=dice.randrange(60), b=dice.randrange(60), type=dice.choice(TYPES), row=row,
            ).consume()  # fmt: skip
