"""`condgraph serve`: the SPARQL endpoint as an ASGI application, and the HTTP server with its limits."""
