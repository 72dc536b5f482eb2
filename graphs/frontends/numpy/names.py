"""NumPy's names that the op library does not have: what `import graphs as np` gives beside it.

They are NumPy's own functions. Of arrays they are what NumPy makes of them; of tensors and symbols NumPy asks the table
in `graphs/frontends/numpy/functions.py`, and a function that is not there is refused by name.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs import ops
from graphs.op import Array


def array(object: Any, dtype: npt.DTypeLike | None = None, *, copy: bool | None = True, ndmin: int = 0) -> Array:
    """A new array, tensor or symbol of numbers, arrays or nested lists; lists that hold tensors are stacked."""
    result = ops.asarray(object, dtype=dtype, copy=copy)
    missing = ndmin - np.ndim(result)
    return ops.expand_dims(result, tuple(range(missing))) if missing > 0 else result


def named(name: str) -> Any:
    """What NumPy has under a name. Raises AttributeError where it has nothing."""
    if name == "array":
        return array
    if name.startswith("_") or not hasattr(np, name):
        close = get_close_matches(name, [*ops.public, *np.__all__], n=1, cutoff=0.7)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        raise AttributeError(f"graphs has no {name!r}, and neither has NumPy{meant or ': docs/ops.md lists the ops'}")
    return getattr(np, name)
