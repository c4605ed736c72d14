"""Words of questions from templates and the rules of `forms`: values, qualifiers, whole questions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import takewhile
from typing import Final

from condgraph.engine.values import DAY_SECONDS, NO_UNIT, Precision, Quantity, Time, civil, format_number
from condgraph.questions import forms
from condgraph.questions.description import Ask, Cell, Condition, Description, Literal, RelationCondition, Restriction
from condgraph.questions.forms import PEOPLE_ARE, PEOPLE_HAVE, PREPOSITIONS, TAKEN
from condgraph.questions.locate import is_code

# -- values ----------------------------------------------------------------------------------------
# Numbers with their units, times, and comparisons in words.


_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
#: Endings and nouns in -s that are not plurals, and plurals that are not counted.
_SINGULAR_ENDINGS: Final = ("ss", "us", "is", "as", "os", "ics")
_SINGULAR: Final = frozenset({"series", "species", "news", "alias", "lens", "always", "previous"})
_AMOUNTS: Final = frozenset({"sales", "earnings", "proceeds", "winnings", "assets", "expenses", "savings", "wages", "coordinates"})


def number(value: Quantity) -> str:
    """Return a number as people write it, with its unit: "282 square kilometres".

    >>> number(Quantity(8670300)), number(Quantity(1.98, "metre")), number(Quantity(1, "metre")), number(Quantity(5, "$"))
    ('8,670,300', '1.98 metres', '1 metre', '5 $')
    """
    text = format_number(value.number)
    digits, point, rest = text.partition(".")
    if len(digits.lstrip("-")) > 4 and digits.lstrip("-").isdigit():
        text = f"{int(digits):,}{point}{rest}"
    if value.unit == NO_UNIT:
        return text
    return f"{text} {value.unit if value.number == 1 else forms.unit(value.unit)}"


def moment(value: Time) -> str:
    """Return a time in words: "1958", "May 1958", "29 May 1958", "44 BC"."""
    year, month, day = civil(value.start // DAY_SECONDS)
    shown = str(year) if year > 0 else f"{1 - year} BC"
    if value.precision is Precision.YEAR:
        return shown
    return f"{_MONTHS[month - 1]} {shown}" if value.precision is Precision.MONTH else f"{day} {_MONTHS[month - 1]} {shown}"


def cell(value: Cell) -> str:
    return value if isinstance(value, str) else number(value) if isinstance(value, Quantity) else moment(value)


def when(op: str, value: Time) -> str:
    """Return the time of an event in words: "in 1958", "before 1960", "on 29 May 1958"."""
    words = {"<": "before", ">": "after", "<=": "no later than", ">=": "no earlier than"}
    at = words.get(op) or ("on" if value.precision is Precision.DAY else "in")
    return ("not " if op == "!=" else "") + f"{at} {moment(value)}"


def attribute(key: str, value: Cell) -> tuple[str, str]:
    """Return the name of an attribute, and the verb between it and the value: "number of units in stock" with "is",
    "comments" with "are".

    >>> attribute("population", Quantity(5)), attribute("unitsInStock", Quantity(5)), attribute("Comments", "good")
    (('population', 'is'), ('number of units in stock', 'is'), ('Comments', 'are'))
    """
    name = forms.words_of(key)
    if (noun := forms.column(key)) != name:
        return noun, "is"
    head = list(takewhile(lambda word: word.casefold() not in PREPOSITIONS, name.split()))
    last = head[-1].casefold() if head else ""
    if len(last) < 4 or not last.isalpha() or not last.endswith("s") or last.endswith(_SINGULAR_ENDINGS) or last in _SINGULAR:
        return name, "is"
    is_count = isinstance(value, Quantity) and value.unit == NO_UNIT and last not in _AMOUNTS
    return (f"number of {name}", "is") if is_count else (name, "are")


def plain(key: str, value: Cell) -> str:
    """Return a value of an attribute in words, with texts in quotes and codes without separators."""
    if isinstance(value, str):
        return f"“{value}”"
    if isinstance(value, Quantity) and value.unit == NO_UNIT and is_code(key, value):
        return format_number(value.number)
    return cell(value)


def compared(op: str, value: Cell, key: str = "") -> str:
    """Return what follows "is": "206 centimetres", "more than 200", "after 1960"."""
    if isinstance(value, Time):
        return moment(value) if op == "=" else when(op, value)
    words = {"=": "", "!=": "not ", "<": "less than ", ">": "more than ", "<=": "at most ", ">=": "at least "}
    return words[op] + plain(key, value)


# -- qualifiers --------------------------------------------------------------------------------------
# Qualifiers in words: as conditions after a clause, and as questions about a fact.


#: The questions about the qualifiers of a fact, by the words of the qualifier.
_QUALIFIER_QUESTIONS: Final = {
    "point in time": "when was that",
    "start time": "since when",
    "end time": "until when",
    "month of the year": "in which month was that",
    "month number": "what is the number of the month",
    "location": "where was that",
    "subject of": "what is that the subject of",
    "applies to part": "to which part does that apply",
}


def restriction(given: Restriction) -> str:
    """Return a qualifier as a condition after a clause.

    >>> restriction(Restriction("point in time", "=", Time.year(2003)))
    'in 2003'
    >>> restriction(Restriction("approved by", "=", "Senate")), restriction(Restriction("character role", "=", "Darth Vader"))
    ('(approved by Senate)', '(with Darth Vader as the character role)')
    """
    key = forms.words_of(given.key).casefold()
    if isinstance(given.value, Time):
        if key in ("point in time", "time", "date", "year"):
            return when(given.op, given.value)
        if key == "start time":
            return f"from {moment(given.value)} on" if given.op == "=" else f"from {when(given.op, given.value)} on"
        if key == "end time":
            return f"until {moment(given.value)}" if given.op == "=" else f"until {when(given.op, given.value)}"
    if given.op != "=":
        return f"(the {key} is {compared(given.op, given.value)})"
    first, last = (*key.split(), "")[0], key.rpartition(" ")[2]
    if key == "month of the year":
        return f"(in {cell(given.value)})"
    if key == "month number":
        return f"(in month {cell(given.value)})"
    if first in ("for", "of", "with", "by"):
        return f"({first} {cell(given.value)})"
    if (first == "located" and " " in key) or last in PREPOSITIONS or _ing(key):
        return f"({'located in' if first == 'located' else key} {cell(given.value)})"
    return f"(with {cell(given.value)} as the {key})"


def restrictions(those: tuple[Restriction, ...]) -> str:
    """Return several qualifiers, each after a space."""
    text = "".join(f" {restriction(item)}" for item in those)
    return text.replace(" on until ", " until ")


def about(key: str) -> str:
    """Return the question about a qualifier, which follows the statement of the fact.

    >>> about("start time"), about("position held"), about("for work"), about("followed by")
    ('since when', 'which position was held', 'for which work was that', 'followed by whom or what')
    >>> about("country"), about("cause of")
    ('what is the country given there', 'what is given there as “cause of”')
    """
    name = forms.words_of(key).casefold()
    words = [*name.split(), "", ""]
    if name in _QUALIFIER_QUESTIONS:
        return _QUALIFIER_QUESTIONS[name]
    if name in ("of", "for", "with", "by") or _ing(name):
        return f"{name} what"
    if words[0] == "for":
        return f"for which {name[4:]} was that"
    if words[0] == "located" and words[1] in ("in", "on", "at"):
        return "where is that located"
    if words[:2] == ["member", "of"]:
        return f"a member of which {name[10:]}" if words[2] else "a member of what"
    if len(words) == 4 and words[1] in TAKEN:
        return f"which {words[0]} was {words[1]}"
    if len(words) == 4 and words[1] == "by":
        return f"{name} whom or what"
    return f"what is the {name} given there" if forms.forms(key).whose else f"what is given there as “{name}”"


def _ing(key: str) -> bool:
    return key in ("excluding", "including", "following", "replacing")


# -- descriptions and questions --------------------------------------------------------------------


_PEOPLE: Final = frozenset({"human", "person", "people", "man", "woman"})
#: Measures that are high or low rather than large or small.
_HIGH: Final = frozenset(
    "price rate rating elevation temperature point score speed density cost wage salary freight".split()  # noqa: SIM905
)
_GREAT: Final = frozenset({"height", "length", "depth", "weight", "mass", "width", "latitude", "longitude", "distance", "duration"})
#: Attributes whose value follows the noun without a verb.
_APPOSED: Final = frozenset({"also known as", "description", "alias", "aliases"})
_PLURAL_VERBS: Final = {"is": "are", "was": "were", "has": "have"}


class Words:
    """The wording of questions about one graph.

    `several` returns whether subjects of a relation usually have several objects. `thing` is the noun for entities
    without a concept, `concepts` returns the concepts of an entity by its name. `tables` are the names of tables, whose
    concepts are plurals. `subjects` returns a noun for the subjects of a relation, or "".
    """

    def __init__(
        self,
        several: Callable[[str], bool],
        thing: str = "one",
        *,
        concepts: Callable[[str], list[str]] = lambda name: [],
        tables: Collection[str] = (),
        subjects: Callable[[str], str] = lambda predicate: "",
    ) -> None:
        self._several, self._thing, self._concepts, self._tables = several, thing, concepts, tables
        self._subjects = subjects

    # -- descriptions ------------------------------------------------------------------------------

    def noun(self, described: Description, *, many: bool = False) -> str:
        """Return the noun of a description: its concept, or the noun that the names of its relations suggest."""
        concept = described.concept
        if concept is None and (kind := self._noun(described)):
            return forms.plural(kind) if many else kind
        if concept is None:
            return {"one": "things"}.get(self._thing, self._thing + "s") if many else self._thing
        word = "person" if concept.casefold() == "human" else forms.words_of(concept)
        if any(concept == table.rpartition("/")[2] for table in self._tables):
            word = forms.singular(word)
        return forms.plural(word) if many else word

    def _noun(self, described: Description) -> str:
        """Return the noun that the names of a description's relations suggest, such as "country"; "" if none does."""
        for condition in described.conditions:
            if isinstance(condition, RelationCondition):
                kind = self._subjects(condition.predicate) if condition.outward else forms.forms(condition.predicate).kind
                if kind:
                    return kind
        return ""

    def person(self, described: Description) -> bool:
        """Whether a description is of people, for "who"."""
        if described.name is not None:
            return any(concept.casefold() in _PEOPLE for concept in self._concepts(described.name))
        if described.concept is None and self._noun(described) == "person":
            return True
        return (described.concept or "").casefold() in _PEOPLE or _people(described)

    def described(self, described: Description, *, many: bool = False) -> str:
        """Return a description in words: "the film that was directed by X"."""
        if described.name is not None:
            return described.name
        short_form = None if many else self._head(described)
        if short_form is not None:
            return short_form
        clauses = self.clauses(described, many=many)
        return f"the {self.noun(described, many=many)}{' ' if clauses else ''}{clauses}"

    def _head(self, described: Description) -> str | None:
        """Return "the capital of X" in place of "the capital that is the capital of X"; None for other descriptions."""
        for condition in () if described.union else described.conditions:
            form = self._head_form(condition, described)
            if form is not None and isinstance(condition, RelationCondition) and form.inward.startswith("is the "):
                other_conditions = tuple(item for item in described.conditions if item is not condition)
                clauses = self.clauses(replace(described, conditions=other_conditions)) if other_conditions else ""
                return f"the {form.noun} of {self.described(dressed(condition.target))} {clauses}".rstrip()
        return None

    def _head_form(self, condition: Condition, described: Description) -> forms.Forms | None:
        """Return the form of a relation whose noun is that of the description, as in the capital of X; None for others."""
        if not isinstance(condition, RelationCondition) or condition.outward or condition.qualifiers:
            return None
        form = forms.forms(condition.predicate, self._several(condition.predicate))
        noun = None if described.concept is None else self.noun(described).casefold()
        return form if form.whose and form.inward and noun in (None, form.noun.casefold()) else None

    def clauses(self, described: Description, *, many: bool = False) -> str:
        """Return the relative clauses of a description, those with the most hops last."""
        if described.union:
            return self._either(described, "who" if self.person(described) else "that", many=many)
        return _listed(self._clauses(described, many=many), described)

    def _clauses(self, described: Description, *, many: bool = False) -> list[str]:
        who = "who" if self.person(described) else "that"
        parts = [self._clause(item, who, many=many) for item in _ordered(described)]
        # "The thing described as X", but "that received Y and that is described as X".
        verb = f"{who} {'are' if many else 'is'} " if len(parts) > 1 else ""
        return [verb + part if part.startswith(("described as “", "also known as “")) else part for part in parts]

    def _either(self, described: Description, who: str, *, many: bool) -> str:
        first, *other_relations = (condition for condition in described.conditions if isinstance(condition, RelationCondition))
        names = [self.described(relation.target) for relation in other_relations]
        return " or ".join([self._clause(first, who, many=many), *names])

    def _clause(self, condition: Condition, who: str, *, many: bool) -> str:
        qualifiers = restrictions(condition.qualifiers)
        if isinstance(condition, Literal):
            return self._literal(condition, who, many=many) + qualifiers
        form = forms.forms(condition.predicate, self._several(condition.predicate))
        target = self.described(dressed(condition.target))
        if condition.outward:
            if (
                form.outward.endswith(f" the {form.kind}")
                and target.startswith("the ")
                and not target.startswith(f"the {form.kind}")
            ):
                # For example "wears the number that is the age of X".
                return f"{who} {_agree(form.outward, many=many)} that is {target}{qualifiers}"
            if form.whose:
                return f"whose {form.outward} {target}{qualifiers}"
            return f"{who} {_with_object(_agree(form.outward, many=many), target)}{qualifiers}"
        if form.inward:
            return f"{who} {_agree(form.inward, many=many)} {target}{qualifiers}"
        # "that X is part of": the described entity is the object of the verb.
        return f"that {target} {_onto(form)}{qualifiers}"

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
        """Return the words of a question."""
        asked_key = ask.key if ask.kind != "QualifierRelational" else ""
        ask = replace(ask, first=righted(ask.first), second=None if ask.second is None else righted(ask.second))
        first = dressed(ask.first, asked_key)
        second = None if ask.second is None else dressed(ask.second, asked_key)
        ask = replace(ask, first=first, second=second)
        if ask.kind == "QueryName":
            text = self._name_question(first)
        elif ask.kind == "Count":
            text = self._count_question(first)
        else:
            text = TEMPLATES[ask.kind, _form(ask)].format_map(_Fields(self, ask))
        return text[:1].upper() + text[1:]

    def _name_question(self, first: Description) -> str:
        (condition, *others) = first.conditions or (None,)
        if not others and first.concept is None and isinstance(condition, RelationCondition) and not condition.outward:
            form = forms.forms(condition.predicate, self._several(condition.predicate))
            if form.kind:
                # For example "Which country does X play for?"
                verb, target = _onto(form), self.described(dressed(condition.target))
                qualifiers = restrictions(condition.qualifiers)
                verb = verb.removeprefix("is ") if verb.startswith("is ") else forms.base(verb)
                subject_part = f"is {target}" if form.outward.startswith("is ") else f"does {target}"
                return f"Which {form.kind} {subject_part} {verb}{qualifiers}?"
        if self._head(first) is not None:
            return f"{'Who' if self.person(first) else 'What'} is {self.described(first)}?"
        who, parts = "who " if self.person(first) else "that ", self._clauses(first)
        if not first.union and all(map(self._of_subject, first.conditions)) and all(part.startswith(who) for part in parts):
            noun = "What" if first.concept is None else f"Which {self.noun(first)}"
            noun = "Who" if noun == "Which person" else noun
            return f"{noun} {_listed([part.removeprefix(who) for part in parts], first)}?"
        return f"{'Who' if self.person(first) else 'What'} is {self.described(first)}?"

    def _of_subject(self, condition: Condition) -> bool:
        """Whether the described entity is the subject of the clause; not so in "that X is part of"."""
        if isinstance(condition, Literal) or condition.outward:
            return True
        return bool(forms.forms(condition.predicate, self._several(condition.predicate)).inward)

    def _count_question(self, first: Description) -> str:
        for condition in () if first.union else first.conditions:
            form = self._head_form(condition, first)
            if form is not None and isinstance(condition, RelationCondition):
                target = self.described(dressed(condition.target))
                if len(first.conditions) == 1:
                    return f"How many {forms.plural(form.noun)} does {target} have?"
        parts = self._clauses(first, many=True)
        if not first.union and first.concept in (None, "human") and all(map(self._verbal, first.conditions)):
            # For example "How many people play for X?"
            noun, who = self.noun(first, many=True), "who " if self.person(first) else "that "
            return f"How many {noun} {_listed([part.removeprefix(who) for part in parts], first)}?"
        return f"How many {self.noun(first, many=True)} are there {self.clauses(first, many=True)}?"

    def _verbal(self, condition: Condition) -> bool:
        """Whether a clause is a verb phrase from the name of its relation."""
        if not isinstance(condition, RelationCondition) or not condition.outward:
            return False
        return bool(forms.forms(condition.predicate, self._several(condition.predicate)).kind)

    def fact(self, ask: Ask) -> str:
        """Return the statement of a relation, which precedes the question about its qualifier."""
        assert ask.second is not None
        form = forms.forms(ask.key, self._several(ask.key))
        first, second = self.described(ask.first), self.described(ask.second)
        return form.statement.format(first, second) if form.whose else f"{first} {_with_object(form.outward, second)}"


