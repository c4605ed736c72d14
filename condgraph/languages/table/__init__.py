"""Table clauses: group, aggregate, order and limit the rows of a program.

`clause` parses the text, `columns` lowers it on top of the plan of a program in any language, and
`builder` is the same from Python.
"""
