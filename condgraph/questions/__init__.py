"""Questions from one's own graph, as KQA Pro was made (sections 3 and 4): programs, queries,
answers, choices and words.

    facts         draws what questions are about
    description   what is asked, as records, and as KoPL
    locate        describes an entity so that nothing else fits
    forms, words  the English
    tables        questions that KoPL cannot ask of a table
    choices       wrong answers, and when two answers are equal
    translations  the same question in other languages
    generate      all of it, with quotas and paraphrases
    record        questions as records, files and splits
"""

from condgraph.questions.choices import equal
from condgraph.questions.generate import Questions
from condgraph.questions.record import Distribution, Question, accuracy, read, split, write

__all__ = ["Distribution", "Question", "Questions", "accuracy", "equal", "read", "split", "write"]
