"""What people bring, as data: a row is one situation, the file that its user has, and the answer that is right.

`rows.py` has the rows, `axes.py` what a situation is made of and what goes together, `parts/` the pieces of the user's
file, and `running.py` runs the command on it and says what is wrong with the answer.

To add a row, append to ROWS:  `row("step", "torch", "float32", "counter", "AdamW", "list", "None", "plain", "file"),`.
It is then right that every mode is timed and agrees, and nothing raw is shown. Where something else is right, say so:
`right=Right(codes=(2,), says=("names no function",), timed=0)`, `refused={"jit": "words"}`, `faster="jit"`.
Where the mend is still missing, `waits="which"` keeps the row out of the tests; `--waiting` runs it.
A value that an axis has not yet: add it to AXES and ADMITS in `axes.py`, and its lines of source in `parts/`.
A situation that the axes cannot say: `special("name", "torch", SOURCE, "f.py:loss", right=...)`, in ROWS too.
See a file and its answer:  `python -m tests.situations --show NAME`.  Run some:  `--only torch,autocast`.
Pairs that no row has:  `--missing` writes rows for them.
"""
