"""The adapter of PyTorch, its compilers, its control flow, a step, and its functions by our names.

Read `adapter` (the roles of PyTorch), then `step` (the timed code) and `dynamo` (the compiler).
"""
