"""PyTorch refuses what the table says; and no mistake of its databases ends in a raw error here."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")

import torch

import dynamic
from graphs.errors import GraphError
from tests.helpers.refusals import refusals
from tests.helpers.together import together
from tests.peers.opdb import comparing
from tests.peers.opdb.running import Asked, rows
from tests.peers.opdb.sides import OutsideError, Side

pytestmark = pytest.mark.peers

REFUSALS = refusals()


@together("refusal", REFUSALS, [refusal.call for refusal in REFUSALS])
def test_pytorch_refuses_what_the_table_says(refusal: Any) -> None:
    warnings.simplefilter("ignore")
    with pytest.raises(Exception) as caught:  # noqa: PT011  (a RuntimeError of ours may be an AssertionError there)
        refusal.run(torch)
    assert isinstance(caught.value, refusal.error) or refusal.error is RuntimeError


def test_no_mistake_in_the_database_of_ops_is_answered_or_ends_in_a_raw_error() -> None:
    lines, total = [], Counter[str]()
    for row in rows(None, Asked(errors=True), 1):
        total.update(row.counts)
        lines += [line for name, line in row.lines if name in (comparing.ANSWERED, comparing.RAW)]
    assert lines == []
    assert total[comparing.SAME] > 500


def _made(side: Side, call: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if call is None:  # it fails before
        return (), {}
    words = {word: side.made(value) for word, value in call.kwargs.items() if word != "device"}
    return tuple([side.made(arg) for arg in call.args]), words


def test_no_mistake_in_the_database_of_modules_is_answered_or_ends_in_a_raw_error() -> None:
    from torch.testing._internal.common_modules import module_db

    warnings.simplefilter("ignore")
    side, seen, wrong = Side(dynamic), 0, []
    for info in module_db:
        name = info.module_cls.__name__
        if info.module_error_inputs_func is None or not hasattr(dynamic.nn, name):
            continue
        options = {"device": "cpu", "dtype": torch.float32, "requires_grad": False, "training": True}
        for mistake in info.module_error_inputs_func(info, **options):
            given = mistake.module_error_input
            try:
                made, inputs = _made(side, given.constructor_input), _made(side, given.forward_input)
            except OutsideError:
                continue
            seen += 1
            try:
                getattr(dynamic.nn, name)(*made[0], **made[1])(*inputs[0], **inputs[1])
                wrong.append(f"{name} answers: {mistake.error_regex}")
            except GraphError:
                pass
            except Exception as error:  # noqa: BLE001  (an error of any kind is what is looked for)
                wrong.append(f"{name}: {type(error).__name__}: {error}")
    assert wrong == []
    assert seen > 20


def test_no_mistake_in_the_database_of_optimizers_is_answered_or_ends_in_a_raw_error() -> None:
    from torch.testing._internal.common_optimizers import optim_db

    side, seen, wrong = Side(dynamic), 0, []
    for info in optim_db:
        name = info.optim_cls.__name__
        if info.optim_error_inputs_func is None or not hasattr(dynamic.optim, name):
            continue
        for mistake in info.optim_error_inputs_func("cpu", torch.float32):
            given = mistake.optimizer_error_input
            if given.kwargs.get("foreach") or mistake.error_type is UserWarning:
                continue  # `foreach` changes no number here; what PyTorch warns of is an error
            try:
                params = _shared(side, given.params, {}) or [dynamic.ones(2, requires_grad=True)]
            except OutsideError:
                continue
            seen += 1
            try:
                optimizer = getattr(dynamic.optim, name)(params, **side.made(given.kwargs))
                optimizer.step()
                wrong.append(f"{name} answers: {given.desc}")
            except mistake.error_type as error:
                if not isinstance(error, GraphError):
                    wrong.append(f"{name}: {type(error).__name__}: {error}")
            except Exception as error:  # noqa: BLE001  (an error of any kind is what is looked for)
                wrong.append(f"{name}, {given.desc}: {type(error).__name__}: {error}")
    assert wrong == []
    assert seen > 40


def _shared(side: Side, value: Any, known: dict[int, Any]) -> Any:
    """Parameters in the other framework, one for one: what is in two groups stays in two."""
    if isinstance(value, torch.Tensor):
        return known.setdefault(id(value), side.made(value, with_gradient=True))
    if isinstance(value, dict):
        return {word: _shared(side, item, known) for word, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_shared(side, item, known) for item in value])
    return value
