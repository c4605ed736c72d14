"""`AsyncGraph.generate`: the same questions, made off the event loop, until somebody cancels."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import CancelledError, OptionError
from condgraph.samples import FOLDER


def opened() -> condgraph.AsyncGraph:
    graph = condgraph.open("memory:")
    graph.load(FOLDER / "countries.json")
    graph.load(FOLDER / "governments.tsv")
    return condgraph.AsyncGraph(graph)


def test_the_same_questions() -> None:
    async def main() -> None:
        client = opened()
        found = await client.generate(12, seed=3)
        assert [question async for question in found] == list(client.graph.generate(12, seed=3))
        assert found.warnings == []
        few = await client.generate(3, kinds=["QualifierLiteral"])
        assert [question async for question in few] == []
        assert "no facts for questions of kind QualifierLiteral" in few.warnings[0]
        with pytest.raises(OptionError):
            await client.generate(3, kinds=["Cuont"])

    asyncio.run(main())


def test_side_by_side() -> None:
    async def main() -> None:
        found = await opened().generate(10, queries=False)
        assert len({question.id for question in await asyncio.gather(*(anext(found) for _ in range(10)))}) == 10
        with pytest.raises(StopAsyncIteration):
            await anext(found)

    asyncio.run(main())


def test_a_model_that_is_awaited() -> None:
    class Model:
        """Says a question otherwise, and reads nothing back from some."""

        def __init__(self, programs: dict[str, Any]) -> None:
            self.programs, self.loops = programs, set[Any]()

        async def __call__(self, text: str) -> str:
            await asyncio.sleep(0)
            self.loops.add(asyncio.get_running_loop())
            return f"Tell me, if you can, and in one word or two: {text}"

        async def program(self, text: str) -> Any:
            return self.programs.get(text.partition(": ")[2])

    async def main() -> None:
        client = opened()
        plain = [question async for question in await client.generate(10, kinds=["QueryAttribute"])]
        model = Model({question.question: question.program for question in plain})
        said = [question async for question in await client.generate(10, kinds=["QueryAttribute"], llm=model)]
        assert any(question.canonical for question in said)
        assert model.loops == {asyncio.get_running_loop()}
        unread = await client.generate(10, kinds=["QueryAttribute"], llm=Model({}))
        assert not [question async for question in unread if question.canonical]

    asyncio.run(main())


def test_cancelling_ends_them() -> None:
    async def main() -> None:
        async def silent(text: str) -> str:
            await asyncio.sleep(60)
            return text

        found = await opened().generate(10, llm=silent)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await anext(found)
        with pytest.raises(CancelledError):
            await anext(found)

    asyncio.run(main())
