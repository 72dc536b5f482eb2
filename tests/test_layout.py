"""Layout: the code made for a container finds what a general flattening finds, and says when it cannot tell."""

from collections import OrderedDict
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs import tree
from static import layout


class Pair(NamedTuple):
    first: int
    second: int


CONTAINERS = st.recursive(
    st.integers(),
    lambda parts: (
        st.lists(parts, max_size=3)
        | st.lists(parts, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from(["b", "a", "it's", '"']), parts, max_size=3)
    ),
    max_leaves=8,
)


@given(CONTAINERS)
def test_leaves_are_read_and_put_back_as_in_a_general_flattening(container):
    leaves, structure = tree.flatten(container)
    assert layout.reader(structure)(container) == leaves
    built = layout.builder(structure)(tuple(leaves))
    assert built == container == tree.unflatten(structure, leaves)
    assert repr(built) == repr(tree.unflatten(structure, leaves))  # the order of keys too


@given(CONTAINERS, CONTAINERS)
def test_another_container_gives_nothing_or_other_leaves(one, other):
    structure = tree.flatten(one)[1]
    found = layout.reader(structure)(other)
    if tree.flatten(other)[1] != structure and found is not None:
        assert any(type(leaf) is not int for leaf in found)  # which the caller refuses: a leaf is an array


@pytest.mark.parametrize("container", [None, (1, None), OrderedDict(a=1), [Pair(1, 2)], {(1, 2): 3}])
def test_what_is_not_plain_is_left_to_the_general_way(container):
    leaves, structure = tree.flatten(container)
    assert layout.reader(structure)(container) is None
    assert layout.builder(structure)(tuple(leaves)) == container
