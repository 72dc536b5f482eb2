"""What programs are drawn from here: every family, and every dtype."""

from tests.fuzz.dtypes import NUMBERS, TRUTHS, WHOLES
from tests.fuzz.indexing import INDEXING
from tests.fuzz.models import BROKEN, LAYERS, LOOPS, MOVES, PRODUCTS, RANDOM
from tests.helpers.random_graphs import Mix
from tests.helpers.random_ops import CONTROL, ELEMENTWISE, LINALG, MOVEMENT, REDUCTIONS

_SHARES = (
    (ELEMENTWISE, 20), (REDUCTIONS, 9), (MOVEMENT, 8), (LINALG, 4), (CONTROL, 2), (NUMBERS, 12), (TRUTHS, 6),
    (WHOLES, 8), (INDEXING, 10), (PRODUCTS, 6), (LAYERS, 5), (MOVES, 4), (RANDOM, 2), (LOOPS, 4),
)  # fmt: skip

EVERYTHING = Mix(
    families=tuple(family for family, _ in _SHARES),
    chances=tuple(share / 100 for _, share in _SHARES),
    dtypes={"float64": 0.56, "float32": 0.17, "float16": 0.03, "int64": 0.08, "int32": 0.05, "int8": 0.03,
            "uint8": 0.03, "bool": 0.05},
    broken=BROKEN,
    breaking=0.03,
    laid=0.15,
)  # fmt: skip
