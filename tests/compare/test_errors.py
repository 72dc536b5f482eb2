"""The place that an error's words end with: a line of the user's, and not of the engines."""

import re

import numpy as np
import pytest

import graphs as g
import static
from compare import workloads
from compare.errors import describe_error


def caught(run):
    with pytest.raises(Exception) as found:  # noqa: PT011  (its words are what is looked at)
        run()
    return describe_error(found.value)


def test_the_place_is_the_last_line_outside_of_the_engines():
    said = caught(lambda: static.compile(lambda x: g.reshape(x, (5,)), np.ones(4, np.float32)))
    assert re.search(r" \(test_errors\.py:\d+\)$", said), said
    assert len(re.findall(r"\.py:\d+", said)) <= 2


def test_an_error_of_ones_own_code_ends_with_its_line():
    def broken():
        raise ValueError("no")

    line = broken.__code__.co_firstlineno + 1
    assert caught(broken) == f"ValueError: no (test_errors.py:{line})"


def test_an_error_that_comes_from_the_engines_alone_keeps_its_last_line():
    error = ValueError("bug")
    code = compile("def fail(error):\n    raise error\n", g.__file__, "exec")
    space = {}
    exec(code, space)
    try:
        space["fail"](error)
    except ValueError:
        error.__traceback__ = error.__traceback__.tb_next
    assert describe_error(error) == "ValueError: bug (__init__.py:2)"


def test_workloads_are_what_is_measured_and_have_their_lines():
    loss = workloads.get("tiny_mlp").case("small").loss
    assert re.search(r" \((?!test_errors)\w+\.py:\d+\)$", caught(lambda: loss(None, None, None)))
