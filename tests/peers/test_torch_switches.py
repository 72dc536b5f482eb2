"""What does nothing here, beside PyTorch on one CPU."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest

import dynamic
from dynamic.pytorch import switches

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

# Where PyTorch's answer on a CPU is of what it has and we have not: processes, kernels and threads.
UNLIKE = {
    "distributed": {"is_available", "is_gloo_available"},
    "": {"get_num_threads", "get_num_interop_threads", "are_deterministic_algorithms_enabled", "set_flush_denormal"},
    "backends.cudnn": {"enabled", "allow_tf32"},
    "backends.cuda": {"flash_sdp_enabled", "cudnn_sdp_enabled", "mem_efficient_sdp_enabled"},
    "backends.mkldnn": {"is_available", "enabled"},
    "backends.mkl": {"is_available"},
    "backends.openmp": {"is_available"},
    "backends.cuda.matmul": {"allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"},
    "version": {"git_version", "debug"},
    "multiprocessing": {"get_start_method"},
    "__config__": {"show", "parallel_info"},
    "cuda": {"is_bf16_supported"},
}


def answer(value: Any, does: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return value() if does == "returns" else value


def test_answers_are_those_of_pytorch_on_a_cpu() -> None:
    compared = 0
    for row in switches.SWITCHES:
        for name in row.names.split():
            if row.does not in ("returns", "equals") or not isinstance(row.value, (bool, int, str)):
                continue
            try:
                place = importlib.import_module(f"torch.{row.place}".rstrip("."))
                theirs = answer(getattr(place, name), row.does)
            except (ImportError, AttributeError, TypeError, RuntimeError, AssertionError):
                continue
            if name in UNLIKE.get(row.place, ()):
                continue
            ours = answer(getattr(importlib.import_module(f"dynamic.{row.place}".rstrip(".")), name), row.does)
            assert (row.place, name, ours) == (row.place, name, theirs)
            compared += 1
    assert compared > 20


def test_nearly_all_names_are_pytorchs() -> None:
    absent = []
    for row in switches.SWITCHES:
        try:
            place = importlib.import_module(f"torch.{row.place}".rstrip("."))
        except ImportError:
            absent.append(row.place)
            continue
        absent += [f"{row.place}.{n}" for n in row.names.split() if n != switches.ALL and not hasattr(place, n)]
    assert len(absent) < 15, absent  # names of older versions, which programs still ask for


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64"])
@pytest.mark.parametrize("distance", [0, 1e-8, 1e-6, 1e-5, 1e-4, 1e-2, 1])
def test_values_are_close_where_pytorch_says_so(dtype: str, distance: float) -> None:
    values = np.array([1.0, 2.0, 300.0])
    ours, theirs = (
        [space.tensor((values * (1 + d)).astype(dtype)) for d in (0, distance)] for space in (dynamic, torch)
    )
    assert fails(dynamic, *ours) == fails(torch, *theirs)
    assert fails(dynamic, ours, ours[::-1]) == fails(torch, theirs, theirs[::-1])
    assert fails(dynamic, {"a": ours[0]}, {"a": ours[1]}) == fails(torch, {"a": theirs[0]}, {"a": theirs[1]})
    assert fails(dynamic, *ours, rtol=0.1, atol=0) == fails(torch, *theirs, rtol=0.1, atol=0)
    assert fails(dynamic, ours[0], ours[0].double()) == fails(torch, theirs[0], theirs[0].double())
    assert fails(dynamic, ours[0], ours[0][:2]) == fails(torch, theirs[0], theirs[0][:2])


def fails(space: Any, actual: Any, expected: Any, **options: Any) -> bool:
    try:
        space.testing.assert_close(actual, expected, **options)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("add", [[1.0, 2.0]]),
        ("add_", [[1.0, 2.0]]),
        ("mul", [3.0]),
        ("div_", [["b", "c"]]),
        ("addcmul_", [["b", "c"], ["c", "b"], 0.5]),
        ("addcdiv", [["b", "c"], ["c", "b"], [0.5, 2.0]]),
        ("sqrt", []),
        ("neg_", []),
        ("lerp_", [["b", "c"], 0.25]),
        ("norm", []),
        ("maximum", [["b", "c"]]),
        ("zero_", []),
    ],
)
def test_functions_of_lists_of_tensors(name: str, args: list[Any]) -> None:
    answers = []
    for space in (dynamic, torch):
        held = {"b": space.tensor([1.0, 3.0]), "c": space.tensor([2.0, 0.5])}
        lists = [[held.get(v, v) for v in arg] if isinstance(arg, list) else arg for arg in args]
        tensors = [space.tensor([4.0, 9.0]), space.tensor([1.0, 16.0])]
        result = getattr(space, f"_foreach_{name}")(tensors, *lists)
        answers.append([x.numpy() for x in (*tensors, *(result or ()))])
    for ours, theirs in zip(*answers, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
