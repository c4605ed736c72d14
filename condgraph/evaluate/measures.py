"""How right an answer is: denotation accuracy, Hits@1, exact sets, F1."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

_NUMBER: Final = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?")
_YEAR: Final = re.compile(r"-?\d{1,4}")
_YEARS: Final = re.compile(r"(-?\d{1,4})/(-?\d{1,4})")
_GROUPS: Final = re.compile(r"[-+−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def normalised(text: str) -> str:
    """A text as answers are compared: without case, accents, quotes, surrounding marks and doubled
    spaces; a number as its value.

    >>> normalised(' “São Paulo”. '), normalised("1,200.50"), normalised("1200.5")
    ('sao paulo', '1200.5', '1200.5')
    """
    plain = unicodedata.normalize("NFKD", text)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter)).casefold()
    plain = re.sub(r"[‐‑‒–—−]", "-", plain)
    plain = re.sub(r"[\"'`‘’“”«»]", "", plain)
    plain = " ".join(plain.split()).strip(" .,;:!?")
    if len(plain) <= 40 and _NUMBER.fullmatch(plain) and ("," not in plain or _GROUPS.fullmatch(plain)):
        try:
            number = Decimal(plain.replace(",", ""))
        except InvalidOperation:
            return plain
        return "0" if not number else format(number.normalize(), "f")
    return plain


def single_years(texts: Sequence[str]) -> list[str]:
    """Spans of whole years as each of their years; other texts as they stand.

    >>> single_years(["1990/1992", "2001", "2010-05/2011"])
    ['1990', '1991', '1992', '2001', '2010-05/2011']
    """
    found: list[str] = []
    for text in texts:
        span = _YEARS.fullmatch(text)
        found.extend([text] if span is None or int(span[1]) > int(span[2]) else map(str, range(int(span[1]), int(span[2]) + 1)))
    return found


@dataclass(frozen=True, slots=True)
class Right:
    """How right an answer is.

    `denotation`: the same set of normalised texts (TrustUQA, section 4.1). `hit`: the first text, in
    the order that answers have, is among the right ones. `exact`: the same set of texts as they
    stand. `includes`: all right ones are among those given (TrustUQA, Table 3). `f1`: the harmonic
    mean of precision and recall of the sets of normalised texts, from 0 to 1.
    """

    denotation: bool = False
    hit: bool = False
    exact: bool = False
    includes: bool = False
    f1: float = 0.0


def judge(given: Sequence[str] | None, wanted: Sequence[str]) -> Right:
    """How right the texts of an answer are; None is no answer, which is never right.

    Where all that is wanted are years (CronQuestions lists each year of a span), a span of years that
    was given is its years.
    """
    if given is None:
        return Right()
    if wanted and all(_YEAR.fullmatch(text) for text in wanted):
        given = single_years(given)
    found, right = {normalised(text) for text in given}, {normalised(text) for text in wanted}
    both = len(found & right)
    f1 = 1.0 if not found and not right else 2 * both / (len(found) + len(right))
    return Right(
        denotation=found == right,
        hit=bool(given) and normalised(given[0]) in right,
        exact=set(given) == set(wanted),
        includes=right <= found,
        f1=f1,
    )
