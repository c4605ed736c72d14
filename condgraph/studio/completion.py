"""Names for completion (a graph's entities, predicates, concepts and sources, with their spelling in
SPARQL), and the words of the languages.
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
from condgraph.engine.schema import MAX_COMPARED, Schema, beginnings
from condgraph.languages.kopl.table import CLOSED
from condgraph.languages.kopl.table import FUNCTIONS as KOPL
from condgraph.sparql.layout import SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from condgraph.engine.snapshot.snapshot import Snapshot
    from condgraph.graph import Graph
    from condgraph.overview.schema import GraphSchema


#: How many names are compared from the position of a text onwards.
_AROUND: Final = 2_000
#: The most characters of a text to complete.
MAX_CHARACTERS: Final = 200


def completed(graph: Graph, text: str, kinds: Iterable[str], most: int, *, ids: bool = False) -> list[dict[str, Any]]:
    """Return names that begin with a text, or else similar names: those of the schema before those of entities.

    Each name is `{"name", "kind", "about"}`. `kinds` selects entity, concept, source and predicate
    (which includes the keys of qualifiers), or only relation, attribute or qualifier. With `ids`,
    entities and concepts with the same name are listed separately, and each name has `id` (None for a
    predicate) and `iri`: the text between the angle brackets of SPARQL, relative to the graph.
    """
    text, wanted, schema = text[:MAX_CHARACTERS], set(kinds), overview_of(graph)
    folded = text.casefold()
    listed: list[tuple[str, str, str]] = []
    all_predicates = "predicate" in wanted
    for predicate in schema.predicates:
        if all_predicates or (predicate.relations and "relation" in wanted) or (predicate.attributes and "attribute" in wanted):
            listed.append((predicate.name, "predicate", f"{predicate.statements:,} statements"))
    if all_predicates or "qualifier" in wanted:
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
    chosen = [*starting, *containing][:most]
    if "entity" in wanted and text:
        chosen += [(name, "entity", "") for name in names_beginning(graph, text, most - len(chosen))]
    if not chosen and text:
        by_name = {item[0]: item for item in reversed(listed)}
        chosen = [by_name[name] for name in nearest(text, dict.fromkeys(item[0] for item in listed), most=most)]
    first_of: dict[tuple[str, str], str] = {}
    for name, kind, about in chosen:
        first_of.setdefault((name, kind), about)
    listing = [{"name": name, "kind": kind, "about": about} for (name, kind), about in first_of.items()]
    return _identified(graph, listing, most) if ids else listing


def _identified(graph: Graph, listing: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Add ids and IRIs to names. An id that differs from the name becomes its description."""
    names = [item["name"] for item in listing if item["kind"] in ("entity", "concept")]
    fetch = getattr(graph._store_of(None), "around", None)
    part: Snapshot | None = None
    if names:
        part = graph.current if fetch is None else fetch([], list(dict.fromkeys(names)), 1, values=False)
    result: list[dict[str, Any]] = []
    seen: set[str] = set()
    labels = label_ids(graph)
    for item in watched(listing):
        name, kind = item["name"], item["kind"]
        if kind == "concept" and name in labels:
            result.append(item | {"id": labels[name], "iri": encode(labels[name])})
            continue
        if kind not in ("entity", "concept"):
            result.append(item | {"id": None, "iri": SOURCE + encode(name) if kind == "source" else encode(name)})
            continue
        assert part is not None
        for number in part.named(name)[:most].tolist():
            ident = part.ident(number)
            # A concept is an entity, too, but has already been listed with the number of its members.
            if ident not in seen and (kind == "entity" or part.entity(number).kind == EntityKind.CONCEPT):
                seen.add(ident)
                about = item["about"] or (ident if ident != name else "")
                result.append(item | {"about": about, "id": ident, "iri": encode(ident)})
    return result[:most]


def overview_of(graph: Graph) -> GraphSchema:
    """Return the schema as users see it. It is cached, because every typed letter needs it."""
    cache = schema_of(graph).kept
    result: GraphSchema | None = cache.get("studio.overview")
    if result is None:
        result = cache["studio.overview"] = graph.schema()
    return result


def names_beginning(graph: Graph, text: str, most: int) -> list[str]:
    """Return names of entities that begin with a text, in any of the usual cases."""
    if most <= 0 or not text:
        return []
    folded = text.casefold()
    names = dict.fromkeys(name for name in watched(_around(graph, text)) if name.casefold().startswith(folded))
    return sorted(names, key=lambda name: (len(name), name))[:most]


def schema_of(graph: Graph) -> Any:
    """Return the schema with which the graph's store resolves names. On servers, it looks names up there."""
    return graph._store_of(None).naming_schema


def label_ids(graph: Graph) -> dict[str, str]:
    """Return the ids, by name, of concepts that are labels in a database and not entities."""
    known = getattr(getattr(graph._store_of(None), "schema", None), "concept_ids", None)
    return {} if known is None else known()


