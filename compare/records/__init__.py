"""The records that a run writes and reads: one type for each kind, and the files that hold them.

Read `record` (what all records share) and `job` (every kind, and who makes it), then `results` (a line of
`results.jsonl`). `cells`, `checks` and `own` are the kinds; `journal` is a run's file while it is written.
"""