# -- templates -------------------------------------------------------------------------------------

#: The words of a question by its kind and the class of its attribute: an event ("when was it founded"), a description, another
#: name, or any other.
TEMPLATES: Final[Mapping[tuple[str, str], str]] = {
    ("QueryAttribute", "event"): "When {event_asked}{qualifier}?",
    ("QueryAttribute", "description"): "How is {first} described{qualifier}?",
    ("QueryAttribute", "name"): "What is {first} also known as{qualifier}?",
    ("QueryAttribute", "other"): "What {verb_then} the {attribute} of {first}{qualifier}?",
    ("Verify", "event"): "{event_asked} {when}{qualifier}?",
    ("Verify", "description"): "is {first} described as “{value}”{qualifier}?",
    ("Verify", "name"): "is {first} also known as “{value}”{qualifier}?",
    ("Verify", "other"): "{verb_then} the {attribute} of {first}{qualifier} {compared}?",
    ("Relation", "other"): "What is the relation from {first} to {second}?",
    ("SelectAmong", "event"): "Which of {group} {event} {last}?",
    ("SelectAmong", "other"): "Which of {group} has the {most} {attribute}?",
    ("SelectBetween", "event"): "{which} {event} {later}, {first} or {second}?",
    ("SelectBetween", "other"): "{which} has the {more} {attribute}, {first} or {second}?",
    ("QualifierLiteral", "event"): "{first} {event_told} {when_it_was}; {qualifier_asked}?",
    ("QualifierLiteral", "description"): "{first} is described as “{value}”; {qualifier_asked}?",
    ("QualifierLiteral", "name"): "{first} is also known as “{value}”; {qualifier_asked}?",
    ("QualifierLiteral", "other"): "the {attribute} of {first} {verb} {value}; {qualifier_asked}?",
    ("QualifierRelational", "other"): "{fact}; {qualifier_asked}?",
}


