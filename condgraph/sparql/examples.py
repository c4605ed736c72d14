"""Example queries for the page of an endpoint, built from the graph so that each gives readable results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from condgraph.engine.values import Kind

if TYPE_CHECKING:
    from condgraph.sparql.embedded import EmbeddedStore

_LIMIT: Final = 25
_LABELS: Final = "http://www.w3.org/2000/01/rdf-schema#label"


def examples(store: EmbeddedStore) -> list[tuple[str, str]]:
    """Return titles and texts of queries; only those that have results."""
    queries = [*_of_concepts(store), *_of_predicates(store)]
    if len(store.snapshot.arrays.get("q.owner")):
        queries.append(
            (
                "Statements with what qualifies them",
                "SELECT ?subject ?predicate ?object ?key ?value WHERE {\n"
                "  ?statement <pred:fact_h>/<pred:name> ?subject ; <pred:fact_t> ?object ;\n"
                f"    <pred:fact_r>/<{_LABELS}> ?predicate ;\n"
                f"    ?qualifier ?value .\n  ?qualifier <{_LABELS}> ?key\n}} LIMIT {_LIMIT}",
            )
        )
    if len(store.defaults) > 1:
        queries.append(
            (
                "The triples as they were loaded, by their own IRIs",
                f"SELECT ?subject ?predicate ?object WHERE {{\n  GRAPH <{store.defaults[1]}> {{ ?subject ?predicate ?object }}\n"
                f"}} LIMIT {_LIMIT}",
            )
        )
    return queries


def _of_concepts(store: EmbeddedStore) -> Iterator[tuple[str, str]]:
    """Yield queries for all concepts, and for the members of the largest."""
    snapshot, names = store.snapshot, store.target.names
    get = snapshot.arrays.get
    classes = np.diff(get("con.offsets"))
    if len(classes) and classes.max() > 0:
        yield (
            "Concepts and how many they have",
            "SELECT ?concept ?name (COUNT(?thing) AS ?things) WHERE {\n"
            "  ?thing <pred:instance_of> ?concept .\n  ?concept <pred:name> ?name\n"
            f"}} GROUP BY ?concept ?name ORDER BY DESC(?things) LIMIT {_LIMIT}",
        )
        largest = int(classes.argmax())
        concept = snapshot.entity(int(get("con.entity")[largest]))
        yield (
            f"Everything that is {concept.name[:60]!r}",
            f"SELECT ?thing ?name WHERE {{\n  ?thing <pred:instance_of> {names.entity(concept.id)} ;\n    <pred:name> ?name\n"
            f"}} ORDER BY ?name LIMIT {_LIMIT}",
        )


def _of_predicates(store: EmbeddedStore) -> Iterator[tuple[str, str]]:
    """Yield queries for the commonest relation, and the commonest attribute with numbers."""
    snapshot, names = store.snapshot, store.target.names
    get = snapshot.arrays.get
    relations = np.diff(get("rel.offsets"))
    if len(relations) and relations.max() > 0:
        name = snapshot.predicate_name(int(relations.argmax()))
        yield (
            f"Who has {name[:60]!r}, and what",
            f"SELECT ?subject ?subjectName ?object ?objectName WHERE {{\n  ?subject {names.predicate(name)} ?object .\n"
            f"  ?subject <pred:name> ?subjectName .\n  ?object <pred:name> ?objectName\n}} LIMIT {_LIMIT}",
        )
    numbers = get("grp.kind") == Kind.QUANTITY
    if numbers.any():
        largest = int(np.where(numbers, np.diff(get("grp.start")), 0).argmax())
        name = snapshot.predicate_name(int(get("grp.pred")[largest]))
        yield (
            f"The greatest {name[:60]!r}",
            f"SELECT ?name ?number ?unit WHERE {{\n  ?subject {names.predicate(name)} ?value .\n"
            "  ?value <pred:value> ?number ; <pred:unit> ?unit .\n  ?subject <pred:name> ?name\n"
            f"}} ORDER BY DESC(?number) LIMIT {_LIMIT}",
        )
