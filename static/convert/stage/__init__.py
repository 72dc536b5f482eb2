"""What rewritten functions call: Python's meaning for values that are known, control flow of the graph for others.

Read `operators` (the names that rewritten code calls), then `branches` and `loops`; `trees` brings what several paths
leave to one value, `loop_state` finds what a loop carries. `unknown` says what a trace knows of a value. `places` notes
what a path writes, and undoes it; `overwriting` does so for tensors that share memory. `effects` refuses what a graph
would not repeat. `calls`, `implicit`, `builtins`, `arithmetic` and `comparisons` are calls of each kind, `streams`
generators, `raising` errors that only the run reaches; `conversion` says whose code is converted.
"""
