"""The compiled tape, built with NumPy's headers. Without a C compiler it is left out; the tape in Python then runs."""

from pathlib import Path

import numpy as np
from setuptools import Extension, setup

LOOPS = Path("dynamic/loops")

setup(
    ext_modules=[
        Extension(
            "dynamic._native",
            sources=sorted(path.as_posix() for path in LOOPS.glob("*.c")),
            depends=sorted(path.as_posix() for path in LOOPS.glob("*.h")),
            include_dirs=[np.get_include()],
            optional=True,
        )
    ]
)
