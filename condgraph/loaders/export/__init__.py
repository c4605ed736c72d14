"""condgraph's own export, which holds a graph without loss."""
