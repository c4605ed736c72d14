"""Cache of what the grammars of one graph share, until the graph changes: names, and the rules over them as text."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from condgraph.overview.survey import Survey


T = TypeVar("T")
#: Surveys of which something is kept, and how much of each.
_SURVEYS: Final = 4
_EACH: Final = 48
_KEPT: Final[OrderedDict[int, tuple[Any, dict[Hashable, Any]]]] = OrderedDict()
_LOCK: Final = Lock()


def kept(survey: Survey, key: Hashable, make: Callable[[], T]) -> T:
    """What `make` gives, made once for a survey and a key. A survey is known by its identity: a graph
    that has changed has another.
    """
    with _LOCK:
        _, found = _KEPT.setdefault(id(survey), (survey, {}))
        _KEPT.move_to_end(id(survey))
        while len(_KEPT) > _SURVEYS:
            _KEPT.popitem(last=False)
        if key in found:
            value: T = found[key]
            return value
    value = make()
    with _LOCK:
        while len(found) >= _EACH:
            # What was made first: a graph of many tables is asked about one after the other.
            del found[next(iter(found))]
        found[key] = value
    return value
