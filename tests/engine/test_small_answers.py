"""Small things that are said or done at the edge: steps and answers as texts, ends of intervals,
waits, threads that are let alone, what two runs of a check lack. Changes of one operator lived there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from operator import ge, gt, le, lt
from threading import Event, Lock

import numpy as np
import pytest

import condgraph
from condgraph.engine import algebra as alg
from condgraph.engine.answer import Answer
from condgraph.engine.bounds import SharedTask, Workers, wait_for, within
from condgraph.engine.check import built
from condgraph.engine.errors import MAX_NAME, DeadlineError, nearest
from condgraph.engine.evidence import items
from condgraph.engine.execute.conditions import readings_of, text_mask
from condgraph.engine.execute.operators import _edge
from condgraph.engine.execute.run import Run
from condgraph.engine.execute.witness_plan import WitnessRun
from condgraph.engine.facts import Batch, Entity, EntityKind, Item, Ref, Source, Sourced, Statement, Texts
from condgraph.engine.lowered import Step
from condgraph.engine.passes import PASSES
from condgraph.engine.records import Evidence
from condgraph.engine.snapshot.build import kept
from condgraph.engine.snapshot.container import _from_rows, _short
from condgraph.engine.terms import loads
from condgraph.engine.toml import MAX_KEY_PARTS, read_toml
from condgraph.engine.values import DAY_SECONDS, Kind, Precision, Quantity, Time


def test_a_step_as_text() -> None:
    assert str(Step("Find", "ByName", 3, ("a", "b"), "said")) == "Find: 3 (a, b, ...); said"
    assert str(Step("Find", "ByName", 2, ("a", "b"))) == "Find: 2 (a, b)"
    assert str(Step("Find", "ByName", 0, ())) == "Find: 0"


def test_an_answer_as_text() -> None:
    graph = condgraph.open()
    graph.add([condgraph.Entity(one, one) for one in "abcdef"])
    assert repr(graph.kopl("FindAll() QueryName()")) == "<Answer of 6: a, b, c, d, e, ...>"
    graph = condgraph.open()
    graph.add([condgraph.Entity(one, one) for one in "abcde"])
    assert repr(graph.kopl("FindAll() QueryName()")) == "<Answer of 5: a, b, c, d, e>"


def test_every_kind_of_answer_shows_its_warnings() -> None:
    graph = condgraph.open()
    heights = [condgraph.Quantity(3, "m"), condgraph.Quantity(4, "kg"), condgraph.Quantity(5, "kg")]
    graph.add([condgraph.Statement(one, "height", value) for one, value in zip("abc", heights, strict=True)])
    left = "2 values (quantity in kg) cannot be compared with a quantity in m and are left out"
    answer = graph.kopl("FindAll() FilterNum(height, 1 m, >) QueryName()")
    assert str(answer).splitlines() == ["a", f"warning: {left}"]
    assert repr(answer) == f"<Answer of 1: a; warning: {left}>"
    assert f"<div><i>warning: {left}</i></div>" in answer._repr_html_()
    long = "of " + "many " * 100 + "words"
    many = Answer(answer.run, answer.plan, warnings=[long, "b", "c", "d", *map(str, range(20))])
    assert repr(many).count("; warning: ") == 3
    assert repr(many).endswith("; 22 more warnings>")
    assert long in many._repr_html_()
    assert "and 5 more warnings" in many._repr_html_()

    empty = graph.kopl("FindAll() FilterNum(height, 9 m, >) QueryName()")
    assert str(empty).startswith("warning: ")
    assert repr(empty).startswith("<Answer of 0; warning: ")
    match = graph.match([("UNKNOWN thing 1", "height", "= 3 m")], k=1)
    assert str(match).splitlines()[1:] == [f"warning: {warning}" for warning in match.warnings]
    assert match.warnings[0] in repr(match)
    graph.add([condgraph.Statement("a", "parent", condgraph.Ref("b"))], source="parents")
    logic = graph.logic('?x : parent("b", ?x)')
    assert str(logic).splitlines() == [f"warning: {warning}" for warning in logic.warnings]
    assert repr(logic) == f"<LogicAnswers of 0; warning: {logic.warnings[0]}>"
    assert str(graph.sparql("SELECT ?x { ?x <height> <nothing> }")).splitlines()[:2] == ["x", "no rows"]


def test_a_repr_does_not_raise_what_its_warnings_raise() -> None:
    class Gone(Answer):
        @property
        def warnings(self) -> list[str]:  # type: ignore[override]
            raise DeadlineError("the server is gone")

    graph = condgraph.open()
    graph.add([condgraph.Entity("a", "a")])
    answer = graph.kopl("FindAll() QueryName()")
    assert repr(Gone(answer.run, answer.plan)) == "<Answer of 1: a; its warnings could not be read: DeadlineError>"


def test_the_line_of_a_key_with_too_many_parts() -> None:
    assert read_toml("\n".join(["a = 1", ".".join("k" * MAX_KEY_PARTS) + " = 1"]))["a"] == 1
    with pytest.raises(ValueError, match=rf"^the key in line 2 has more than {MAX_KEY_PARTS} parts$"):
        read_toml("\n".join(["a = 1", ".".join("k" * (MAX_KEY_PARTS + 2)) + " = 1"]))


def test_the_ends_of_an_interval_that_is_no_whole_days() -> None:
    end = 3 * DAY_SECONDS + 5
    assert _edge(0, end, "start") == Time(0, 1, Precision.SECOND)
    assert _edge(0, end, "end") == Time(end - 1, end, Precision.SECOND)


def test_a_lock_is_waited_for_until_the_deadline() -> None:
    lock = Lock()
    with lock, within(0.01), pytest.raises(DeadlineError):
        wait_for(lock)
    wait_for(lock)
    assert lock.locked()


def test_what_is_made_once_is_there_once_it_was_made() -> None:
    made, go = [], Event()

    def make() -> int:
        go.wait(10)
        made.append(len(made))
        if len(made) == 1:
            raise KeyError("the first")
        return 7

    once = SharedTask(Workers("test"), make)
    assert once.there() is None
    first = once.begun()
    assert (once.begun() is first, once.there()) == (True, None)
    go.set()
    with pytest.raises(KeyError):
        once.get()
    assert (once.there(), made) == (None, [0])
    # It failed, and is begun anew; what was made is not made again.
    assert once.get() == 7
    assert (once.begun() is once.begun(), once.there(), once.get(), made) == (True, 7, 7, [0, 1])


def test_a_thread_whose_caller_went_on_is_let_alone_for_a_while() -> None:
    cut, end = Event(), Event()
    workers = Workers("test", linger=60.0)
    with pytest.raises(DeadlineError):
        workers.run(lambda: end.wait(10), 0.01, cut=cut.set)
    workers.run(lambda: None)
    assert not cut.is_set()
    workers.close()
    assert cut.is_set()
    end.set()


def test_a_cancelled_call_is_told_from_one_whose_time_is_over() -> None:
    end, cancelled = Event(), Event()
    workers = Workers("test")
    begin = time.monotonic()
    with pytest.raises(DeadlineError):
        workers.run(lambda: end.wait(10), 0.06, cancelled)
    assert time.monotonic() - begin >= 0.06
    end.set()


def run(plan: alg.Node, *facts: Item) -> Answer:
    return _executed(Run(built(facts)), plan)


def _executed(execution: Run, plan: alg.Node) -> Answer:
    execution.execute(plan)
    return Answer(execution, plan)


def test_numbers_without_a_unit_do_not_compete_with_times() -> None:
    values = alg.Objects(alg.Scan(None, ("p",)))
    facts = [Statement(one, "p", thing) for one, thing in (("a", Time.year(1990)), ("b", Time.year(1991)), ("c", Quantity(5)))]
    answer = run(alg.Extreme(values, "largest"), *facts)
    assert (answer.texts, answer.warnings) == (["1991"], ["largest: 1 value is not of type time and does not compete"])


def test_what_a_store_counts_is_not_counted_again_on_what_was_fetched() -> None:
    where = alg.Where(alg.Scan(None, ("p",)), alg.Compare(">", Quantity(1)))
    snapshot = built([Statement("a", "p", Time.year(1990)), Statement("b", "p", Quantity(5))])
    there, here = Run(snapshot), WitnessRun(snapshot, {})
    found = [(answer.texts, len(answer.warnings)) for one in (there, here) for answer in [_executed(one, alg.Objects(where))]]
    assert found == [(["5"], 1), (["5"], 0)]


def test_types_of_qualifiers_are_counted() -> None:
    metre = ("q", Quantity(1, "m"))
    facts = [
        Statement("a", "p", "x", (metre,)),
        Statement("b", "p", "x", (metre, ("q", Quantity(3, "s")))),
        Statement("c", "r", "x", (metre,)),
    ]
    schema = built(facts).schema
    assert schema.qualifier_kinds("q") == {(Kind.QUANTITY, "m"): 3, (Kind.QUANTITY, "s"): 1}
    assert schema.qualifier_kinds("q", "p") == {(Kind.QUANTITY, "m"): 2, (Kind.QUANTITY, "s"): 1}
    assert schema.qualifier_kinds("q", "none") == {}


def test_evidence_as_items_keeps_the_sources_of_rows() -> None:
    row = Entity("r", "r", EntityKind.ROW, 3)
    fact = Evidence(row, "p", "x", (), ((Source("t"), 3),))
    assert items([fact]) == [Source("t"), Sourced(row, (("t", 3),)), Sourced(Statement("r", "p", "x"), (("t", 3),))]
    nowhere = Evidence(Entity("e", "E"), "p", "x", (), ())
    assert items([nowhere]) == [Entity("e", "E"), Sourced(Statement("e", "p", "x"), ())]


def test_columns_of_small_numbers_are_kept_in_blocks() -> None:
    # 17 different numbers in no order: five bits each, and not four bytes.
    column = (np.arange(5_000, dtype=np.int32) * 7 % 17).astype(np.int32)
    found = _short("x", column, {})
    assert found is not None
    form, arrays = found
    assert form == {"form": "blocks"}
    assert sum(part.nbytes for part in arrays.values()) < column.nbytes / 3
    # Any number of four bytes: no form is shorter.
    assert _short("x", np.random.default_rng(1).integers(-(2**31), 2**31, 5_000).astype(np.int32), {}) is None


def test_within_any_of_two_times_that_meet_is_within_one_of_them() -> None:
    def held(first: int, last: int) -> tuple[tuple[str, Time], ...]:
        return (("start time", Time.year(first)), ("end time", Time.year(last)))

    facts = [Statement("a", "p", Ref("x"), held(1990, 1991)), Statement("b", "p", Ref("x"), held(1991, 1992))]
    times = alg.Constants((Time.span(Time.year(1989), Time.year(1991)), Time.span(Time.year(1992), Time.year(1993))))
    scan = alg.Scan(None, ("p",), "subject", "subject", "relation")
    for relation, found in (("within", ["a"]), ("overlaps", ["a", "b"])):
        answer = run(alg.Names(alg.Reached(alg.DuringAny(scan, relation, times))), *facts)  # type: ignore[arg-type]
        assert answer.texts == found, relation


def test_scans_are_shared_where_they_begin_at_the_same() -> None:
    def both(one: alg.Entities, two: alg.Entities) -> list[alg.Node]:
        scans = [alg.Scan(of, ("p",), "subject", "object", "relation") for of in (one, two)]
        return alg.postorder(alg.Union(tuple(alg.Reached(scan) for scan in scans)))

    applies, _ = PASSES[-1]
    assert applies(both(alg.AllEntities(), alg.AllEntities()))
    assert not applies(both(alg.ByName(("a",)), alg.ByName(("b",))))
    assert applies(both(alg.ByName(("a",)), alg.ByName(("a",))))


def test_entities_that_are_no_rows_are_of_no_table() -> None:
    row = Sourced(Entity("r", "R", EntityKind.ROW, 3), (("t", 3),))
    snapshot = built([Entity("e", "E"), row, Statement("e", "p", "x"), Statement("r", "p", "x")])
    assert snapshot.arrays.get("ent.source").tolist() == [-1, 0]
    columns = {"row.key": np.array([7 << 32 | 3]), "row.entity": np.array([1])}
    assert _from_rows("ent.source", 2, columns).tolist() == [-1, 7]
    assert _from_rows("ent.row", 2, columns).tolist() == [0, 3]


def test_terms_of_another_kind_are_left_out() -> None:
    iri = "http://example.org/name"
    naming = [loads(json.dumps({"naming": said})).naming for said in ([iri, None], [iri, "de"], [iri, 5], [5, "de"], [iri])]
    assert naming == [(iri, None), (iri, "de"), None, None, None]


def test_a_statement_of_several_sources_has_them_all() -> None:
    fact = Sourced(Statement("e", "p", "x"), (("b", 1), ("a", 2), ("c", 0)))
    (found,) = run(alg.Objects(alg.Scan(None, ("p",))), fact).evidence
    assert {(source.name, row) for source, row in found.sources} == {("b", 1), ("a", 2), ("c", 0)}


@pytest.mark.parametrize("collapsed", [False, True])
def test_texts_of_a_column_are_kept_as_they_stood(*, collapsed: bool) -> None:
    texts = ["a b", "c d"] if collapsed else ["a  b", "c d"]
    found = run(alg.Objects(alg.Scan(None, ("p",))), Batch(["e", "f"], "p", Texts(texts, collapsed), [1, 2])).evidence
    assert [(fact.object, fact.raw) for fact in found] == [("a b", None if collapsed else "a  b"), ("c d", None)]


@pytest.mark.parametrize(("number", "years"), [(999, 0), (1000, 1), (1984, 1), (2999, 1), (3000, 0), (1984.5, 0)])
def test_whole_numbers_of_four_digits_may_be_years(number: float, years: int) -> None:
    assert readings_of(Quantity(number)) == [Quantity(number), *[Time.year(int(number))] * years]
    assert readings_of(Quantity(number, "m")) == [Quantity(number, "m")]


def test_order_of_texts_beside_one_that_the_graph_does_not_have() -> None:
    snapshot = built([Statement("e", "p", text) for text in ("a", "c")])
    refs = np.array([snapshot.texts.find(text) for text in ("a", "c")])
    signs: dict[alg.Operator, Callable[[str, str], bool]] = {">": gt, ">=": ge, "<": lt, "<=": le}
    for sign, compares in signs.items():
        for text in "abc":
            assert text_mask(snapshot, sign, text, refs).tolist() == [compares(one, text) for one in "ac"], (sign, text)


def test_names_that_are_too_long_are_like_no_other() -> None:
    longest = "a" * MAX_NAME
    assert nearest(longest, [longest, longest + "a"]) == [longest]
    assert nearest(longest + "a", [longest]) == []


def test_the_last_part_of_an_address_is_near() -> None:
    names = ["http://x.org/price", "http://x.org/ns#Price", "prices", "unpriced", *(f"t/{n}" for n in range(9))]
    assert nearest("price", [*names, "Price"]) == ["Price", "http://x.org/ns#Price", "http://x.org/price", "prices", "unpriced"]
    assert nearest("price", names, most=1) == ["http://x.org/ns#Price"]
    assert nearest("", names) == []
    assert MAX_NAME == 300


def test_what_statements_say_of_an_entity_is_not_kept_a_second_time() -> None:
    facts = [Sourced(Statement("e", "p", "x"), (("b", 1),)), Sourced(Statement("f", "p", "x"), (("a", 1),))]
    for name, source, kept_of in (("e", "b", []), ("e", "a", ["e"]), ("f", "a", []), ("f", "b", ["f"])):
        snapshot = built([*facts, Sourced(Entity(name, name), ((source, 0),))])
        assert list(map(snapshot.ident, kept(snapshot).e.tolist())) == kept_of, (name, source)


def test_one_row_with_several_values_is_one() -> None:
    graph = condgraph.open()
    numbers = {"e": (("a", 1), ("a", 2), ("b", 3)), "f": (("a", 2), ("b", 5))}
    graph.add([Statement(one, key, Quantity(number)) for one, said in numbers.items() for key, number in said])
    answer = graph.query("FindAll()", table="show sum(a * b) as x")
    assert answer.cells == [("10",)]
    assert answer.warnings == ["a * b: 1 row has several values to calculate with, and is left out"]


def test_statements_of_one_source_are_counted_before_they_are_looked_at() -> None:
    facts = [Sourced(Statement(one, "p", "x"), ((source, 1),)) for one, source in (("a", "s"), ("b", "t"), ("c", "t"), ("d", "u"))]
    found = {}
    for source in (None, "s", "t", "u"):
        scan = alg.Scan(None, ("p",), source=source)
        execution = Run(built(facts))
        execution.execute(scan)
        found[source] = len(execution.facts(scan))
    assert found == {None: 4, "s": 1, "t": 2, "u": 1}


def test_equal_rows_of_a_table_are_all_printed() -> None:
    graph = condgraph.open()
    graph.load([{"id": "a", "city": "x"}, {"id": "b", "city": "x"}, {"id": "c", "city": "y"}], name="shops", key="id")
    answer = graph.query("FindAll() FilterConcept(shops)", table="show city")
    assert str(answer) == "x\nx\ny"
    assert answer.texts == ["x", "y"]
