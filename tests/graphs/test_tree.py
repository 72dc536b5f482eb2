"""Containers taken apart and put together: dicts of arrays go a shorter way, which must be the same."""

from __future__ import annotations

import functools

import numpy as np
import optree
import pytest

from graphs import tree
from tests.helpers.together import together

A, B = np.zeros(2), np.ones(3)


@pytest.mark.parametrize(
    "container",
    [{"b": B, "a": A}, {"a": A, "b": B}, {2: B, 1: A}, {True: A}, {1: A}, {}, {"a": A, "b": 1.0}, {"a": {"b": B}}],
    ids=str,
)
def test_dicts_are_what_optree_says(container):
    for _ in range(2):  # the second time it is known
        leaves, structure = tree.flatten(container)
        expected, told = optree.tree_flatten(container)
        assert structure == told
        assert all(leaf is other for leaf, other in zip(leaves, expected, strict=True))
        assert list(tree.unflatten(structure, leaves).items()) == list(container.items())
        assert [type(key) for key in tree.unflatten(structure, leaves)] == [type(key) for key in container]


def plain(w, x=0, *rest, flag=False):
    """A function with parameters of each kind."""


@functools.wraps(plain)
def wrapped(*args, **options):
    """Another, with the signature of the first."""


class Model:
    """A method and a call."""

    def method(self, w, x):
        """One whose first parameter is there already."""

    __call__ = method


NAMES = {
    "a function": (plain, ["w", "x", "arg2"]),
    "with another's signature": (wrapped, ["w", "x", "arg2"]),
    "a lambda": (lambda a, /, b, c: a, ["a", "b", "c"]),
    "of keywords": (lambda *, a=0: a, ["arg0", "arg1", "arg2"]),
    "a method": (Model().method, ["w", "x", "arg2"]),
    "an object": (Model(), ["w", "x", "arg2"]),
    "a part": (functools.partial(plain, 1), ["x", "arg1", "arg2"]),
    "in C": (max, ["arg0", "arg1", "arg2"]),
}


@together("name", NAMES)
def test_arguments_are_named_by_their_parameters(name):
    function, expected = NAMES[name]
    assert tree.argument_names(function, 3) == expected
    assert tree.argument_names(function, 1) == expected[:1]
