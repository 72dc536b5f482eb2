"""Inputs of varying length under every strategy: padding, batching and compilation as factors of their own.

The names stand here, where they load nothing: those of `compare.instruments.lengths.models` and
`compare.instruments.lengths.distributions`.
"""

MODELS = ("rnn_text", "encoder_text")
DISTRIBUTIONS = ("lines", "sentences", "trees", "uniform")
