"""Questions from one's own graph, as KQA Pro was made (sections 3 and 4): programs, queries,
answers, choices and words.

`generate` samples them: `facts` draws what they are about, `locate` describes it, `asking` asks,
`choices` gives wrong answers, `words`, `forms` and `spelled` the English, `tables` what KoPL cannot
ask of a table, `beside` and `subgraph` the other languages. `distribution` counts what there is;
`splits`, `score` and `formats` are for those who train and measure.
"""

from condgraph.questions.generate import Questions
from condgraph.questions.record import Question, read, write
from condgraph.questions.score import equal
from condgraph.questions.splits import Distribution, accuracy, split

__all__ = ["Distribution", "Question", "Questions", "accuracy", "equal", "read", "split", "write"]
