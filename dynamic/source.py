"""Functions made from text: straight-line code for one op, where a loop over inputs would cost more than its kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent


def function(
    name: str, parameters: str, body: Iterable[str], values: Mapping[str, Any], what: str
) -> Callable[..., Any]:
    """The function `name(parameters)` with these lines as its body; `values` are its globals.

    `what` it is shows in tracebacks.
    """
    text = "\n    ".join([f"def {name}({parameters}):", *body])
    namespace = dict(values)
    # Seen as a file of this package, so that an error inside is put down to the user's line.
    exec(compile(text, str(_HERE / f"<{what}>"), "exec"), namespace)  # noqa: S102
    made: Callable[..., Any] = namespace[name]
    return made
