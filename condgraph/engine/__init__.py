"""The language-neutral core: the data model, the query algebra and its execution in process.

In order of control flow: `values` and `facts` (the contents of a graph), `snapshot` (its columns), `schema` (what a
program's names are resolved against), `algebra` (plans), `passes` (rewriting of plans), `execute` (running a plan),
`answer` (the result as users see it). `errors` is the whole exception tree. Only NumPy and the standard library are
imported here.
"""
