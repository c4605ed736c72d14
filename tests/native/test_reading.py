"""Texts that are dates, guesses of names and readings, and mapping files, without a server."""

from __future__ import annotations

import contextlib
import tomllib
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from condgraph.cypher.native.file import applied, written
from condgraph.cypher.native.introspect import MAX_TEXT, PropertySample, name_of, read_as
from condgraph.cypher.native.mapping import Mapping, NodeType, Property, RelationshipType
from condgraph.cypher.native.schema import counts_of, survey_of
from condgraph.cypher.native.values import ISO_DATETIME, kinds_of, time_format, values_in
from condgraph.engine.errors import CondgraphError, OptionError, SourceError
from condgraph.engine.toml import read_file
from condgraph.engine.values import UNKNOWN, Kind, Quantity, Time
from condgraph.overview.schema import describe
from condgraph.remote_native import typed

# -- dates -----------------------------------------------------------------------------------------


@given(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31)), st.data())
def test_what_strptime_reads_is_read_the_same(moment: datetime, data: st.DataObject) -> None:
    form = data.draw(st.sampled_from(["%d/%m/%Y", "%Y-%m-%d", "%Y%m%d", "%d.%m.%Y %H:%M", "%B %d, %Y", "%d %b %Y", "%Y%m%d%H%M%S"]))
    text = moment.strftime(form.replace("%Y", f"{moment.year:04d}"))
    meant = datetime.strptime(text, form)
    found = time_format(form).read(text)
    assert found is not None
    assert found.start == Time.second(meant.year, meant.month, meant.day, meant.hour, meant.minute, meant.second).start


@given(st.text(alphabet="0123456789/-.: TZ+JanFebMrch", max_size=30))
def test_what_is_no_date_is_none(text: str) -> None:
    for form in ("%d/%m/%Y", "%Y-%m-%d", "%Y%m%d", "%d %b %Y"):
        found = time_format(form).read(text)
        if found is None:
            continue
        # What is read is a date to Python as well.
        meant = datetime.strptime(text, form)
        assert found == Time.day(meant.year, meant.month, meant.day)


@pytest.mark.parametrize("text", ["31/02/2017", "00/01/2017", "1/13/2017", "1/1/17", "1//1/2017", "", "x" * 10**6, "1/1/2017\n"])
def test_days_that_no_calendar_has_are_none(text: str) -> None:
    assert time_format("%d/%m/%Y").read(text) is None


def test_moments_have_fractions_and_zones() -> None:
    form = time_format(ISO_DATETIME, moment=True)
    assert form.read("2015-06-24T12:50:35.556+01:00") == Time.second(2015, 6, 24, 11, 50, 35)
    assert form.read("2015-06-24 12:50") == Time.second(2015, 6, 24, 12, 50)
    assert form.read("2015-06-24T12:50:35-0130") == Time.second(2015, 6, 24, 14, 20, 35)
    assert form.read("2015-06-24") is None


@pytest.mark.parametrize("form", ["%d/%m", "%Y-%q", "%Y %H", "%Y-%d", "%Y%B", "%d %b %Y %m", "%Y-%Y", "", "%Yé%m"])
def test_formats_that_say_no_date_are_refused(form: str) -> None:
    with pytest.raises(OptionError):
        time_format(form)


def test_a_format_may_leave_parts_out() -> None:
    year, month = time_format("%Y").read("1999"), time_format("%m/%Y").read("2/1999")
    assert (year, month) == (Time.year(1999), Time.month(1999, 2))
    midnight = time_format("%Y-%m-%d 00:00:00.000").read("1996-07-04 00:00:00.000")
    assert midnight == Time.day(1996, 7, 4)


# -- values ----------------------------------------------------------------------------------------


def _values(found: list[Any], reading: str = "itself", form: str | None = None) -> list[Any]:
    return values_in(found, Property("k", "k", (), 1, reading, form))  # type: ignore[arg-type]


