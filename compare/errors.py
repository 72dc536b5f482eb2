"""The errors of the harness. Each carries the exit code the command ends with."""


class CompareError(Exception):
    """Base of the errors a user can act on; the message says what to do."""

    exit_code = 2


class UnknownNameError(CompareError, LookupError):
    """No workload, claim or size has that name; the message suggests the nearest."""


class ResultsError(CompareError, ValueError):
    """A results file is not ours, of another schema version, or of a run with other settings."""


class NothingMeasuredError(CompareError):
    """No cell matched, or none could be measured."""

    exit_code = 5


class UnsupportedError(CompareError):
    """An arm cannot run this workload, for a reason that is a result and not a fault."""


class WorkerError(CompareError):
    """A worker process crashed, ran out of time, or answered nothing."""

    exit_code = 1
