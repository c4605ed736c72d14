"""What vLLM is sent, over HTTP, to a server that refuses what vLLM refuses and else writes random texts
that follow the constraint of a request (`tests/support/vllm_server.py`).
"""

from __future__ import annotations

from typing import Any

import pytest

import condgraph
from condgraph.chains.backends.vllm import Vllm
from condgraph.engine.errors import ModelError
from condgraph.engine.facts import Ref, Statement
from condgraph.models.chat import Budget
from condgraph.models.openai_chat import OpenAIModel
from tests.ask.asking import countries
from tests.chains.test_chains import JUDGE, condgraph_of
from tests.support.lanes import by_lane
from tests.support.schemas import alternatives
from tests.support.vllm_server import serving

pytestmark = pytest.mark.service
FILMS = condgraph_of()
#: What may be said of a program whose names are there.
REFUSED = ("declined", "does not answer", "no value of this column is similar to it")


@pytest.mark.parametrize("version", [(0, 14), (0, 11)])
@pytest.mark.parametrize("beams", [1, 4])
def test_vllm_takes_what_is_sent(version: tuple[int, int], beams: int) -> None:
    """A server that refuses what vLLM refuses, and else writes what the expression of a request
    lets it: every chain is well formed.
    """
    with serving(version) as server:
        for name in ("Film 1", "Drama", "Person 3"):
            llm = Vllm(server.url, "m")
            found = FILMS.reason(f"What is there about {name}?", llm, entities=[name], max_steps=3, beams=beams)
            assert found.chain
            assert JUDGE.problem("\n".join(map(str, found.chain)), [name], most=3, repeat=False) is None
            assert found.texts
        assert not server.faults
        kinds = [sorted(body.keys() & {"structured_outputs", "guided_regex"}) for _, body in server.requests if "stop" not in body]
        # Only the first request of each model is sent to an old server in the new way.
        assert kinds.count(["structured_outputs"]) == (len(kinds) if version > (0, 12) else 3)


def test_a_hub_is_no_flat_list_for_vllm() -> None:
    many = condgraph.open("memory:")
    many.add([Statement(f"Film {at}", "genre", Ref("Drama")) for at in range(5000)])
    with serving() as server:
        found = many.reason("genre of [Drama]", Vllm(server.url, "m"), entities=["Drama"], max_steps=1, free=False)
        assert len(found.chain) == 1
        assert not server.faults
        (_, body), *_ = server.requests
        expression = body["structured_outputs"]["regex"]
        assert alternatives(expression) <= 11
        # The same as a flat list is refused.
        flat = "|".join(f"< Film {at} -> genre -> Drama >" for at in range(2001))
        with pytest.raises(ModelError, match="too large"):
            Vllm(server.url, "m")._server.post("/completions", {**body, "structured_outputs": {"regex": f"({flat}|x|yy)"}})


@pytest.mark.parametrize("via", ["query", "kopl", "pattern"])
def test_programs_under_a_schema_of_vllm(via: Any) -> None:
    """What `ask` sends to vLLM: a JSON schema, which random texts follow; each is a program whose names
    are there. A value that no cell has is one that a model may write, and a random pattern may take
    longer than it has.
    """
    graph = countries()
    with serving() as server:
        for number in range(by_lane(3, 20, 400)):
            model = OpenAIModel("m", base_url=server.url, api_key="none")
            assert "json-schema" in model.accepts
            budget = Budget(prompt_tokens=3000, calls=1, seconds=10)
            found = graph.ask("What is the capital of Nepal?", model, via=via, retries=0, budget=budget, seed=number)
            if found.status == "budget":
                assert via == "pattern"
                continue
            (attempt,) = found.attempts
            assert attempt.stage in (None, "running") or any(why in attempt.error for why in REFUSED), attempt
        assert not server.faults
        assert all("json_schema" in body["response_format"] for _, body in server.requests)
