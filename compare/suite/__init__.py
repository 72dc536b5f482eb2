"""A run of our own workloads: its settings, the order of its jobs, and the use of its records.

Read `settings` (presets and cells), then `jobs` (cells become jobs) and `stages` (gate, times, sharper intervals,
report). `frameworks` adds the jobs of PyTorch, TensorFlow and JAX.
"""
