"""Python rewritten to Python: a function whose tests, loops, calls and writes go through the operators of `stage`."""
