"""The columnar snapshot a graph is kept in.

In order of control flow: `build` takes a loader's items and lays out columns, `container` has the
texts, and writes and maps the files of one generation, `directory` switches generations atomically,
`snapshot` opens one and answers access paths over it, `readback` turns columns into statements
again.
"""
