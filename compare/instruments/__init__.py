"""The instruments of the comparison: each is a file whose `measure` makes a record; none judges or draws.

Read `bench` (a subject that is open in a process), `references` (what its calls must give) and `parity` with `judge`
(do all modes agree?), then `timing` and `memory`. `ledger` says where bytes go and what a line costs, `ladder` and
`parts` where time goes, `lengths` what inputs of varying length cost, `crossover` what chains of ops cost over size and
depth, `programs` which control flow an engine takes.
"""
