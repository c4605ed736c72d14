"""Runs queries written by users, read-only, over a graph in the layout of `layout`, and returns their results as a table.

`dialect="kqapro"` accepts the queries that KQA Pro published, and returns what its evaluation compares: entities, predicates by
name, value nodes as their values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine import errors
from condgraph.engine.bounds import check_bounds, watched
from condgraph.engine.facts import Entity, EntityKind
from condgraph.engine.iris import PRED, PREFIXES, RDF, RDFS, VALUE, XSD, value_named
from condgraph.sparql.dialect import cut
from condgraph.sparql.layout import ENTITY_CLASSES, GraphIris
from condgraph.sparql.load.pull import exact_value
from condgraph.sparql.text.scan import COMMENT, IRI, STRING, is_heavy, mistake, survey, undeclared
from condgraph.sparql.text.table import Blank, Iri, Table, columns_of, literal

if TYPE_CHECKING:
    from condgraph.engine.kinds import GraphKnowledge


# -- KQA Pro's published queries ---------------------------------------------------------------------
# `translate` turns the queries that KQA Pro published into standard SPARQL.
#
# They name predicates by relative IRIs in which a space is an underscore (`<point_in_time>`), which is
# ambiguous; they use `xsd:` without declaring it, and some close a literal with another quote than they
# opened it with (`"104072'^^xsd:double`). A relative IRI becomes the predicate of the graph with this
# form; if several fit, the error lists them, if none does, the name is unknown. Other mistakes are
# reported with their position in the published text.


#: Vocabulary terms of the published queries, and those that the layout adds.
TERMS: Final = (
    *("name", "instance_of", "fact_h", "fact_r", "fact_t", "value", "unit", "year", "date"),
    *("subclass_of", "start", "end", "precision", "exact", "order", "source", "row", "position", "record", "raw"),
    *("valid_start", "valid_end", "label", "location", "format", "place", "member", "concept", "subclass", "superclass"),
    *("Entity", "Concept", "Row", "Text", "Quantity", "Time", "Unknown", "Source", "Membership", "Subclassing", "Graph"),
)
_TOKEN: Final = re.compile(
    rf"""
      {COMMENT}
    | (?P<mixed>(?P<open>["'])(?P<number>[-+]?[\d.:eETZ+\-]++)(?!(?P=open))["'](?=\^\^))
    | {STRING}
    | <(?P<iri>{IRI})>
    | (?P<prefix>(?i:prefix)\s++xsd\s*+:)
    """,
    re.X | re.S,
)
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:").match
#: Plain words for the parser's messages on queries that are well formed and still wrong.
_REFUSED: Final = {
    "contains a variable that is unbound": "a variable of SELECT is bound nowhere, or is neither grouped by nor summed up",
    "SELECT * is not authorized with GROUP BY": "SELECT * does not go with GROUP BY: name the variables",
    "SELECT overrides an existing variable": "a variable that AS names in SELECT is bound already",
}
_AT: Final = re.compile(r"error at (\d+):(\d+): (.*)", re.S).match


@dataclass(frozen=True, slots=True)
class Translated:
    """A standard query, warnings, and offsets of its pieces: pairs of (offset in it, offset in the published text), in order."""

    text: str
    warnings: tuple[str, ...]
    places: tuple[tuple[int, int], ...]

    def offset(self, at: int) -> int:
        """Return the offset in the published text for one in the standard text."""
        here, there = next(((here, there) for there, here in reversed(self.places) if there <= at), (0, 0))
        return here + at - there


class Predicates:
    """The predicates and qualifier keys of a graph, by their form in the published queries."""

    def __init__(self, known: Iterable[str], names: GraphIris) -> None:
        self.names = names
        self.known = tuple(dict.fromkeys(known))
        self._written: dict[str, list[str]] = {}
        for name in self.known:
            self._written.setdefault(name.replace(" ", "_"), []).append(name)
            exact = names.predicate(name)[len(names.base) + 1 : -1]
            if exact != name.replace(" ", "_"):
                self._written.setdefault(exact, []).append(name)

    def iri(self, written: str, span: tuple[int, int], *, on_unknown: str) -> str:
        """Return the absolute IRI for a relative one; raises `UnknownNameError` or `AmbiguousNameError`."""
        matches = self._written.get(written, ())
        if len(matches) == 1:
            return self.names.predicate(matches[0])
        if matches:
            exact = ", ".join(self.names.predicate(name) for name in matches)
            raise errors.AmbiguousNameError(
                f"<{written}> can be any of {len(matches)} predicates", candidates=matches, span=span, hint=f"write {exact}"
            )
        name = written.replace("_", " ")
        if on_unknown == "error":
            raise errors.UnknownNameError("predicate", name, candidates=errors.nearest(name, self.known), span=span)
        return self.names.predicate(name)

    def has(self, written: str) -> bool:
        """Tell whether a predicate has this form."""
        return written in self._written


def translate(text: str, predicates: Predicates | None, *, on_unknown: str = "error") -> Translated:
    """Translate a published query into standard SPARQL.

    Raises `UnknownNameError` and `AmbiguousNameError` with the position in the text. Without predicates, names are not checked,
    which suffices to see whether the query is well formed.
    """
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    warnings: list[str] = []
    size = last = 0
    declared = False

    def put(piece: str, here: int) -> None:
        nonlocal size
        places.append((size, here))
        pieces.append(piece)
        size += len(piece)

    for match in _TOKEN.finditer(text):
        begin, end = match.span()
        declared |= match["prefix"] is not None
        changed: str | None = None
        if match["mixed"] is not None:
            changed = f'"{match["number"]}"'
            warnings.append(f"the quotes of {text[begin:end]} do not match; read as {changed}")
        elif match["iri"] is not None:
            changed = _iri(match["iri"], (begin, end), predicates, on_unknown)
        if changed is not None:
            put(text[last:begin], last)
            put(changed, begin)
            last = end
    put(text[last:], last)
    head = "" if declared else f"PREFIX xsd: <{XSD}> "
    moved = tuple((there + len(head), here) for there, here in places)
    return Translated(head + "".join(pieces), tuple(warnings), moved)


def _iri(iri: str, span: tuple[int, int], predicates: Predicates | None, on_unknown: str) -> str | None:
    """Return the replacement of an IRI; None if it stays."""
    if predicates is None:
        return None if _ABSOLUTE(iri) else f"<relative:{iri}>"
    if iri.startswith(PRED) and not predicates.has(iri):
        term = iri.removeprefix(PRED)
        if term not in TERMS:
            raise errors.UnknownNameError(
                "term of the vocabulary", iri, candidates=[PRED + name for name in errors.nearest(term, TERMS)], span=span
            )
        return None
    if not predicates.has(iri) and (_ABSOLUTE(iri) or not iri):
        return None
    return predicates.iri(iri, span, on_unknown=on_unknown)


def not_well_formed(error: SyntaxError, text: str, translated: Translated | None = None) -> errors.ParseError:
    """Turn a parser's error into `ParseError`, with the position in the query."""
    message = str(error.msg or error)
    wrong = mistake(text, (*PREFIXES, "xsd"))
    if wrong is not None:
        line, column = text.count("\n", 0, wrong.begin) + 1, wrong.begin - (text.rfind("\n", 0, wrong.begin) + 1) + 1
        return errors.ParseError(
            f"the query is not well formed at line {line}, column {column}: {wrong.message}", span=(wrong.begin, wrong.end)
        )
    match = _AT(message)
    if match is None:
        return errors.ParseError(f"the query is not well formed: {message}")
    parsed = text if translated is None else translated.text
    at = _offset(parsed, int(match[1]), int(match[2]))
    if translated is not None:
        at = min(translated.offset(at), len(text))
    end = min(at + 1, len(text))
    expected = " ".join(match[3].split())
    if "IRI parsing failed" in expected and (begin := text.rfind("<", 0, at)) >= 0:
        at, end = begin, at
        expected = f"{text[at:end].strip()[:80]} is not an IRI"
    elif refused := next((ours for phrase, ours in _REFUSED.items() if phrase in message), None):
        expected = refused
    elif at >= len(text.rstrip()):
        at, end, expected = _at_the_end(text.rstrip(), expected)
    elif len(expected) > 150:
        expected = "this is misplaced"
    at = max(at, 0)
    line, column = text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1
    return errors.ParseError(f"the query is not well formed at line {line}, column {column}: {expected}", span=(at, max(end, at)))


def _at_the_end(text: str, expected: str) -> tuple[int, int, str]:
    """Return the position and message of an error at the end of a query.

    Parsers read as far as they can: they report a superfluous closing bracket, or an earlier mistake, after the end.
    """
    size = len(text)
    if not text:
        return 0, 0, "the query is empty"
    if '"}"' in expected or text[-1] not in "})":
        return size, size, "the query ends too early"
    if text.count("}") > text.count("{") or text.count(")") > text.count("("):
        return size - 1, size, f"{text[-1]!r} cannot stand here"
    return size - 1, size, "something before this is missing or misplaced"


def _offset(text: str, line: int, column: int) -> int:
    lines = text.split("\n")
    return min(sum(len(item) + 1 for item in lines[: line - 1]) + column - 1, len(text))


# -- terms of results --------------------------------------------------------------------------------
# Turns the terms of a result into entities, predicates by name, and values, for a graph in the layout of
# `layout`.
#
# The name of a value's node contains the value, and cached ones need no query; the others are looked up
# in batches of some hundred.


_KINDS: Final = {name: kind for kind, name in ENTITY_CLASSES.items()}
#: Runs a query over the graph; returns results like pyoxigraph's `Store.query`.
Runs = Callable[[str], Any]
#: How a node is shown in any column, and in one called `p`, where it is more likely a predicate.
Cells = tuple[Any, Any]
#: Returns the meaning of a node by its IRI; None if a query is needed.
Knows = Callable[[str], Cells | None]
_TERMS: Final = (
    f"FILTER(?p IN (<{RDF}type>, <{RDFS}label>, "
    + ", ".join(f"<{PRED}{name}>" for name in ("name", "row", "value", "unit", "exact", "start", "end", "precision"))
    + "))"
)
_VALUES: Final = ("Text", "Quantity", "Time", "Unknown")


@dataclass(frozen=True, slots=True)
class Meaning:
    """How the meanings of nodes are looked up: from a cache, or by queries with lists of `list_length` (`VALUES` or `IN`)."""

    runs: Runs
    names: GraphIris
    list_length: int
    values: bool
    known: Knows | None


def plain(term: Any) -> Any:
    """Return a term as a Python value."""
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


def meanings(rows: list[tuple[Any, ...]], columns: Sequence[str], how: Meaning) -> tuple[list[tuple[Any, ...]], int]:
    """Turn rows of terms into rows of their meanings, without rows about the layout; also return how many were removed."""
    from pyoxigraph import NamedNode

    if not rows:
        return [], 0
    # By column, since most terms of a column are of one kind, and many are equal.
    terms = list(zip(*rows, strict=True))
    written = [[term.value if type(term) is NamedNode else None for term in column] for column in terms]
    iris_used = {iri for column in written for iri in column if iri is not None}
    meant = _cells_by_iri(iris_used, how)
    layout = {iri for iri in iris_used if iri.startswith(PRED)}
    read = []
    for name, iris, column in zip(columns, written, terms, strict=True):
        role = int(name == "p")
        if None in iris:
            pairs = zip(iris, column, strict=True)
            read.append([plain(term) if iri is None else meant[iri][role] for iri, term in watched(pairs)])
        else:
            read.append([meant[iri][role] for iri in watched(iris)])
    result = list(zip(*read, strict=True))
    if not layout:
        return result, 0
    kept = [row for row, *iris in zip(result, *written, strict=True) if layout.isdisjoint(iris)]
    return kept, len(result) - len(kept)


def _cells_by_iri(nodes: set[str], how: Meaning) -> dict[str | None, Cells]:
    """Return the meanings of nodes."""
    base, known, names = how.names.base, how.known, how.names
    meanings_by_iri: dict[str | None, Cells] = {}
    wanted: list[str] = []
    for iri in watched(nodes):
        if iri.startswith(base) and iri != base:
            cells = by_name(iri, names) if known is None else known(iri)
            if cells is None:
                wanted.append(iri)
            else:
                meanings_by_iri[iri] = cells
        else:
            meanings_by_iri[iri] = (Iri(iri),) * 2
    meanings_by_iri.update((iri, (Iri(iri),) * 2) for iri in wanted)
    meanings_by_iri.update(look_up(wanted, how))
    return meanings_by_iri


def look_up(wanted: Sequence[str], how: Meaning) -> dict[str, Cells]:
    """Return the meanings of nodes by queries, without those that the store does not have."""
    triples: dict[str, dict[str, str]] = {}
    for batch in cut(wanted, how.list_length):
        iris = [f"<{iri}>" for iri in batch]
        restriction = f"VALUES ?v {{ {' '.join(iris)} }}" if how.values else f"FILTER(?v IN ({', '.join(iris)}))"
        for row in watched(how.runs(f"SELECT ?v ?p (STR(?x) AS ?o) WHERE {{ {restriction} ?v ?p ?x . {_TERMS} }}")):
            name, value = row["p"].value.removeprefix(PRED), row["o"].value
            about = triples.setdefault(row["v"].value, {})
            if name == f"{RDF}type" and (kind := value.removeprefix(PRED)) in (*_KINDS, *_VALUES):
                about["type"] = kind
            else:
                about["label" if name == f"{RDFS}label" else name] = value
    return {iri: _cells_of(iri, about, how.names) for iri, about in triples.items()}


def by_name(iri: str, names: GraphIris) -> Cells | None:
    """Return the meaning of a node whose name tells it: a value, if the name is not a hash."""
    if not names.is_value(iri):
        return None
    try:
        value = value_named(iri[len(names.base) + len(VALUE) :])
    except (ValueError, ArithmeticError, LookupError):
        return None  # another application's IRI
    return None if value is None or names.value(value)[1:-1] != iri else (value, value)


def cells(iri: str, entity: Entity | None, label: str | None) -> Cells:
    """Return how a node is shown: an entity, a predicate with this name, both, or neither."""
    if entity is not None:
        return entity, entity if label is None else label
    thing = Iri(iri) if label is None else label
    return thing, thing


def _cells_of(iri: str, about: dict[str, str], names: GraphIris) -> Cells:
    if names.is_value(iri):
        return (exact_value(iri, about, names),) * 2
    kind, entity = _KINDS.get(about.get("type", "")), None
    if kind is not None and "name" in about:
        row = int(about.get("row", "0")) if kind is EntityKind.ROW else 0
        entity = Entity(names.name_of(iri), about["name"], kind, row)
    # The label of a predicate is its name; on entities and nodes of the layout it adds nothing.
    label = None if entity is not None and about.get("label") == about["name"] else about.get("label")
    return cells(iri, entity, None if iri.startswith(f"{names.base}.") else label)


# -- queries -----------------------------------------------------------------------------------------


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
    """Run a query and read its results. Relative IRIs are names of the graph; `limit` is the most rows (more: a warning).

    `known` returns the meaning of a node where that needs no query; the others are looked up in lists of `list_length`, as
    `VALUES` or, if the store is only fast with it, as `IN`.

    Raises `ParseError` with the position, `ReadOnlyError` for an update, `UnsupportedError` for SERVICE unless
    `federated`, and in the dialect of KQA Pro `UnknownNameError` and `AmbiguousNameError`.
    """
    if dialect not in DIALECTS:
        raise errors.OptionError(
            f"dialect is 'standard' or 'kqapro', not {dialect!r}", candidates=errors.nearest(dialect, DIALECTS)
        )
    check_bounds(None, limit, what="rows to give")
    _refuse(text, federated=federated)
    kqapro = dialect == "kqapro"
    # Names are relative to the graph's base unless the query declares another; on the first line, so that
    # lines keep their numbers.
    standard, warnings, translated = f"BASE <{names.base}> {undeclared(text)}{text}", [], None
    if kqapro:
        try:
            translated = translate(text, predicates_of(schema, names), on_unknown=on_unknown)
        except errors.CondgraphError:
            _check(text, names.base, translate(text, None))  # mistakes of syntax are reported first
            raise
        standard, warnings = translated.text, list(translated.warnings)
    if known is None or not kqapro:
        _check(text, names.base, translated)
    try:
        results = runs(standard)
    except SyntaxError as error:
        raise not_well_formed(error, text, translated) from None
    except errors.ParseError as error:
        if known is not None and kqapro:
            _check(text, names.base, translated)
        raise _placed(error, text, standard) from None
    if not hasattr(results, "__iter__"):
        return Table(("truth",), [], standard, bool(results), warnings)
    columns, terms = _rows(results)
    rows = list(watched(terms if limit is None else islice(terms, limit + 1)))
    if limit is not None and len(rows) > limit:
        rows = rows[:limit]
        warnings.append(f"there are more rows than are shown (limit {limit})")
    if not kqapro:
        return Table(columns, [tuple(map(plain, row)) for row in watched(rows)], standard, None, warnings)
    read, left_out = meanings(rows, columns, Meaning(runs, names, list_length, values, known))
    if left_out:
        warnings.append(
            f"{errors.numbered(left_out, 'row is', 'rows are')} about the layout (membership, for example) and left out"
        )
    return Table(columns, read, standard, None, warnings)


def _placed(error: errors.ParseError, text: str, sent: str) -> errors.ParseError:
    """Map an error of a query that was parsed elsewhere to the position in the original text."""
    before = len(sent) - len(text)
    span = None if error.span is None else (min(max(0, error.span[0] - before), len(text)), min(error.span[1], len(text)))
    return errors.ParseError(f"the query is not well formed: {error.message}", span=span)


def _refuse(text: str, *, federated: bool) -> None:
    """Raise the error of a query that must not be run."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise errors.ParseError("an unpaired surrogate is not text", span=(error.start, error.start + 1)) from None
    about = survey(text)
    if about.form == "update":
        raise errors.ReadOnlyError("the text is an update; a graph is changed by loading")
    if about.service and not federated:
        raise errors.UnsupportedError("the embedded store", ["SERVICE: queries of other endpoints"])


def _rows(found: Any) -> tuple[tuple[str, ...], Iterator[Any]]:
    """Return the columns of solutions or triples, and the terms of each row."""
    variables = getattr(found, "variables", None)
    if variables is None:
        return ("subject", "predicate", "object"), ((item.subject, item.predicate, item.object) for item in found)
    return columns_of([str(item) for item in variables]), (tuple(solution) for solution in found)


def predicates_of(schema: GraphKnowledge, names: GraphIris) -> Predicates:
    """Return the predicates of a graph by their form in published queries; built once for each schema."""
    known: Any = schema
    result: Predicates | None = known.kept.get("kqapro")
    if result is None or result.names.base != names.base:
        result = known.kept["kqapro"] = Predicates((*known.relations, *known.attributes, *known.qualifiers), names)
    return result


@cache
def _empty_store() -> Any:
    """Return an empty store."""
    from pyoxigraph import Store

    return Store()


def _check(text: str, base: str, translated: Translated | None) -> None:
    """Parse a query by running it on an empty store; raises `ParseError` with the position in the original text."""
    if is_heavy(text):
        # It is run and parsed in another process.
        return
    try:
        _empty_store().query(text if translated is None else translated.text, base_iri=base, prefixes=PREFIXES)
    except SyntaxError as error:
        raise not_well_formed(error, text, translated) from None
