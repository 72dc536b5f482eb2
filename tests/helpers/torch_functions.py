"""Calls of functions that have PyTorch's names and meanings, and what PyTorch 2.13.0 gave for them, as data.

`python -m tests.helpers.torch_functions` writes `data/torch_functions.json` anew, with PyTorch on the CPU in
float64: of each case the value, and the gradients of its sum weighted by `weights`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import graphs as g
from tests.helpers.oracles import weights

GOLDEN = Path(__file__).parents[1] / "data" / "torch_functions.json"


class Case(NamedTuple):
    """One call, written once where graphs and PyTorch spell it alike: `call(where, *arrays)`."""

    name: str
    call: Callable[..., Any]
    inputs: Sequence[np.ndarray]
    theirs: Callable[..., Any] | None = None
    twice: bool = True

    def ours(self, *arrays: Any) -> Any:
        """The call of graphs."""
        return self.call(g, *arrays)

    def torch(self, torch: Any, *tensors: Any) -> Any:
        """The same call of PyTorch: of torch.nn.functional, or of torch."""
        return (self.theirs or self.call)(_Functions(torch), *tensors)


class _Functions:
    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._torch.nn.functional, name, None) or getattr(self._torch, name)


def reals(*shape: int, seed: int = 0) -> np.ndarray:
    """Normal numbers with three digits, no two of them alike."""
    found = np.random.default_rng((seed, *shape)).permutation(np.prod(shape, dtype=int)) / np.prod(shape) * 4 - 2
    return np.round(found.reshape(shape) + 0.001, 3)


def shares(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers between 0 and 1."""
    return np.round(np.random.default_rng((seed, *shape)).uniform(0.05, 0.95, shape), 3)


# Losses -------------------------------------------------------------------------------------------------------------

_LOGITS, _LABELS = reals(4, 3), [2, 0, -100, 1]
_WEIGHT, _EACH = [0.5, 2.0, 1.25], [0.5, 2.0, 1.25, 3.0]


def _losses() -> list[Case]:
    x, y, p, q = reals(3, 4), reals(3, 4, seed=1), shares(3, 4), shares(3, 4, seed=1)
    cases = []
    for how in ("none", "mean", "sum"):
        cases += [
            Case(f"mse_loss {how}", lambda f, x, y, r=how: f.mse_loss(x, y, reduction=r), (x, y)),
            Case(f"l1_loss {how}", lambda f, x, y, r=how: f.l1_loss(x, y, reduction=r), (x, y)),
            Case(f"huber_loss {how}", lambda f, x, y, r=how: f.huber_loss(x, y, delta=0.7, reduction=r), (x, y)),
            Case(f"smooth_l1 {how}", lambda f, x, y, r=how: f.smooth_l1_loss(x, y, beta=0.7, reduction=r), (x, y)),
            Case(
                f"bce {how}",
                lambda f, x, y, r=how: f.binary_cross_entropy(x, y, f.asarray(_EACH), reduction=r),
                (p, q),
            ),
            Case(
                f"bce logits {how}",
                lambda f, x, y, r=how: f.binary_cross_entropy_with_logits(
                    x, y, f.asarray(_EACH), pos_weight=f.asarray(_EACH), reduction=r
                ),
                (x, q),
            ),
            Case(f"kl_div {how}", lambda f, x, y, r=how: f.kl_div(x, y, reduction=r), (x, q)),
            Case(f"kl_div log {how}", lambda f, x, y, r=how: f.kl_div(x, y, reduction=r, log_target=True), (x, y)),
            *_labelled(how),
        ]
    return [
        *cases,
        Case("smooth_l1 of beta 0", lambda f, x, y: f.smooth_l1_loss(x, y, beta=0.0), (x, y)),
        Case("kl_div batchmean", lambda f, x, y: f.kl_div(x, y, reduction="batchmean"), (x, q)),
    ]


def _labelled(how: str) -> list[Case]:
    images, pixels = reals(2, 3, 2, 2), [[[0, -100], [2, 2]], [[1, 1], [0, -100]]]

    def entropy(title: str, x: np.ndarray, labels: Any, axis: int = -1, weight: Any = None, **options: Any) -> Case:
        probable = np.asarray(labels).dtype.kind == "f"

        def call(f: Any, x: Any, **own: Any) -> Any:
            w = None if weight is None else f.asarray(weight)
            given = f.asarray(labels, dtype=x.dtype) if probable else f.asarray(labels)
            return f.cross_entropy(x, given, w, reduction=how, **options, **own)

        return Case(f"cross_entropy {title} {how}", lambda f, x: call(f, x, axis=axis), (x,), call)

    return [
        entropy("ignoring", _LOGITS, _LABELS, ignore_index=-100),
        entropy("ignoring 2", _LOGITS, [2, 0, 1, 1], ignore_index=2),
        entropy("weight", _LOGITS, _LABELS, weight=_WEIGHT, ignore_index=-100),
        entropy("smooth", _LOGITS, _LABELS, ignore_index=-100, label_smoothing=0.2),
        entropy("smooth weight", _LOGITS, _LABELS, weight=_WEIGHT, ignore_index=-100, label_smoothing=0.2),
        entropy("images", images, pixels, 1, _WEIGHT, ignore_index=-100, label_smoothing=0.2),
        entropy("image probabilities", images, shares(2, 3, 2, 2).tolist(), 1, _WEIGHT, label_smoothing=0.1),
        Case(
            f"cross_entropy probabilities {how}",
            lambda f, x, y: f.cross_entropy(x, y, f.asarray(_WEIGHT), reduction=how),
            (_LOGITS, shares(4, 3)),
        ),
        Case(
            f"nll_loss {how}",
            lambda f, x: f.nll_loss(x, f.asarray(_LABELS), f.asarray(_WEIGHT), ignore_index=-100, reduction=how),
            (_LOGITS,),
        ),
    ]


