"""Models that score links which a graph may miss: embeddings, their calibration, their rows and
their training.
"""
