"""Form rules: from the name of a predicate to the words of a sentence."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

# -- words -----------------------------------------------------------------------------------------
# The words that the form rules know: short names, irregular forms, events, and what only people
# have.


def _set(text: str, between: str | None = None) -> frozenset[str]:
    return frozenset(" ".join(item.split()) for item in text.split(between))


def _map(text: str) -> dict[str, str]:
    """Pairs "key: value", with semicolons between them."""
    pairs = (item.partition(":") for item in text.split(";"))
    return {" ".join(key.split()): " ".join(value.split()) for key, _, value in pairs}


PREPOSITIONS: Final = _set(
    """about after against as at between by during for from in into near next of on through to under with within"""
)
#: Forms of the past that do not end in "-ed".
IRREGULAR: Final = _map(
    """written: wrote; born: bore; made: made; spoken: spoke; given: gave; held: held; sung: sang; drawn: drew;
    built: built; found: found; won: won; taught: taught; taken: took; led: led; set: set; shot: shot; sold: sold;
    bought: bought; known: knew; said: said; worn: wore; chosen: chose; begun: began; played: played; married:
    married; seen: saw; run: ran"""
)
#: Verbs that take no object: "acted in" is no passive.
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
#: Verbs whose predicates may name what their objects are: `plays_for_country`, `wears_number`.
PHRASED: Final = _set(
    """is plays wears works lives studies speaks holds drives coaches teaches trains belongs sings writes owns flies
    competes participates resides serves stays trades travels visits watches"""
)
#: Of these, verbs whose subjects are people.
PERSONAL: Final = _set("""plays wears works lives studies speaks drives coaches teaches trains sings writes resides""")
#: Nouns before a past participle, which then is a verb: "award received" is "received the award".
TAKEN: Final = _set("""claimed competed conferred contested held played practiced produced published received""")
SHORT: Final = _map(
    """dob: date of birth; dod: date of death; pob: place of birth; pod: place of death; birthdate: date of birth;
    birth date: date of birth; birthday: date of birth; birthplace: place of birth; death date: date of death;
    birth place: place of birth; death place: place of death; yob: year of birth; addr: address; qty: quantity;
    is aged: age; aged: age; tel: telephone number; desc: description; imdb rating: IMDb rating; imdb votes: IMDb votes"""
)
#: The auxiliary and the past form of the event that an attribute of times dates.
EVENTS: Final = {
    key: tuple(said.split("|"))
    for key, said in _map(
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
#: Predicates whose subjects, and whose objects, are people, where the graph does not say so.
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
# Names are read as they are written (`place of birth`, `PLACE_OF_BIRTH`, `placeOfBirth`, `dob`), and
# told apart by their first and last words: a passive ("directed by"), a verb ("shares border with",
# `ACTED_IN`), an event ("date founded"), a noun with "of" ("capital of"), a noun ("place of birth").
# What no rule fits is a noun: "whose director is ..." is plain, and never wrong.


#: A predicate that is a number, as benchmarks have them, or Wikidata's.
_NUMBER: Final = re.compile(r"[PQ]?\d+").fullmatch


class Forms(NamedTuple):
    """A relation in words. `outward` follows "that" or "whose" (`whose`) and ends before the
    object; `inward` says of the object, and ends before the subject. `statement` joins both.
    `kind` is what the name says the objects are ("country" of `plays_for_country`).
    """

    whose: bool
    outward: str
    inward: str
    statement: str
    noun: str
    kind: str = ""


@lru_cache(maxsize=4096)
def words_of(predicate: str) -> str:
    """The words of a name.

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
    result = " ".join(words)
    return SHORT.get(result.casefold(), result)


@lru_cache(maxsize=4096)
def column(key: str) -> str:
    """The name of an attribute as a noun; in quotes if it is none.

    >>> column("unitPrice"), column("isManager"), column("worksFor"), column("From")
    ('unit price', '“is manager”', '“works for”', '“From”')
    """
    name = words_of(key)
    low = name.casefold().split()
    first, last = (low[0], low[-1]) if low else ("", "")
    several = len(low) > 1
    verb = several and (first in VERBS or first in ("is", "was", "are", "does", "did", "can"))
    clause = last in PREPOSITIONS and low[-2:] != ["known", "as"]
    return f"“{name}”" if verb or clause or low in (["till"], ["since"], ["until"]) else name


def _participle(word: str) -> bool:
    return (len(word) > 3 and word.endswith("ed") and not word.endswith("eed")) or word in IRREGULAR


def _active(word: str) -> str:
    return IRREGULAR.get(word, word)


