"""Containers taken apart and put together: dicts of arrays go a shorter way, which must be the same."""

from __future__ import annotations

import numpy as np
import optree
import pytest

from graphs import tree

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
