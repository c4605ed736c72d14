"""The representation of a graph as RDF, shared by the writer, the reader and the compiler.

It is KQA Pro's layout, with absolute IRIs. BASE is the graph's own IRI (`base_iri`), followed by a name as
`encode` writes it.

    entity     BASE id                a pred:Entity | pred:Concept | pred:Row; pred:name "..."; of a row pred:source, pred:row n,
                                      and its position among the rows of its source pred:position n
                                      pred:declared "JSON" if it differs from what the first source declares
    membership BASE id                pred:instance_of <concept>: closed under subclass, entities and rows only
    concept    BASE id                pred:subclass_of <concept>
    direct     <entity> <predicate> <object>: every statement, its object an entity or a value node
    statement  BASE .s/ sid           pred:fact_h <subject>; pred:fact_r <predicate>; pred:fact_t <object>; <qualifier key> <value>;
                                      pred:source <source>; pred:row n; pred:raw "..."; pred:raws "JSON"
                                      if its places write it in several ways; pred:valid_start n; pred:valid_end n
    value      BASE .v/ value         a pred:Text; pred:value "..."
                                      a pred:Quantity; pred:value 1.5e0; pred:unit "metre" ("1" for none); pred:exact, pred:order
                                      a pred:Time; pred:start n; pred:end n; pred:precision n; pred:year n; pred:date d
                                      a pred:Unknown
    source     BASE .source/ name     a pred:Source; pred:label; pred:location; pred:format; pred:content; pred:terms; pred:place n
    record     BASE .r/ sid.n         pred:source, pred:row: each place of a statement with several places, by pred:record
    member     BASE .m/ hash          a pred:Membership; pred:member; pred:concept; pred:source; pred:row: as stated
    subclass   BASE .c/ hash          a pred:Subclassing; pred:subclass; pred:superclass; pred:source; pred:row
    graph      BASE                   a pred:Graph; pred:label; pred:layout n; pred:counts "JSON"

`sid` is the hash of a statement's content (`engine.identity`), in 16 hexadecimal digits. The name of a value node contains
its value (`value_name`), or its hash if it is long, so that equal values are one node, which can be read without a query. A
statement whose object or qualifier is a value is identified by its statement node. `pred:year` and `pred:date` are set for
times within one year or one day. Bounds of times are seconds from 1970-01-01, xsd:integer; open and unknown bounds are the
numbers in `engine.values`. `pred:exact` holds the digits of a number that a double would lose; in a graph with such numbers,
every quantity has `pred:order`, the number as text that sorts by size.

All triples of a graph are in the named graph BASE; a source is a node and no graph of its own, since a statement may have
several sources.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from condgraph.engine import iris, values
from condgraph.engine.errors import OptionError
from condgraph.engine.facts import EntityKind
from condgraph.engine.values import FormedText, formed

if TYPE_CHECKING:
    from collections.abc import Iterable


# -- literals ----------------------------------------------------------------------------------------
# Texts, numbers and times in the lexical forms of N-Triples and SPARQL, and reading numbers back.


_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"})
#: Eight digits: rdflib reads eight after `\\u` as well as after `\\U`.
_CONTROL: Final = {i: f"\\U{i:08X}" for i in (*range(8), 11, *range(14, 32), 127)}
_TABLE: Final = {**_ESCAPES, **_CONTROL}
_BEFORE_U: Final = re.compile(r"(?<=\\)(?=[uU])")


def string(text: str) -> str:
    """Return a plain literal for N-Triples and SPARQL.

    >>> string('say "a\\\\b"')
    '"say \\\\"a\\\\\\\\b\\\\""'
    """
    if "\\" not in text:
        return f'"{text.translate(_TABLE)}"'
    # A backslash before a "u" would be written as two, and stores that resolve `\\u` before they read a
    # query (SPARQL 1.1, section 19.2) take the second one with the "u" for an escape: so the "u" is
    # written as an escape.
    first, *parts = _BEFORE_U.split(text)
    written = first.translate(_TABLE) + "".join(f"\\U{ord(part[0]):08X}{part[1:].translate(_TABLE)}" for part in parts)
    return f'"{written}"'


def integer(number: int) -> str:
    return f'"{number}"^^<{iris.XSD}integer>'


def double(number: values.Number) -> str:
    """Return the nearest xsd:double."""
    nearest = iris.nearest_double(number)
    text = {float("inf"): "INF", float("-inf"): "-INF"}.get(nearest) or repr(nearest)
    return f'"{text}"^^<{iris.XSD}double>'


# -- numbers ---------------------------------------------------------------------------------------


def inexact(number: values.Number) -> bool:
    """Tell whether a double would lose digits of a number; a float stands for its shortest text."""
    if isinstance(number, float):
        return False
    try:
        nearest = float(number)
    except OverflowError:
        return True
    exact: bool = Decimal(repr(nearest)) == number if isinstance(number, Decimal) else int(nearest) == number
    return not exact


def order_text(number: values.Number) -> str:
    """Return a number as text that sorts by size, by code points.

    >>> sorted([2, -1, 10, Decimal("-1.5"), 0], key=order_text) == [Decimal("-1.5"), -1, 0, 2, 10]
    True
    """
    exact = Decimal(values.format_number(number))
    if not exact:
        return "1"
    sign, digits, _ = exact.as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    key = f"{exact.adjusted() + 50_000:05d}{text}"
    if not sign:
        return "2" + key
    # For negative numbers, the order is reversed: digits are inverted, and the shorter text is the larger
    # number.
    return "0" + "".join(str(9 - int(c)) for c in key) + "~"


def read_number(double_text: str, exact: str | None = None) -> values.Number:
    """Return the number of a quantity from its double and, if there is one, its exact text."""
    if exact is not None:
        return values.parse_number(exact)
    number = float(double_text)
    return int(number) if number.is_integer() else number


# -- names and values --------------------------------------------------------------------------------


#: Increased if triples of an older version would be misread.
LAYOUT: Final = 2
TYPE: Final = f"<{iris.RDF}type>"
LABEL: Final = f"<{iris.RDFS}label>"

#: Classes of entities, by kind.
ENTITY_CLASSES: Final = {EntityKind.ENTITY: "Entity", EntityKind.CONCEPT: "Concept", EntityKind.ROW: "Row"}
STATEMENT, SOURCE, RECORD, MEMBER, SUBCLASS = ".s/", ".source/", ".r/", ".m/", ".c/"


def base_iri(graph: str, namespace: str = iris.NAMESPACE) -> str:
    """Return the IRI of a graph, which is also the prefix of its names and its named graph.

    >>> base_iri("default"), base_iri("my films")
    ('http://condgraph.example/default/', 'http://condgraph.example/my_films/')
    """
    return f"{namespace}{iris.encode(graph).replace('/', '%2F')}/"


def predicted_graph(base: str) -> str:
    """Return the named graph with the predicted edges of a graph (`Graph.write_predictions`)."""
    return f"{base}.predicted/"


def checked_base(base: str) -> str:
    """Check a user's base: an absolute IRI that ends with a slash."""
    scheme, colon, path = base.partition("://")
    if not colon or not scheme.isalnum() or not path.endswith("/") or any(c in '<>"{}|^`\\' or c <= " " for c in base):
        raise OptionError(
            f"{base!r} is not a base IRI", hint="an absolute IRI that ends with '/', such as http://example.org/films/"
        )
    return base


