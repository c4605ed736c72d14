"""The schema of a graph as a property graph, in comments of Cypher: to paste above a query, or into a prompt."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from condgraph.engine.values import NO_UNIT
from condgraph.overview.schema import KindCount, Overview, PredicateSchema, QualifierKey, ValueCount, cut, quoted, safe, unmarked

#: Characters of the longest name; the words for types of values.
_LONGEST: Final = 200
_TYPES: Final = {"text": "text", "quantity": "number", "time": "time", "entity": "node", "unknown": "unknown"}
_PLAIN: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def cypher_name(name: str) -> str:
    """A name as Cypher takes it, in backticks where it needs them. Characters that could end a line or look like marks
    of a conversation are escaped as in JSON.

    >>> print(cypher_name("height"), cypher_name("head of government"), cypher_name("a`b"), cypher_name("x\\ny"))
    height `head of government` `a``b` `x\\ny`
    """
    if _PLAIN.fullmatch(name) and len(name) <= _LONGEST:
        return name
    text = cut(name, _LONGEST)
    text = "".join(c if c.isprintable() else quoted(c)[1:-1] for c in text)
    return f"`{unmarked(text).replace('`', '``')}`"


def cypher_text(schema: Overview, most: int) -> str:
    """The labels with the number of their nodes and the labels above them, the patterns of relationships with
    qualifiers as properties, and the properties of nodes with types and units; at most so many lines of each. Every
    line is a comment. Counts are of the whole graph; a label counts the nodes of those below it.
    """
    tables = _tables(schema)
    labels = [
        (f"(:{cypher_name(concept.name)})", concept.members, "".join(f" :{cypher_name(name)}" for name in concept.above))
        for concept in schema.concepts
    ]
    labels += [(f"(:{cypher_name(tables[source.name])})", source.rows, "") for source in schema.sources if source.rows]
    named = [name for name in ("name", "id") if not any(one.name == name and one.attributes for one in schema.predicates)]
    head = "" if not named else f"; every node has {' and '.join(named)}"
    return "\n".join(
        [
            f"// Labels{head}",
            *_lines((f"{label} {_counted(count, 'node')}{above and f', also{above}'}" for label, count, above in labels), most),
            "// Relationships",
            *_lines((_relationship(one, tables) for one in schema.predicates if one.relations), most),
            "// Properties of nodes",
            *_lines((_property(one, tables) for one in schema.predicates if one.attributes), most),
        ]
    )


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _lines(lines: Iterable[str], most: int) -> list[str]:
    listed = list(lines)
    shown = [f"// {line}" for line in listed[:most]]
    return shown if len(listed) <= most else [*shown, f"// ... and {len(listed) - most:,} more"]


def _tables(schema: Overview) -> dict[str, str]:
    """The label of each table: the last part of its name where that names nothing else."""
    short = Counter(source.name.rpartition("/")[2] for source in schema.sources if source.rows)
    concepts = {concept.name for concept in schema.concepts}
    result = {}
    for source in schema.sources:
        last = source.name.rpartition("/")[2]
        result[source.name] = last if short[last] == 1 and last not in concepts else source.name
    return result


def _node(kinds: Sequence[KindCount], more: int, tables: dict[str, str]) -> str:
    """The pattern of a node that has one of some labels; kinds without a label are nodes of any."""
    labels = [cypher_name(tables.get(kind.name, kind.name) if kind.sort == "table" else kind.name) for kind in kinds if kind.name]
    rest = [f"{more:,} more labels"] if more else []
    rest += ["nodes without a label"] if labels and any(not kind.name for kind in kinds) else []
    pattern = f"(:{'|'.join(labels)})" if labels else "()"
    return f"[{pattern} and {' and '.join(rest)}]" if rest else pattern


def _relationship(predicate: PredicateSchema, tables: dict[str, str]) -> str:
    start = _node(predicate.subjects, predicate.more.get("subjects", 0), tables)
    end = _node(predicate.objects, predicate.more.get("objects", 0), tables)
    return (
        f"{start}-[:{cypher_name(predicate.name)}{_qualifiers(predicate)}]->{end} {_counted(predicate.relations, 'relationship')}"
    )


def _qualifiers(predicate: PredicateSchema) -> str:
    if not predicate.qualifiers:
        return ""
    parts = [f"{cypher_name(key.name)}: {_qualifier(key)}" for key in predicate.qualifiers]
    more = predicate.more.get("qualifiers", 0)
    return f" {{{', '.join([*parts, *([f'{more:,} more'] if more else [])])}}}"


def _qualifier(key: QualifierKey) -> str:
    return " or ".join(dict.fromkeys(_type(value) for value in key.values))


def _type(value: ValueCount) -> str:
    return _TYPES.get(value.type, value.type) + ("" if value.unit == NO_UNIT else f" in {quoted(value.unit)}")


def _property(predicate: PredicateSchema, tables: dict[str, str]) -> str:
    node = _node(predicate.subjects, predicate.more.get("subjects", 0), tables)
    kinds = []
    for value in predicate.values:
        if value.type == "entity":
            continue
        span = f" from {safe(value.first)} to {safe(value.last)}" if value.first else ""
        kinds.append(f"{_type(value)}, {_counted(value.count, 'value')}{span}")
    more = predicate.more.get("values", 0)
    return f"{node}.{cypher_name(predicate.name)}: {'; '.join([*kinds, *([f'{more:,} more types'] if more else [])])}"
