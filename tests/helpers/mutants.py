"""Steps that are wrong on purpose: the one place where a test lets what an engine has built give something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compare.engines.step import Function, bind_call


def altered(built: Function, change: Callable[..., Any]) -> Function:
    """What an engine has built, which gives `change` of the value, the gradients, and what else a call gives."""
    return lambda *args: change(*bind_call(built, args)())
