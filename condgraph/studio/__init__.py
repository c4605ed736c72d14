"""The studio: a page for people and an HTTP API (`/api/v1`) for programs, over any graph that
`condgraph.open` opens.

`spec` says what can be asked and with which fields; `calls` answers it in a worker process (`work`,
`pools`); `api` is the HTTP around it, `guard` who may ask and how often.
"""