def _form(ask: Ask) -> str:
    """Return the class of a question's attribute, on which `TEMPLATES` depend."""
    if ask.kind in ("Relation", "QualifierRelational"):
        return "other"
    if isinstance(ask.value, Time) and forms.event(ask.key) is not None:
        return "event"
    attribute_name = forms.words_of(ask.key) if ask.kind == "Verify" else attribute(ask.key, ask.value)[0]
    if ask.kind.startswith("Select") or attribute_name not in _APPOSED:
        return "other"
    return "description" if attribute_name == "description" else "name"


class _Fields(dict[str, str]):
    """The fields of templates for one question, each computed when a template uses it."""

    def __init__(self, words: Words, ask: Ask) -> None:
        super().__init__()
        self._words, self._ask = words, ask

    def __missing__(self, field: str) -> str:
        return _FIELDS[field](self._words, self._ask)


def _group(words: Words, ask: Ask) -> str:
    return f"the {words.noun(ask.first, many=True)} {words.clauses(ask.first, many=True)}".rstrip()


def _event(ask: Ask) -> forms.Event:
    result = forms.event(ask.key)
    assert result is not None
    return result


def _when(ask: Ask, op: str) -> str:
    assert isinstance(ask.value, Time)
    return when(op, ask.value)


def _described(words: Words, described: Description | None) -> str:
    assert described is not None
    return words.described(described)


