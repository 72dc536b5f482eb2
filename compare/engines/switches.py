"""Switches of a process that is somebody else's: what is set in it is measured with, and left as it was."""

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
    """How something that a process has set is read, and set again to what was read."""

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
"""Those that every process has."""


@contextmanager
def keep_switches(switches: Iterable[Switch]) -> Iterator[None]:
    """Inside, anything may turn these, and filters of warnings; each is turned back, whatever is raised."""
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        for switch in switches:
            stack.callback(switch.write, switch.read())
        yield
