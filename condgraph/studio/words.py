"""The words of the languages, which editors complete beside the graph's own names."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any, Final

from condgraph.engine.algebra.expressions import FUNCTIONS, PARTS, TEXT_OPERATORS
from condgraph.languages.kopl.table import CLOSED
from condgraph.languages.kopl.table import FUNCTIONS as KOPL
from condgraph.sparql.text.scan import PREFIXES

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
    llm = [{"name": one.name, "inputs": one.operands[0], "texts": list(one.options), "about": one.about} for one in TABLE]
    closed = {role: list(words) for role, words in CLOSED.items()}
    return {"kopl": kopl, "llm_query": llm, "words": closed, "keywords": keywords()}
