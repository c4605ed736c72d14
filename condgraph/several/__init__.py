"""Several stores as one graph: each part of a plan is asked where its statements are, and the parts meet in process."""
