"""The words that the form rules know: short names, irregular forms, events, and what only people
have.
"""

from __future__ import annotations

from typing import Final


def _set(text: str, between: str | None = None) -> frozenset[str]:
    return frozenset(" ".join(one.split()) for one in text.split(between))


def _map(text: str) -> dict[str, str]:
    """Pairs "key: value", with semicolons between them."""
    pairs = (one.partition(":") for one in text.split(";"))
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
#: Nouns before a past participle, which then is a verb: "award received" is "received the award".
TAKEN: Final = _set("""claimed competed conferred contested held played practiced produced published received""")
SHORT: Final = _map(
    """dob: date of birth; dod: date of death; pob: place of birth; pod: place of death; birthdate: date of birth;
    birth date: date of birth; birthday: date of birth; birthplace: place of birth; death date: date of death;
    birth place: place of birth; death place: place of death; yob: year of birth; addr: address; qty: quantity;
    tel: telephone number; desc: description; imdb rating: IMDb rating; imdb votes: IMDb votes"""
)
#: The auxiliary and the past form of what an attribute of times tells of.
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
