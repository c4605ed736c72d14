"""Graph patterns ranked by graph semantic distance (SimGRAG, sections 4 and 5): the k most similar subgraphs, exactly.

In order of control flow: `options` (what may be asked), `graph` (the neighbours of a node in a snapshot), `distances` (terms of the
distance), `domains` (what a node or an edge of the pattern may be, and at which price), `bonds` (all neighbours of many nodes under
a bound), `join` (all solutions under a bound), `ranking` (the total order), `driver` (bounds that grow until the first k are
proved),
`match` (from a pattern to its answer), `result` (what a user gets; the same from every store).
"""
