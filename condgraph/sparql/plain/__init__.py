"""A graph as plain RDF: the triples that it was loaded from, by their own IRIs, with their literals.

The layout (`layout`) says all that a graph holds, in a vocabulary of its own. This says what RDF
says: entities by their IRIs, literals with language and datatype, lists as lists, statements about
statements as the source had them (reified, triple terms, or Wikibase's statement nodes). What the
names are in RDF stands with the source (`engine.terms`).

Sources that were no RDF have IRIs under the base of the graph; they are written only where
everything is asked for. What of a statement RDF cannot say is counted in `Plain.warnings`.

`quads` has all of it: `statements`, with lists, and `labels`, whose terms `terms` writes. `served`
is what the embedded store has of it.
"""
