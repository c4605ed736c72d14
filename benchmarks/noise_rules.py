"""How gold paths of PathQuestions and MetaQA become patterns as people and models write them.

The rules were fixed before anything was tuned to them. Each takes a question, its gold path and a random generator
seeded by the question's number, and returns triples and the node of the answer, or None if the rule does not apply to
the question.

gold        the names of the data
words       the question's own words for each relation
phrases     verb phrases of the first set, in the direction in which one would say them
second      verb phrases of the second set, which was written later and never tuned to
third       verb phrases of the third set, written when the table had grown; never tuned to
typos       one letter of the topic and of each relation missing, doubled or exchanged
flips       the question's words, a third of the edges reversed
dropped     the question's words without the first hop
added       the question's words with an unknown hop in the middle
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

Triples = list[tuple[str, str, str]]


@dataclass(frozen=True)
class Hop:
    """A step of a gold path from one node to the next: the relation, and whether it runs forward."""

    relation: str
    forward: bool


@dataclass(frozen=True)
class Question:
    """A question with its gold path, whose first node is the topic, and its gold answers."""

    text: str
    topic: str
    hops: tuple[Hop, ...]
    answers: frozenset[str]
    #: The question's own words for each hop; empty where they cannot be read off.
    words: tuple[str, ...] = ()


# -- the question's own words ----------------------------------------------------------------------

_LEAD: Final = r"(?:what is |who is |which is )?(?:the )?(?:name of the |type of )?"
_FORMS: Final = (
    re.compile(_LEAD + r"(?:the )?T 's (?P<a>[a-z ]+?) 's (?P<b>[a-z ]+?) \?"),
    re.compile(_LEAD + r"(?P<b>[a-z ]+?) of (?:the )?T 's (?P<a>[a-z ]+?) \?"),
    re.compile(_LEAD + r"(?P<b>[a-z ]+) of (?P<a>(?!name)[a-z ]+?) of T \?"),
    re.compile(r"(?:what|which) (?P<b>[a-z]+) is T 's (?P<a>[a-z ]+?) \?"),
)


def path_words(text: str, topic: str) -> tuple[str, ...]:
    """The nouns of a question of PathQuestions in the order of its hops; none in other forms."""
    plain = text.replace(topic, "T")
    for form in _FORMS:
        found = form.fullmatch(plain)
        # A grandchild is two hops in one word, and a name is no relation.
        if found is not None and not re.search(r"\bgrand|\bname\b", found[0]):
            return found["a"].strip(), found["b"].strip()
    return ()


#: What a word of a question begins with that stands for a relation of MetaQA.
_STEMS: Final = {
    "directed_by": r"\w*direct\w*",
    "written_by": r"(?:screen|co-)?wr(?:ote|itt|it)\w*(?: by)?|screenwriters?",
    "starred_actors": r"(?:co-)?(?:act(?:ed|or|ors|ress)|starr?|starred|appear)\w*(?: in| by)?",
    "release_year": r"release\w*(?: years?| dates?)?|years?|when",
    "has_genre": r"genres?|types?|kinds?|sorts?",
    "in_language": r"languages?",
    "has_tags": r"describ\w*|tag\w*|about|words|topics?",
}


def film_words(text: str, hops: tuple[Hop, ...]) -> tuple[str, ...]:
    """The words of a question of MetaQA, of each hop those that stand nearest to the topic in
    brackets and are not yet taken; of a second hop of one relation the same where there are no
    more.
    """
    topic = text.find("[")
    plain = re.sub(r"\[.*\]", lambda found: " " * len(found[0]), text)
    taken: dict[str, list[str]] = {}
    found = []
    for hop in hops:
        if hop.relation not in _STEMS:
            return ()
        if hop.relation not in taken:
            places = [(abs(m.start() - topic), m[0].strip()) for m in re.finditer(rf"\b(?:{_STEMS[hop.relation]})\b", plain)]
            taken[hop.relation] = [word for _, word in sorted(places)]
        left = taken[hop.relation]
        if not left:
            return ()
        found.append(left.pop(0) if len(left) > 1 else left[0])
    return tuple(found)


# -- verb phrases ----------------------------------------------------------------------------------

#: The first set: for each relation what one says from its subject to its object, and back.
FIRST: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "directed_by": (("was directed by", "was made by"), ("directed", "is the director of", "made the film")),
    "written_by": (("was written by", "has a script by"), ("wrote", "is the writer of", "wrote the screenplay of")),
    "starred_actors": (("stars", "features the actor"), ("acted in", "starred in", "played in", "appears in")),
    "release_year": (("was released in", "came out in"), ("is the release year of",)),
    "has_genre": (("has the genre", "is of the type"), ("is the genre of",)),
    "in_language": (("is in the language", "is spoken in"), ("is the language of",)),
    "has_tags": (("is tagged with", "is described by"), ("describes",)),
    "parents": (("is the child of", "was born to", "has the parent"), ("is the father of", "is the mother of")),
    "children": (("is the parent of", "has the child", "is the father of"), ("is the son of", "is the daughter of")),
    "spouse": (("is married to", "is the husband of", "married"), ("is married to",)),
    "nationality": (("is a citizen of", "comes from the country"), ("is the nation of",)),
    "gender": (("has the gender", "is of the sex"), ("is the gender of",)),
    "profession": (("works as", "has the job", "earns a living as"), ("is the job of",)),
    "institution": (("works at", "studied at", "went to the school"), ("is the school of",)),
    "religion": (("believes in", "follows the faith", "practices"), ("is the faith of",)),
    "ethnicity": (("is of the race", "belongs to the people"), ("is the race of",)),
    "location": (("lives in", "has the address", "resides in"), ("is the home of",)),
    "place_of_birth": (("was born in", "has the birthplace"), ("is the birthplace of",)),
    "place_of_death": (("died in", "died in the city"), ("is where died",)),
    "cause_of_death": (("died of", "was killed by", "died from"), ("killed",)),
}  # fmt: skip

#: The second and the third set are in files of their own (`noise_second.py`, `noise_third.py`),
#: written when the table of everyday phrases, and that of families of words, was fixed.


def _phrased(question: Question, phrases: dict[str, tuple[tuple[str, ...], tuple[str, ...]]], dice: random.Random) -> Triples:
    nodes = nodes_of(question)
    triples = []
    for number, hop in enumerate(question.hops):
        one, two = (nodes[number], nodes[number + 1]) if hop.forward else (nodes[number + 1], nodes[number])
        along, back = phrases[hop.relation]
        # As one would say it from the topic on: the first node is the subject, mostly.
        against = not hop.forward if dice.random() < 0.8 else hop.forward
        triples.append((two, dice.choice(back), one) if against else (one, dice.choice(along), two))
    return triples


# -- rules -----------------------------------------------------------------------------------------


def nodes_of(question: Question) -> list[str]:
    """The nodes of the path: the topic, unknowns, and the answer last."""
    inner = [f"UNKNOWN entity {number}" for number in range(1, len(question.hops))]
    return [question.topic, *inner, "UNKNOWN answer 1"]


def _written(question: Question, relations: tuple[str, ...]) -> Triples:
    nodes = nodes_of(question)
    found = []
    for number, (hop, relation) in enumerate(zip(question.hops, relations, strict=True)):
        one, two = (nodes[number], nodes[number + 1]) if hop.forward else (nodes[number + 1], nodes[number])
        found.append((one, relation, two))
    return found


def typo(text: str, dice: random.Random) -> str:
    """One letter missing, doubled, or exchanged with the next; short texts stay."""
    if len(text) < 4:
        return text
    at = dice.randrange(1, len(text) - 2)
    return dice.choice(
        (text[:at] + text[at + 1 :], text[:at] + text[at] + text[at:], text[:at] + text[at + 1] + text[at] + text[at + 2 :])
    )


def gold(question: Question, dice: random.Random) -> Triples | None:
    """The names of the data."""
    return _written(question, tuple(hop.relation for hop in question.hops))


def words(question: Question, dice: random.Random) -> Triples | None:
    """The question's own words."""
    return _written(question, question.words) if question.words else None


