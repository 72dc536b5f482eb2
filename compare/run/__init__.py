"""A run: its jobs, the worker processes that do them one at a time, and the stages in which they follow."""
