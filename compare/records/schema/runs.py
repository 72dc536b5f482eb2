"""The start of a run, and a job that left no result."""

from typing import Any, TypedDict


class Run(TypedDict):
    """The start of a run, or of a resumed one; `at` is ISO 8601, in UTC."""

    run: str
    at: str
    settings: dict[str, Any]
    environment: dict[str, Any]


class Failure(TypedDict):
    """A job that left no result, by the fields that name it."""

    job: dict[str, Any]
    error: str
