"""Which language a question is asked in, by a written rule (`via="auto"`).

1. The language of the similar demonstrations, where at least one has the question's form (0.5).
2. KoPL and LLM queries both answer over graphs; rows of tables, and times of facts, are asked in LLM
   queries alone. So it is `query` where a source that may be meant has rows, or where the graph has
   facts with times.
3. It is `kopl` where statements have qualifiers, which it filters by.
4. Otherwise `query`.

A pattern is written where it is asked for, or where the demonstrations are patterns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from condgraph.ask.demos import Similar
    from condgraph.ask.known import Known

#: A demonstration as similar as this has the form of the question.
ALIKE: Final = 0.5


def route(known: Known, sources: Sequence[str], similar: Sequence[Similar]) -> tuple[str, str]:
    """The language ("query", "kopl" or "pattern") and the reason, in words."""
    alike = [one for one in similar if one.score >= ALIKE]
    if alike:
        weights: Counter[str] = Counter()
        for one in alike:
            weights[one.demo.language] += round(1000 * one.score)
        via = max(sorted(weights), key=lambda language: weights[language])
        return via, f"{len(alike)} demonstrations of this form are written so"
    tables = [name for name in sources if name in known.linker.tables]
    if tables:
        return "query", f"{tables[0]!r}, which may be meant, has rows"
    if known.linker.temporal:
        return "query", "facts of the graph have times"
    if known.qualifiers.names:
        return "kopl", "statements of the graph have qualifiers"
    return "query", "nothing says otherwise"
