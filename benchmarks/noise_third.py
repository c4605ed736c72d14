"""The third set of verb phrases, in the form of `noise_rules.FIRST`: written after the table of
families of words was fixed, and not used for tuning.
"""

from __future__ import annotations

from typing import Final

THIRD: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "directed_by": (
        ("is a feature directed by", "was put on film by", "has this person at the helm", "is the handiwork of filmmaker"),
        ("sat behind the camera for", "was in charge of the shoot of", "is credited as director on"),
    ),
    "written_by": (
        ("had its screenplay done by", "sprang from the mind of", "was put on paper by", "credits its script to"),
        ("provided the script for", "came up with", "is the scriptwriter behind"),
    ),
    "starred_actors": (
        ("has a cast that includes", "gives a part to", "shows on screen", "is led by the performance of"),
        ("has a part in", "shows up in", "can be watched in", "belongs to the cast of"),
    ),
    "release_year": (
        ("first reached cinemas in", "had its premiere in", "dates from", "was out by"),
        ("saw the release of", "was the year of", "is when people first saw"),
    ),
    "has_genre": (
        ("counts among films of the kind", "can be classed as", "is a movie of the sort", "fits the category"),
        ("is a category that includes", "is the type of"),
    ),
    "in_language": (
        ("has actors who speak", "has its dialogue in", "was originally voiced in", "can be heard in"),
        ("is what people speak in", "is the tongue used in"),
    ),
    "has_tags": (
        ("brings to mind", "has to do with", "is filed under the keyword", "has as one of its themes"),
        ("is a theme of", "comes up in", "sums up"),
    ),
    "parents": (
        ("grew up as the child of", "owes life to", "calls this person father or mother", "is a descendant of"),
        ("had as a child", "brought into the world", "raised"),
    ),
    "children": (
        ("became the father of", "passed the family name to", "brought up", "has an heir in"),
        ("was raised by", "came from the line of", "calls as a parent"),
    ),
    "spouse": (
        ("went down the aisle with", "took as lawful wife or husband", "shared a marriage with", "is the partner of"),
        ("said yes to the proposal of", "is the wedded partner of"),
    ),
    "nationality": (
        ("carries the passport of", "was a citizen of", "is a native of the country", "comes from the land of"),
        ("counts among its citizens", "gave a passport to"),
    ),
    "gender": (
        ("is known to be of the gender", "lives as a", "is biologically", "has as sex"),
        ("is the sex assigned to", "is the gender identity of"),
    ),
    "profession": (
        ("earned money as", "had a job as", "makes a career as", "is by profession"),
        ("is what is done for a living by", "is the day job of"),
    ),
    "institution": (
        ("took classes at", "holds a degree from", "was a student at", "was on the faculty of"),
        ("taught", "has as an alumnus", "educated"),
    ),
    "religion": (
        ("is a follower of", "attends services of", "prays in the tradition of", "adheres to"),
        ("is the creed of", "has among its believers"),
    ),
    "ethnicity": (
        ("is descended from the people", "has the ancestry", "is ethnically", "shares the heritage of"),
        ("is the ethnic background of", "is the heritage of"),
    ),
    "location": (
        ("can be found in", "makes a home in", "has an address in", "settled in"),
        ("is where one finds", "is home to"),
    ),
    "place_of_birth": (
        ("first drew breath in", "was delivered in", "spent the first day of life in", "has as birthplace"),
        ("saw the birth of", "is the native town of"),
    ),
    "place_of_death": (
        ("spent the final hours in", "lost life in", "was found dead in", "went to the grave in"),
        ("saw the last days of", "is where the end came for"),
    ),
    "cause_of_death": (
        ("lost the fight against", "died as a result of", "was finished by", "had a death caused by"),
        ("was fatal to", "put an end to the life of"),
    ),
}  # fmt: skip
