"""The errors of the harness. Each carries the exit code the command ends with."""

import traceback
from pathlib import Path


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


class InputsError(CompareError, ValueError):
    """A function of the user's, its inputs or its modes cannot be used as given."""


class FunctionError(CompareError):
    """A function of the user's, or its file, ended in an error of its own; the message says where."""

    exit_code = 1


class EffectsError(CompareError):
    """A function of the user's does more than give a result, and the engines do not do that alike."""

    exit_code = 1


class WorkerError(CompareError):
    """A worker process crashed, ran out of time, or answered nothing."""

    exit_code = 1


def described(error: BaseException) -> str:
    """`ValueError: what went wrong (model.py:12)`, the place without its folder."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