def _which(words: Words, ask: Ask) -> str:
    assert ask.second is not None
    return "Who" if words.person(ask.first) and words.person(ask.second) else "Which"


_FIELDS: Final[Mapping[str, Callable[[Words, Ask], str]]] = {
    "first": lambda words, ask: words.described(ask.first),
    "second": lambda words, ask: _described(words, ask.second),
    "group": _group,
    "which": _which,
    "fact": lambda words, ask: words.fact(ask),
    "attribute": lambda _, ask: attribute(ask.key, ask.value)[0],
    "verb": lambda _, ask: attribute(ask.key, ask.value)[1],
    "verb_then": lambda _, ask: _tensed(attribute(ask.key, ask.value)[1], ask),
    "value": lambda _, ask: cell(ask.value),
    "compared": lambda _, ask: compared(ask.op, ask.value),
    "when": lambda _, ask: _when(ask, ask.op),
    "when_it_was": lambda _, ask: _when(ask, "="),
    "event": lambda _, ask: _without_order(_event(ask)),
    "event_asked": lambda words, ask: _event(ask).asked(words.described(ask.first)),
    "event_told": lambda _, ask: _event(ask).said,
    "last": lambda _, ask: "last" if ask.op == "largest" else "first",
    "later": lambda _, ask: "later" if ask.op == "greater" else "earlier",
    "most": lambda _, ask: _most(ask),
    "more": lambda _, ask: _more(ask),
    "qualifier": lambda _, ask: "" if ask.qualifier is None else f" {restriction(ask.qualifier)}",
    "qualifier_asked": lambda _, ask: about(ask.qkey),
}


