"""KQA Pro's scorer: whether a predicted answer is the right one.

Texts are equal as they are. A date is right for a year that it lies in. Numbers are equal within a
tolerance, and their units have to be the same.
"""

from __future__ import annotations

import math
import re
from typing import Final

#: How far two numbers may be apart, absolutely or as a part of the larger.
TOLERANCE: Final = 1e-3
_NUMBER: Final = re.compile(r"([+-]?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?)(?:\s+(.+))?").fullmatch
_DATE: Final = re.compile(r"([+-]?\d{1,6})-(\d{2})(?:-(\d{2}))?(?:T[\d:]+)?").fullmatch
_YEAR: Final = re.compile(r"[+-]?\d{1,6}").fullmatch


def equal(answer: str, predicted: str) -> bool:
    """Whether a prediction is right.

    >>> equal("1958-05-29", "1958"), equal("206 centimetre", "206.0 centimetre"), equal("206 centimetre", "206")
    (True, True, False)
    >>> equal("1958", "1958-05-29"), equal("yes", "Yes"), equal("0.3333", "0.333")
    (True, True, True)
    """
    answer, predicted = answer.strip(), predicted.strip()
    if answer.casefold() == predicted.casefold():
        return True
    return _same_year(answer, predicted) or _same_number(answer, predicted)


def _same_year(answer: str, predicted: str) -> bool:
    one, other = _DATE(answer), _DATE(predicted)
    if one is not None and other is not None:
        return False
    if one is not None and _YEAR(predicted):
        return int(one[1]) == int(predicted)
    return other is not None and _YEAR(answer) is not None and int(other[1]) == int(answer)


def _same_number(answer: str, predicted: str) -> bool:
    one, other = _NUMBER(answer), _NUMBER(predicted)
    if one is None or other is None or (one[2] or "") != (other[2] or ""):
        return False
    a, b = (float(found[1].replace(",", "")) for found in (one, other))
    # Whole numbers, years and counts among them, are equal or not.
    if a.is_integer() and b.is_integer():
        return a == b
    return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
