"""Queries that people wrote, run read-only over a graph in the layout of `layout`, and their results
as a table.

`dialect="kqapro"` takes the queries that KQA Pro published and gives what its evaluation compares:
entities, predicates by name, value nodes as their values.
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
# `translate` makes standard SPARQL of them.
#
# The published queries name predicates by relative IRIs in which a space is an underscore
# (`<point_in_time>`), which is ambiguous; they use `xsd:` without declaring it, and some close a
# literal with another quote than they open it with (`"104072'^^xsd:double`). A relative IRI becomes
# the predicate of the graph that is written like it; one that fits several is an error that names
# them, one that fits none an unknown name. Other mistakes are reported with their position in the
# published text.


#: The terms of the vocabulary that the published queries use, and those that the layout adds.
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
#: The parser's messages for texts that are well formed and still wrong, in our words.
_REFUSED: Final = {
    "contains a variable that is unbound": "a variable of SELECT is bound nowhere, or is neither grouped by nor summed up",
    "SELECT * is not authorized with GROUP BY": "SELECT * does not go with GROUP BY: name the variables",
    "SELECT overrides an existing variable": "a variable that AS names in SELECT is bound already",
}
_AT: Final = re.compile(r"error at (\d+):(\d+): (.*)", re.S).match


@dataclass(frozen=True, slots=True)
class Translated:
    """A standard query, warnings, and the positions of its pieces: (offset in it, offset in the published
    text), in order.
    """

    text: str
    warnings: tuple[str, ...]
    places: tuple[tuple[int, int], ...]

    def offset(self, at: int) -> int:
        """The offset in the published text of an offset in the standard one."""
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
        """The absolute IRI of a relative one; raises `UnknownNameError` or `AmbiguousNameError`."""
        found = self._written.get(written, ())
        if len(found) == 1:
            return self.names.predicate(found[0])
        if found:
            exact = ", ".join(self.names.predicate(name) for name in found)
            raise errors.AmbiguousNameError(
                f"<{written}> can be any of {len(found)} predicates", candidates=found, span=span, hint=f"write {exact}"
            )
        name = written.replace("_", " ")
        if on_unknown == "error":
            raise errors.UnknownNameError("predicate", name, candidates=errors.nearest(name, self.known), span=span)
        return self.names.predicate(name)

    def has(self, written: str) -> bool:
        """Whether a predicate has this form."""
        return written in self._written


def translate(text: str, predicates: Predicates | None, *, on_unknown: str = "error") -> Translated:
    """A published query as standard SPARQL; raises `UnknownNameError` and `AmbiguousNameError` with
    the position in the text.

    Without predicates no name is checked, which is enough to see whether the query is well formed.
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

    for found in _TOKEN.finditer(text):
        begin, end = found.span()
        declared |= found["prefix"] is not None
        changed: str | None = None
        if found["mixed"] is not None:
            changed = f'"{found["number"]}"'
            warnings.append(f"the quotes of {text[begin:end]} do not match; read as {changed}")
        elif found["iri"] is not None:
            changed = _iri(found["iri"], (begin, end), predicates, on_unknown)
        if changed is not None:
            put(text[last:begin], last)
            put(changed, begin)
            last = end
    put(text[last:], last)
    head = "" if declared else f"PREFIX xsd: <{XSD}> "
    moved = tuple((there + len(head), here) for there, here in places)
    return Translated(head + "".join(pieces), tuple(warnings), moved)


def _iri(iri: str, span: tuple[int, int], predicates: Predicates | None, on_unknown: str) -> str | None:
    """The replacement of an IRI; None where it stays."""
    if predicates is None:
        return None if _ABSOLUTE(iri) else f"<relative:{iri}>"
    if iri.startswith(PRED) and not predicates.has(iri):
        term = iri.removeprefix(PRED)
        if term not in TERMS:
            raise errors.UnknownNameError(
                "term of the vocabulary", iri, candidates=[PRED + one for one in errors.nearest(term, TERMS)], span=span
            )
        return None
    if not predicates.has(iri) and (_ABSOLUTE(iri) or not iri):
        return None
    return predicates.iri(iri, span, on_unknown=on_unknown)


