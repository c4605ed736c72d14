"""Graph patterns, ranked exactly by graph semantic distance (SimGRAG, sections 4 and 5).

In order of control flow: `options` (what may be asked), `match` (from a pattern to its answer), `graph` (the neighbours of a
node in a snapshot), `distance` (the terms of the distance, and what a node or edge of the pattern may be at which price),
`problem` (all of that together), `join` (bounds that grow until the first k are proved, and all solutions under a bound),
`ranking` (the total order), `reader` and `result` (what a user gets, the same from every store).

On servers, `remote` knows the nodes and joins the edges that it fetches step by step.
"""
