"""The columnar snapshot in which a graph is stored.

In order of control flow: `build` collects the items of loaders, `layout` lays out columns, `container` stores texts,
and writes and maps the files of a generation, `directory` switches generations atomically, `snapshot` opens one and
offers access paths, `readback` turns columns back into statements.
"""
