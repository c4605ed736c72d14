"""What a text can be read as: numbers with their units, dates, clocks. Cells of tables and literals
of programs are read here.

`shapes.readings` gives every honest reading of a text. Which of them counts, a column decides for
its cells (`condgraph.loaders.table.column_types`), and the types of a column for a literal
(`condgraph.languages.llm.lower.literals`).
"""
