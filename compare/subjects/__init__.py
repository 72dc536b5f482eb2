"""Subjects: what is run, as data that travels to processes, and as an open case with its inputs and its state.

Read `subject` first: a workload, a real model, a function of a file or of this process are constructors of one type.
`origin` finds a user's function and its calls, `case` makes a case of them, `effects` and `traffic` find its side
effects, and `exchange` hands function, calls and numbers to other processes.
"""
