"""Layout: the code made for containers gives what a general flattening gives, and refuses what it cannot tell."""

from collections import OrderedDict
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs import TensorSpec, tree
from static.call import containers


class Pair(NamedTuple):
    first: np.ndarray
    second: np.ndarray


ARRAYS = st.builds(
    np.zeros, st.sampled_from([(), (1,), (2,), (1, 2), (2, 1)]), st.sampled_from([np.float32, np.float64, np.int64])
)
CONTAINERS = st.recursive(
    ARRAYS,
    lambda parts: (
        st.lists(parts, max_size=3)
        | st.lists(parts, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from(["b", "a", "it's", '"', "{"]), parts, max_size=3)
    ),
    max_leaves=8,
)
ARGUMENTS = st.lists(CONTAINERS, max_size=3).map(tuple)


def called(args, outputs=None):
    """Calls made for these arguments, with bindings for their shapes and for these alone; gives what it is given."""
    leaves, structure = tree.flatten(args)
    made = structure if outputs is None else outputs
    specs = [TensorSpec(leaf.shape, leaf.dtype) for leaf in leaves]
    room = containers.Room()
    room.run = lambda *arrays: arrays
    room.bindings = {tuple(leaf.shape for leaf in leaves): SimpleNamespace(run=room.run)}
    for_any, for_these = (containers.caller(structure, made, specs, fixed=fixed) for fixed in (False, True))

    def call(other):
        one, two = for_any(room, other), for_these(room, other)
        assert (one is NotImplemented) == (two is NotImplemented)
        assert one is NotImplemented or same(one, two) or isinstance(tree.leaves(other)[-1], np.generic)
        return one

    return call


def same(one, other):
    """Whether containers of one layout hold the same arrays."""
    pairs = zip(tree.leaves(one), tree.leaves(other), strict=True)
    return tree.flatten(one)[1] == tree.flatten(other)[1] and all(a is b for a, b in pairs)


@given(ARGUMENTS)
def test_leaves_are_read_and_put_back_as_in_a_general_flattening(args):
    found = called(args)(args)
    assert same(found, args)
    assert repr(found) == repr(tree.unflatten(tree.flatten(args)[1], tree.leaves(args)))  # the order of keys too


@given(ARGUMENTS, ARGUMENTS)
def test_other_arguments_are_refused_and_those_alike_are_not(one, other):
    kinds = [(tree.flatten(a)[1], [(x.shape, x.dtype) for x in tree.leaves(a)]) for a in (one, other)]
    found = called(one)(other)
    assert (found is NotImplemented) == (kinds[0] != kinds[1])
    assert found is NotImplemented or same(found, other)


X = np.zeros(3, np.float32)


@pytest.mark.parametrize(
    "leaf",
    [
        np.float32(1),
        1.0,
        None,
        [0.0, 0.0, 0.0],
        X.view(np.recarray),
        np.ma.zeros(3, np.float32),
        SimpleNamespace(shape=(3,), dtype=X.dtype),
        X.astype(">f4"),
        X.astype(np.float64),
        np.zeros((3, 1), np.float32),
        np.zeros(4, np.float32),
    ],
)
def test_what_is_no_such_array_is_refused(leaf):
    call = called(({"a": X, "b": [X]}, X))
    assert call(({"a": X, "b": [X]}, X)) is not NotImplemented
    for args in [({"a": leaf, "b": [X]}, X), ({"a": X, "b": [leaf]}, X), ({"a": X, "b": [X]}, leaf)]:
        assert call(args) is NotImplemented


def test_an_array_whose_shape_was_changed_in_place_is_refused():
    x, call = np.zeros((2, 3)), called((np.zeros((2, 3)),))
    assert call((x,)) is not NotImplemented
    x.resize((3, 2), refcheck=False)
    assert call((x,)) is NotImplemented


@pytest.mark.parametrize(
    "other",
    [({"a": X, "c": X},), ({"a": X},), (OrderedDict(a=X, b=X),), ([X, X],), ({"a": X, "b": X}, X), (), (X,)],
)
def test_another_container_is_refused(other):
    assert called(({"a": X, "b": X},))(other) is NotImplemented


@pytest.mark.parametrize("container", [None, (X, None), {"a": None, "b": [X]}, [Pair(X, [X])], Pair(None, X)])
def test_none_and_named_tuples_are_known(container):
    assert same(called((container,))((container,)), (container,))
    for other in (0.0, X, (X, X), [X, [X]], {"a": X, "b": [X]}, (None, X)):
        found = called((container,))((other,))
        assert (found is NotImplemented) == (tree.flatten(container)[1] != tree.flatten(other)[1])


@pytest.mark.parametrize("container", [OrderedDict(a=X), {(1, 2): X}])
def test_what_is_not_plain_is_left_to_the_general_way(container):
    assert called((container,))((container,)) is NotImplemented
    leaves, structure = tree.flatten((container,))
    arrays = [np.zeros(2) for _ in leaves]
    assert same(called(tuple(arrays), structure)(tuple(arrays)), tree.unflatten(structure, arrays))


def test_an_error_of_what_runs_is_not_taken_for_a_missing_key():
    call = containers.caller(tree.flatten((X,))[1], tree.flatten(X)[1], [TensorSpec(X.shape, X.dtype)], fixed=True)
    room = containers.Room()

    def run(_):
        raise KeyError("inside")

    room.run = run
    with pytest.raises(KeyError, match="inside"):
        call(room, (X,))


@pytest.mark.parametrize("number", [np.float32(2), np.float64(2), np.int64(2)])
def test_one_of_numpys_scalars_is_an_array_without_axes(number):
    call = called((X, np.zeros((), np.float32)))
    found = call((X, number))
    if number.dtype != np.float32:
        assert found is NotImplemented
    else:
        assert found[0] is X
        assert (type(found[1]), found[1].shape, found[1].dtype, found[1]) == (np.ndarray, (), np.float32, 2)
