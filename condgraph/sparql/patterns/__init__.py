"""Graph patterns on RDF stores."""
