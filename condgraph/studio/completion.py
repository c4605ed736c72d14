"""Names for completion: entities, predicates, concepts and sources of a graph, with their spelling in
SPARQL, and the words of the languages.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.engine.algebra.grouped import FUNCTIONS, PARTS, TEXT_OPERATORS
from condgraph.engine.bounds import watched
from condgraph.engine.errors import nearest
from condgraph.engine.facts import EntityKind
from condgraph.engine.iris import PREFIXES, encode
from condgraph.engine.schema import MOST_COMPARED, Schema, beginnings
from condgraph.languages.kopl.table import CLOSED
from condgraph.languages.kopl.table import FUNCTIONS as KOPL
from condgraph.sparql.layout import SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.graph import Graph
    from condgraph.overview.schema import GraphSchema


#: Names that are compared on each side of the place of a text.
_AROUND: Final = 2_000
#: Characters of a text that is completed.
MOST_CHARACTERS: Final = 200


def completed(graph: Graph, text: str, kinds: Iterable[str], most: int, *, ids: bool = False) -> list[dict[str, Any]]:
    """Names that begin with a text, or else are like it: those of the schema first, then those of
    entities; each as `{"name", "kind", "about"}`. `kinds` are entity, concept, source, predicate
    (with the keys of qualifiers), or of these relation, attribute, qualifier alone. With `ids`,
    entities and concepts of one name are listed one by one, and each has `id` (None for a predicate)
    and `iri`: the text between the angle brackets of SPARQL, relative to the graph.
    """
    text, wanted, schema = text[:MOST_CHARACTERS], set(kinds), overview_of(graph)
    folded = text.casefold()
    listed: list[tuple[str, str, str]] = []
    whole = "predicate" in wanted
    for predicate in schema.predicates:
        if whole or (predicate.relations and "relation" in wanted) or (predicate.attributes and "attribute" in wanted):
            listed.append((predicate.name, "predicate", f"{predicate.statements:,} statements"))
    if whole or "qualifier" in wanted:
        keys = dict.fromkeys(key.name for predicate in schema.predicates for key in predicate.qualifiers)
        listed += [(key, "qualifier", "key of qualifiers") for key in keys]
    if "concept" in wanted:
        listed += [(concept.name, "concept", f"{concept.members:,} entities") for concept in schema.concepts]
    if "source" in wanted:
        listed += [(source.name, "source", source.format) for source in schema.sources]
    starting, containing = [], []
    for item in watched(listed):
        name = item[0].casefold()
        if name.startswith(folded):
            starting.append(item)
        elif folded in name:
            containing.append(item)
    shown = [*starting, *containing][:most]
    if "entity" in wanted and text:
        shown += [(name, "entity", "") for name in names_beginning(graph, text, most - len(shown))]
    if not shown and text:
        by_name = {item[0]: item for item in reversed(listed)}
        shown = [by_name[name] for name in nearest(text, dict.fromkeys(item[0] for item in listed), most=most)]
    seen: dict[tuple[str, str], str] = {}
    for name, kind, about in shown:
        seen.setdefault((name, kind), about)
    listing = [{"name": name, "kind": kind, "about": about} for (name, kind), about in seen.items()]
    return _identified(graph, listing, most) if ids else listing


def _identified(graph: Graph, listing: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Names with their ids and IRIs; an id that differs from the name is described."""
    names = [item["name"] for item in listing if item["kind"] in ("entity", "concept")]
    fetch = getattr(graph._store_of(None), "around", None)
    part: Snapshot | None = None
    if names:
        part = graph.current if fetch is None else fetch([], list(dict.fromkeys(names)), 1, values=False)
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    labels = label_ids(graph)
    for item in watched(listing):
        name, kind = item["name"], item["kind"]
        if kind == "concept" and name in labels:
            found.append(item | {"id": labels[name], "iri": encode(labels[name])})
            continue
        if kind not in ("entity", "concept"):
            found.append(item | {"id": None, "iri": SOURCE + encode(name) if kind == "source" else encode(name)})
            continue
        assert part is not None
        for number in part.named(name)[:most].tolist():
            ident = part.ident(number)
            # A concept is an entity, too, which was listed with the number of its members.
            if ident not in seen and (kind == "entity" or part.entity(number).kind == EntityKind.CONCEPT):
                seen.add(ident)
                about = item["about"] or (ident if ident != name else "")
                found.append(item | {"about": about, "id": ident, "iri": encode(ident)})
    return found[:most]


def overview_of(graph: Graph) -> GraphSchema:
    """The schema for people, cached: it is needed for every letter that is typed."""
    kept = schema_of(graph).kept
    result: GraphSchema | None = kept.get("studio.overview")
    if result is None:
        result = kept["studio.overview"] = graph.schema()
    return result


def names_beginning(graph: Graph, text: str, most: int) -> list[str]:
    """Names of entities that begin with a text, in any of the usual cases."""
    if most <= 0 or not text:
        return []
    folded = text.casefold()
    names = dict.fromkeys(name for name in watched(_around(graph, text)) if name.casefold().startswith(folded))
    return sorted(names, key=lambda name: (len(name), name))[:most]


def schema_of(graph: Graph) -> Any:
    """The schema that the graph's store resolves names with; on servers it looks names up there."""
    store: Any = graph._store_of(None)
    return getattr(store, "naming_schema", None) or getattr(store, "schema", None) or graph.current.schema


