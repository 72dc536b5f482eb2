"""What machine code reads of Python's and NumPy's objects lies where it looks, or no code runs."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

from static.native import layouts
from static.native.target import NativeError

ARRAYS = [np.zeros(()), np.ones((3, 4), "f4")[::2], np.asfortranarray(np.ones((2, 3, 4))), np.zeros((0, 5), np.int64)]


def test_arrays_lie_as_the_layout_says():
    assert [layouts.wrong_fields(array) for array in ARRAYS] == [[]] * len(ARRAYS)
    layouts.check_layout.__wrapped__()


@pytest.mark.parametrize("name", ["type", "data", "axes", "base", "dtype", "flags"])
def test_a_field_that_lies_elsewhere_is_refused_by_its_name(name, monkeypatch):
    fields = layouts.ArrayObject._fields_
    at = [field for field, _ in fields].index(name)

    class Moved(ctypes.Structure):
        _fields_ = (*fields[:at], ("new", ctypes.c_void_p), *fields[at:])

    monkeypatch.setattr(layouts, "ArrayObject", Moved)
    with pytest.raises(NativeError, match=rf"{name}.* lie elsewhere; use backend='numpy'"):
        layouts.check_layout.__wrapped__()


def test_another_abi_of_numpy_is_refused(monkeypatch):
    monkeypatch.setattr(layouts, "ABI_VERSION", 0x03000000)
    with pytest.raises(NativeError, match="functions of NumPy's ABI 0x3000000, and this NumPy has 0x2000000"):
        layouts.check_layout.__wrapped__()


def test_the_function_that_makes_arrays_makes_them():
    empty = layouts.python().empty
    dtype, shape = np.dtype("f4"), np.array([2, 3], np.intp)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_int, ctypes.c_void_p, ctypes.py_object, ctypes.c_int)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(dtype))
    made = make(ctypes.cast(empty, ctypes.c_void_p).value)(2, shape.ctypes.data, dtype, 0)
    assert (made.shape, made.dtype, made.flags.c_contiguous) == ((2, 3), dtype, True)