# Running --------------------------------------------------------------------------------------------------------------


def _running() -> list[Case]:
    ties = np.array([[1.0, 3.0, 3.0, 2.0], [-1.0, -1.0, -2.0, -1.0]])
    large = np.array([[-1e3, 5.0, 1e3], [800.0, -800.0, 0.0]])

    def running(title: str, name: str, x: np.ndarray, axis: int) -> Case:
        def call(f: Any, x: Any) -> Any:
            found = getattr(f, name)(x, axis)
            return found if name == "logcumsumexp" else found.values

        return Case(f"{name} {title}", call, (x,), twice=title not in ("ties", "large"))

    return [
        *[running("of the last axis", name, reals(2, 5), -1) for name in ("cummax", "cummin", "logcumsumexp")],
        *[running("of the middle", name, reals(2, 3, 4), 1) for name in ("cummax", "cummin", "logcumsumexp")],
        *[running("ties", name, ties, 1) for name in ("cummax", "cummin")],
        running("large", "logcumsumexp", large, 1),
    ]


# Windows --------------------------------------------------------------------------------------------------------------


def _transposed() -> list[Case]:
    def case(title: str, rank: int, shapes: Sequence[tuple[int, ...]], **options: Any) -> Case:
        name = f"conv_transpose{rank}d"
        inputs = [reals(*shape, seed=i) for i, shape in enumerate(shapes)]
        return Case(f"{name} {title}", lambda f, *xs: getattr(f, name)(*xs, **options), inputs)

    uneven = {"stride": (2, 3), "padding": (1, 0), "output_padding": (1, 2), "groups": 2, "dilation": (1, 2)}
    even = {"stride": 3, "padding": 2, "output_padding": 2, "groups": 2, "dilation": 2}
    return [
        case("plain", 1, [(2, 3, 4), (3, 2, 3), (2,)]),
        case("without a batch", 1, [(3, 4), (3, 2, 3), (2,)], stride=2),
        case("everything", 1, [(2, 4, 4), (4, 1, 3), (2,)], **even),
        case("padded by dilation", 1, [(1, 1, 3), (1, 1, 2)], stride=1, output_padding=2, dilation=3),
        case("a point", 1, [(1, 2, 1), (2, 1, 4)], stride=2, padding=1),
        case("plain", 2, [(2, 2, 3, 2), (2, 3, 2, 3), (3,)]),
        case("everything", 2, [(1, 4, 3, 2), (4, 2, 3, 2), (4,)], **uneven),
    ]


def _interpolated() -> list[Case]:
    def case(title: str, shape: tuple[int, ...], *args: Any, **options: Any) -> Case:
        return Case(f"interpolate {title}", lambda f, x: f.interpolate(x, *args, **options), (reals(*shape),))

    two = (1, 2, 3, 4)
    return [
        case("nearest", (1, 2, 5), 8),
        case("nearest fewer", (2, 1, 9), 4),
        case("nearest images", two, (5, 3)),
        case("nearest volumes", (1, 1, 2, 3, 2), scale_factor=(2, 1, 1.5)),
        case("nearest images of one size", (1, 1, 4, 5), scale_factor=(1.2, 2.05)),
        case("nearest exact", two, (5, 7), mode="nearest-exact"),
        case("linear", (1, 2, 5), 8, mode="linear"),
        case("linear fewer", (1, 2, 7), 3, mode="linear"),
        case("linear corners", (1, 2, 5), 8, mode="linear", align_corners=True),
        case("linear to one", (1, 2, 5), 1, mode="linear", align_corners=True),
        case("linear factor", (1, 2, 5), scale_factor=1.7, mode="linear"),
        case("linear factor again", (1, 2, 5), scale_factor=1.7, mode="linear", recompute_scale_factor=True),
        case("bilinear", two, (6, 5), mode="bilinear"),
        case("bilinear corners", two, (6, 5), mode="bilinear", align_corners=True),
        case("bilinear factor", two, scale_factor=(0.7, 2.3), mode="bilinear", align_corners=False),
        case("trilinear", (1, 1, 2, 3, 2), (3, 2, 4), mode="trilinear"),
        case("bicubic", two, (5, 2), mode="bicubic"),
        case("bicubic corners", two, (5, 1), mode="bicubic", align_corners=True),
        case("bicubic factor", two, scale_factor=(0.7, 2.3), mode="bicubic"),
        case("bilinear antialias", (1, 1, 7, 6), (3, 8), mode="bilinear", antialias=True),
        case("bicubic antialias", (1, 1, 7, 6), (2, 5), mode="bicubic", antialias=True),
        case("bicubic antialias corners", (1, 1, 7, 6), (3, 4), mode="bicubic", align_corners=True, antialias=True),
    ]


