"""What a model is told before it writes a chain: instruction, three examples with their contexts, the
context of the question (DoG, Table 6, in words of our own).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from condgraph.chains.backends.base import Prompt

#: How a question is asked: by a chain, at once, or by a chain that nothing keeps to the graph.
Method = Literal["chains", "direct", "cot"]
_TASK: Final = (
    "You read statements of a knowledge graph and answer a question from them. First give the steps that lead "
    "from the question to its answer, each a statement in the form < head -> relation -> tail >, as few as are "
    "needed, each with a short sentence. Then name the answer."
)
_DIRECT: Final = "You read statements of a knowledge graph and answer a question from them. Name the answer alone."
#: Context, question, steps with what each says, answer.
_EXAMPLES: Final = (
    (
        ("Danube -> mouth -> Black Sea", "Danube -> length -> 2850 kilometre", "Inn -> tributary of -> Danube",
         "Inn -> source -> Lake Lunghin"),
        "Which sea does the river that the Inn flows into end in?",
        (("Inn -> tributary of -> Danube", "The Inn flows into the Danube."),
         ("Danube -> mouth -> Black Sea", "The Danube ends in the Black Sea.")),
        "Black Sea",
    ),
    (
        ("Ada -> written by -> Mira Holm", "Ada -> publication year -> 1987", "Tern -> written by -> Mira Holm"),
        "When was Ada published?",
        (("Ada -> publication year -> 1987", "Ada was published in 1987."),),
        "1987",
    ),
    (
        ("Red Kite -> performed by -> The Larks", "The Larks -> member -> Jo Venn", "Jo Venn -> born in -> Leeds",
         "The Larks -> genre -> folk"),
        "In which town was the member of the band that performed Red Kite born?",
        (("Red Kite -> performed by -> The Larks", "The Larks performed Red Kite."),
         ("The Larks -> member -> Jo Venn", "Jo Venn is a member of The Larks."),
         ("Jo Venn -> born in -> Leeds", "Jo Venn was born in Leeds.")),
        "Leeds",
    ),
)  # fmt: skip
#: What stands before the answer.
THEREFORE: Final = "Therefore, the answer is"


def prompt_of(question: str, context: Sequence[str], method: Method = "chains") -> Prompt:
    """The prompt of a question; `context` are triples without their signs."""
    parts = [_TASK if method != "direct" else _DIRECT]
    for number, (given, asked, steps, answer) in enumerate(_EXAMPLES, 1):
        parts.append(f"Example {number}\n{_asked(given, asked)}")
        if method != "direct":
            parts.append("Steps:\n" + "\n".join(f"< {triple} >\n{said}" for triple, said in steps))
        parts.append(f"{THEREFORE} {answer}")
    user = f"Example {len(_EXAMPLES) + 1}\n{_asked(context, question)}"
    return Prompt("\n".join(parts), user + ("\nSteps:" if method != "direct" else f"\n{THEREFORE}"))


def _asked(context: Sequence[str], question: str) -> str:
    held = "Context:\n" + "\n".join(context) + "\n" if context else ""
    return f"{held}Question: {' '.join(question.split())}"