def label_ids(graph: Graph) -> dict[str, str]:
    """The ids of concepts that are labels of a database, not entities, by name."""
    known = getattr(getattr(graph._store_of(None), "schema", None), "concept_ids", None)
    return {} if known is None else known()


def _around(graph: Graph, text: str) -> Iterable[str]:
    """Names around the place of a text among all names."""
    forms, schema = beginnings(text), schema_of(graph)
    if isinstance(schema, Schema):
        snapshot = schema.snapshot
        # Texts are sorted, and so are the numbers of names.
        numbers = schema.kept.get("studio.names")
        if numbers is None:
            numbers = schema.kept["studio.names"] = np.unique(snapshot.entity_name)
        at = np.searchsorted(numbers, [snapshot.texts.rank(form) for form in forms])
        near = np.unique(np.concatenate([numbers[max(int(i) - 1, 0) : int(i) + _AROUND] for i in at]))
        taken: list[str] = snapshot.texts.take(near)
        return taken
    kept: list[str] | None = schema.kept.get("studio.names")
    if kept is None:
        reader: Any = getattr(schema, "reader", None) or graph._store_of(None)
        result = sorted(set(reader.all_names(forms)))
        counts = graph.status().counts
        if sum(counts.get(kind, 0) for kind in ("entities", "concepts", "rows")) > MOST_COMPARED:
            return result  # those around this text only
        kept = schema.kept["studio.names"] = result
    begins = [bisect_left(kept, form) for form in forms]
    return [name for begin in begins for name in kept[begin : begin + _AROUND]]


# -- the words of the languages ----------------------------------------------------------------------


#: Of a table clause: what stands before names; some are two words, as they are written.
_CLAUSE: Final = (
    *("where", "group by", "show", "select", "having", "order by", "limit", "offset", "with ties", "and", "or", "not", "in", "as"),
    *("asc", "desc", "ascending", "descending", "is missing", "is known", "is not null", "distinct", *TEXT_OPERATORS),
)
_SPARQL: Final = (
    *("SELECT", "WHERE", "PREFIX", "BASE", "ASK", "CONSTRUCT", "DESCRIBE", "DISTINCT", "REDUCED", "FILTER", "OPTIONAL", "UNION"),
    *("MINUS", "VALUES", "BIND", "AS", "GRAPH", "FROM", "NAMED", "NOT", "IN", "EXISTS", "GROUP", "ORDER", "BY", "HAVING", "ASC"),
    *("DESC", "LIMIT", "OFFSET", "a", "true", "false", "UNDEF"),
    *("COUNT(", "SUM(", "MIN(", "MAX(", "AVG(", "SAMPLE(", "GROUP_CONCAT(", "STR(", "LANG(", "LANGMATCHES(", "DATATYPE(", "BOUND("),
    *(
        "IRI(",
        "IF(",
        "COALESCE(",
        "REGEX(",
        "REPLACE(",
        "CONTAINS(",
        "STRSTARTS(",
        "STRENDS(",
        "STRBEFORE(",
        "STRAFTER(",
        "STRLEN(",
    ),
    *(
        "SUBSTR(",
        "UCASE(",
        "LCASE(",
        "CONCAT(",
        "ABS(",
        "ROUND(",
        "CEIL(",
        "FLOOR(",
        "YEAR(",
        "MONTH(",
        "DAY(",
        "isIRI(",
        "isLiteral(",
    ),
)
_CYPHER: Final = (
    *("MATCH", "OPTIONAL", "WHERE", "RETURN", "WITH", "UNWIND", "ORDER", "BY", "LIMIT", "SKIP", "AS", "DISTINCT", "AND", "OR"),
    *("NOT", "IN", "IS", "NULL", "CALL", "YIELD", "CONTAINS", "STARTS", "ENDS", "ASC", "DESC", "count(", "collect("),
)


@cache
def terms() -> tuple[str, ...]:
    """The predicates and classes of the vocabulary of graphs in RDF, as `pred:name`."""
    said = files("condgraph.sparql").joinpath("ontology.ttl").read_text("utf-8")
    return tuple(dict.fromkeys(re.findall(r"^(pred:\w+) a (?:owl|rdfs):", said, re.M)))


def keywords() -> dict[str, list[str]]:
    """The words of each language, as they are written; a function ends with its bracket."""
    functions = [f"{name}(" for name in (*FUNCTIONS, *PARTS) if name != "distinct"]
    return {
        "pattern": ["UNKNOWN"],
        "logic": ["exists", "and", "or", "not"],
        "table": [*_CLAUSE, *functions],
        "sparql": [*_SPARQL, *terms(), *(f"{prefix}:" for prefix in PREFIXES)],
        "cypher": list(_CYPHER),
    }


def vocabulary() -> dict[str, Any]:
    """Functions of the languages with what they take, and the words of those that have none."""
    from condgraph.languages.llm.functions import TABLE

    kopl = [{"name": name, "inputs": one.inputs, "texts": list(one.texts), "about": ""} for name, one in KOPL.items()]
    llm = [{"name": item.name, "inputs": item.operands[0], "texts": list(item.options), "about": item.about} for item in TABLE]
    closed = {role: list(words) for role, words in CLOSED.items()}
    return {"kopl": kopl, "llm_query": llm, "words": closed, "keywords": keywords()}
