"""The studio: a web page for people and an HTTP API (`/api/v1`) for programs, over any graph that
`condgraph.open` can open.

`spec` describes the operations with their fields, and `api` serves them over HTTP. `pools` sends each
call to a worker process (`worker`), where `calls` answers it.
"""
