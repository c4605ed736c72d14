"""The language-neutral core: the model, the algebra and its execution in process.

In order of control flow: `values` and `facts` (what a graph holds), `snapshot` (how it is kept),
`schema` (what is known of it while a program is read), `algebra` (what a program becomes),
`passes` (plan to plan), `execute` (plan to result), `answer` (result to what a user sees). `errors`
is the whole exception tree. Only NumPy and the standard library are imported here.
"""
