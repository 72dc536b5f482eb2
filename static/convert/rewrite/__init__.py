"""Python rewritten to Python: a function whose tests, loops, calls and writes go through the operators of `stage`.

Read `functions` (a whole function), then `statements` and `expressions`; `jumps` turns `return`, `break` and
`continue` into flags first. `syntax` finds the tree of a function, and makes trees.
"""