def test_values_and_their_raw_texts() -> None:
    assert _values([None, 2**53 + 1, None]) == [(Quantity(2**53 + 1), None)]
    assert _values([None, [1, 1, 2], None]) == [(Quantity(1), None), (Quantity(2), None)]
    assert _values([None, [], None]) == []
    assert _values([None, float("-inf"), None]) == [("-Infinity", None)]
    assert _values([None, True, None]) == [("true", None)]
    assert _values([None, "1.50", None], "number") == [(Quantity(1.5), "1.50")]
    assert _values([None, "007", None], "number") == [("007", None)]
    assert _values([None, 1999, None], "date", "%Y") == [(Time.year(1999), None)]
    assert _values(["ZONED DATETIME NOT NULL", None, "2020-01-01T01:00+02:00[Africa/Cairo]"]) == [
        (Time.second(2019, 12, 31, 23, 0), "2020-01-01T01:00+02:00[Africa/Cairo]")
    ]
    assert _values(["ZONED TIME NOT NULL", None, "01:00:00+02:00"]) == [(Quantity(82_800, "second of the day"), "01:00:00+02:00")]
    assert _values(["DURATION NOT NULL", None, "PT-0.5S"]) == [(Quantity(-0.5, "second"), "PT-0.5S")]
    assert _values(["DURATION NOT NULL", None, "P1Y2M"]) == [(Quantity(14, "month"), "P1Y2M")]
    assert _values(["DURATION NOT NULL", None, "P1M1D"]) == [("P1M1D", None)]
    assert _values(["LIST<DATE NOT NULL> NOT NULL", ["DATE NOT NULL"], ["2020-01-01"]]) == [(Time.day(2020, 1, 1), None)]
    assert _values(["VECTOR<FLOAT32 NOT NULL>(2) NOT NULL", None, None]) == [(UNKNOWN, None)]
    opaque = Property("k", "k", (("BYTES", 1),), 1)
    assert values_in([None, b"ab", None], opaque) == [(UNKNOWN, None)] == values_in([None, [1, 2], None], opaque)
    ended = Property("k", "k", (("DATE", 1),), 1, excluded=True)
    assert values_in(["DATE NOT NULL", None, "2020-01-01"], ended) == [(Time.day(2019, 12, 31), None)]
    years = Property("k", "k", (("STRING", 1),), 1, "date", "%Y", excluded=True)
    assert values_in([None, "1984", None], years) == [(Time.second(1983, 12, 31, 23, 59, 59), None)]
    assert values_in([None, "sold", None], years) == [("sold", None)]


def test_kinds_of_what_was_sampled() -> None:
    mixed = Property("k", "k", (("INTEGER", 2), ("LIST<STRING NOT NULL>", 3), ("DATE", 1)), 9)
    assert kinds_of(mixed) == {(Kind.QUANTITY, "1"): 2, (Kind.TEXT, "1"): 3, (Kind.TIME, "1"): 1}
    assert kinds_of(Property("k", "k", (("STRING", 2),), 2, "number")) == {(Kind.QUANTITY, "1"): 2}


# -- names -----------------------------------------------------------------------------------------


def _seen(key: str, texts: list[str], held: int | None = None, sampled: int = 100, kind: str = "STRING") -> PropertySample:
    return PropertySample(
        key, sampled, ((kind, sampled if held is None else held),), tuple(dict.fromkeys(texts)), (), len(set(texts))
    )


_MANY = [f"word {n}" for n in range(100)]
_FEW = ["red", "green"]


@pytest.mark.parametrize(
    ("label", "seen", "name"),
    [
        ("Person", [_seen("name", _MANY), _seen("title", _FEW)], ("name",)),
        ("Movie", [_seen("tagline", _MANY), _seen("title", _MANY)], ("title",)),
        ("Product", [_seen("productName", _MANY), _seen("name", _FEW)], ("productName",)),
        ("Order", [_seen("shipName", _FEW), _seen("status", _FEW)], ()),
        ("Customer", [_seen("contactName", _MANY), _seen("companyName", _MANY)], ("companyName",)),
        ("Person", [_seen("name", _MANY[:40]), _seen("surname", _MANY[:60])], ("name", "surname")),
        ("Employee", [_seen("firstName", _MANY[:9]), _seen("lastName", _MANY[:9])], ("firstName", "lastName")),
        ("Vehicle", [_seen("type", _FEW), _seen("time", _MANY)], ()),
        ("Thing", [_seen("name", _FEW)], ()),
        ("Page", [_seen("name", [f"https://a.b/{n}" for n in range(100)])], ()),
        ("Post", [_seen("title", ["x" * MAX_TEXT + str(n) for n in range(100)])], ()),
        ("Rare", [_seen("name", _MANY[:20], held=20)], ()),
        ("Number", [_seen("name", [], kind="INTEGER")], ()),
    ],
)
def test_names_tell_nodes_apart_and_are_their_own(label: str, seen: list[PropertySample], name: tuple[str, ...]) -> None:
    assert name_of(label, seen, "key")[0] == name


