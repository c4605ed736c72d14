"""Breaks KoPL programs of the oracle by rules, and judges whether an explanation names the cause and the repair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from time import perf_counter, process_time
from typing import Any, Final

from condgraph.engine.algebra import ByName, Node, Scan, postorder
from condgraph.engine.answer import Answer
from condgraph.engine.facts import Entity, EntityKind, Item, Ref, Statement
from condgraph.engine.passes import optimise
from condgraph.engine.why_not import Change, result_of
from condgraph.graph import Graph

#: The rules, in the order in which programs take turns.
RULES: Final = ("turn", "misspell", "bound", "unit", "condition", "join")
Steps = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Broken:
    """A program that was broken by a rule in the step of a number (of the broken program), and the one it was."""

    rule: str
    program: Steps
    step: int
    whole: Steps


def _changed(program: Steps, at: int, inputs: list[str]) -> Steps:
    return [dict(step, inputs=inputs) if place == at else dict(step) for place, step in enumerate(program)]


def _inserted(program: Steps, at: int, function: str, inputs: list[str]) -> Steps:
    """The program with a condition after the step `at`, whose result all later steps take."""

    def moved(number: int) -> int:
        return number + 1 if number >= at else number

    before = [dict(step) for step in program[: at + 1]]
    after = [dict(step, dependencies=[moved(one) for one in step["dependencies"]]) for step in program[at + 1 :]]
    return [*before, {"function": function, "dependencies": [at], "inputs": inputs}, *after]


def _misspelled(name: str, random: Random) -> str:
    at = random.randrange(1, len(name) - 1)
    letters = list(name)
    if random.random() < 0.5:
        del letters[at]
    else:
        letters[at], letters[at - 1] = letters[at - 1], letters[at]
    return "".join(letters)


#: Which inputs of a function are names.
_NAMES: Final = {
    "Find": (0,), "FilterConcept": (0,), "Relate": (0,), "FilterStr": (0, 1), "FilterNum": (0,), "FilterYear": (0,),
    "FilterDate": (0,), "QueryAttr": (0,), "QFilterStr": (0, 1), "QFilterYear": (0,), "QFilterNum": (0,),
    "QueryAttrQualifier": (0,),
}  # fmt: skip
_BOUNDED: Final = ("FilterNum", "FilterYear", "FilterDate", "QFilterYear", "QFilterNum", "QFilterDate")
_GIVE_ENTITIES: Final = ("Find", "FilterConcept", "Relate", "FilterStr", "FilterNum", "FilterYear", "FilterDate")


def broken(program: Steps, rule: str, random: Random, concepts: list[str]) -> Broken | None:
    """A program broken by a rule; None where it has nothing for the rule to break."""
    places = list(range(len(program)))
    random.shuffle(places)
    for at in places:
        function, inputs = program[at]["function"], list(program[at]["inputs"])
        if rule == "turn" and function == "Relate":
            inputs[1] = "backward" if inputs[1] == "forward" else "forward"
            return Broken(rule, _changed(program, at, inputs), at, program)
        if rule == "misspell" and function in _NAMES:
            which = random.choice(_NAMES[function])
            if len(inputs[which]) > 4:
                inputs[which] = _misspelled(inputs[which], random)
                if inputs[which] != program[at]["inputs"][which]:
                    return Broken(rule, _changed(program, at, inputs), at, program)
        if rule == "bound" and function in _BOUNDED and inputs[2] != "!=":
            inputs[1] = _past(function, inputs[1], inputs[2])
            return Broken(rule, _changed(program, at, inputs), at, program)
        if rule == "unit" and function == "FilterNum" and inputs[2] != "!=":
            number, _, unit = inputs[1].partition(" ")
            inputs[1] = f"{number} {'kelvin' if unit != 'kelvin' else 'metre'}"
            return Broken(rule, _changed(program, at, inputs), at, program)
        if rule == "condition" and function in _GIVE_ENTITIES and at + 1 < len(program):
            takes = [step["function"] for step in program if at in step["dependencies"]]
            if any(one.startswith("QFilter") for one in takes):
                continue
            fresh = ("FilterConcept", [random.choice(concepts)]) if random.random() < 0.5 else ("FilterStr", ["description", "zz"])
            return Broken(rule, _inserted(program, at, *fresh), at + 1, program)
        if rule == "join" and function in ("Relate", "QueryAttr", "FilterConcept") and at:
            return Broken(rule, program, at, program)
    return None


def _past(function: str, value: str, operator: str) -> str:
    """A bound that no value of the data satisfies."""
    high = operator in (">", ">=", "=")
    if function.endswith("Num"):
        unit = value.partition(" ")[2]
        return f"{'9' * 18 if high else '-' + '9' * 18} {unit}".strip()
    year = "9876" if high else "-9876"
    return year if function.endswith("Year") else f"{year}-01-01"


def cut_joins(items: Iterable[Item], split: set[str]) -> Iterator[Item]:
    """The items with some entities in two: what leads to them leads to one of the old id, and what they have is of another,
    whose name differs in one of the ways in which names of one thing differ.
    """
    for item in items:
        if isinstance(item, Entity) and item.id in split:
            yield item
            yield Entity(f"other/{item.id}", other_name(item.name), item.kind)
        elif isinstance(item, Statement) and item.subject in split:
            yield replace(item, subject=f"other/{item.subject}")
        else:
            yield item


def cut_entities(items: list[Item]) -> list[Item]:
    """The items with every twelfth entity, by chance, in two."""
    entities = sorted(item.id for item in items if isinstance(item, Entity) and item.kind is EntityKind.ENTITY)
    return list(cut_joins(items, set(Random(1).sample(entities, len(entities) // 12))))


def other_name(name: str) -> str:
    """A name as another source writes it."""
    number = sum(map(ord, name)) % 4
    return (name, f"stations/{name}", name.upper(), name.replace(" ", "_") if " " in name else name.lower())[number]


@dataclass(slots=True)
class Judged:
    """How many broken programs had their cause and repair named, and what went wrong, by rule."""

    tried: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    repairs: Counter[str] = field(default_factory=Counter)
    #: Of each program how long its answer took, and then to print and explain it (seconds), and how many queries that sent.
    times: list[tuple[float, float, int]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    #: What measures time: on servers all that passes, in process that of the processor.
    clock: Callable[[], float] = perf_counter
    #: How many queries were sent until now.
    sent: Callable[[], int] = int

    def ask(self, case: Broken, graph: Graph) -> Answer:
        """The empty answer of a broken program, printed and explained."""
        began = self.clock()
        answer = graph.query(case.program, on_unknown="empty")
        assert not answer.values or answer.values in ([0], [False])
        own, sent = self.clock() - began, self.sent()
        began = self.clock()
        assert str(answer)
        # Of a count of nothing, and a "no", the print says less.
        answer.why_not()
        self.times.append((own, self.clock() - began, self.sent() - sent))
        return answer

    def judge(self, case: Broken, answer: Answer, whole: Graph) -> None:
        """Whether the explanation names what broke the program."""
        why = answer.why_not()
        self.tried[case.rule] += 1
        if case.rule == "join":
            case = replace(case, step=_first_empty(answer, whole.kopl(case.whole)))
        repair = any(is_repair(case, change, optimise(result_of(whole.kopl(case.whole).plan))[0]) for change in why.changes)
        cause = repair or (why.node is not None and is_cause(case, answer, why.node))
        self.causes[case.rule] += cause
        self.repairs[case.rule] += repair
        if not repair or not cause:
            self.wrong.append(f"{case.rule} {'' if cause else 'CAUSE '}step {case.step}: {calls(case.program)}\n    {why}")

    def __str__(self) -> str:
        total = self.tried.total()
        counts = [(rule, self.tried[rule], self.causes[rule], self.repairs[rule]) for rule in self.tried]
        counts.append(("all", total, self.causes.total(), self.repairs.total()))
        lines = [f"{rule}: {n} empty, cause {causes / n:.1%}, repair {repairs / n:.1%}" for rule, n, causes, repairs in counts]
        columns = [*zip(*self.times, strict=True), [late / own for own, late, _ in self.times]]
        own, late, queries, ratio = (sorted(column)[total // 2] for column in columns)
        times = f"median time {ratio:.2f} of the program's own ({late * 1000:.3g} and {own * 1000:.3g} ms), {queries} queries"
        return "\n".join([*lines, times])


def calls(program: Steps) -> str:
    """A program as text."""
    return " ".join(f"{step['function']}({', '.join(step['inputs'])})" for step in program)


def _first_empty(answer: Answer, whole: Answer) -> int:
    """The first step that gives nothing where the joins are cut, and something where they are whole."""
    pairs = zip(answer.trace, whole.trace, strict=True)
    return next((at for at, (here, there) in enumerate(pairs) if there.size and not here.size), 0)


def is_cause(case: Broken, answer: Answer, node: Node) -> bool:
    """Whether an operator is one of the broken step."""
    steps = answer._steps
    before = {id(part) for _, one in steps[: case.step] for part in postorder(one)}
    own = [part for part in postorder(steps[case.step][1]) if id(part) not in before]
    return any(part is node or part == node for part in own)


def is_repair(case: Broken, change: Change, whole: Node) -> bool:
    """Whether a change gives the program that it was, or in its place the rows that were cut off, or a bound that is met."""
    if case.rule in ("join", "bound"):
        return change.kind == case.rule
    return optimise(change.plan)[0] == whole or repr(change.plan) == repr(whole)


def empty_programs(records: list[Steps], n: int, seed: int, whole: Graph, cut: Graph) -> list[Broken]:
    """`n` programs whose answers are empty once they are broken, the rules in turn; `cut` is the graph of those of joins."""
    random, result = Random(seed), list[Broken]()
    concepts = list(whole.current.schema.concepts)
    at = 0
    while len(result) < n:
        rule = RULES[len(result) % len(RULES)]
        program = records[at % len(records)]
        at += 1
        case = broken(program, rule, random, concepts)
        if case is not None and whole.kopl(program).values not in ([], [0], [False]):
            answer = (cut if rule == "join" else whole).query(case.program, on_unknown="empty")
            # A "no" may rest on values that there are.
            if answer.values in ([], [0], [False]) and answer.why_not().node is not None:
                result.append(case)
        assert at < 60 * n, f"the rule {rule} breaks too few programs"
    return result


def judged(cases: list[Broken], whole: Graph, graph: Graph, cut: Graph, sent: Callable[[], int] = int, rounds: int = 1) -> Judged:
    """How well `graph` explains broken programs, and `cut` those of joins. `whole` is the graph in process. Of several rounds
    the least of each time counts.
    """
    result = Judged(clock=process_time if graph is whole else perf_counter, sent=sent)
    for _ in range(rounds):
        before, result.times = result.times, []
        # One after the other, so that nothing else is timed.
        answers = [result.ask(case, cut if case.rule == "join" else graph) for case in cases]
        if before:
            pairs = zip(before, result.times, strict=True)
            result.times = [(min(a[0], b[0]), min(a[1], b[1]), b[2]) for a, b in pairs]
    for case, answer in zip(cases, answers, strict=True):
        result.judge(case, answer, whole)
    return result


# -- expected results ------------------------------------------------------------------------------


@dataclass(slots=True)
class Found:
    """How many removed statements were named, as the first of those that are missing or at all, and those that were not."""

    tried: int = 0
    first: int = 0
    named: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.tried} removed, named {self.named / self.tried:.1%}, first {self.first / self.tried:.1%}"


def removed_statements(records: list[Steps], n: int, seed: int, items: list[Item], graph: Graph, there: Any = None) -> Found:
    """Take statements away that answers rest on, one after the other, and ask why a result is lost: of the graph itself, or of
    the same one on a store, `there`. Each is added again afterwards.
    """
    there = graph if there is None else there
    random, found = Random(seed), Found()
    known = [one for one in items if isinstance(one, Statement)]
    places: dict[tuple[str, str, str], list[int]] = {}
    names = {one.id: one.name for one in items if isinstance(one, Entity)}
    for at, one in enumerate(known):
        places.setdefault((one.subject, one.predicate, _object(one)), []).append(at)
    order = list(records)
    random.shuffle(order)
    seen = set()
    # Where the programs are too few, another statement of each.
    for number, program in [*enumerate(order), *enumerate(order)]:
        if found.tried == n:
            break
        answer = graph.kopl(program)
        if not answer.values or isinstance(answer.values[0], bool | int):
            continue
        evidence = [one for one in answer.evidence if (one.subject.id, one.predicate, _end(one.object)) in places]
        if not evidence:
            continue
        one = random.choice(evidence)
        at = places[one.subject.id, one.predicate, _end(one.object)]
        if len(at) > 1 or (number, at[0]) in seen:
            continue
        seen.add((number, at[0]))
        removed = known[at[0]]
        there.retract(removed)
        later = there.query(program, on_unknown="empty")
        entities = {entity.id: entity for entity in answer.entities}
        for entity in later.entities:
            entities.pop(entity.id, None)
        lost: list[Any] = list(entities.values()) or [value for value in answer.values if value not in later.values]
        why = later.why_not(lost[0]) if lost and _decided(later, lost[0]) else None
        there.add(removed)
        if why is None:
            continue
        found.tried += 1
        wanted = (one.subject.name, one.predicate, names.get(_end(one.object), str(one.object)))
        listed = [(each.subject, each.predicate, each.object) for each in why.missing]
        # Of an attribute the condition may be named that its value does not meet.
        relation = isinstance(removed.object, Ref)
        named = [each == wanted or (each[:2] == wanted[:2] and not relation) for each in listed]
        found.named += any(named)
        found.first += named[:1] == [True]
        if not any(named):
            found.wrong.append(f"{calls(program)}\n    removed {wanted}, expected {lost[0]}\n    {why}")
    return found


def _decided(answer: Answer, expected: Any) -> bool:
    """Whether an expected result says which statement is missing: an entity does, and a value of an entity that the program
    names. Another value may be missing from any entity.
    """
    if isinstance(expected, Entity):
        return True
    scan = next((node for node in reversed(postorder(answer.plan)) if isinstance(node, Scan)), None)
    return scan is not None and isinstance(scan.of, ByName)


def _object(statement: Statement) -> str:
    return statement.object.id if isinstance(statement.object, Ref) else str(statement.object)


def _end(value: Any) -> str:
    return value.id if isinstance(value, Entity) else str(value)
