"""Queries that people wrote, read-only, on any place that holds a graph as `layout` says: run, and read as a table.

`dialect="kqapro"` takes the queries that KQA Pro published (`kqapro`) and gives what its evaluation looks at: entities, predicates
by name, value nodes as the values they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.bounds import check_bounds
from condgraph.engine.errors import OptionError, ReadOnlyError, UnsupportedError, nearest
from condgraph.engine.facts import Entity, EntityKind
from condgraph.sparql.dialect import cut
from condgraph.sparql.kqapro import Predicates, Translated, not_well_formed, translate
from condgraph.sparql.layout import ENTITY_CLASSES, PRED, RDF, RDFS, Names
from condgraph.sparql.protocol_text import survey
from condgraph.sparql.pull import exact_value
from condgraph.sparql.table import Blank, Iri, Table, columns_of, literal

if TYPE_CHECKING:
    from condgraph.sparql.compile_group import Known

DIALECTS: Final = ("standard", "kqapro")
_KINDS: Final = {name: kind for kind, name in ENTITY_CLASSES.items()}
#: Runs a query over the graph: what pyoxigraph's `Store.query` gives.
Runs = Callable[[str], Any]


def run(
    text: str,
    runs: Runs,
    names: Names,
    schema: Known,
    *,
    dialect: str = "standard",
    limit: int | None = None,
    on_unknown: str = "error",
    federated: bool = False,
    list_length: int = 500,
) -> Table:
    """Run a query and read its results. Relative IRIs are names of the graph; `limit` is the most rows (more: a warning).

    Raises `ParseError` with the place, `ReadOnlyError` for an update, `UnsupportedError` for SERVICE where the place is not
    `federated`, and in the dialect of KQA Pro `UnknownNameError` and `AmbiguousNameError`.
    """
    if dialect not in DIALECTS:
        raise OptionError(f"dialect is 'standard' or 'kqapro', not {dialect!r}", candidates=nearest(dialect, DIALECTS))
    check_bounds(None, limit, what="rows to give")
    about = survey(text)
    if about.form == "update":
        raise ReadOnlyError("the text is an update; a graph is changed by loading")
    if about.service and not federated:
        raise UnsupportedError("the embedded store", ["SERVICE: queries of other endpoints"])
    kqapro = dialect == "kqapro"
    # Names stand behind the graph's base unless the query says otherwise; on the first line, so that lines keep their numbers.
    standard, warnings = f"BASE <{names.base}> {text}", []
    _check(text, names.base, translate(text, None) if kqapro else None)
    if kqapro:
        translated = translate(text, _predicates(schema, names), on_unknown=on_unknown)
        standard, warnings = translated.text, list(translated.warnings)
    found = runs(standard)
    if not hasattr(found, "__iter__"):
        return Table(("truth",), [], standard, bool(found), warnings)
    variables = getattr(found, "variables", None)
    if variables is None:
        columns: tuple[str, ...] = ("subject", "predicate", "object")
        terms: Iterator[Any] = ((one.subject, one.predicate, one.object) for one in found)
    else:
        columns = columns_of([str(one) for one in variables])
        terms = (tuple(solution) for solution in found)
    rows = list(terms if limit is None else islice(terms, limit + 1))
    if limit is not None and len(rows) > limit:
        rows = rows[:limit]
        warnings.append(f"there are more rows than are shown (limit {limit})")
    if not kqapro:
        return Table(columns, [tuple(map(_plain, row)) for row in rows], standard, None, warnings)
    meant = _meant(rows, runs, names, list_length)
    read = [tuple(_read(term, name, meant) for term, name in zip(row, columns, strict=True)) for row in rows]
    whole = [row for row in read if not any(isinstance(cell, Iri) and cell.startswith(PRED) for cell in row)]
    if len(whole) < len(read):
        warnings.append(f"{len(read) - len(whole)} rows are about the layout (membership, say), which is no relation; left out")
    return Table(columns, whole, standard, None, warnings)


def _predicates(schema: Known, names: Names) -> Predicates:
    known: Any = schema
    return Predicates((*known.relations, *known.attributes, *known.qualifiers), names)


def _check(text: str, base: str, translated: Translated | None) -> None:
    """Parse a query by asking it of nothing; raises `ParseError` with the place in the text as it was written."""
    from pyoxigraph import Store

    try:
        Store().query(text if translated is None else translated.text, base_iri=base)
    except SyntaxError as error:
        raise not_well_formed(error, text, translated) from None


# -- terms ----------------------------------------------------------------------------------------------------------------


def _plain(term: Any) -> Any:
    """A term as it is."""
    if term is None:
        return None
    kind = type(term).__name__
    if kind == "NamedNode":
        return Iri(term.value)
    if kind == "BlankNode":
        return Blank(term.value)
    if kind == "Literal":
        return term.value if term.language else literal(term.value, term.datatype.value)
    return str(term)


def _read(term: Any, variable: str, meant: dict[str, dict[str, Any]]) -> Any:
    """A term as what it means: an entity, the name of a predicate, the value that a node holds."""
    about = meant.get(term.value) if type(term).__name__ == "NamedNode" else None
    if about is None:
        return _plain(term)
    if "held" in about:
        return about["held"]
    predicate = "label" in about and ("entity" not in about or variable == "p")
    return about["label"] if predicate else about.get("entity", Iri(term.value))


def _meant(rows: Iterable[tuple[Any, ...]], runs: Runs, names: Names, list_length: int) -> dict[str, dict[str, Any]]:
    """What the nodes of the graph in some rows are, by one further query for each few hundred of them."""
    wanted = dict.fromkeys(
        term.value
        for row in rows
        for term in row
        if type(term).__name__ == "NamedNode" and term.value.startswith(names.base) and len(term.value) > len(names.base)
    )
    said: dict[str, dict[str, str]] = {}
    for some in cut(wanted, list_length):
        listed = ", ".join(f"<{iri}>" for iri in some)
        text = f"SELECT ?v ?p (STR(?x) AS ?o) WHERE {{ ?v ?p ?x . FILTER(?v IN ({listed})) {_TERMS} }}"
        for row in runs(text):
            name = row["p"].value.removeprefix(PRED)
            if name == f"{RDF}type" and (kind := row["o"].value.removeprefix(PRED)) in (*_KINDS, *_VALUES):
                said.setdefault(row["v"].value, {})["type"] = kind
            elif name == f"{RDFS}label":
                said.setdefault(row["v"].value, {})["label"] = row["o"].value
            else:
                said.setdefault(row["v"].value, {})[name] = row["o"].value
    return {iri: _one(iri, about, names) for iri, about in said.items()}


_TERMS: Final = (
    f"FILTER(?p IN (<{RDF}type>, <{RDFS}label>, "
    + ", ".join(f"<{PRED}{name}>" for name in ("name", "row", "value", "unit", "exact", "start", "end", "precision"))
    + "))"
)
_VALUES: Final = ("Text", "Quantity", "Time", "Unknown")


def _one(iri: str, about: dict[str, str], names: Names) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if names.is_value(iri):
        found["held"] = exact_value(iri, about, names)
    if "label" in about:
        found["label"] = about["label"]
    kind = _KINDS.get(about.get("type", ""))
    if kind is not None and "name" in about:
        row = int(about.get("row", "0")) if kind is EntityKind.ROW else 0
        found["entity"] = Entity(names.name_of(iri), about["name"], kind, row)
    return found
