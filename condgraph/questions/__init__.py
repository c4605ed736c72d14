"""Questions generated from a graph in the way of KQA Pro (sections 3 and 4): words, programs, queries, answers and choices.

facts         draws the facts that questions are about
description   questions as records, and as KoPL
locate        describes an entity so that no other one fits
forms, words  the English text
tables        questions about tables, which KoPL cannot express
choices       wrong answers, and when two answers are equal
translations  questions in other query languages
generate      the generator, with quotas and paraphrases
record        questions as records, files and splits
"""

from condgraph.questions.choices import equal
from condgraph.questions.generate import Questions
from condgraph.questions.record import Distribution, Question, accuracy, read, split, write

__all__ = ["Distribution", "Question", "Questions", "accuracy", "equal", "read", "split", "write"]
