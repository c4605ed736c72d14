"""How relations are spelled: `starred_actors`, `starredActors` and "Starred actors" are one text."""

from __future__ import annotations

import re
from typing import Final

#: Where a small letter or digit meets a capital, and where capitals end before a word.
_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_JOINTS: Final = re.compile(r"[_\-/.:#\s]+")


def spelled(text: str) -> str:
    """A relation as words in small letters; a text of nothing but joints stays as it is.

    >>> spelled("placeOfBirth"), spelled("starred_actors"), spelled("film.directedBy"), spelled("IMDBRating")
    ('place of birth', 'starred actors', 'film directed by', 'imdb rating')
    """
    # Names with spaces are words already: "McDonald's".
    apart = text if " " in text.strip() else _HUMPS.sub(" ", text)
    return _JOINTS.sub(" ", apart).strip().lower() or text
