"""Queries that people wrote, read-only, on any place that holds a graph as `layout` says: run, and
read as a table.

`dialect="kqapro"` takes the queries that KQA Pro published (`kqapro`) and gives what its evaluation
looks at: entities, predicates by name, value nodes as the values they hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.bounds import check_bounds
from condgraph.engine.errors import CondgraphError, OptionError, ParseError, ReadOnlyError, UnsupportedError, nearest, numbered
from condgraph.engine.pieces import mapped, watched
from condgraph.sparql.layout import GraphIris
from condgraph.sparql.text.kqapro import Predicates, Translated, not_well_formed, translate
from condgraph.sparql.text.prologue import PREFIXES, undeclared
from condgraph.sparql.text.survey import survey
from condgraph.sparql.text.table import Table, columns_of
from condgraph.sparql.text.terms import Knows, Meaning, Runs, meanings, plain
from condgraph.sparql.text.weight import is_heavy

if TYPE_CHECKING:
    from condgraph.engine.kinds import GraphKnowledge

DIALECTS: Final = ("standard", "kqapro")


def run(
    text: str,
    runs: Runs,
    names: GraphIris,
    schema: GraphKnowledge,
    *,
    dialect: str = "standard",
    limit: int | None = None,
    on_unknown: str = "error",
    federated: bool = False,
    list_length: int = 500,
    values: bool = True,
    known: Knows | None = None,
) -> Table:
    """Run a query and read its results. Relative IRIs are names of the graph; `limit` is the most
    rows (more: a warning).

    `known` says what a node of the graph is, where that is known without asking; the others are
    asked for in lists of `list_length`, as `VALUES` or, where the store is quick at that alone, as
    `IN`.

    Raises `ParseError` with the place, `ReadOnlyError` for an update, `UnsupportedError` for
    SERVICE where the place is not `federated`, and in the dialect of KQA Pro `UnknownNameError` and
    `AmbiguousNameError`.
    """
    if dialect not in DIALECTS:
        raise OptionError(f"dialect is 'standard' or 'kqapro', not {dialect!r}", candidates=nearest(dialect, DIALECTS))
    check_bounds(None, limit, what="rows to give")
    _refuse(text, federated=federated)
    kqapro = dialect == "kqapro"
    # Names stand behind the graph's base unless the query says otherwise; on the first line, so
    # that lines keep their numbers.
    standard, warnings, translated = f"BASE <{names.base}> {undeclared(text)}{text}", [], None
    if kqapro:
        try:
            translated = translate(text, predicates_of(schema, names), on_unknown=on_unknown)
        except CondgraphError:
            _check(text, names.base, translate(text, None))  # what is not well formed is reported first
            raise
        standard, warnings = translated.text, list(translated.warnings)
    if known is None or not kqapro:
        _check(text, names.base, translated)
    try:
        found = runs(standard)
    except SyntaxError as error:
        raise not_well_formed(error, text, translated) from None
    except ParseError as error:
        if known is not None and kqapro:
            _check(text, names.base, translated)
        raise _placed(error, text, standard) from None
    if not hasattr(found, "__iter__"):
        return Table(("truth",), [], standard, bool(found), warnings)
    columns, terms = _rows(found)
    rows = list(watched(terms if limit is None else islice(terms, limit + 1)))
    if limit is not None and len(rows) > limit:
        rows = rows[:limit]
        warnings.append(f"there are more rows than are shown (limit {limit})")
    if not kqapro:
        return Table(columns, mapped(lambda row: tuple(map(plain, row)), rows), standard, None, warnings)
    read, left_out = meanings(rows, columns, Meaning(runs, names, list_length, values, known))
    if left_out:
        warnings.append(f"{numbered(left_out, 'row is', 'rows are')} about the layout (membership, for example) and left out")
    return Table(columns, read, standard, None, warnings)


def _placed(error: ParseError, text: str, sent: str) -> ParseError:
    """The error of a query that was not parsed here, with its place in the text as it was written
    instead of the one that was sent.
    """
    before = len(sent) - len(text)
    span = None if error.span is None else (min(max(0, error.span[0] - before), len(text)), min(error.span[1], len(text)))
    return ParseError(f"the query is not well formed: {error.message}", span=span)


def _refuse(text: str, *, federated: bool) -> None:
    """Raise what is wrong with a query before anything reads it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ParseError("half a surrogate pair is no text", span=(error.start, error.start + 1)) from None
    about = survey(text)
    if about.form == "update":
        raise ReadOnlyError("the text is an update; a graph is changed by loading")
    if about.service and not federated:
        raise UnsupportedError("the embedded store", ["SERVICE: queries of other endpoints"])


def _rows(found: Any) -> tuple[tuple[str, ...], Iterator[Any]]:
    """The columns of solutions or triples, and the terms of each row."""
    variables = getattr(found, "variables", None)
    if variables is None:
        return ("subject", "predicate", "object"), ((one.subject, one.predicate, one.object) for one in found)
    return columns_of([str(one) for one in variables]), (tuple(solution) for solution in found)


def predicates_of(schema: GraphKnowledge, names: GraphIris) -> Predicates:
    """The predicates of a graph, by how published queries write them; made once a schema."""
    known: Any = schema
    found: Predicates | None = known.kept.get("kqapro")
    if found is None or found.names.base != names.base:
        found = known.kept["kqapro"] = Predicates((*known.relations, *known.attributes, *known.qualifiers), names)
    return found


@cache
def _nothing() -> Any:
    """A store with nothing in it."""
    from pyoxigraph import Store

    return Store()


def _check(text: str, base: str, translated: Translated | None) -> None:
    """Parse a query by asking it of nothing; raises `ParseError` with the place in the text as it
    was written.
    """
    if is_heavy(text):
        # It runs elsewhere, and is parsed there.
        return
    try:
        _nothing().query(text if translated is None else translated.text, base_iri=base, prefixes=PREFIXES)
    except SyntaxError as error:
        raise not_well_formed(error, text, translated) from None
