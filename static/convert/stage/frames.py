"""Functions of Python's that look at the frame of their caller: a converted function has other frames and variables."""

from __future__ import annotations

import builtins
import inspect
import sys
from collections.abc import Callable
from typing import Any

from static.convert.stage.places import is_conditional
from static.convert.stage.unknown import refuse


def _of_objects(name: str) -> Callable[..., Any]:
    """`vars` or `dir`, of an object alone."""
    plain = getattr(builtins, name)

    def of_object(*args: Any) -> Any:
        if not args:
            refuse(f"{name}() shows variables, which a converted function keeps elsewhere; name those that you need")
        return plain(*args)

    return of_object


def _of_text(name: str) -> Callable[..., Any]:
    """`eval` or `exec`, of a text that names only what it is handed."""
    plain = getattr(builtins, name)

    def of_text(source: Any, *namespaces: Any, **options: Any) -> Any:
        if not namespaces and "globals" not in options:
            refuse(
                f"{name}() reads variables that a converted function keeps elsewhere; write the code itself, or hand "
                f"{name}() a dict of what it reads"
            )
        if is_conditional():
            refuse(
                f"{name}() runs where only the run knows whether it is reached, and may change anything; call it before"
            )
        return plain(source, *namespaces, **options)

    return of_text


def _refused(name: str) -> Callable[..., Any]:
    def of_frame(*_: Any, **__: Any) -> Any:
        refuse(
            f"{name}() looks into the frame of a function, which is another once it is converted; pass what you need"
        )

    return of_frame


REPLACED: dict[Any, Callable[..., Any]] = {
    vars: _of_objects("vars"),
    dir: _of_objects("dir"),
    eval: _of_text("eval"),
    exec: _of_text("exec"),
    locals: _refused("locals"),
    globals: _refused("another name of globals"),
    sys._getframe: _refused("sys._getframe"),
    inspect.currentframe: _refused("inspect.currentframe"),
    inspect.stack: _refused("inspect.stack"),
}
"""What is called in their place. `globals()` by its own name is left as it stands: it says the same everywhere."""
