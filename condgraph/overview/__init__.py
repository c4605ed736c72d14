"""What a graph holds, to be looked at before it is asked: sources, concepts, predicates, units.

In order of control flow: `survey` (counts everything in a snapshot; what stores on servers keep
beside a graph), `partial` (what can be said of a graph that an earlier version wrote there),
`describe` (the survey, narrowed, as objects), `records` (these objects), `words` (how their parts
are said), `rows` (small tables of them), `text` (the same within a budget of tokens, for prompts),
`schema` (what `Graph.schema` gives: the records with their text and tables).
"""
