"""The operators that rewritten functions call: Python's meaning for known values, control flow of the graph for others.

Read `operators` (the names that rewritten code calls), then `branches` and `loops`; `trees` merges the values that
several paths leave, and `loop_state` finds the state that a loop carries. `unknown` has a trace's knowledge of values.
`places` notes the writes of a path and undoes them; `overwriting` does so for tensors that share memory. `effects`
refuses code whose effects a graph would not repeat. `calls`, `implicit` and `builtins` are calls of each
kind, `streams` generators; `conversion` says whose code is converted.
"""
