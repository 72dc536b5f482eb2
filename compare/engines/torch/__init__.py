"""PyTorch: the adapter, its compilers, its control flow, a step, and its functions by our names.

Read `adapter` (what PyTorch answers), then `step` (what is timed) and `dynamo` (what its compiler has done).
"""