def not_well_formed(error: SyntaxError, text: str, translated: Translated | None = None) -> errors.ParseError:
    """A parser's error as one that says where in the text a query is not well formed."""
    message = str(error.msg or error)
    wrong = mistake(text, (*PREFIXES, "xsd"))
    if wrong is not None:
        line, column = text.count("\n", 0, wrong.begin) + 1, wrong.begin - (text.rfind("\n", 0, wrong.begin) + 1) + 1
        return errors.ParseError(
            f"the query is not well formed at line {line}, column {column}: {wrong.message}", span=(wrong.begin, wrong.end)
        )
    found = _AT(message)
    if found is None:
        return errors.ParseError(f"the query is not well formed: {message}")
    parsed = text if translated is None else translated.text
    at = _offset(parsed, int(found[1]), int(found[2]))
    if translated is not None:
        at = min(translated.offset(at), len(text))
    end = min(at + 1, len(text))
    expected = " ".join(found[3].split())
    if "IRI parsing failed" in expected and (begin := text.rfind("<", 0, at)) >= 0:
        at, end = begin, at
        expected = f"{text[at:end].strip()[:80]} is no IRI"
    elif refused := next((ours for phrase, ours in _REFUSED.items() if phrase in message), None):
        expected = refused
    elif at >= len(text.rstrip()):
        at, end, expected = _at_the_end(text.rstrip(), expected)
    elif len(expected) > 150:
        expected = "what stands here cannot stand here"
    at = max(at, 0)
    line, column = text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1
    return errors.ParseError(f"the query is not well formed at line {line}, column {column}: {expected}", span=(at, max(end, at)))


def _at_the_end(text: str, expected: str) -> tuple[int, int, str]:
    """The position and message of an error at the end of a text. Parsers read as far as they can: they
    report a superfluous closing bracket after it, and so a mistake before it.
    """
    size = len(text)
    if not text:
        return 0, 0, "the query is empty"
    if '"}"' in expected or text[-1] not in "})":
        return size, size, "the query ends too early"
    if text.count("}") > text.count("{") or text.count(")") > text.count("("):
        return size - 1, size, f"{text[-1]!r} cannot stand here"
    return size - 1, size, "something before this is missing, or cannot stand where it does"


def _offset(text: str, line: int, column: int) -> int:
    lines = text.split("\n")
    return min(sum(len(one) + 1 for one in lines[: line - 1]) + column - 1, len(text))


# -- terms of results --------------------------------------------------------------------------------
# What the terms of a result mean in a graph that was written as `layout` says: entities,
# predicates by name, values.
#
# The name of a value's node contains the value, and what else is known needs no query;
# the others are looked up, some hundred at once.


_KINDS: Final = {name: kind for kind, name in ENTITY_CLASSES.items()}
#: Runs a query over the graph; gives the results that pyoxigraph's `Store.query` gives.
Runs = Callable[[str], Any]
#: How a node is shown: in any column, and in one called `p`, where it more likely is a predicate.
Cells = tuple[Any, Any]
#: The meaning of a node by its IRI; None where it has to be queried.
Knows = Callable[[str], Cells | None]
_TERMS: Final = (
    f"FILTER(?p IN (<{RDF}type>, <{RDFS}label>, "
    + ", ".join(f"<{PRED}{name}>" for name in ("name", "row", "value", "unit", "exact", "start", "end", "precision"))
    + "))"
)
_VALUES: Final = ("Text", "Quantity", "Time", "Unknown")


@dataclass(frozen=True, slots=True)
class Meaning:
    """How the meanings of nodes are found: from what is known, or by queries with lists of `list_length`
    (`VALUES`, or else `IN`).
    """

    runs: Runs
    names: GraphIris
    list_length: int
    values: bool
    known: Knows | None


def plain(term: Any) -> Any:
    """A term as a Python value."""
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
    """Rows of terms as rows of their meanings, without those about the layout; the number of those."""
    from pyoxigraph import NamedNode

    if not rows:
        return [], 0
    # A column at a time: most terms of a column are of one kind, and many of them the same.
    terms = list(zip(*rows, strict=True))
    written = [[term.value if type(term) is NamedNode else None for term in column] for column in terms]
    every = {iri for column in written for iri in column if iri is not None}
    meant = _cells_by_iri(every, how)
    layout = {iri for iri in every if iri.startswith(PRED)}
    read = []
    for name, iris, column in zip(columns, written, terms, strict=True):
        which = int(name == "p")
        if None in iris:
            pairs = zip(iris, column, strict=True)
            read.append([plain(term) if iri is None else meant[iri][which] for iri, term in watched(pairs)])
        else:
            read.append([meant[iri][which] for iri in watched(iris)])
    found = list(zip(*read, strict=True))
    if not layout:
        return found, 0
    whole = [row for row, *iris in zip(found, *written, strict=True) if layout.isdisjoint(iris)]
    return whole, len(found) - len(whole)


def _cells_by_iri(nodes: set[str], how: Meaning) -> dict[str | None, Cells]:
    """The meanings of nodes."""
    base, known, names = how.names.base, how.known, how.names
    found: dict[str | None, Cells] = {}
    wanted: list[str] = []
    for iri in watched(nodes):
        if iri.startswith(base) and iri != base:
            cells = by_name(iri, names) if known is None else known(iri)
            if cells is None:
                wanted.append(iri)
            else:
                found[iri] = cells
        else:
            found[iri] = (Iri(iri),) * 2
    found.update((iri, (Iri(iri),) * 2) for iri in wanted)
    found.update(look_up(wanted, how))
    return found


