"""What PyTorch refuses is refused: by a GraphError of the class that its programs catch, that says what is wrong."""

from __future__ import annotations

import contextlib
import inspect
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic as torch
from graphs import errors
from graphs.errors import GraphError
from graphs.frontends.torch import functions, linalg
from tests.helpers.refusals import refusals
from tests.helpers.slow import examples
from tests.helpers.together import together

REFUSALS = refusals()


@together("refusal", REFUSALS, [refusal.call for refusal in REFUSALS])
def test_what_pytorch_refuses_is_refused(refusal):
    with pytest.raises(refusal.error) as caught:
        refusal.run(torch)
    assert isinstance(caught.value, GraphError)
    said, words = (
        text.replace("torch.", "") for text in (str(caught.value), refusal.words)
    )  # of a dtype or a function
    assert said.startswith(words)


def test_every_error_is_what_programs_of_pytorch_catch():
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, GraphError)]
    assert all(issubclass(kind, RuntimeError) for kind in kinds)


def test_an_error_names_the_function_its_operands_the_line_and_the_remedy():
    with pytest.raises(IndexError) as caught:
        torch.ones(2, 3).narrow(dim=2, start=0, length=1)
    assert str(caught.value).startswith("narrow: there is no axis 2 of 2, f32[2,3] (test_torch_refusals.py:")
    assert str(caught.value).endswith("; use -2 to 1")


def test_a_call_with_the_wrong_words_is_told_the_right_ones():
    with pytest.raises(
        TypeError, match=r"narrow: missing 1 required .*'length'.*; call narrow\(input, dim, start, length\)"
    ):
        torch.narrow(torch.ones(2), 0, 1)
    with pytest.raises(
        TypeError, match=r"Linear: .*'out_features'.*; call Linear\(in_features, out_features, bias=True"
    ):
        torch.nn.Linear(2)


def test_an_error_of_the_users_own_code_stays_what_it_is():
    def rate(epoch):
        return 1 / epoch

    optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], 0.1)
    with pytest.raises(ZeroDivisionError):
        torch.optim.lr_scheduler.LambdaLR(optimizer, rate)


# Any call ends in an answer or in a GraphError ------------------------------------------------------------------------

_MEANS = {"tensor": lambda: torch.ones(2, 3), "number": lambda: torch.tensor(1.5), "ints": lambda: torch.tensor([2, 0])}
_MEANS |= {"bools": lambda: torch.tensor([True, False, True]), "nothing": lambda: torch.zeros(0, 3)}
_ARGUMENTS = st.one_of(
    st.sampled_from(list(_MEANS.values())).map(lambda made: made()),
    st.sampled_from([None, "a", -7, -1, 0, 1, 2, 9, 0.5, -1.5, True, (0, 0), (1, -3), [], [None], {"a": 1}]),
)
_SPACES = {
    "functional": (torch.nn.functional, torch.nn.functional.__all__),
    "linalg": (linalg, linalg.__all__),
    "torch": (functions, functions.__all__),
}
_CALLS = [(space, name) for space, (_, names) in _SPACES.items() for name in names]


@examples(15, slow=30)
@given(st.sampled_from(_CALLS), st.lists(_ARGUMENTS, max_size=4))
def test_any_call_ends_in_an_answer_or_in_an_error_of_ours(call, arguments):
    space, name = call
    warnings.simplefilter("ignore")
    with contextlib.suppress(GraphError):
        getattr(_SPACES[space][0], name)(*arguments)


def test_a_product_of_two_dtypes_is_refused_with_the_remedy():
    with pytest.raises(errors.DTypeError, match=r"matmul of int64 and float32 .*convert with \.to\(dtype\)$"):
        torch.ones(2, 3).long() @ torch.ones(3, 2)


def test_a_product_with_a_number_is_told_what_it_lacks():
    with pytest.raises(errors.ShapeError, match=r"matmul: needs at least one axis on each side, .*use multiply"):
        torch.ones(2, 3) @ np.int64(3)


def test_float64_is_told_with_the_line_where_it_began():
    def product(x, w):
        scaled = x / np.array(4.0)
        doubled = scaled * 2
        return doubled @ w

    x = torch.ones(2, 4)
    line = product.__code__.co_firstlineno + 1
    words = rf"float64 since test_torch_refusals\.py:{line}, scaled = x / np\.array\(4\.0\); convert"
    with pytest.raises(errors.DTypeError, match=words):
        product(x, x.T)

    def in_place_of_itself(h, w):
        h = h / np.array(4.0)
        return h @ w

    line = in_place_of_itself.__code__.co_firstlineno + 1
    words = rf"float64 since test_torch_refusals\.py:{line} at the latest, h = h / np\.array\(4\.0\); convert"
    with pytest.raises(errors.DTypeError, match=words):
        in_place_of_itself(x, x.T)

    def passed_on(double):
        return double @ x.T  # an argument: no line of this function made it so

    with pytest.raises(errors.DTypeError, match=r"^matmul of float64 and float32 \([^)]*\); convert"):
        passed_on(x.double())
