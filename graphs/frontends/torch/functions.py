"""All of PyTorch's functions that the files of this folder have, by name."""

from graphs.frontends.torch import (
    arithmetic,
    joining,
    numbers,
    picking,
    pointwise,
    products,
    quantiles,
    reductions,
    shapes,
)
from graphs.frontends.torch.arithmetic import *  # noqa: F403  # noqa: F403
from graphs.frontends.torch.guard import guard
from graphs.frontends.torch.joining import *  # noqa: F403
from graphs.frontends.torch.numbers import *  # noqa: F403
from graphs.frontends.torch.picking import *  # noqa: F403  # noqa: F403
from graphs.frontends.torch.pointwise import *  # noqa: F403
from graphs.frontends.torch.products import *  # noqa: F403
from graphs.frontends.torch.quantiles import *  # noqa: F403
from graphs.frontends.torch.reductions import *  # noqa: F403
from graphs.frontends.torch.shapes import *  # noqa: F403

__all__: list[str] = [  # noqa: PLE0604  (the lists of the files)
    *arithmetic.__all__, *arithmetic.__all__, *joining.__all__, *numbers.__all__, *picking.__all__, *picking.__all__,
    *pointwise.__all__, *products.__all__, *quantiles.__all__, *reductions.__all__, *shapes.__all__,
]  # fmt: skip

guard(globals(), __all__)