def _tensed(verb: str, ask: Ask) -> str:
    """Return the verb, in the past tense if the question is about a time."""
    in_past = ask.qualifier is not None and isinstance(ask.qualifier.value, Time)
    return {"is": "was", "are": "were"}[verb] if in_past else verb


def _ordered(described: Description) -> list[Condition]:
    return sorted(described.conditions, key=lambda item: item.hops)


def _listed(parts: list[str], described: Description) -> str:
    """Join clauses; a comma separates the last one from a nested clause before it."""
    nested = any(isinstance(condition, RelationCondition) and condition.target.conditions for condition in _ordered(described)[:-1])
    head = ", ".join(parts[:-1])
    return f"{head}{', and ' if nested else ' and '}{parts[-1]}" if head else "".join(parts)


def _people(described: Description) -> bool:
    """Whether the conditions only hold for people."""
    for condition in described.conditions:
        if isinstance(condition, Literal):
            is_personal = forms.words_of(condition.key) in PEOPLE_HAVE
        elif condition.outward:
            is_personal = forms.words_of(condition.predicate) in PEOPLE_HAVE or forms.personal(condition.predicate)
        else:
            is_personal = forms.words_of(condition.predicate) in PEOPLE_ARE
        if is_personal:
            return True
    return False


def _onto(form: forms.Forms) -> str:
    """Return the verb after its object: "the number that X wears"."""
    return form.outward.removesuffix(f" the {form.kind}") if form.kind else forms.onto(form)


