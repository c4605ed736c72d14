"""The ways of asking: each module turns one language's text into a plan (`algebra`), resolving names from the schema on the way."""
