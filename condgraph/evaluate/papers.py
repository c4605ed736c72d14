"""The figures that the papers report, in percent, to stand beside one's own.

They were measured with other models, on whole test sets and on the papers' graphs: what they say
next to a figure from here is where the field is, not who wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: By data set and measure: who, and the figure. TrustUQA: Tables 2, 3 and 4 (GPT-3.5); SimGRAG:
#: Table 1 (Llama 3 70B).
PAPERS: Final[Mapping[str, Mapping[str, Mapping[str, float]]]] = {
    "metaqa-1": {"hits1": {"TrustUQA": 97.1, "SimGRAG": 98.0}, "includes": {"TrustUQA": 99.94}},
    "metaqa-2": {"hits1": {"TrustUQA": 97.9, "SimGRAG": 98.4}, "includes": {"TrustUQA": 99.99}},
    "metaqa-3": {"hits1": {"TrustUQA": 98.4, "SimGRAG": 97.8}, "includes": {"TrustUQA": 99.99}},
    "wtq": {"denotation": {"TrustUQA": 44.2}},
    "cronquestions": {"hits1": {"TrustUQA": 97.2}},
    "pathquestions-2": {"hits1": {"SimGRAG": 88.7}},
    "pathquestions-3": {"hits1": {"SimGRAG": 78.6}},
    "movies": {},
}
