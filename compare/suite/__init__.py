"""A run of our own workloads: what it measures, in which order, and what is made of its records.

Read `settings` (presets and cells), then `jobs` (cells become jobs) and `stages` (gate, times, sharper intervals,
report). `frameworks` adds the jobs of PyTorch, TensorFlow and JAX.
"""