def look_up(wanted: Sequence[str], how: Meaning) -> dict[str, Cells]:
    """The meanings of nodes of the graph, from the store; without those that it does not have."""
    triples: dict[str, dict[str, str]] = {}
    for some in cut(wanted, how.list_length):
        iris = [f"<{iri}>" for iri in some]
        among = f"VALUES ?v {{ {' '.join(iris)} }}" if how.values else f"FILTER(?v IN ({', '.join(iris)}))"
        for row in watched(how.runs(f"SELECT ?v ?p (STR(?x) AS ?o) WHERE {{ {among} ?v ?p ?x . {_TERMS} }}")):
            name, value = row["p"].value.removeprefix(PRED), row["o"].value
            about = triples.setdefault(row["v"].value, {})
            if name == f"{RDF}type" and (kind := value.removeprefix(PRED)) in (*_KINDS, *_VALUES):
                about["type"] = kind
            else:
                about["label" if name == f"{RDFS}label" else name] = value
    return {iri: _cells_of(iri, about, how.names) for iri, about in triples.items()}


def by_name(iri: str, names: GraphIris) -> Cells | None:
    """The meaning of a node that its name alone states: a value, where the name is not a hash."""
    if not names.is_value(iri):
        return None
    try:
        value = value_named(iri[len(names.base) + len(VALUE) :])
    except (ValueError, ArithmeticError, LookupError):
        return None  # somebody's own IRI
    return None if value is None or names.value(value)[1:-1] != iri else (value, value)


def cells(iri: str, entity: Entity | None, label: str | None) -> Cells:
    """How a node is shown that is an entity, or a predicate of this name, or both, or neither."""
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
    # A predicate has its name as its label; of an entity, and of the layout's nodes, it says no more
    # than they do themselves.
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
    """Run a query and read its results. Relative IRIs are names of the graph; `limit` is the most
    rows (more: a warning).

    `known` gives the meaning of a node of the graph, where that needs no query; the others are queried
    in lists of `list_length`, as `VALUES` or, where the store is quick at that alone, as `IN`.

    Raises `ParseError` with the place, `ReadOnlyError` for an update, `UnsupportedError` for
    SERVICE where the place is not `federated`, and in the dialect of KQA Pro `UnknownNameError` and
    `AmbiguousNameError`.
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
        found = runs(standard)
    except SyntaxError as error:
        raise not_well_formed(error, text, translated) from None
    except errors.ParseError as error:
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
        return Table(columns, [tuple(map(plain, row)) for row in watched(rows)], standard, None, warnings)
    read, left_out = meanings(rows, columns, Meaning(runs, names, list_length, values, known))
    if left_out:
        warnings.append(
            f"{errors.numbered(left_out, 'row is', 'rows are')} about the layout (membership, for example) and left out"
        )
    return Table(columns, read, standard, None, warnings)


def _placed(error: errors.ParseError, text: str, sent: str) -> errors.ParseError:
    """The error of a query that was parsed elsewhere, with the position in the text as it was written."""
    before = len(sent) - len(text)
    span = None if error.span is None else (min(max(0, error.span[0] - before), len(text)), min(error.span[1], len(text)))
    return errors.ParseError(f"the query is not well formed: {error.message}", span=span)


def _refuse(text: str, *, federated: bool) -> None:
    """Raise the error of a query that must not be run."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise errors.ParseError("half a surrogate pair is no text", span=(error.start, error.start + 1)) from None
    about = survey(text)
    if about.form == "update":
        raise errors.ReadOnlyError("the text is an update; a graph is changed by loading")
    if about.service and not federated:
        raise errors.UnsupportedError("the embedded store", ["SERVICE: queries of other endpoints"])


def _rows(found: Any) -> tuple[tuple[str, ...], Iterator[Any]]:
    """The columns of solutions or triples, and the terms of each row."""
    variables = getattr(found, "variables", None)
    if variables is None:
        return ("subject", "predicate", "object"), ((one.subject, one.predicate, one.object) for one in found)
    return columns_of([str(one) for one in variables]), (tuple(solution) for solution in found)


def predicates_of(schema: GraphKnowledge, names: GraphIris) -> Predicates:
    """The predicates of a graph by their form in published queries; made once for each schema."""
    known: Any = schema
    found: Predicates | None = known.kept.get("kqapro")
    if found is None or found.names.base != names.base:
        found = known.kept["kqapro"] = Predicates((*known.relations, *known.attributes, *known.qualifiers), names)
    return found


@cache
def _nothing() -> Any:
    """An empty store."""
    from pyoxigraph import Store

    return Store()


def _check(text: str, base: str, translated: Translated | None) -> None:
    """Parse a query by running it on an empty store; raises `ParseError` with the position in the text
    as it was written.
    """
    if is_heavy(text):
        # It runs in another process, and is parsed there.
        return
    try:
        _nothing().query(text if translated is None else translated.text, base_iri=base, prefixes=PREFIXES)
    except SyntaxError as error:
        raise not_well_formed(error, text, translated) from None