def _padded() -> list[Case]:
    def case(mode: str, *shape: int) -> Case:
        return Case(
            f"pad {mode} of {len(shape)} axes",
            lambda f, x: f.pad(x, ((0, 0),) * (len(shape) - 2) + ((2, 0), (1, 3)), mode=mode),
            (reals(*shape),),
            lambda f, x: f.pad(x, (1, 3, 2, 0), mode=mode),
        )

    modes = ("constant", "reflect", "replicate", "circular")
    return [case(mode, *shape) for mode in modes for shape in ((1, 3, 4), (2, 1, 3, 4))]


def _pooled() -> list[Case]:
    def case(name: str, size: Any, stride: Any, padding: Any, shape: tuple[int, ...], **options: Any) -> Case:
        title = " ".join(f"{key} {value}" for key, value in options.items())
        return Case(
            f"{name} {size} {stride} {padding} of {shape[-1]} {title}",
            lambda f, x: getattr(f, name)(x, size, stride, padding, ceil_mode=True, **options),
            (reals(*shape),),
        )

    sizes = [
        (2, 2, 0, (1, 2, 5)),
        (3, 2, 1, (1, 2, 6)),
        (2, 3, 0, (2, 1, 6)),
        (3, 2, 1, (1, 1, 5)),
        (3, 3, 1, (2, 7)),
        (3, 2, 0, (1, 1, 2)),
    ]
    images = [((2, 3), 2, (1, 0), (1, 2, 4, 5)), (3, (2, 3), 1, (1, 1, 6, 6)), ((1, 2), (1, 2), 0, (1, 1, 2, 3))]
    return [
        *[case("max_pool1d", *each, dilation=1) for each in sizes],
        *[case("max_pool1d", *each, dilation=2) for each in sizes[1:5]],
        *[case("avg_pool1d", *each, count_include_pad=padded) for each in sizes for padded in (True, False)],
        *[case("max_pool2d", *each, dilation=1) for each in images],
        *[case("avg_pool2d", *each, count_include_pad=padded) for each in images for padded in (True, False)],
    ]


# Scattering ---------------------------------------------------------------------------------------------------------


def _scattered() -> list[Case]:
    index = [[0, 2, 0, 3], [1, 2, 0, 3], [0, 2, 1, 3]]
    x, src = reals(4, 4), reals(3, 4, seed=1) + 0.03
    ties, tied = np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 1.0, 2.0, 2.0])
    zeros, factors = np.array([0.0, 2.0, 3.0]), np.array([0.0, 3.0, 2.0, 0.0, 0.0, 5.0])

    def case(title: str, how: str, axis: int, index: Any, x: Any, src: Any, twice: bool, **options: Any) -> Case:
        def call(f: Any, x: Any, src: Any) -> Any:
            return f.scatter_reduce(x, axis, f.asarray(index), src, how, **options)

        return Case(f"scatter_reduce {how} {title}", call, (x, src), twice=twice)

    cases = []
    for how in ("sum", "prod", "mean", "amax", "amin"):
        cases += [
            case("rows", how, 0, index, x, src, twice=True),
            case("without self", how, 0, index, x, src, twice=True, include_self=False),
            case("columns", how, -1, index, x[:3], src, twice=True),
            case("a part", how, 1, [[0, 3], [3, 3]], x, src[:2, :2], twice=True),
            case("ties", how, 0, [0, 0, 0, 1, 1], ties, tied, twice=False),
        ]
    groups = [0, 0, 1, 1, 2, 2]
    return [
        *cases,
        case("zeros", "prod", 0, groups, zeros, factors, twice=False),
        case("zeros alone", "prod", 0, groups, zeros, factors, twice=False, include_self=False),
    ]


CASES: Sequence[Case] = [
    *_losses(),
    *_running(),
    *_transposed(),
    *_interpolated(),
    *_padded(),
    *_pooled(),
    *_scattered(),
]


def golden() -> dict[str, Any]:
    """What PyTorch gave, by name."""
    found: dict[str, Any] = json.loads(GOLDEN.read_text("utf-8"))
    return found


def _torchs(torch: Any, case: Case) -> dict[str, Any]:
    tensors = [torch.tensor(x, requires_grad=True) for x in case.inputs]
    value = case.torch(torch, *tensors)
    (value * torch.tensor(weights(tuple(value.shape), 0))).sum().backward()
    return {"value": value.tolist(), "gradients": [t.grad.tolist() for t in tensors]}


def _write() -> None:
    import torch

    torch.set_default_dtype(torch.float64)
    found = {case.name: _torchs(torch, case) for case in CASES}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(given)}" for name, given in found.items())
    GOLDEN.write_text(f"{{\n{lines}\n}}\n", "utf-8")


if __name__ == "__main__":
    _write()