_PLACES = [f"Place of {n}" for n in range(100)]
_CODES = [f"{chr(65 + n // 26)}{chr(65 + n % 26)}" for n in range(100)]
_HASHES = [f"{n * 7919:064x}" for n in range(100)]


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        ([_seen("code", _CODES), _seen("desc", _PLACES), _seen("city", _MANY)], ("desc",)),
        ([_seen("code", _CODES), _seen("town", _PLACES)], ("town",)),
        ([_seen("make", _FEW), _seen("reg", _CODES), _seen("year", [str(1900 + n) for n in range(100)])], ("reg",)),
        ([_seen("rdfs__label", _MANY), _seen("desc", _PLACES)], ("rdfs__label",)),
        ([_seen("skos__prefLabel", _MANY)], ("skos__prefLabel",)),
        ([_seen("id", _HASHES), _seen("date", [f"2017-01-{n:02d}" for n in range(1, 100)])], ()),
        ([_seen("phone", [f"(0) {n} 55" for n in range(100)]), _seen("password", _CODES)], ()),
        ([_seen("note", _PLACES, held=50)], ()),
        ([_seen("desc", ["x" * 90 + str(n) for n in range(100)])], ()),
    ],
)
def test_without_a_key_a_short_text_that_tells_apart_names_nodes(seen: list[PropertySample], name: tuple[str, ...]) -> None:
    assert name_of("Country", seen, None)[0] == name
    # The label with a stable key is better than a text that is no name.
    assert name_of("Country", seen, "key")[0] == (name if "__" in "".join(name) else ())


@pytest.mark.parametrize(
    ("key", "texts", "reading", "form"),
    [
        ("price", ["18.00", "9.5", "-3"], "number", None),
        ("zip", ["02139", "10001"], "itself", None),
        ("born", ["7/08/2017", "31/12/1999"], "date", "%d/%m/%Y"),
        ("when", ["08/31/2017", "12/31/1999"], "date", "%m/%d/%Y"),
        ("day", ["2017-01-31", "1999-12-31"], "date", None),
        ("at", ["2015-06-24T12:50:35Z", "2015-06-24T12:50:36.5+01:00"], "datetime", None),
        ("mixed", ["18.00", "n/a"], "itself", None),
        ("day", ["2017-01-31", ""], "itself", None),
        ("day", ["2017-02-31", "2017-01-31"], "itself", None),
        ("height", ["180 cm", "170 cm"], "itself", None),
        ("word", ["a  b", "c"], "itself", None),
        ("large", ["123456789012345678901", "2"], "itself", None),
    ],
)
def test_text_is_typed_where_all_of_it_can_be(key: str, texts: list[str], reading: str, form: str | None) -> None:
    found, reason = read_as(Property(key, key, (("STRING", len(texts)),), len(texts)), texts, typed)
    assert (found.reading, found.format) == (reading, form)
    assert (reason is not None) == (reading != "itself")
    assert found.untidy == any("  " in text for text in texts)


# -- mapping files ---------------------------------------------------------------------------------

_TEXTS = {
    ("node", "Person", "born"): ("7/08/2017", "31/12/1999"),
    ("relationship", "WORKS", "since"): ("1999", "2004"),
    ("relationship", "WORKS", "till"): (),
}


def _mapping() -> Mapping:
    person = NodeType(
        *("Person", "Person", 4, ("name",), "ssn"),
        (
            Property("born", "born", (("STRING", 4),), 4, "date", "%d/%m/%Y"),
            Property("name", "name", (("STRING", 4),), 4),
            Property("photo", "photo", (("BYTES", 1),), 4),
            Property("ssn", "ssn", (("STRING", 4),), 4, indexed=True),
            Property("surname", "surname", (("STRING", 3),), 4),
        ),
        ("photo",),
    )
    works = RelationshipType(
        *("WORKS", "WORKS", 3, (("Person", 'odd "`\n\x7f label', 3),)),
        (
            Property("role", "role", (("LIST<STRING NOT NULL>", 3),), 3),
            Property("since", "since", (("INTEGER", 3),), 3),
            Property("till", "till", (("DATE", 3),), 3),
        ),
    )
    odd = NodeType('odd "`\n\x7f label', 'odd "`\n\x7f label', 2, (), None, (Property("a\tb.c", "a\tb.c", (("FLOAT", 2),), 2),))
    return Mapping((person, odd, NodeType("", "", 1)), (works,), 7, 3, 1, "m", {"node.Person.name": "it is\nits name"})


def _apply(text: str, shared: bool = False) -> Mapping:
    return applied(tomllib.loads(text), _mapping(), _TEXTS, lambda label, key: shared)


def test_a_written_file_says_the_same() -> None:
    guess = _mapping()
    text = written(guess, "bolt://somewhere:7687")
    found = applied(tomllib.loads(text), guess, _TEXTS, lambda label, key: True)
    assert replace(found, reasons={}) == replace(guess, reasons={})
    assert "# it is its name" in text


