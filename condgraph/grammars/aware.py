"""What grammars that know the graph ask of it: what each entity of a question has, so that behind
`Find(e)` stands only that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from condgraph.engine.algebra import ByName
from condgraph.engine.alternatives import around
from condgraph.engine.errors import OptionError
from condgraph.engine.store import plan_texts
from condgraph.grammars.vocabulary import Asking

#: Entities whose surroundings are looked up.
MOST: Final = 64
#: The names of predicates that an entity has, by way: "forward", "backward" (relations), "value"
#: (attributes).
Has = Mapping[str, Sequence[str]]


def surroundings(graph: Asking, entities: Sequence[str]) -> dict[str, Has]:
    """What each entity has, by three short queries each; entities of one name are taken together. Raises
    `OptionError` for more than `MOST`.
    """
    if len(entities) > MOST:
        raise OptionError(
            f"a grammar that knows what {len(entities):,} entities have would be far too long",
            hint=f"question=, or entities= with at most {MOST}",
        )
    store = graph._store_of(None)
    return {one: {way: plan_texts(store, plan) for way, plan in around(ByName((one,))).items()} for one in entities}
