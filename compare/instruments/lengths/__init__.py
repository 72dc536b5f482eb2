"""Inputs of varying length under every strategy: padding, batching and compilation as factors of their own.

The names stand here, where they load no model and no data: those of
`compare.workloads.lengths`. `measure` is for a run and for `graphduel shapes`.
"""

MODELS = ("rnn_text", "encoder_text")
DISTRIBUTIONS = ("lines", "sentences", "trees", "uniform")
