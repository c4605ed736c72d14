"""condgraph: any structured data in one condition graph, asked precisely, with every answer's evidence."""

__version__ = "0.1.0"
