"""A schema as plain text within a budget of tokens, for prompts.

What is most used comes first. Sources, units and concepts have a share of the budget each, and what
they leave is for predicates. The last line says what did not fit. The count of the whole text is
what is held against the budget, so that it also holds for tokenizers whose tokens run over ends of
lines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.bounds import check
from condgraph.engine.errors import OptionError
from condgraph.models.chat import estimate
from condgraph.overview.rows import heading, to_words
from condgraph.overview.words import examples_words, kinds_words, listed_words, qualifier_words, quoted

if TYPE_CHECKING:
    from condgraph.overview.records import ConceptSchema, Overview, PredicateSchema

#: From text to how many tokens it is.
Count = Callable[[str], int]
#: Which part of a budget the shorter sections may take.
_SHARES: Final = {"sources": 0.12, "units": 0.08, "concepts": 0.2}
_ORDER: Final = ("sources", "concepts", "predicates", "units")


def within_budget(schema: Overview, tokens: Any, count: Any = None) -> str:
    """The text of a schema in at most so many tokens (`GraphSchema.text`)."""
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
        raise OptionError(f"tokens is a whole number and 0 or more, not {tokens!r}")
    if count is not None and not callable(count):
        raise OptionError(f"count is a function from text to a number of tokens, not {count!r}")
    counted: Count = estimate if count is None else count
    head = heading(schema) + "." + (f" {schema.note}" if schema.note else "")
    lines: dict[str, list[str]] = {name: [] for name in _ORDER}
    totals = {name: len(getattr(schema, name)) for name in _ORDER}
    if sum(totals.values()) <= tokens:
        whole = {name: [_FORMS[name][0](one) for one in getattr(schema, name)] for name in _ORDER}
        if counted(text := _joined(head, whole, totals)) <= tokens:
            return text
    left = tokens - counted(head + "\n") - counted(_joined("", lines, totals))
    for name, share in _SHARES.items():
        left -= _fill(lines[name], schema, name, min(int(tokens * share), left), counted)
    _fill(lines["predicates"], schema, "predicates", left, counted)
    # What is least used goes until the whole fits.
    droppable = ("units", "sources", "concepts", "predicates")
    while True:
        check()
        text = _joined(head, lines, totals)
        over = counted(text) - tokens
        if over <= 0:
            return text
        for name in droppable:
            while lines[name] and over > 0:
                over -= max(counted(lines[name].pop() + "\n"), 1)
            if over <= 0:
                break
        else:
            return head if counted(head) <= tokens else ""


def _fill(lines: list[str], schema: Overview, name: str, budget: int, counted: Count) -> int:
    """Add lines while they fit; how many tokens they take. A line that does not fit is tried in a
    shorter form, and ends the section where that does not fit either.
    """
    found = getattr(schema, name)
    used = counted(f"{_TITLES[name]}\n") if found else 0
    for number, one in enumerate(found):
        if not number % 64:
            check()
        forms = _FORMS[name]
        # The first ones are told at length, so that the others are told at all.
        for form in forms[min(len(forms) * used // max(budget, 1), len(forms) - 1) :]:
            line = form(one)
            cost = counted(line + "\n")
            if used + cost <= budget:
                lines.append(line)
                used += cost
                break
        else:
            break
    return used if lines else 0


def _joined(head: str, lines: dict[str, list[str]], totals: dict[str, int]) -> str:
    parts = [head]
    for name in _ORDER:
        if lines[name]:
            parts += [_TITLES[name], *lines[name]]
    missing = {name: totals[name] - len(lines[name]) for name in ("predicates", "concepts", "sources", "units")}
    told = [f"{number:,} more {name if number > 1 else name[:-1]}" for name, number in missing.items() if number]
    if told:
        parts.append("and " + ", ".join(told))
    return "\n".join(parts)


def _long(one: PredicateSchema) -> str:
    return _predicate(one, kinds=3, examples=2)


def _middle(one: PredicateSchema) -> str:
    return _predicate(one, kinds=2, examples=1)


def _predicate(one: PredicateSchema, *, kinds: int, examples: int) -> str:
    text = f"- {quoted(one.name)} {one.statements:,}: {kinds_words(one.subjects, kinds)} → {to_words(one, kinds)}"
    if one.qualifiers:
        text += f"; qualifiers {listed_words([qualifier_words(key) for key in one.qualifiers[:4]], len(one.qualifiers) - 4)}"
    return text + (f"; e.g. {examples_words(one, examples)}" if one.examples else "")


def _short(one: PredicateSchema) -> str:
    return f"- {quoted(one.name)} {one.statements:,}: {kinds_words(one.subjects, 1)} → {to_words(one, 1)}"


def _bare(one: PredicateSchema) -> str:
    return f"- {quoted(one.name)} {one.statements:,}"


def _concept(one: ConceptSchema) -> str:
    above = f", below {listed_words([quoted(name) for name in one.above[:2]], len(one.above) - 2)}" if one.above else ""
    some = f", e.g. {', '.join(quoted(name) for name in one.examples[:2])}" if one.examples else ""
    return f"- {quoted(one.name)} {one.members:,}{above}{some}"


_TITLES: Final = {
    "sources": "Sources, with statements:",
    "concepts": "Concepts, with members:",
    "predicates": "Predicates, with statements: subjects → objects:",
    "units": "Units, with values:",
}
_FORMS: Final[dict[str, tuple[Callable[..., str], ...]]] = {
    "sources": (lambda one: f"- {quoted(one.name)} {one.statements:,}{f', {one.rows:,} rows' if one.rows else ''}",),
    "concepts": (_concept, lambda one: f"- {quoted(one.name)} {one.members:,}"),
    "predicates": (_long, _middle, _short, _bare),
    "units": (lambda one: f"- {quoted(one.unit)} {one.values:,}",),
}


def predicate_line(one: PredicateSchema, length: int, *, examples: bool = True) -> str:
    """A predicate in a line: at length (0), or shorter (1, 2), down to its name and size (3).
    `examples=False` leaves out what stands in the graph.
    """
    if not examples and length < 2:
        return _predicate(one, kinds=3 - length, examples=0)
    return str(_FORMS["predicates"][length](one))
