"""Small rules of the engine at the places where they turn: operands, writers that have ended, what is
said of a difference, where there is something else instead. Changes of one operator lived there.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import signal
import socket
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import condgraph
import condgraph.engine
from condgraph.engine.check import _SHOWN, _difference, built
from condgraph.engine.facts import Entity, EntityKind, Member, Numbers
from condgraph.engine.functions import extract
from condgraph.engine.operands import Inapplicable, Operand, alike, measure_of, number_in, plain, unit_of_product, year_of
from condgraph.engine.owner import NOBODY, SILENT, Owner
from condgraph.engine.snapshot.cells import encode_column
from condgraph.engine.snapshot.directory import _locked
from condgraph.engine.values import MAX_DIGITS, NO_UNIT, OPEN_START, Precision, Quantity, Time


def test_equal_texts_are_one_value() -> None:
    twice = Operand([1, 1], ["1", "1"], [])
    assert twice.one("abs") == 1
    assert twice.measures("sum") == [Quantity(1)]
    with pytest.raises(Inapplicable, match=r"^abs takes one value, not 2$"):
        Operand([1, 2], ["1", "2"], []).one("abs")
    with pytest.raises(Inapplicable, match=r"^abs needs a value, and there is none$"):
        Operand([], [], []).one("abs")


def test_numbers_in_texts_are_said() -> None:
    remarks: list[str] = []
    assert Operand(["about −1,234.5 m"], ["about −1,234.5 m"], remarks).measure("abs") == Quantity(-1234.5)
    assert remarks == ["abs: 'about −1,234.5 m' is read as -1,234.5"]
    with pytest.raises(Inapplicable, match="is neither a number nor a time"):
        Operand(["a1"], ["a1"], []).measure("abs")
    assert (measure_of(True), measure_of(False), measure_of("1")) == (Quantity(1), Quantity(0), None)


def test_numbers_have_so_many_digits_and_no_more() -> None:
    assert number_in("9" * MAX_DIGITS) == 10**MAX_DIGITS - 1
    assert number_in("+1,000") == 1000
    # A float would be infinite.
    assert number_in("9" * 400 + ".5") == Decimal("9" * 400 + ".5")
    with pytest.raises(Inapplicable, match=r"not a number$"):
        number_in("9" * (MAX_DIGITS + 1))
    for sign in (1, -1):
        assert plain(Fraction(sign * (10**MAX_DIGITS - 1))) == sign * (10**MAX_DIGITS - 1)
        with pytest.raises(Inapplicable, match="more than"):
            plain(Fraction(sign * 10**MAX_DIGITS))


def test_a_time_without_a_start_has_no_year() -> None:
    assert year_of(Time(OPEN_START + 86_400, OPEN_START + 2 * 86_400, Precision.DAY)) < 0
    with pytest.raises(Inapplicable, match="has no start"):
        year_of(Time(OPEN_START, 0, Precision.DAY))


def test_units_of_two_quantities() -> None:
    one, two = Quantity(1, "km"), Quantity(2)
    assert alike(one, two, "sum") == (one, two, "km")
    assert alike(two, one, "sum") == (two, one, "km")
    assert alike(one, Quantity(500, "m"), "sum") == (one, Quantity(0.5, "km"), "km")
    with pytest.raises(Inapplicable, match="of different units"):
        alike(one, Quantity(1, "kg"), "sum")
    found = [unit_of_product(*units) for units in ((NO_UNIT, "m"), ("m", NO_UNIT), ("%", "€"), ("€", "%"), ("m", "m"))]
    assert found == [("m", 1), ("m", 1), ("€", 100), ("€", 100), None]


def test_a_writer_of_another_machine_is_gone_once_it_is_silent() -> None:
    assert Owner.gone(NOBODY, 0)
    for name in ("elsewhere/1/token", f"{socket.gethostname()}/none/token"):
        assert not Owner.gone(name, SILENT)
        assert Owner.gone(name, SILENT + 1)
    assert Owner.place("elsewhere/17/token") == "process 17 on elsewhere"
    assert not Owner.here("elsewhere/17/token")


def test_a_writer_of_this_machine_is_gone_when_its_process_is() -> None:
    own = Owner()
    assert Owner.here(own.name)
    assert not Owner.gone(own.name, SILENT + 1)
    own.release()
    assert Owner.gone(own.name, 0)
    child = os.fork()
    if not child:
        signal.pause()
        os._exit(0)
    name = f"{socket.gethostname()}/{child}/token"
    # Somebody has the number, who need not be the one that wrote.
    assert not Owner.gone(name, SILENT)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert Owner.gone(name, 0)


A, B = ("str", "a"), ("str", "b")


@pytest.mark.parametrize(
    ("here", "there", "said"),
    [
        # A text that differs with its value is not said again.
        (([A, B], ["a", "b"], []), ([A], ["a"], []), (["value b"], [])),
        (([A], ["a"], []), ([A, B], ["a", "b"], []), ([], ["value b"])),
        (([B], ["b"], [("i", "b")]), ([], [], []), (["value b", "entity b (i)"], [])),
        (([A], ["a"], []), ([A], ["A"], []), (["text a"], ["text A"])),
        (([A, A], ["a", "a"], []), ([A], ["a"], []), (["value a"], [])),
        (([A, B], ["a", "b"], []), ([B, A], ["b", "a"], []), ([], ["the same values in another order"])),
    ],
)
def test_what_differs_is_said_both_ways(here: tuple[Any, ...], there: tuple[Any, ...], said: tuple[list[str], list[str]]) -> None:
    assert _difference(here, there) == said


def test_what_evidence_lacks_is_said_once_and_shortly() -> None:
    graph = condgraph.open()
    ids = [f"e{at:02}" for at in range(_SHOWN + 2)]
    graph.add([Entity("m", "man", EntityKind.CONCEPT), *(Member(one, "m") for one in ids), Entity("e00", "Ann")])
    answer = graph.kopl("FindAll() FilterConcept(man) QueryName()")
    own = list(answer.evidence)
    renamed = [replace(fact, subject=replace(fact.subject, name="Bob")) if fact.subject.id == "e00" else fact for fact in own]
    # The entity is there, by another name: no operator lacks anything.
    assert answer.check(renamed).missing == ("value Ann", "entity Ann (e00)")
    for kept, more in ((1, " and 1 more"), (2, "")):
        shown = ", ".join(f"{one} ({one})" for one in ids[kept : kept + _SHOWN])
        assert answer.check(own[:kept]).missing[0] == f"Members() does not give {shown}{more}"


def test_a_directory_that_is_deleted_while_it_is_locked_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, gone = os.open, [True]

    def once_gone(path: Any, *rest: Any) -> int:
        if gone.pop() if gone else False:
            raise FileNotFoundError(path)
        return opened(path, *rest)

    monkeypatch.setattr(os, "open", once_gone)
    handle = _locked(tmp_path / "graph", 0.0)
    os.close(handle)
    assert not gone


def test_a_column_with_whole_numbers_that_no_float_is_keeps_them() -> None:
    def found(*numbers: int) -> tuple[list[int], list[str]]:
        texts: list[str] = []

        def number(text: str) -> int:
            texts.append(text)
            return len(texts) - 1

        column = Numbers(np.array(numbers), NO_UNIT)
        cells = encode_column(column, lambda every: np.array(list(map(number, every))), number, number)
        return cells["ref"].tolist(), texts

    assert found(2**53, -(2**53)) == ([-1, -1], [])
    assert found(1, 2**53 + 1, -(2**53) - 1) == ([-1, 0, 1], [str(2**53 + 1), str(-(2**53) - 1)])


def test_names_that_were_asked_for_are_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condgraph.engine.snapshot.snapshot._MAX_CACHED_NAMES", 3)
    snapshot = built([Entity(one, one.upper()) for one in "abcdef"])
    assert snapshot.names_of([0, 1]) == ["A", "B"]
    assert snapshot.names_of([1, 2]) == ["B", "C"]
    # Two and two were too many, so that the first two were forgotten.
    assert snapshot._name_cache == {1: "B", 2: "C"}
    assert snapshot.names_of([3]) == ["D"]
    assert snapshot._name_cache == {1: "B", 2: "C", 3: "D"}
    assert snapshot.names_of([0, 1, 2, 3]) == ["A", "B", "C", "D"]
    assert len(snapshot._name_cache) <= 3


def test_a_span_has_the_year_that_it_begins_in() -> None:
    span = Time.span(Time.year(1984), Time.year(1986))
    operand = Operand([span], [str(span)], [])
    assert extract("year")([operand], {}) == [Time.year(1984)]
    assert extract("month")([operand], {}) == []
    assert operand.remarks == [f"extract_month: '{span}' has no month"]


def test_records_do_not_change_and_have_no_further_fields() -> None:
    """All records of the engine, but for those that are filled while they are worked with."""
    modules = [importlib.import_module(one.name) for one in pkgutil.walk_packages(condgraph.engine.__path__, "condgraph.engine.")]
    records = [
        thing
        for module in modules
        for thing in vars(module).values()
        if isinstance(thing, type) and thing.__module__ == module.__name__ and "__dataclass_params__" in vars(thing)
    ]
    assert len(records) > 100
    assert [one.__name__ for one in records if "__slots__" not in vars(one)] == []
    changed = {one.__name__ for one in records if not vars(one)["__dataclass_params__"].frozen}
    assert changed == {"EvidenceTrail", "Lowered", "Operand", "Request", "Property", "Terms", "RowEvidence", "Reading"}


@pytest.mark.parametrize("clock", [(24, 0, 0), (0, 60, 0), (0, 0, 60), (-1, 0, 0), (0, -1, 0), (0, 0, -1)])
def test_a_clock_has_24_hours_of_60_minutes(clock: tuple[int, int, int]) -> None:
    assert str(Time.second(2000, 2, 29, 23, 59, 59)) == "2000-02-29T23:59:59"
    with pytest.raises(ValueError, match="no time of day"):
        Time.second(2000, 2, 29, *clock)
