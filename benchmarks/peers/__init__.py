"""The training steps in other frameworks, each in its own idiom. A framework is imported when a mode of it is built.

`build(row)` of a module gives a step without arguments and the function that turns its result into NumPy arrays.
"""
