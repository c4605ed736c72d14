"""Break KoPL programs of the oracle by rules, and judge whether an explanation names the cause and the repair."""

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

#: The rules, applied to programs in turn.
RULES: Final = ("turn", "misspell", "bound", "unit", "condition", "join")
Steps = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Broken:
    """A broken program: the rule, the number of its broken step, and the original program."""

    rule: str
    program: Steps
    step: int
    whole: Steps


def _changed(program: Steps, at: int, inputs: list[str]) -> Steps:
    return [dict(step, inputs=inputs) if place == at else dict(step) for place, step in enumerate(program)]


def _inserted(program: Steps, at: int, function: str, inputs: list[str]) -> Steps:
    """Insert a condition after the step `at`; all later steps take its result."""

    def shifted(number: int) -> int:
        return number + 1 if number >= at else number

    before = [dict(step) for step in program[: at + 1]]
    after = [dict(step, dependencies=[shifted(dependency) for dependency in step["dependencies"]]) for step in program[at + 1 :]]
    return [*before, {"function": function, "dependencies": [at], "inputs": inputs}, *after]


def _misspelled(name: str, random: Random) -> str:
    at = random.randrange(1, len(name) - 1)
    letters = list(name)
    if random.random() < 0.5:
        del letters[at]
    else:
        letters[at], letters[at - 1] = letters[at - 1], letters[at]
    return "".join(letters)


#: The inputs of each function that are names.
_NAMES: Final = {
    "Find": (0,), "FilterConcept": (0,), "Relate": (0,), "FilterStr": (0, 1), "FilterNum": (0,), "FilterYear": (0,),
    "FilterDate": (0,), "QueryAttr": (0,), "QFilterStr": (0, 1), "QFilterYear": (0,), "QFilterNum": (0,),
    "QueryAttrQualifier": (0,),
}  # fmt: skip
_BOUNDED: Final = ("FilterNum", "FilterYear", "FilterDate", "QFilterYear", "QFilterNum", "QFilterDate")
_GIVE_ENTITIES: Final = ("Find", "FilterConcept", "Relate", "FilterStr", "FilterNum", "FilterYear", "FilterDate")


def broken(program: Steps, rule: str, random: Random, concepts: list[str]) -> Broken | None:
    """Break a program by a rule; return None if the rule does not apply."""
    steps = list(range(len(program)))
    random.shuffle(steps)
    for at in steps:
        function, inputs = program[at]["function"], list(program[at]["inputs"])
        if rule == "turn" and function == "Relate":
            inputs[1] = "backward" if inputs[1] == "forward" else "forward"
            return Broken(rule, _changed(program, at, inputs), at, program)
        if rule == "misspell" and function in _NAMES:
            name_input = random.choice(_NAMES[function])
            if len(inputs[name_input]) > 4:
                inputs[name_input] = _misspelled(inputs[name_input], random)
                if inputs[name_input] != program[at]["inputs"][name_input]:
                    return Broken(rule, _changed(program, at, inputs), at, program)
        if rule == "bound" and function in _BOUNDED and inputs[2] != "!=":
            inputs[1] = _past(function, inputs[1], inputs[2])
            return Broken(rule, _changed(program, at, inputs), at, program)
        if rule == "unit" and function == "FilterNum" and inputs[2] != "!=":
            number, _, unit = inputs[1].partition(" ")
            inputs[1] = f"{number} {'kelvin' if unit != 'kelvin' else 'metre'}"
            return Broken(rule, _changed(program, at, inputs), at, program)
        if rule == "condition" and function in _GIVE_ENTITIES and at + 1 < len(program):
            consumers = [step["function"] for step in program if at in step["dependencies"]]
            if any(consumer.startswith("QFilter") for consumer in consumers):
                continue
            condition = (
                ("FilterConcept", [random.choice(concepts)]) if random.random() < 0.5 else ("FilterStr", ["description", "zz"])
            )
            return Broken(rule, _inserted(program, at, *condition), at + 1, program)
        if rule == "join" and function in ("Relate", "QueryAttr", "FilterConcept") and at:
            return Broken(rule, program, at, program)
    return None


