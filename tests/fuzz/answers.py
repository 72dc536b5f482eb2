"""The process with the tape in Python: reads seeds, and answers each with a digest of values and gradients."""

import sys

import numpy as np

from dynamic import tapes
from tests.fuzz.cases import case_of
from tests.fuzz.tapes import digest


def main() -> None:
    """Answer until nobody asks."""
    assert not tapes.is_compiled()
    with np.errstate(all="ignore"):
        for line in sys.stdin:
            print(digest(case_of(int(line))), flush=True)


if __name__ == "__main__":
    main()
