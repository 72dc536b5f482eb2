"""Time part by part: where the seconds of a step go in each engine, by taking away one thing at a time.

Nothing is hooked into what is measured: each part is the difference of two programs that differ in it alone
(`compare.instruments.parts.programs`), timed side by side. What no difference explains is a part of its own,
`unexplained`.
"""