def righted(described: Description) -> Description:
    """Replace inverse relations in a description: what X `plays_for_inverse` is what plays for X."""
    conditions = []
    for condition in described.conditions:
        if isinstance(condition, RelationCondition):
            condition = replace(condition, target=righted(condition.target))
            direct = forms.turned(condition.predicate)
            if direct is not None:
                condition = replace(condition, predicate=direct, outward=not condition.outward)
        conditions.append(condition)
    return replace(described, conditions=tuple(conditions))


def _without_order(happened: forms.Event) -> str:
    """Return the verb of an event without "first" or "last" of its own."""
    return happened.said.replace("first ", "").replace("last ", "")


def dressed(described: Description, key: str = "") -> Description:
    """Add the concept of people to a description that has no concept and only fits people."""
    if described.concept is not None or described.name is not None:
        return described
    is_people = _people(described) or forms.words_of(key) in PEOPLE_HAVE
    return replace(described, concept="human") if is_people else described


def _with_object(verb: str, target: str) -> str:
    """Join a verb and its object: "received the award X", but "received the prize that ..."."""
    before, separator, noun = verb.rpartition(" the ")
    if separator and target.startswith("the ") and not noun.endswith(" of"):
        bare_target = target.removeprefix("the one ")
        return f"{before} the {noun} {bare_target}" if bare_target != target else f"{before} {target}"
    return f"{verb} {target}"


