"""Graph patterns ranked by graph semantic distance (SimGRAG, sections 4 and 5): the k most similar subgraphs, exactly.

In order of control flow: `options` (what may be asked), `match` (from a pattern to its answer), `graph` (the neighbours of a node
in a snapshot), `distances` (terms of the distance), `domains` (what a node or an edge of the pattern may be, and at which price),
`problem` (all that together), `driver` (bounds that grow until the first k are proved), `join` (all solutions under a bound, with
`steps` and `look_back`), `ranking` (the total order), `reader` and `result` (what a user gets; the same from every store).

On servers: `catalogue` (what the client knows of the nodes; `near_catalogue` where it has not looked through them), `remote_terms`,
`remote` (a part as something a server can be asked), `remote_match`, and `fetched` (the join over fetched edges).
"""
