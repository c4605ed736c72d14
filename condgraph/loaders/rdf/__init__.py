"""RDF in all its syntaxes."""
