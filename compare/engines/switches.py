"""The switches of a process that belongs to the user: measured as they are set, and restored afterwards."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Switch:
    """A setting of the process: a function that reads its value, and one that writes it."""

    read: Callable[[], Any]
    write: Callable[[Any], object]


def _set_environment(before: Mapping[str, str]) -> None:
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


PROCESS = (
    Switch(os.environ.copy, _set_environment),
    Switch(random.getstate, random.setstate),
    Switch(np.random.get_state, np.random.set_state),
    Switch(np.geterr, lambda before: np.seterr(**before)),
)
"""The switches of every process: environment, random states of Python and NumPy, and NumPy's errors."""


@contextmanager
def keep_switches(switches: Iterable[Switch]) -> Iterator[None]:
    """A context in which these switches and the filters of warnings may change; all are restored at its end."""
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        for switch in switches:
            stack.callback(switch.write, switch.read())
        yield