def _agree(text: str, *, many: bool) -> str:
    if not many:
        return text
    first, space, rest = text.partition(" ")
    if first in _PLURAL_VERBS:
        rest = rest.removeprefix("the ") if rest.startswith("the ") and rest.endswith(" of") else rest
        head, of, end = rest.rpartition(" of")
        if of and not end and first == "is" and not head.startswith("part"):
            words = head.removeprefix("a ").removeprefix("an ")
            rest = f"{forms.plural(words)} of"
        return f"{_PLURAL_VERBS[first]}{space}{rest}"
    if first.endswith("s") and not first.endswith("ss"):
        base = first[:-3] + "y" if first.endswith("ies") else first[:-2] if first.endswith(("sses", "shes", "ches")) else first[:-1]
        return f"{base}{space}{rest}"
    return text


def _most(ask: Ask) -> str:
    if isinstance(ask.value, Time):
        return "latest" if ask.op == "largest" else "earliest"
    return superlative(ask.key, largest=ask.op == "largest")


def superlative(key: str, *, largest: bool) -> str:
    """Return the superlative of a measure: "highest", "greatest", "largest", or their opposites."""
    return _compared_by(key)[0 if largest else 1][:-1] + "st"


def _more(ask: Ask) -> str:
    if isinstance(ask.value, Time):
        return "later" if ask.op == "greater" else "earlier"
    return _compared_by(ask.key)[0 if ask.op == "greater" else 1]


def _compared_by(key: str) -> tuple[str, str]:
    """Return the comparatives for more and less of a measure. The superlative has "st" in place of the final "r"."""
    words = frozenset(forms.words_of(key).casefold().split())
    if _HIGH & words:
        return "higher", "lower"
    return ("greater", "smaller") if _GREAT & words else ("larger", "smaller")