class GraphIris:
    """The IRIs of one graph, in angle brackets as in N-Triples and SPARQL."""

    __slots__ = ("base",)

    def __init__(self, base: str) -> None:
        self.base = checked_base(base)

    @property
    def graph(self) -> str:
        """The graph itself, which is also its named graph."""
        return f"<{self.base}>"

    def entity(self, ident: str) -> str:
        """Return an entity by its id."""
        return f"<{self.base}{iris.encode(ident)}>"

    def predicate(self, name: str) -> str:
        """Return a predicate or qualifier key by its name."""
        return f"<{self.base}{iris.encode(name)}>"

    def statement(self, sid: int) -> str:
        """Return a statement by the hash of its content."""
        return f"<{self.base}{STATEMENT}{sid & 0xFFFF_FFFF_FFFF_FFFF:016x}>"

    def value(self, value: values.Value) -> str:
        """Return the node of a value."""
        return f"<{self.base}{iris.VALUE}{iris.value_name(value)}>"

    def source(self, name: str) -> str:
        """Return a source by its name."""
        return f"<{self.base}{SOURCE}{iris.encode(name)}>"

    def stated(self, kind: str, *parts: str | int) -> str:
        """Return a stated membership (`MEMBER`) or subclass (`SUBCLASS`) by its parts."""
        return f"<{self.base}{kind}{iris.hashed(chr(0).join(map(str, parts)))}>"

    # -- back from IRIs, without brackets ----------------------------------------------------------

    def name_of(self, iri: str) -> str:
        """Return the id of an entity, or the name of a predicate."""
        return iris.decode(iri[len(self.base) :])

    def sid_of(self, iri: str) -> int:
        """Return the hash of a statement's content."""
        number = int(iri[len(self.base) + len(STATEMENT) :], 16)
        return number - (1 << 64) if number >> 63 else number

    def source_of(self, iri: str) -> str:
        """Return the name of a source."""
        return iris.decode(iri[len(self.base) + len(SOURCE) :])

    def is_value(self, iri: str) -> bool:
        return iri.startswith(self.base + iris.VALUE)


