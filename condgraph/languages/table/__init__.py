"""What is made a table of: the rows that a program gives, grouped, summed up, ordered and cut.

`clause` reads the text, `columns` puts it on top of the plan of a program in any language, `builder`
is the same from Python.
"""
