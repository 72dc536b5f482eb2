"""Inputs of varying length under every strategy: padding, batching and compilation as separate factors.

This file has the names of models and distributions, which are defined in `compare.workloads.lengths`, so that reading
them loads neither models nor data. `measure` is the instrument of a run and of `graphduel shapes`.
"""

MODELS = ("rnn_text", "encoder_text")
DISTRIBUTIONS = ("lines", "sentences", "trees", "uniform")
