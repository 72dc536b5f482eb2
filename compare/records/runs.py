"""The start of a run, a job that left no result, and what is asked of a worker beside what it measures."""

from __future__ import annotations

from compare.records.record import JobName, Record

Setting = str | int | float | bool | list[str] | None
OWN = "own"
"""What the preset of a user's own function is called in the settings of its run."""


class Run(Record, tag="run"):
    """The start of a run, or of a resumed one; `at` is ISO 8601, in UTC."""

    run: str
    at: str
    settings: dict[str, Setting]

    @property
    def is_own(self) -> bool:
        """Whether it measured a function of the user's, and not the suite."""
        return self.settings.get("preset") == OWN


class Failure(Record, tag="failure"):
    """A job that left no result; it `overran` where it was ended at its limit of time."""

    job: JobName
    error: str
    overran: bool = False


def error_of(record: Record) -> str | None:
    """What went wrong, where a job left no result."""
    return record.error if isinstance(record, Failure) else None


class Bare(Record, tag="environment"):
    """The environment of a worker, and nothing that it has measured."""