def pred(name: str) -> str:
    """Return a term of the vocabulary: `pred("fact_h")` is `<pred:fact_h>`."""
    return f"<{iris.PRED}{name}>"


# -- values ----------------------------------------------------------------------------------------


def value_triples(node: str, value: values.Value, *, ordered: bool = False) -> Iterable[str]:
    """Yield the triples of a value node: `subject predicate object` without the final dot. `ordered` adds `pred:order`."""
    if isinstance(value, str):
        yield f"{node} {TYPE} <pred:Text>"
        yield f"{node} <pred:value> {string(value)}"
        if isinstance(value, FormedText):
            yield f"{node} <pred:unit> {string(value.form)}"
    elif isinstance(value, values.Quantity):
        yield f"{node} {TYPE} <pred:Quantity>"
        yield f"{node} <pred:value> {double(value.number)}"
        yield f"{node} <pred:unit> {string(value.unit)}"
        if inexact(value.number):
            yield f"{node} <pred:exact> {string(values.format_number(value.number))}"
        if ordered:
            yield f"{node} <pred:order> {string(order_text(value.number))}"
    elif isinstance(value, values.Time):
        yield f"{node} {TYPE} <pred:Time>"
        yield f"{node} <pred:start> {integer(value.start)}"
        yield f"{node} <pred:end> {integer(value.end)}"
        yield f"{node} <pred:precision> {integer(int(value.precision))}"
        year, date = iris.year_of(value), iris.date_of(value)
        if year is not None:
            yield f"{node} <pred:year> {integer(year)}"
        if date is not None:
            yield f'{node} <pred:date> "{date}"^^<{iris.XSD}date>'
    else:
        yield f"{node} {TYPE} <pred:Unknown>"


def read_value(found: dict[str, str]) -> values.Value:
    """Return a value from the lexical forms of its node's triples: "type" (the class), and terms of the vocabulary.

    >>> read_value({"type": "Quantity", "value": "1.5E0", "unit": "metre"})
    Quantity(number=1.5, unit='metre')
    """
    kind = found["type"]
    if kind == "Text":
        return formed(found["value"], found.get("unit"))
    if kind == "Quantity":
        return values.Quantity(read_number(found["value"], found.get("exact")), found["unit"])
    if kind == "Time":
        return values.Time(int(found["start"]), int(found["end"]), values.Precision(int(found["precision"])))
    unknown: values.Unknown = values.UNKNOWN
    return unknown


def exactly(value: values.Value, wanted: str) -> values.Value:
    """Return a quantity as encoded in its node's name, since some stores print fewer digits of a double than it has."""
    named = iris.value_named(wanted) if isinstance(value, values.Quantity) else None
    if named is None or not isinstance(value, values.Quantity) or not isinstance(named, values.Quantity):
        return value
    read, wrote = iris.nearest_double(value.number), iris.nearest_double(named.number)
    # The largest doubles come back as infinity.
    close = math.isclose(read, wrote, rel_tol=1e-14) or (math.isinf(read) and abs(wrote) > 1e307 and (read > 0) == (wrote > 0))
    return named if close else value