def _past(function: str, value: str, operator: str) -> str:
    """Return a bound that no value in the data satisfies."""
    high = operator in (">", ">=", "=")
    if function.endswith("Num"):
        unit = value.partition(" ")[2]
        return f"{'9' * 18 if high else '-' + '9' * 18} {unit}".strip()
    year = "9876" if high else "-9876"
    return year if function.endswith("Year") else f"{year}-01-01"


def cut_joins(items: Iterable[Item], split: set[str]) -> Iterator[Item]:
    """Split some entities in two: relations to them keep the old id, and their own statements get a new one, whose name
    differs as names of one thing in two sources do.
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
    """Split every twelfth entity, chosen at random."""
    entities = sorted(item.id for item in items if isinstance(item, Entity) and item.kind is EntityKind.ENTITY)
    return list(cut_joins(items, set(Random(1).sample(entities, len(entities) // 12))))


def other_name(name: str) -> str:
    """Return a name as another source might write it."""
    number = sum(map(ord, name)) % 4
    return (name, f"stations/{name}", name.upper(), name.replace(" ", "_") if " " in name else name.lower())[number]


@dataclass(slots=True)
class Judged:
    """The numbers of broken programs whose cause and repair were named, and the failures, by rule."""

    tried: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    repairs: Counter[str] = field(default_factory=Counter)
    #: For each program, the seconds for its answer, the seconds for printing and explaining it, and the queries sent for that.
    times: list[tuple[float, float, int]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    #: The clock: wall time on servers, processor time in process.
    clock: Callable[[], float] = perf_counter
    #: Returns the number of queries sent so far.
    sent: Callable[[], int] = int

    def ask(self, case: Broken, graph: Graph) -> Answer:
        """Return the empty answer of a broken program, after printing and explaining it."""
        start = self.clock()
        answer = graph.query(case.program, on_unknown="empty")
        assert not answer.values or answer.values in ([0], [False])
        answer_seconds, sent = self.clock() - start, self.sent()
        start = self.clock()
        assert str(answer)
        # For a count of 0 and a "no", printing explains less.
        answer.why_not()
        self.times.append((answer_seconds, self.clock() - start, self.sent() - sent))
        return answer

    def judge(self, case: Broken, answer: Answer, whole: Graph) -> None:
        """Record whether the explanation names what broke the program."""
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
    """Return a program as text."""
    return " ".join(f"{step['function']}({', '.join(step['inputs'])})" for step in program)


def _first_empty(answer: Answer, whole: Answer) -> int:
    """Return the first step that gives nothing with cut joins, and something without."""
    pairs = zip(answer.trace, whole.trace, strict=True)
    return next((number for number, (cut_step, whole_step) in enumerate(pairs) if whole_step.size and not cut_step.size), 0)


def is_cause(case: Broken, answer: Answer, node: Node) -> bool:
    """Return whether an operator belongs to the broken step."""
    steps = answer._steps
    earlier = {id(part) for _, step_plan in steps[: case.step] for part in postorder(step_plan)}
    step_parts = [part for part in postorder(steps[case.step][1]) if id(part) not in earlier]
    return any(part is node or part == node for part in step_parts)


def is_repair(case: Broken, change: Change, whole: Node) -> bool:
    """Return whether a change restores the original program or, by the rule, the rows cut off or a bound that is met."""
    if case.rule in ("join", "bound"):
        return change.kind == case.rule
    return optimise(change.plan)[0] == whole or repr(change.plan) == repr(whole)


def empty_programs(records: list[Steps], n: int, seed: int, whole: Graph, cut: Graph) -> list[Broken]:
    """Return `n` programs with empty answers after breaking, the rules in turn; `cut` is the graph for the rule `join`."""
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
            # A "no" may rest on existing values.
            if answer.values in ([], [0], [False]) and answer.why_not().node is not None:
                result.append(case)
        assert at < 60 * n, f"the rule {rule} breaks too few programs"
    return result


def judged(cases: list[Broken], whole: Graph, graph: Graph, cut: Graph, sent: Callable[[], int] = int, rounds: int = 1) -> Judged:
    """Judge how well `graph` explains broken programs, and `cut` those of the rule `join`. `whole` is the graph in
    process. The least time of several rounds counts.
    """
    result = Judged(clock=process_time if graph is whole else perf_counter, sent=sent)
    for _ in range(rounds):
        before, result.times = result.times, []
        # First all answers, then all judgements, so that only the answers are timed.
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
    """How many removed statements were named at all, and how many as the first missing one; and those not named."""

    tried: int = 0
    first: int = 0
    named: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.tried} removed, named {self.named / self.tried:.1%}, first {self.first / self.tried:.1%}"


def removed_statements(records: list[Steps], n: int, seed: int, items: list[Item], graph: Graph, there: Any = None) -> Found:
    """Remove statements that answers rest on, one at a time, and ask why a result is missing: in the graph itself, or
    in an equal graph on a store, `there`. Each statement is added again afterwards.
    """
    there = graph if there is None else there
    random, tally = Random(seed), Found()
    statements = [item for item in items if isinstance(item, Statement)]
    places: dict[tuple[str, str, str], list[int]] = {}
    names = {item.id: item.name for item in items if isinstance(item, Entity)}
    for at, statement in enumerate(statements):
        places.setdefault((statement.subject, statement.predicate, _object(statement)), []).append(at)
    order = list(records)
    random.shuffle(order)
    used = set()
    # If there are too few programs, take another statement of each.
    for number, program in [*enumerate(order), *enumerate(order)]:
        if tally.tried == n:
            break
        answer = graph.kopl(program)
        if not answer.values or isinstance(answer.values[0], bool | int):
            continue
        evidence = [fact for fact in answer.evidence if (fact.subject.id, fact.predicate, _end(fact.object)) in places]
        if not evidence:
            continue
        statement = random.choice(evidence)
        at = places[statement.subject.id, statement.predicate, _end(statement.object)]
        if len(at) > 1 or (number, at[0]) in used:
            continue
        used.add((number, at[0]))
        removed = statements[at[0]]
        there.retract(removed)
        answer_without = there.query(program, on_unknown="empty")
        entities = {entity.id: entity for entity in answer.entities}
        for entity in answer_without.entities:
            entities.pop(entity.id, None)
        missing: list[Any] = list(entities.values()) or [value for value in answer.values if value not in answer_without.values]
        explanation = answer_without.why_not(missing[0]) if missing and _decided(answer_without, missing[0]) else None
        there.add(removed)
        if explanation is None:
            continue
        tally.tried += 1
        expected = (statement.subject.name, statement.predicate, names.get(_end(statement.object), str(statement.object)))
        listed = [(triple.subject, triple.predicate, triple.object) for triple in explanation.missing]
        # For an attribute, the condition that its value does not meet may be named instead.
        relation = isinstance(removed.object, Ref)
        named = [triple == expected or (triple[:2] == expected[:2] and not relation) for triple in listed]
        tally.named += any(named)
        tally.first += named[:1] == [True]
        if not any(named):
            tally.wrong.append(f"{calls(program)}\n    removed {expected}, expected {missing[0]}\n    {explanation}")
    return tally


def _decided(answer: Answer, expected: Any) -> bool:
    """Return whether an expected result determines the missing statement: an entity does, and so does a value of an
    entity that the program names. Any other value may be missing from any entity.
    """
    if isinstance(expected, Entity):
        return True
    scan = next((node for node in reversed(postorder(answer.plan)) if isinstance(node, Scan)), None)
    return scan is not None and isinstance(scan.of, ByName)


def _object(statement: Statement) -> str:
    return statement.object.id if isinstance(statement.object, Ref) else str(statement.object)


def _end(value: Any) -> str:
    return value.id if isinstance(value, Entity) else str(value)
