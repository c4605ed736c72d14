"""Questions in plain template words, by the form rules of `forms`: our own wording of what KQA Pro's
Tables 3 and 8 have templates for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from condgraph.engine.values import Time
from condgraph.questions import forms
from condgraph.questions.description import Ask, Condition, Description, Literal, Related
from condgraph.questions.lexicon import PEOPLE_ARE, PEOPLE_HAVE
from condgraph.questions.qualifiers import about, restriction, restrictions
from condgraph.questions.spelled import attribute, cell, compared, moment, when

_PEOPLE: Final = frozenset({"human", "person", "people", "man", "woman"})
#: Measures that are high and low, not large and small.
_HIGH: Final = frozenset(
    {
        *("price", "rate", "rating", "elevation", "temperature", "point", "score", "speed", "density", "cost", "wage"),
        *("salary", "freight"),
    }
)
_GREAT: Final = frozenset({"height", "length", "depth", "weight", "mass", "width", "latitude", "longitude", "distance", "duration"})
#: Attributes that follow their noun without a verb.
_APPOSED: Final = frozenset({"also known as", "description", "alias", "aliases"})
_MANY_VERBS: Final = {"is": "are", "was": "were", "has": "have"}


class Words:
    """The words of one graph. `several` says of a relation whether a subject has several of it, as
    a rule; `thing` is what anything without a concept is called, `concepts` gives the concepts of
    an entity by its name, and `tables` are concepts that are called as tables are, by a plural.
    """

    def __init__(
        self,
        several: Callable[[str], bool],
        thing: str = "one",
        *,
        concepts: Callable[[str], list[str]] = lambda name: [],
        tables: Collection[str] = (),
    ) -> None:
        self._several, self._thing, self._concepts, self._tables = several, thing, concepts, tables

    # -- descriptions ------------------------------------------------------------------------------

    def noun(self, described: Description, *, many: bool = False) -> str:
        """What the described is called."""
        concept = described.concept
        if concept is None:
            return {"one": "things"}.get(self._thing, self._thing + "s") if many else self._thing
        word = "person" if concept.casefold() == "human" else forms.words_of(concept)
        if any(concept == table.rpartition("/")[2] for table in self._tables):
            word = forms.singular(word)
        return forms.plural(word) if many else word

    def person(self, described: Description) -> bool:
        """Whether the described are people, and "who"."""
        if described.name is not None:
            return any(concept.casefold() in _PEOPLE for concept in self._concepts(described.name))
        return (described.concept or "").casefold() in _PEOPLE or _people(described)

    def described(self, described: Description, *, many: bool = False) -> str:
        """A description in words: "the film that was directed by X"."""
        if described.name is not None:
            return described.name
        head = None if many else self._head(described)
        if head is not None:
            return head
        said = self.clauses(described, many=many)
        return f"the {self.noun(described, many=many)}{' ' if said else ''}{said}"

    def _head(self, described: Description) -> str | None:
        """ "The capital of X", instead of "the capital that is the capital of X"; None for others."""
        for condition in () if described.union else described.conditions:
            form = self._head_form(condition, described)
            if form is not None and isinstance(condition, Related) and form.inward.startswith("is the "):
                rest = tuple(one for one in described.conditions if one is not condition)
                said = self.clauses(replace(described, conditions=rest)) if rest else ""
                return f"the {form.noun} of {self.described(dressed(condition.target))} {said}".rstrip()
        return None

    def _head_form(self, condition: Condition, described: Description) -> forms.Forms | None:
        """The form of a relation that says what the described are: capitals, of the capital of X."""
        if not isinstance(condition, Related) or condition.outward or condition.qualifiers:
            return None
        form = forms.forms(condition.predicate, self._several(condition.predicate))
        noun = None if described.concept is None else self.noun(described).casefold()
        return form if form.whose and form.inward and noun in (None, form.noun.casefold()) else None

    def clauses(self, described: Description, *, many: bool = False) -> str:
        """The relative clauses of a description, those with more in them last."""
        if described.union:
            return self._either(described, "who" if self.person(described) else "that", many=many)
        return _listed(self._parts(described, many=many), described)

    def _parts(self, described: Description, *, many: bool = False) -> list[str]:
        who = "who" if self.person(described) else "that"
        parts = [self._clause(one, who, many=many) for one in _ordered(described)]
        # "A thing described as X", but "that received Y and that is described as X".
        verb = f"{who} {'are' if many else 'is'} " if len(parts) > 1 else ""
        return [verb + part if part.startswith(("described as “", "also known as “")) else part for part in parts]

    def _either(self, described: Description, who: str, *, many: bool) -> str:
        first, *others = (one for one in described.conditions if isinstance(one, Related))
        names = [self.described(one.target) for one in others]
        return " or ".join([self._clause(first, who, many=many), *names])

    def _clause(self, condition: Condition, who: str, *, many: bool) -> str:
        tail = restrictions(condition.qualifiers)
        if isinstance(condition, Literal):
            return self._literal(condition, who, many=many) + tail
        form = forms.forms(condition.predicate, self._several(condition.predicate))
        target = self.described(dressed(condition.target))
        if condition.outward:
            if form.whose:
                return f"whose {form.outward} {target}{tail}"
            return f"{who} {_joined(_agree(form.outward, many=many), target)}{tail}"
        if form.inward:
            return f"{who} {_agree(form.inward, many=many)} {target}{tail}"
        # "that X is part of": the object of the verb.
        return f"that {target} {forms.onto(form)}{tail}"

    def _literal(self, condition: Literal, who: str, *, many: bool) -> str:
        value = condition.value
        happened = forms.event(condition.key) if isinstance(value, Time) else None
        if happened is not None and isinstance(value, Time):
            if condition.op == "!=":
                if not happened.auxiliary:
                    return f"{who} {happened.said} at another time than {moment(value)}"
                return f"{who} {'were' if many else 'was'} not {happened.past} {when('=', value)}"
            return f"{who} {_agree(happened.said, many=many)} {when(condition.op, value)}"
        key = forms.words_of(condition.key)
        if key in _APPOSED:
            return f"{key} “{cell(value)}”" if key == "also known as" else f"described as “{cell(value)}”"
        name, verb = attribute(condition.key, value)
        return f"whose {name} {verb} {compared(condition.op, value, condition.key)}"

    # -- questions ---------------------------------------------------------------------------------

    def question(self, ask: Ask) -> str:
        """A whole question."""
        born = ask.key if ask.kind != "QualifierRelational" else ""
        first = dressed(ask.first, born)
        second = None if ask.second is None else dressed(ask.second, born)
        found: str = getattr(self, f"_ask_{ask.kind}")(replace(ask, first=first, second=second))
        return found[:1].upper() + found[1:]

    def _ask_QueryName(self, ask: Ask) -> str:
        first = ask.first
        if self._head(first) is not None:
            return f"{'Who' if self.person(first) else 'What'} is {self.described(first)}?"
        who, parts = "who " if self.person(first) else "that ", self._parts(first)
        if not first.union and all(map(self._of_subject, first.conditions)) and all(part.startswith(who) for part in parts):
            noun = "What" if first.concept is None else f"Which {self.noun(first)}"
            noun = "Who" if noun == "Which person" else noun
            return f"{noun} {_listed([part.removeprefix(who) for part in parts], first)}?"
        return f"{'Who' if self.person(first) else 'What'} is {self.described(first)}?"

    def _of_subject(self, condition: Condition) -> bool:
        """Whether what a clause is about is its subject: not so in "that X is part of"."""
        if isinstance(condition, Literal) or condition.outward:
            return True
        return bool(forms.forms(condition.predicate, self._several(condition.predicate)).inward)

    def _ask_Count(self, ask: Ask) -> str:
        for condition in () if ask.first.union else ask.first.conditions:
            form = self._head_form(condition, ask.first)
            if form is not None and isinstance(condition, Related):
                target = self.described(dressed(condition.target))
                rest = replace(ask.first, conditions=tuple(one for one in ask.first.conditions if one is not condition))
                if not rest.conditions:
                    return f"How many {forms.plural(form.noun)} does {target} have?"
        return f"How many {self.noun(ask.first, many=True)} are there {self.clauses(ask.first, many=True)}?"

    def _ask_QueryAttribute(self, ask: Ask) -> str:
        subject = self.described(ask.first)
        tail = "" if ask.qualifier is None else f" {restriction(ask.qualifier)}"
        happened = forms.event(ask.key) if isinstance(ask.value, Time) else None
        if happened is not None:
            return f"When {happened.asked(subject)}{tail}?"
        name, verb = attribute(ask.key, ask.value)
        if name in _APPOSED:
            return f"How is {subject} described{tail}?" if name == "description" else f"What is {subject} also known as{tail}?"
        return f"What {_then(verb, ask)} the {name} of {subject}{tail}?"

    def _ask_Verify(self, ask: Ask) -> str:
        subject = self.described(ask.first)
        tail = "" if ask.qualifier is None else f" {restriction(ask.qualifier)}"
        happened = forms.event(ask.key) if isinstance(ask.value, Time) else None
        if happened is not None and isinstance(ask.value, Time):
            return f"{happened.asked(subject)} {when(ask.op, ask.value)}{tail}?"
        key = forms.words_of(ask.key)
        if key in _APPOSED:
            return f"is {subject} {'described as' if key == 'description' else 'also known as'} “{cell(ask.value)}”{tail}?"
        name, verb = attribute(ask.key, ask.value)
        return f"{_then(verb, ask)} the {name} of {subject}{tail} {compared(ask.op, ask.value)}?"

    def _ask_Relation(self, ask: Ask) -> str:
        assert ask.second is not None
        return f"What is the relation from {self.described(ask.first)} to {self.described(ask.second)}?"

    def _ask_SelectAmong(self, ask: Ask) -> str:
        noun, said = self.noun(ask.first, many=True), self.clauses(ask.first, many=True)
        group = f"the {noun} {said}".rstrip()
        happened = forms.event(ask.key) if isinstance(ask.value, Time) else None
        if happened is not None:
            return f"Which of {group} {_once(happened)} {'last' if ask.op == 'largest' else 'first'}?"
        return f"Which of {group} has the {_most(ask)} {attribute(ask.key, ask.value)[0]}?"

    def _ask_SelectBetween(self, ask: Ask) -> str:
        assert ask.second is not None
        both = f"{self.described(ask.first)} or {self.described(ask.second)}"
        happened = forms.event(ask.key) if isinstance(ask.value, Time) else None
        person = self.person(ask.first) and self.person(ask.second)
        which = "Who" if person else "Which"
        if happened is not None:
            return f"{which} {_once(happened)} {'later' if ask.op == 'greater' else 'earlier'}, {both}?"
        more = ("later" if ask.op == "greater" else "earlier") if isinstance(ask.value, Time) else _more(ask)
        return f"{which} has the {more} {attribute(ask.key, ask.value)[0]}, {both}?"

    def _ask_QualifierLiteral(self, ask: Ask) -> str:
        name, verb = attribute(ask.key, ask.value)
        said = f"the {name} of {self.described(ask.first)} {verb} {cell(ask.value)}"
        if name in _APPOSED:
            how = "described as" if name == "description" else "also known as"
            said = f"{self.described(ask.first)} is {how} “{cell(ask.value)}”"
        happened = forms.event(ask.key) if isinstance(ask.value, Time) else None
        if happened is not None and isinstance(ask.value, Time):
            said = f"{self.described(ask.first)} {happened.said} {when('=', ask.value)}"
        return f"{said}; {about(ask.qkey)}?"

    def _ask_QualifierRelational(self, ask: Ask) -> str:
        assert ask.second is not None
        form = forms.forms(ask.key, self._several(ask.key))
        first, second = self.described(ask.first), self.described(ask.second)
        said = form.statement.format(first, second) if form.whose else f"{first} {_joined(form.outward, second)}"
        return f"{said}; {about(ask.qkey)}?"


def _then(verb: str, ask: Ask) -> str:
    """The verb in the past, where a question is about a time."""
    then = ask.qualifier is not None and isinstance(ask.qualifier.value, Time)
    return {"is": "was", "are": "were"}[verb] if then else verb


def _ordered(described: Description) -> list[Condition]:
    return sorted(described.conditions, key=lambda one: one.hops)


def _listed(parts: list[str], described: Description) -> str:
    """Clauses in a row; a comma keeps the last from going with what is within the one before."""
    nested = any(isinstance(one, Related) and one.target.conditions for one in _ordered(described)[:-1])
    head = ", ".join(parts[:-1])
    return f"{head}{', and ' if nested else ' and '}{parts[-1]}" if head else "".join(parts)


def _people(described: Description) -> bool:
    """Whether the conditions are such as hold of people alone."""
    names = {(forms.words_of(one.key), True) for one in described.conditions if isinstance(one, Literal)}
    names |= {(forms.words_of(one.predicate), one.outward) for one in described.conditions if isinstance(one, Related)}
    return any(name in (PEOPLE_HAVE if outward else PEOPLE_ARE) for name, outward in names)


def _once(happened: forms.Event) -> str:
    """An event before "first" or "later", without such a word of its own."""
    return happened.said.replace("first ", "").replace("last ", "")


def dressed(described: Description, key: str = "") -> Description:
    """A description for wording: what has no concept, and can only be a person, is one."""
    if described.concept is not None or described.name is not None:
        return described
    people = _people(described) or forms.words_of(key) in PEOPLE_HAVE
    return replace(described, concept="human") if people else described


def _joined(verb: str, target: str) -> str:
    """A verb before its object: "received the award X", but "received the prize that ..."."""
    before, the, noun = verb.rpartition(" the ")
    if the and target.startswith("the ") and not noun.endswith(" of"):
        rest = target.removeprefix("the one ")
        return f"{before} the {noun} {rest}" if rest != target else f"{before} {target}"
    return f"{verb} {target}"


def _agree(text: str, *, many: bool) -> str:
    if not many:
        return text
    first, space, rest = text.partition(" ")
    if first in _MANY_VERBS:
        rest = rest.removeprefix("the ") if rest.startswith("the ") and rest.endswith(" of") else rest
        head, of, end = rest.rpartition(" of")
        if of and not end and first == "is" and not head.startswith("part"):
            words = head.removeprefix("a ").removeprefix("an ")
            rest = f"{forms.plural(words)} of"
        return f"{_MANY_VERBS[first]}{space}{rest}"
    if first.endswith("s") and not first.endswith("ss"):
        base = first[:-3] + "y" if first.endswith("ies") else first[:-2] if first.endswith(("sses", "shes", "ches")) else first[:-1]
        return f"{base}{space}{rest}"
    return text


def _most(ask: Ask) -> str:
    if isinstance(ask.value, Time):
        return "latest" if ask.op == "largest" else "earliest"
    return superlative(ask.key, largest=ask.op == "largest")


def superlative(key: str, *, largest: bool) -> str:
    """The most, or the least, of a measure: "highest price", "greatest height", "largest area"."""
    return _compared_by(key)[0 if largest else 1][:-1] + "st"


def _more(ask: Ask) -> str:
    return _compared_by(ask.key)[0 if ask.op == "greater" else 1]


def _compared_by(key: str) -> tuple[str, str]:
    """What more and less of a measure is called; the superlative ends in "st" for the "r"."""
    words = frozenset(forms.words_of(key).casefold().split())
    if _HIGH & words:
        return "higher", "lower"
    return ("greater", "smaller") if _GREAT & words else ("larger", "smaller")