def _around(graph: Graph, text: str) -> Iterable[str]:
    """Return the names around the position of a text among all sorted names."""
    forms, schema = beginnings(text), schema_of(graph)
    if isinstance(schema, Schema):
        snapshot = schema.snapshot
        # Texts are sorted, so numbers of names sort like the names.
        numbers = schema.kept.get("studio.names")
        if numbers is None:
            numbers = schema.kept["studio.names"] = np.unique(snapshot.entity_name)
        positions = np.searchsorted(numbers, [snapshot.texts.rank(form) for form in forms])
        neighbours = np.unique(np.concatenate([numbers[max(int(i) - 1, 0) : int(i) + _AROUND] for i in positions]))
        texts: list[str] = snapshot.texts.take(neighbours)
        return texts
    names: list[str] | None = schema.kept.get("studio.names")
    if names is None:
        reader: Any = getattr(schema, "reader", None) or graph._store_of(None)
        result = sorted(set(reader.all_names(forms)))
        counts = graph.status().counts
        if sum(counts.get(kind, 0) for kind in ("entities", "concepts", "rows")) > MAX_COMPARED:
            return result  # only the names around this text
        names = schema.kept["studio.names"] = result
    starts = [bisect_left(names, form) for form in forms]
    return [name for start in starts for name in names[start : start + _AROUND]]


# -- the words of the languages ----------------------------------------------------------------------


#: The words of a table clause. Some of them are pairs of words.
_CLAUSE: Final = (
    *("where", "group by", "show", "select", "having", "order by", "limit", "offset", "with ties", "and", "or", "not", "in", "as"),
    *("asc", "desc", "ascending", "descending", "is missing", "is known", "is not null", "distinct", *TEXT_OPERATORS),
)
_SPARQL: Final = (
    *("SELECT", "WHERE", "PREFIX", "BASE", "ASK", "CONSTRUCT", "DESCRIBE", "DISTINCT", "REDUCED", "FILTER", "OPTIONAL", "UNION"),
    *("MINUS", "VALUES", "BIND", "AS", "GRAPH", "FROM", "NAMED", "NOT", "IN", "EXISTS", "GROUP", "ORDER", "BY", "HAVING", "ASC"),
    *("DESC", "LIMIT", "OFFSET", "a", "true", "false", "UNDEF"),
    *("COUNT(", "SUM(", "MIN(", "MAX(", "AVG(", "SAMPLE(", "GROUP_CONCAT(", "STR(", "LANG(", "LANGMATCHES(", "DATATYPE(", "BOUND("),
    *("IRI(", "IF(", "COALESCE(", "REGEX(", "REPLACE(", "CONTAINS(", "STRSTARTS(", "STRENDS(", "STRBEFORE(", "STRAFTER("),
    *("STRLEN(", "SUBSTR(", "UCASE(", "LCASE(", "CONCAT(", "ABS(", "ROUND(", "CEIL(", "FLOOR(", "YEAR(", "MONTH(", "DAY("),
    *("isIRI(", "isLiteral("),
)
_CYPHER: Final = (
    *("MATCH", "OPTIONAL", "WHERE", "RETURN", "WITH", "UNWIND", "ORDER", "BY", "LIMIT", "SKIP", "AS", "DISTINCT", "AND", "OR"),
    *("NOT", "IN", "IS", "NULL", "CALL", "YIELD", "CONTAINS", "STARTS", "ENDS", "ASC", "DESC", "count(", "collect("),
)


@cache
def terms() -> tuple[str, ...]:
    """Return the predicates and classes of the vocabulary of RDF graphs, as `pred:name`."""
    ontology = files("condgraph.sparql").joinpath("ontology.ttl").read_text("utf-8")
    return tuple(dict.fromkeys(re.findall(r"^(pred:\w+) a (?:owl|rdfs):", ontology, re.M)))


def keywords() -> dict[str, list[str]]:
    """Return the words of each language as they are written. A function ends with its opening bracket."""
    functions = [f"{name}(" for name in (*FUNCTIONS, *PARTS) if name != "distinct"]
    return {
        "pattern": ["UNKNOWN"],
        "logic": ["exists", "and", "or", "not"],
        "table": [*_CLAUSE, *functions],
        "sparql": [*_SPARQL, *terms(), *(f"{prefix}:" for prefix in PREFIXES)],
        "cypher": list(_CYPHER),
    }


def vocabulary() -> dict[str, Any]:
    """Return the functions of the languages with their inputs, and the words of languages without functions."""
    from condgraph.languages.llm.functions import TABLE

    kopl = [
        {"name": name, "inputs": function.inputs, "texts": list(function.texts), "about": ""} for name, function in KOPL.items()
    ]
    llm = [{"name": item.name, "inputs": item.operands[0], "texts": list(item.options), "about": item.about} for item in TABLE]
    closed = {role: list(words) for role, words in CLOSED.items()}
    return {"kopl": kopl, "llm_query": llm, "words": closed, "keywords": keywords()}
