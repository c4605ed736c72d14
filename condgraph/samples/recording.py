"""A recorded run of a small language model on the sample data, which can be replayed without the model
(`tools/record_samples.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from condgraph.ask.records import Asked
    from condgraph.graph import Graph


#: The folder with the files of the recorded run.
ASKING: Final = Path(__file__).with_name("asking")
DEMONSTRATIONS: Final = ASKING / "demonstrations.jsonl"
QUESTIONS: Final = ASKING / "questions.jsonl"
CALLS: Final = ASKING / "calls.jsonl"
#: How the questions were asked.
OPTIONS: Final[dict[str, Any]] = {"via": "query", "demos": 3, "retries": 1, "prompts": ASKING}


def ask_recorded(graph: Graph, question: str, llm: Any = None) -> Asked:
    """Ask a question of the recorded run on a graph with the sample data.

    The demonstrations are loaded if the graph has none. `llm` is the model, by default the transcript.
    """
    if not len(graph.demos):
        graph.demos.load(DEMONSTRATIONS)
    return graph.ask(question, f"replay:{CALLS}" if llm is None else llm, **OPTIONS)
