"""The op library: one definition per op, for both engines. Names are the array API standard's.

The `__all__` of a file lists its public names; this package collects these lists into `public`.
"""

# ruff: noqa: F403

import sys
from typing import TYPE_CHECKING

from graphs.ops.composites import *
from graphs.ops.control import *
from graphs.ops.convolution import *
from graphs.ops.creation import *
from graphs.ops.dtypes import *
from graphs.ops.effects import *
from graphs.ops.einsum import *
from graphs.ops.elementwise import *
from graphs.ops.gamma import *
from graphs.ops.indexing import *
from graphs.ops.linalg import *
from graphs.ops.losses import *
from graphs.ops.manipulation import *
from graphs.ops.movement import *
from graphs.ops.neural import *
from graphs.ops.pooling import *
from graphs.ops.random import *
from graphs.ops.reductions import *
from graphs.ops.scans import *
from graphs.ops.slicing import *
from graphs.ops.softmax import *
from graphs.ops.sorting import *
from graphs.ops.special import *

_files = [file for path, file in sys.modules.items() if path.startswith(f"{__name__}.")]
public: list[str] = sorted(name for file in _files for name in getattr(file, "__all__", ()))
if not TYPE_CHECKING:  # a checker of types reads the lists in the files themselves
    __all__ = [*public]  # noqa: PLE0604  (strings, as above)