def test_each_key_of_a_file_is_optional_and_holds() -> None:
    found = _apply(
        """
        [node.Person]
        concept = "person"
        name = ["name", "surname"]
        hide = []
        [node.Person.property.born]
        predicate = "date of birth"
        [relationship.WORKS]
        predicate = "works for"
        qualifiers = { role = "position" }
        times = "[since, till]"
        [relationship.WORKS.property.since]
        as = "date"
        format = "%Y"
        """
    )
    person, works = found.nodes[0], found.relationships[0]
    assert (person.concept, person.name, person.hidden, person.unique) == ("person", ("name", "surname"), (), "ssn")
    assert (person.properties[0].predicate, person.properties[0].format) == ("date of birth", "%d/%m/%Y")
    assert (works.predicate, works.start, works.end) == ("works for", "since", "till")
    assert [(one.predicate, one.reading) for one in works.qualifiers] == [
        ("position", "itself"),
        ("since", "date"),
        ("till", "itself"),
    ]
    assert _apply("") == _mapping()


@pytest.mark.parametrize(
    ("text", "message", "nearest"),
    [
        ("[node.Persn]", "no nodes with the label 'Persn'", "Person"),
        ("[relationship.WORK]", "no relationships of the type 'WORK'", "WORKS"),
        ("[node.Person]\nname = 'surnam'", "no property 'surnam'", "surname"),
        ("[node.Person]\nid = 'ssm'", "no property 'ssm'", "ssn"),
        ("[node.Person]\nhide = ['phto']", "no property 'phto'", "photo"),
        ("[node.Person.property.bron]\nas = 'date'", "no property 'bron'", "born"),
        ("[node.Person]\nnmae = 'x'", "no key 'nmae'", "name"),
        ("[nodes.Person]", "no key 'nodes'", "node"),
        ("[node.Person.property.born]\nas = 'dates'", "as is one of", "date"),
        ("[relationship.WORKS]\nqualifiers = { rol = 'x' }", "no property 'rol'", "role"),
        ("[relationship.WORKS]\ntimes = '[sinc, ]'", "no property 'sinc'", "since"),
    ],
)
def test_names_that_are_not_there_come_with_the_nearest(text: str, message: str, nearest: str) -> None:
    with pytest.raises(OptionError) as raised:
        _apply(text)
    assert message in raised.value.message
    assert nearest in raised.value.candidates


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[node.Person.property.born]\nas = 'date'\nformat = '%Y-%m-%d'", "reads none of the 2"),
        ("[node.Person.property.born]\nas = 'number'", "reads none of the 2"),
        ("[node.Person.property.photo]\nas = 'date'", "is BYTES"),
        ("[node.Person.property.born]\nas = 'number'\nformat = '%Y'", "format needs as"),
        ("[node.Person]\nid = 'surname'", "two nodes of 'Person' have the same 'surname'"),
        ("[relationship.WORKS]\ntimes = '[since, ]'", "is not a time but INTEGER"),
        ("[relationship.WORKS]\ntimes = '[till, till]'", "both from when and until when"),
        ("[relationship.WORKS]\ntimes = '[till, ]'\nqualifiers = { role = 'end time' }", "called 'end time' as well"),
        ("[node.Person]\nname = 5", "is a list of different texts"),
        ("[node.Person]\nconcept = ' '", "is a text"),
        ("node = 5", "is a table"),
        ("[node]\nPerson = 5", "is a table"),
        ("[relationship.WORKS]\nqualifiers = 3", "is a table"),
        ("[relationship.WORKS]\nqualifiers = { role = 3 }", "is a text"),
    ],
)
def test_what_a_file_cannot_mean_is_an_error(text: str, message: str) -> None:
    with pytest.raises(OptionError) as raised:
        _apply(text, shared=True)
    assert message in str(raised.value)


_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["Person", "property", "name", "as", "born"]), inner)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["node", "relationship", "x"]), _PLAIN))
def test_any_table_is_read_or_refused(found: dict[str, Any]) -> None:
    with contextlib.suppress(CondgraphError):
        applied(found, _mapping(), _TEXTS, lambda label, key: False)


def test_files_that_cannot_be_read(tmp_path: Any) -> None:
    with pytest.raises(SourceError):
        read_file(tmp_path / "none.toml")
    for name, data in (("a", b"[node"), ("b", b"\xff\xfe"), ("c", b"a = " + b"[" * 100_000), ("d", b"#" * (5 * 2**20))):
        place = tmp_path / name
        place.write_bytes(data)
        with pytest.raises(OptionError):
            read_file(place)


# -- surveys ---------------------------------------------------------------------------------------


def test_the_survey_of_a_mapping_says_what_is_counted() -> None:
    mapping = _apply("[relationship.WORKS]\ntimes = '[, till]'")
    schema = describe(survey_of(mapping))
    assert schema.counts["entities"] == 7
    assert counts_of(mapping)["attributes"] == 4 + 4 + 4 + 3 + 2
    by_name = {one.name: one for one in schema.predicates}
    assert by_name["WORKS"].relations == 3
    assert "end time" in {one.name for one in by_name["WORKS"].qualifiers}
    assert "photo" not in by_name
    assert "sample" in schema.note
    assert by_name["born"].values[0].type == "time"
