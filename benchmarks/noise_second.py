"""The second set of verb phrases, in the form of `noise_rules.FIRST`: written after the table of
everyday words was fixed, and not used for tuning.
"""

from __future__ import annotations

from typing import Final

SECOND: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "directed_by": (
        ("was shot under", "had as its director", "was brought to the screen by"),
        ("sat in the director's chair for", "took charge of filming"),
    ),
    "written_by": (
        ("owes its script to", "was authored by", "came from the pen of"),
        ("scripted the film", "came up with the story of"),
    ),
    "starred_actors": (
        ("has in its cast", "casts", "showcases the talent of"),
        ("performs in", "had a part in", "can be seen in", "took a role in"),
    ),
    "release_year": (("hit cinemas in", "first screened in", "dates from"), ("saw the opening of",)),
    "has_genre": (("counts as a", "is classified under", "belongs to the genre"), ("covers the film",)),
    "in_language": (("has dialogue in", "uses the language"), ("is heard in",)),
    "has_tags": (("is labelled as", "carries the keyword"), ("is a keyword of",)),
    "parents": (("was fathered by", "is the baby of", "was raised by"), ("gave birth to", "begot")),
    "children": (("gave birth to", "had a baby called", "is mom to"), ("was fathered by", "grew up under")),
    "spouse": (("tied the knot with", "is wedded to", "took as a spouse"), ("tied the knot with",)),
    "nationality": (("holds the passport of", "is a national of", "is from the nation"), ("counts as a citizen",)),
    "gender": (("identifies as", "is male or female"), ("is the sex of",)),
    "profession": (("makes a living as", "is by trade a", "was employed as"), ("is the trade of",)),
    "institution": (("took classes at", "got a degree from", "was a member of staff at"), ("educated",)),
    "religion": (("is a follower of", "prays according to", "worships in"), ("counts as a believer",)),
    "ethnicity": (("is ethnically", "has the ethnic background"), ("is the background of",)),
    "location": (("dwells in", "can be found in", "makes a home in"), ("houses",)),
    "place_of_birth": (("came into the world in", "was delivered in", "hails originally from"), ("saw the birth of",)),
    "place_of_death": (("passed away in", "breathed the last in"), ("saw the death of",)),
    "cause_of_death": (("succumbed to", "lost life to", "perished from"), ("took the life of",)),
}  # fmt: skip
