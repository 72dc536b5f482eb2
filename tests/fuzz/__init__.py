"""Random programs over all families of ops and all dtypes, run in every way the engines offer, and compared.

`python -m tests.fuzz --programs 20000` is the long run; `tests/engines/test_fuzz.py` is a slice of it.
"""