def phrases(question: Question, dice: random.Random) -> Triples | None:
    """Verb phrases of the first set."""
    return _phrased(question, FIRST, dice) if all(hop.relation in FIRST for hop in question.hops) else None


def second(question: Question, dice: random.Random) -> Triples | None:
    """Verb phrases of the second set; None while there is none."""
    try:
        from noise_second import SECOND
    except ImportError:
        return None
    return _phrased(question, SECOND, dice) if all(hop.relation in SECOND for hop in question.hops) else None


def third(question: Question, dice: random.Random) -> Triples | None:
    """Verb phrases of the third set."""
    from noise_third import THIRD

    return _phrased(question, THIRD, dice) if all(hop.relation in THIRD for hop in question.hops) else None


def typos(question: Question, dice: random.Random) -> Triples | None:
    """A letter wrong in the topic and in each relation."""
    written = _written(question, tuple(typo(hop.relation, dice) for hop in question.hops))
    topic = typo(question.topic, dice)
    return [tuple(topic if part == question.topic else part for part in triple) for triple in written]  # type: ignore[misc]


def flips(question: Question, dice: random.Random) -> Triples | None:
    """The question's words, a third of the edges the other way round."""
    found = words(question, dice)
    return None if found is None else [(c, b, a) if dice.random() < 1 / 3 else (a, b, c) for a, b, c in found]


def dropped(question: Question, dice: random.Random) -> Triples | None:
    """The question's words without the first hop: the topic stands where the second node was."""
    found = words(question, dice)
    if found is None or len(found) < 2:
        return None
    begin = nodes_of(question)[1]
    return [tuple(question.topic if part == begin else part for part in triple) for triple in found[1:]]  # type: ignore[misc]


def added(question: Question, dice: random.Random) -> Triples | None:
    """The question's words with an unknown hop in the middle."""
    found = words(question, dice)
    if found is None or len(found) < 2:
        return None
    node = nodes_of(question)[1]
    rest = [tuple("UNKNOWN entity 9" if part == node else part for part in triple) for triple in found[1:]]
    return [found[0], (node, "UNKNOWN relation", "UNKNOWN entity 9"), *rest]  # type: ignore[list-item]


RULES: Final[dict[str, Callable[[Question, random.Random], Triples | None]]] = {
    "gold": gold, "words": words, "phrases": phrases, "second": second, "third": third, "typos": typos, "flips": flips,
    "dropped": dropped, "added": added,
}  # fmt: skip
