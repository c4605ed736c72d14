"""Form rules, which turn the name of a predicate into the words of a sentence."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

# -- words -----------------------------------------------------------------------------------------
# The vocabulary of the form rules: short names, irregular forms, events, and predicates that only
# people have.


def _set(text: str, between: str | None = None) -> frozenset[str]:
    return frozenset(" ".join(item.split()) for item in text.split(between))


def _map(text: str) -> dict[str, str]:
    """Parse pairs "key: value", separated by semicolons."""
    pairs = (item.partition(":") for item in text.split(";"))
    return {" ".join(key.split()): " ".join(value.split()) for key, _, value in pairs}


PREPOSITIONS: Final = _set(
    """about after against as at between by during for from in into near next of on through to under with within"""
)
#: Participles that do not end in "-ed", and their past tenses.
IRREGULAR: Final = _map(
    """written: wrote; born: bore; made: made; spoken: spoke; given: gave; held: held; sung: sang; drawn: drew;
    built: built; found: found; won: won; taught: taught; taken: took; led: led; set: set; shot: shot; sold: sold;
    bought: bought; known: knew; said: said; worn: wore; chosen: chose; begun: began; played: played; married:
    married; seen: saw; run: ran"""
)
#: Verbs without an object: "acted in" is not a passive.
INTRANSITIVE: Final = _set(
    """acted appeared began belonged ceased competed debuted died ended graduated happened lived moved occurred
    participated performed played resided served starred studied worked wrote disappeared vanished retired resigned
    arrived departed"""
)
PAST: Final = _map("""wrote: wrote; sang: sang; led: led; won: won; knew: knew; built: built""")
VERBS: Final = _set(
    """afflicts applies belongs borders connects contains covers crosses depicts employs flows follows governs hosts
    includes influences knows leads likes lives makes manages operates owns plays precedes produces rates replaces
    reports reviews runs sells shares speaks studies succeeds supplies supports teaches uses works"""
)
#: Verbs after which a predicate may name the kind of its objects: `plays_for_country`, `wears_number`.
PHRASED: Final = _set(
    """is plays wears works lives studies speaks holds drives coaches teaches trains belongs sings writes owns flies
    competes participates resides serves stays trades travels visits watches"""
)
#: Those of `PHRASED` whose subjects are people.
PERSONAL: Final = _set("""plays wears works lives studies speaks drives coaches teaches trains sings writes resides""")
#: Participles that become the verb when they follow a noun: "award received" is "received the award".
TAKEN: Final = _set("""claimed competed conferred contested held played practiced produced published received""")
SHORT: Final = _map(
    """dob: date of birth; dod: date of death; pob: place of birth; pod: place of death; birthdate: date of birth;
    birth date: date of birth; birthday: date of birth; birthplace: place of birth; death date: date of death;
    birth place: place of birth; death place: place of death; yob: year of birth; addr: address; qty: quantity;
    is aged: age; aged: age; tel: telephone number; desc: description; imdb rating: IMDb rating; imdb votes: IMDb votes"""
)
#: The auxiliary and the past form of the event, for attributes that are the time of an event.
EVENTS: Final = {
    key: tuple(forms_text.split("|"))
    for key, forms_text in _map(
        """date of birth: was|born; year of birth: was|born; date of death: |died; year of death: |died; date ended:
    |ended; date began: |began; began approximately: |began; ended approximately: |ended; ceased operations:
    |ceased operations; year turned pro: |turned professional; initial release date: was|first released; latest
    release date: was|last released; release date: was|released; release year: was|released; discovery date:
    was|discovered; construction started: was|begun to be built; date of invention: was|invented; date of burial:
    was|buried; date of cremation: was|cremated; air date: was|broadcast; start date: |started; end date: |ended;
    season from: |started; active start: |became active; active end: |stopped being active; career start: |started
    working; career end: |stopped working; air date of first episode: was|first broadcast; air date of final
    episode: was|last broadcast; first ascent: was|first climbed"""
    ).items()
}
BASE: Final = _map(
    """died: die; ended: end; began: begin; started: start; ceased: cease; turned: turn; became: become; stopped:
    stop; disappeared: disappear; vanished: vanish; retired: retire; resigned: resign; arrived: arrive; departed:
    depart; debuted: debut; appeared: appear; graduated: graduate; served: serve; worked: work; lived: live;
    performed: perform; happened: happen; occurred: occur; moved: move; competed: compete; resided: reside"""
)
SMALL_UNITS: Final = _map("""foot: feet; inch: inches; century: centuries; degree celsius: degrees Celsius""")
PLURALS: Final = _map(
    """person: people; child: children; man: men; woman: women; city: cities; series: series; species: species;
    taxon: taxa; foot: feet; human: people; media: media"""
)
#: Predicates whose subjects are people even if the graph does not state it; `PEOPLE_ARE` has those whose objects are.
PEOPLE_HAVE: Final = _set(
    """acted in, born, born in, dob, cause of death, child, date of birth, date of death, directed, doctoral advisor, educated at,
    ethnic group, father, manner of death, member of political party, military rank, mother, native language, occupation,
    place of birth, place of burial, place of death, position held, sex or gender, sibling, spouse, work location,
    wrote, year of birth""",
    ",",
)
PEOPLE_ARE: Final = _set(
    """author, cast member, chief executive officer, child, composed by, composer, costume designer, directed by,
    director, director of photography, discoverer or inventor, doctoral advisor, doctoral student, father, film
    editor, head coach, head of government, head of state, mother, narrator, painted by, partner,
    relative, screenwriter, sibling, spouse, starred actors, voice actor, written by""",
    ",",
)


# -- relations and events --------------------------------------------------------------------------
# All spellings of names are accepted (`place of birth`, `PLACE_OF_BIRTH`, `placeOfBirth`, `dob`). Their
# first and last words decide the form: a passive ("directed by"), a verb ("shares border with",
# `ACTED_IN`), an event ("date founded"), a noun with "of" ("capital of"), a noun ("place of birth").
# A name that fits no rule is a noun: "whose director is ..." is simple, and never wrong.


#: A predicate that is a number, as in benchmarks, or an id of Wikidata.
_NUMBER: Final = re.compile(r"[PQ]?\d+").fullmatch


class Forms(NamedTuple):
    """A relation in words.

    `outward` describes the subject and ends before the object; it follows "whose" if `whose`, else "that". `inward`
    describes the object and ends before the subject. `statement` has a place for each of both. `noun` is the noun of
    the relation, and `kind` the kind of its objects according to its name ("country" in `plays_for_country`).
    """

    whose: bool
    outward: str
    inward: str
    statement: str
    noun: str
    kind: str = ""


@lru_cache(maxsize=4096)
def words_of(predicate: str) -> str:
    """Return the name of a predicate as words.

    >>> words_of("PLACE_OF_BIRTH"), words_of("starred_actors"), words_of("dob"), words_of("unitPrice"), words_of("customerID")
    ('place of birth', 'starred actors', 'date of birth', 'unit price', 'customer')
    """
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", predicate.replace("_", " "))
    if "-" in text and " " not in text:
        text = text.replace("-", " ")
    words = text.split()
    if all(word.isupper() for word in words) and ("_" in predicate or max(map(len, words), default=0) > 5):
        words = [word.lower() for word in words]
    elif "_" in predicate or text != predicate:
        words = [word if word.isupper() and len(word) < 6 and word != "ID" else word.lower() for word in words]
    if len(words) > 1 and words[-1].casefold() == "id" and text != predicate:
        words.pop()
    if len(words) > 1 and words[0].casefold() == "has":
        words.pop(0)
    name = " ".join(words)
    return SHORT.get(name.casefold(), name)


@lru_cache(maxsize=4096)
def column(key: str) -> str:
    """Return the name of an attribute as a noun, in quotes if it is not a noun.

    >>> column("unitPrice"), column("isManager"), column("worksFor"), column("From")
    ('unit price', '“is manager”', '“works for”', '“From”')
    """
    name = words_of(key)
    low = name.casefold().split()
    first, last = (low[0], low[-1]) if low else ("", "")
    has_many_words = len(low) > 1
    is_verb = has_many_words and (first in VERBS or first in ("is", "was", "are", "does", "did", "can"))
    is_clause = last in PREPOSITIONS and low[-2:] != ["known", "as"]
    return f"“{name}”" if is_verb or is_clause or low in (["till"], ["since"], ["until"]) else name


def _participle(word: str) -> bool:
    return (len(word) > 3 and word.endswith("ed") and not word.endswith("eed")) or word in IRREGULAR


def _active(word: str) -> str:
    return IRREGULAR.get(word, word)


@lru_cache(maxsize=4096)
def forms(predicate: str, several: bool = False) -> Forms:
    """Return the forms of a relation. `several` is whether subjects usually have more than one object.

    >>> forms("directed by").outward, forms("directed by").inward
    ('was directed by', 'directed')
    >>> forms("PLACE_OF_BIRTH").outward, forms("place of birth").inward
    ('place of birth is', 'is the place of birth of')
    >>> forms("shares border with").outward, forms("ACTED_IN").statement, forms("award received").outward
    ('shares a border with', '{} acted in {}', 'received the award')
    """
    name = words_of(predicate)
    words = name.split()
    low = [word.casefold() for word in words]
    first, last = (low[0], low[-1]) if low else ("", "")
    after_first = " ".join(words[1:])
    if _NUMBER(name):
        return Forms(False, f"is in relation {name} to", "", f"{{}} is in relation {name} to {{}}", name)
    if (clause := _clause(low)) is not None:
        verb, kind = clause
        return Forms(False, verb, "", f"{{}} {_braced(verb)} {{}}", name, kind)
    if first in ("is", "was", "are"):
        return _verb(name)
    if len(low) > 1 and low[1] in PREPOSITIONS and (_participle(first) or first in ("participated",)):
        if first in INTRANSITIVE and low[1] != "by":
            return _verb(_article(name), name=name)
        is_past = low[1] in ("by", "at", "for") or first == "born"
        phrase = ("was " if is_past else "is ") + _article(name)
        if low[1] == "by" and len(low) == 2:
            return Forms(False, phrase, _active(words[0]), f"{{}} {_braced(phrase)} {{}}", name)
        return _verb(phrase, name=name)
    if low == ["starred", "actors"]:
        return Forms(False, "starred", "acted in", "{} starred {}", "actor")
    if first in ("shares",):
        return _verb("shares a " + after_first, name=name)
    if first in VERBS and len(low) > 2 and not PREPOSITIONS.intersection(low):
        # "contains administrative territorial entities": only the verb is used.
        return _verb(words[0], name=name)
    if first in VERBS or (first == "part" and last == "of"):
        return _verb(name if first != "part" else "is " + name, name=name)
    if name in PAST or (len(low) == 1 and _participle(first) and first not in TAKEN):
        return _verb(name, name=name)
    if first in ("same", "different", "opposite", "indigenous", "interested"):
        return _verb(("is the " if first in ("same", "opposite") else "is ") + name, name=name)
    if low[:2] == ["member", "of"] and len(low) > 2:
        return _verb("is a member of the " + " ".join(words[2:]), name=name)
    if first in ("in", "on") and len(low) > 1:
        return _noun(after_first, several)
    if last == "of" and len(low) > 1:
        head = " ".join(words[:-1])
        return _verb(
            ("is the " if first in ("capital", "owner", "commander", "cause", "mother", "father") else f"is {a(head)} ") + name,
            name=name,
        )
    if last in ("by", "with", "to", "from", "for") and len(low) > 1 and not _participle(first):
        if len(low) > 2 and _participle(low[-2]):
            return _verb(f"is {name}", name=name)
        return _verb(f"has {name}" if last == "by" else ("is " + name if first in ("after", "next") else f"{name}"), name=name)
    if len(low) == 2 and last in TAKEN:
        return _verb(f"{words[1]} the {words[0]}", name=name)
    if name in PREPOSITIONS:
        return _verb("is " + name, name=name)
    return _noun(name, several)


def _clause(words: list[str]) -> tuple[str, str] | None:
    """Split a name that is a verb phrase with a noun for its object into the verb and the noun; None for other names.

    >>> _clause(["plays", "for", "country"]), _clause(["wears", "number"]), _clause(["is", "in", "time", "zone"])
    (('plays for', 'country'), ('wears the number', 'number'), ('is in', 'time zone'))
    """
    if len(words) < 2 or words[0] not in PHRASED or words[-1] in PREPOSITIONS or _participle(words[1]):
        return None
    if words[1] in PREPOSITIONS:
        kind = " ".join(word for word in words[2:] if word not in ("the", "a", "an"))
        return (f"{words[0]} {words[1]}", kind) if kind and not PREPOSITIONS.intersection(words[2:]) else None
    if words[0] == "is" or len(words) > 2:
        return None
    return f"{words[0]} the {words[1]}", words[1]


#: The endings in the names of inverse predicates.
_INVERSE: Final = re.compile(r"(.+?)[\s_-]+(?:inverse|reversed?|inv)", re.IGNORECASE).fullmatch


def turned(predicate: str) -> str | None:
    """Return the predicate whose inverse this is, by its name: `plays_for` for `plays_for_inverse`. None for others."""
    match = _INVERSE(predicate)
    return None if match is None else match[1]


def personal(predicate: str) -> bool:
    """Whether the subjects of a relation are people according to its name, as in `plays_for_country`."""
    return turned(predicate) is None and bool(forms(predicate).kind) and words_of(predicate).partition(" ")[0] in PERSONAL


def base(verb: str) -> str:
    """Return a verb phrase as it follows "does": "play for" for "plays for".

    >>> base("plays for"), base("wears the number"), base("carries"), base("watches")
    ('play for', 'wear the number', 'carry', 'watch')
    """
    first, space, rest = verb.partition(" ")
    if first.endswith("ies"):
        first = first[:-3] + "y"
    elif first.endswith(("sses", "shes", "ches", "xes", "zes", "oes")):
        first = first[:-2]
    elif first.endswith("s") and not first.endswith("ss"):
        first = first[:-1]
    return f"{first}{space}{rest}"


def _article(name: str) -> str:
    """Insert an article before the noun of a longer passive: "located in the time zone"."""
    words = name.split()
    at = 2 if len(words) < 3 or words[2] not in PREPOSITIONS else 3
    if len(words) > at and words[1] in PREPOSITIONS and words[at] not in ("the", "a", "an") and words[-1] not in PREPOSITIONS:
        return " ".join([*words[:at], "the", *words[at:]])
    return name


def _verb(text: str, statement: str = "", *, name: str = "") -> Forms:
    return Forms(False, text, "", statement or f"{{}} {_braced(text)} {{}}", name or text)


def _noun(name: str, several: bool) -> Forms:
    if name.endswith("(s)") and len(name) > 3:
        name = name[:-3]
    is_plural = name.split()[-1:] == ["works"] or (
        name.endswith("s") and not name.endswith(("ss", "us", "is")) and " of " not in name
    )
    is_plural = is_plural or ("," in name and name.split()[0].endswith("s"))
    several = several or is_plural
    plural_name = name if is_plural else plural(name)
    outward = f"{plural_name} include" if several else f"{name} is"
    statement = f"The {_braced(plural_name)} of {{}} include {{}}" if several else f"The {_braced(name)} of {{}} is {{}}"
    value = singular(name) if is_plural else name
    if "," in name and is_plural:
        # "languages spoken, written, or signed"
        head, space, rest = name.partition(" ")
        value = f"{singular(head)}{space}{rest}"
    return Forms(True, outward, f"is {a(value)} {value} of" if several else f"is the {value} of", statement, value)


def _braced(text: str) -> str:
    """Escape braces, so that `str.format` keeps them."""
    return text.replace("{", "{{").replace("}", "}}")


def onto(form: Forms) -> str:
    """Return the verb after its object: "that X received", without "the award"."""
    before, separator, after = form.outward.rpartition(" the ")
    return before if separator and after.rpartition(" ")[2] not in PREPOSITIONS else form.outward


class Event(NamedTuple):
    """An event whose time is an attribute: "was" and "founded", or "" and "died"."""

    auxiliary: str
    past: str

    @property
    def said(self) -> str:
        """The verb in a statement: "was founded", "died"."""
        return f"{self.auxiliary} {self.past}".strip()

    def asked(self, subject: str) -> str:
        """Return the question without its question word: "was X founded", "did X die"."""
        if self.auxiliary:
            return f"was {subject} {self.past}"
        first, _, rest = self.past.partition(" ")
        return f"did {subject} {BASE.get(first, first)} {rest}".rstrip()


@lru_cache(maxsize=4096)
def event(key: str) -> Event | None:
    """Return the event whose time an attribute is; None if its name is a noun.

    >>> event("dob").asked("Ann"), event("date founded").said, event("date of death").asked("Ann"), event("population")
    ('was Ann born', 'was founded', 'did Ann die', None)
    """
    name = words_of(key).casefold()
    if name in EVENTS:
        return Event(EVENTS[name][0], EVENTS[name][1])
    words = name.split()
    if len(words) == 2 and words[0] in ("date", "year", "time") and _participle(words[1]):
        return Event("was", words[1])
    if words and _participle(words[-1]) and (len(words) == 1 or (len(words) == 2 and words[0] == "first")):
        return Event("" if words[-1] in INTRANSITIVE else "was", name)
    return None


# -- articles, plurals, units ----------------------------------------------------------------------


def a(noun: str) -> str:
    """Return the indefinite article for a noun.

    >>> a("album"), a("city"), a("university")
    ('an', 'a', 'a')
    """
    low = noun.casefold()
    return "an" if low[:1] in tuple("aeio") or (low[:1] == "u" and not low.startswith(("uni", "us", "eu"))) else "a"


@lru_cache(maxsize=4096)
def plural(noun: str) -> str:
    """Return the plural of a noun.

    >>> plural("city"), plural("film"), plural("member of parliament"), plural("human"), plural("bus")
    ('cities', 'films', 'members of parliament', 'people', 'buses')
    """
    head, of, rest = noun.partition(" of ")
    if not of:
        head, of, rest = noun.partition(" in ")
    if of:
        return f"{plural(head)}{of}{rest}"
    before, space, last = noun.rpartition(" ")
    low = last.casefold()
    if low in PLURALS:
        plural_word = PLURALS[low]
    elif low.endswith("man") and len(low) > 4:
        plural_word = last[:-2] + "en"
    elif low.endswith("y") and low[-2:-1] not in tuple("aeiou"):
        plural_word = last[:-1] + "ies"
    elif low.endswith(("s", "x", "z", "ch", "sh")):
        plural_word = last if low.endswith("s") and not low.endswith(("ss", "us", "is")) else last + "es"
    else:
        plural_word = last + "s"
    return f"{before}{space}{plural_word}"


def singular(noun: str) -> str:
    """Return the singular of a plural noun."""
    if noun.endswith("ies"):
        return noun[:-3] + "y"
    return noun[:-1] if noun.endswith("s") else noun


@lru_cache(maxsize=1024)
def unit(name: str) -> str:
    """Return the plural of a unit; symbols are unchanged.

    >>> unit("square kilometre"), unit("metre per second"), unit("kg"), unit("degree Celsius"), unit("inch"), unit("€")
    ('square kilometres', 'metres per second', 'kg', 'degrees Celsius', 'inches', '€')
    """
    if name.casefold() in SMALL_UNITS:
        return SMALL_UNITS[name.casefold()]
    head, per, rest = name.partition(" per ")
    if len(head) < 4 or not head.isascii() or not head.replace(" ", "").isalpha() or head.endswith("s"):
        return name
    return f"{plural(head)}{per}{rest}"
