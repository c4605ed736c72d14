"""Language models: what condgraph asks of one, and the ways to reach one."""
