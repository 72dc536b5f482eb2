"""Jobs for tests that call what measures."""

from compare.records.job import Job


def check_of(arm: str | None = None) -> Job:
    """A job for the check of a claim, by our engines or by an arm of a framework."""
    return Job("check", claim="C0", arm=arm)
