"""Jobs for tests that call what measures."""

from compare.records.job import Job


def check_of(mode: str | None = None) -> Job:
    """A job for the check of a claim, by our engines or by a mode of a framework."""
    return Job("check", claim="C0", mode=mode)
