"""A run of our own workloads: the stages of its plan, and the use of its records.

Read `stages` (gate, times, sharper intervals, report). `frameworks` is the stage of PyTorch, TensorFlow and JAX. The
settings and the jobs are in `compare.plans`.
"""