@lru_cache(maxsize=4096)
def forms(predicate: str, several: bool = False) -> Forms:
    """The forms of a relation; `several` says that a subject has several of it, as a rule.

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
    rest = " ".join(words[1:])
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
        past = low[1] in ("by", "at", "for") or first == "born"
        whole = ("was " if past else "is ") + _article(name)
        if low[1] == "by" and len(low) == 2:
            return Forms(False, whole, _active(words[0]), f"{{}} {_braced(whole)} {{}}", name)
        return _verb(whole, name=name)
    if low == ["starred", "actors"]:
        return Forms(False, "starred", "acted in", "{} starred {}", "actor")
    if first in ("shares",):
        return _verb("shares a " + rest, name=name)
    if first in VERBS and len(low) > 2 and not PREPOSITIONS.intersection(low):
        # "contains administrative territorial entities": the object says what it is.
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
        return _noun(rest, several)
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
    """The verb of a name that is a verb phrase with a noun for its object, and that noun: "plays for"
    a "country", "wears the number".

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


#: What a predicate's name ends in that is another one the other way round.
_INVERSE: Final = re.compile(r"(.+?)[\s_-]+(?:inverse|reversed?|inv)", re.IGNORECASE).fullmatch


def turned(predicate: str) -> str | None:
    """The predicate of which one is the inverse, by its name: `plays_for` of `plays_for_inverse`."""
    result = _INVERSE(predicate)
    return None if result is None else result[1]


def personal(predicate: str) -> bool:
    """Whether a relation says by its name that its subjects are people: they play for countries."""
    return turned(predicate) is None and bool(forms(predicate).kind) and words_of(predicate).partition(" ")[0] in PERSONAL


def base(verb: str) -> str:
    """The verb of a phrase as it is after "does": "play for" of "plays for".

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
    """A longer passive with an article before its noun: "located in the time zone"."""
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
    ends = name.split()[-1:] == ["works"] or (name.endswith("s") and not name.endswith(("ss", "us", "is")) and " of " not in name)
    ends = ends or ("," in name and name.split()[0].endswith("s"))
    several = several or ends
    many = name if ends else plural(name)
    outward = f"{many} include" if several else f"{name} is"
    joined = f"The {_braced(many)} of {{}} include {{}}" if several else f"The {_braced(name)} of {{}} is {{}}"
    value = singular(name) if ends else name
    if "," in name and ends:
        # "languages spoken, written, or signed"
        head, space, rest = name.partition(" ")
        value = f"{singular(head)}{space}{rest}"
    return Forms(True, outward, f"is {a(value)} {value} of" if several else f"is the {value} of", joined, value)


def _braced(text: str) -> str:
    """A text that `str.format` leaves as it is."""
    return text.replace("{", "{{").replace("}", "}}")


def onto(form: Forms) -> str:
    """A verb whose object comes before it: "that X received", without "the award"."""
    before, the, after = form.outward.rpartition(" the ")
    return before if the and after.rpartition(" ")[2] not in PREPOSITIONS else form.outward


class Event(NamedTuple):
    """An attribute whose values say when something happened: "was" and "founded", or "" and "died"."""

    auxiliary: str
    past: str

    @property
    def said(self) -> str:
        """As it is told: "was founded", "died"."""
        return f"{self.auxiliary} {self.past}".strip()

    def asked(self, subject: str) -> str:
        """As it is asked, without the question word: "was X founded", "did X die"."""
        if self.auxiliary:
            return f"was {subject} {self.past}"
        first, _, rest = self.past.partition(" ")
        return f"did {subject} {BASE.get(first, first)} {rest}".rstrip()


@lru_cache(maxsize=4096)
def event(key: str) -> Event | None:
    """The event that an attribute of times dates; None if its name is a noun.

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
    """The article before a noun.

    >>> a("album"), a("city"), a("university")
    ('an', 'a', 'a')
    """
    low = noun.casefold()
    return "an" if low[:1] in tuple("aeio") or (low[:1] == "u" and not low.startswith(("uni", "us", "eu"))) else "a"


@lru_cache(maxsize=4096)
def plural(noun: str) -> str:
    """A noun in the plural.

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
        many = PLURALS[low]
    elif low.endswith("man") and len(low) > 4:
        many = last[:-2] + "en"
    elif low.endswith("y") and low[-2:-1] not in tuple("aeiou"):
        many = last[:-1] + "ies"
    elif low.endswith(("s", "x", "z", "ch", "sh")):
        many = last if low.endswith("s") and not low.endswith(("ss", "us", "is")) else last + "es"
    else:
        many = last + "s"
    return f"{before}{space}{many}"


def singular(noun: str) -> str:
    """A noun that ends in a plural, in the singular."""
    if noun.endswith("ies"):
        return noun[:-3] + "y"
    return noun[:-1] if noun.endswith("s") else noun


@lru_cache(maxsize=1024)
def unit(name: str) -> str:
    """A unit as more than one of it is called; symbols stay.

    >>> unit("square kilometre"), unit("metre per second"), unit("kg"), unit("degree Celsius"), unit("inch"), unit("€")
    ('square kilometres', 'metres per second', 'kg', 'degrees Celsius', 'inches', '€')
    """
    if name.casefold() in SMALL_UNITS:
        return SMALL_UNITS[name.casefold()]
    head, per, rest = name.partition(" per ")
    if len(head) < 4 or not head.isascii() or not head.replace(" ", "").isalpha() or head.endswith("s"):
        return name
    return f"{plural(head)}{per}{rest}"
