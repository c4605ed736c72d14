"""How well questions are answered: `ask` over questions whose answers are known (`asking`), beside a
control without a model (`control`), by the measures of the field (`measures`). `cases` and `readers`
read the questions, `papers` has the figures that papers report.
"""

from condgraph.evaluate.asking import evaluate_ask
from condgraph.evaluate.readers import Case, Cases, read_cases
from condgraph.evaluate.report import AskReport

__all__ = ["AskReport", "Case", "Cases", "evaluate_ask", "read_cases"]
