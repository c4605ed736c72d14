"""Reading texts as numbers with units, dates and clock times, for the cells of tables and the literals of programs.

`shapes.readings` returns every plausible reading of a text. A column decides between the readings of its cells
(`condgraph.loaders.table.column_types`), and the types of a column between those of a literal
(`condgraph.languages.llm.lower.literals`).
"""
