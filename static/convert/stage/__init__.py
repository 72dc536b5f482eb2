"""What rewritten functions call: Python's meaning for values that are known, control flow of the graph for others.

Read `operators` (the names that rewritten code calls), then `branches` and `loops`; `trees` brings what several paths
leave to one value, `carried` finds what a loop carries. `unknown` says what a trace knows of a value. `places` and
`writing` note what a path writes, and undo it; `overwriting` does so for tensors that share memory. `effects` refuses
what a graph would not repeat. `calls`, `implicit`, `builtins`, `arithmetic`, `comparing` and `frames` are calls of
each kind, `streams` generators, `raising` errors that only the run reaches; `conversion` says whose code is converted.
"""
