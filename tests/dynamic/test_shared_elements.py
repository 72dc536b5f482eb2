"""Writes to tensors whose elements share memory: expanded ones, and windows. PyTorch's results, and its refusals."""

from __future__ import annotations

import pytest

import dynamic as torch
from graphs.errors import InplaceError
from tests.helpers.together import together

MAKERS = {
    "rows": lambda: torch.tensor([[1.0], [2.0]]).expand(2, 3),
    "columns": lambda: torch.broadcast_to(torch.tensor([1.0, 2.0, 3.0]), (2, 3)),
    "windows": lambda: torch.tensor([1.0, 2.0, 3.0, 4.0]).unfold(0, 2, 1),
}


def put(key, value):
    def write(x):
        x[key] = value

    return write


def add(key):
    def write(x):
        x[key] += 1

    return write


WRITES = {
    "fill_": lambda x: x.fill_(7),
    "zero_": lambda x: x.zero_(),
    "data.fill_": lambda x: x.data.fill_(3),
    "an element": put((0, 0), 9.0),
    "an element of a tensor": put((0, 1), torch.tensor(8.0)),
    "added to an element": add((1, 1)),
    "a row": put(0, 9.0),
    "a column": put((slice(None), 0), 9.0),
    "a row filled": lambda x: x[0].fill_(5),
    "added to a row": lambda x: x[0].add_(1),
    "a column of zeros": lambda x: x[:, 0].zero_(),
    "a corner": put((slice(1, None), slice(1, None)), 9.0),
    "by a mask": lambda x: put(x > 1, 0.0)(x),
    "by places": put((torch.tensor([0, 1]), torch.tensor([0, 1])), torch.tensor([5.0, 6.0])),
    "all": put(..., 9.0),
    "add_": lambda x: x.add_(1),
    "*=": lambda x: x.__imul__(2),
    "copy_": lambda x: x.copy_(torch.ones(x.shape)),
    "clamp_": lambda x: x.clamp_(0, 1),
}
# PyTorch's: None where it refuses. What it does with windows one element after the other is refused here.
RESULTS = {
    ("rows", "fill_"): [[7, 7, 7], [7, 7, 7]],
    ("rows", "zero_"): [[0, 0, 0], [0, 0, 0]],
    ("rows", "data.fill_"): [[3, 3, 3], [3, 3, 3]],
    ("rows", "an element"): [[9, 9, 9], [2, 2, 2]],
    ("rows", "an element of a tensor"): [[8, 8, 8], [2, 2, 2]],
    ("rows", "added to an element"): [[1, 1, 1], [3, 3, 3]],
    ("rows", "a row"): None,
    ("rows", "a column"): [[9, 9, 9], [9, 9, 9]],
    ("rows", "a row filled"): [[5, 5, 5], [2, 2, 2]],
    ("rows", "added to a row"): None,
    ("rows", "a column of zeros"): [[0, 0, 0], [0, 0, 0]],
    ("rows", "a corner"): None,
    ("rows", "by a mask"): [[1, 1, 1], [0, 0, 0]],
    ("rows", "by places"): [[5, 5, 5], [6, 6, 6]],
    ("rows", "all"): None,
    ("rows", "add_"): None,
    ("rows", "*="): None,
    ("rows", "copy_"): None,
    ("rows", "clamp_"): None,
    ("columns", "fill_"): [[7, 7, 7], [7, 7, 7]],
    ("columns", "zero_"): [[0, 0, 0], [0, 0, 0]],
    ("columns", "data.fill_"): [[3, 3, 3], [3, 3, 3]],
    ("columns", "an element"): [[9, 2, 3], [9, 2, 3]],
    ("columns", "an element of a tensor"): [[1, 8, 3], [1, 8, 3]],
    ("columns", "added to an element"): [[1, 3, 3], [1, 3, 3]],
    ("columns", "a row"): [[9, 9, 9], [9, 9, 9]],
    ("columns", "a column"): None,
    ("columns", "a row filled"): [[5, 5, 5], [5, 5, 5]],
    ("columns", "added to a row"): [[2, 3, 4], [2, 3, 4]],
    ("columns", "a column of zeros"): [[0, 2, 3], [0, 2, 3]],
    ("columns", "a corner"): [[1, 9, 9], [1, 9, 9]],
    ("columns", "by a mask"): [[1, 0, 0], [1, 0, 0]],
    ("columns", "by places"): [[5, 6, 3], [5, 6, 3]],
    ("columns", "all"): None,
    ("columns", "add_"): None,
    ("columns", "*="): None,
    ("columns", "copy_"): None,
    ("columns", "clamp_"): None,
    ("windows", "fill_"): [[7, 7], [7, 7], [7, 7]],
    ("windows", "zero_"): [[0, 0], [0, 0], [0, 0]],
    ("windows", "data.fill_"): [[3, 3], [3, 3], [3, 3]],
    ("windows", "an element"): [[9, 2], [2, 3], [3, 4]],
    ("windows", "an element of a tensor"): [[1, 8], [8, 3], [3, 4]],
    ("windows", "added to an element"): [[1, 2], [2, 4], [4, 4]],
    ("windows", "a row"): [[9, 9], [9, 3], [3, 4]],
    ("windows", "a column"): [[9, 9], [9, 9], [9, 4]],
    ("windows", "a row filled"): [[5, 5], [5, 3], [3, 4]],
    ("windows", "added to a row"): [[2, 3], [3, 3], [3, 4]],
    ("windows", "a column of zeros"): [[0, 0], [0, 0], [0, 4]],
    ("windows", "a corner"): [[1, 2], [2, 9], [9, 9]],
    ("windows", "by a mask"): [[1, 0], [0, 0], [0, 0]],
    ("windows", "by places"): [[5, 2], [2, 6], [6, 4]],
    ("windows", "all"): None,
    ("windows", "add_"): None,
    ("windows", "*="): None,
    ("windows", "copy_"): None,
    ("windows", "clamp_"): None,
}


@together("maker,write", RESULTS)
def test_a_write_gives_pytorchs_result_or_is_refused(maker, write):
    x = MAKERS[maker]()
    before = x.tolist()
    if RESULTS[maker, write] is None:
        with pytest.raises(InplaceError, match=r"elements share memory|read-only"):
            WRITES[write](x)
        assert x.tolist() == before
    else:
        WRITES[write](x)
        assert x.tolist() == RESULTS[maker, write]


def test_the_base_of_an_expanded_tensor_has_the_write():
    base = torch.tensor([[1.0], [2.0]])
    base.expand(2, 3)[1, 2] = 5.0
    assert base.tolist() == [[1], [5]]


def test_a_write_that_a_gradient_would_pass_is_refused():
    x = torch.ones(2, 1, requires_grad=True)
    for write in (put((0, 0), 2.0), lambda x: x.fill_(1)):
        with pytest.raises(InplaceError, match=r"clone\(\)"):
            write((x * 1).expand(2, 3))
    with torch.no_grad():
        (x * 1).expand(2, 3)[0, 0] = 2.0


def test_a_gradient_that_is_expanded_is_filled_alone():
    x = torch.ones(3, requires_grad=True)
    for _ in range(2):
        (gradient,) = torch.autograd.grad(x.sum(), x)
        assert gradient.tolist() == [1, 1, 1]
        gradient.zero_()
