"""The studio: a page for people and an HTTP API (`/api/v1`) for programs, over any graph that
`condgraph.open` opens.

`spec` has the operations with their fields, `api` is the HTTP around them; `pools` sends each call to
a worker process (`worker`), where `calls` answers it.
"""
