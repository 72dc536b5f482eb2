"""A function of a file of PyTorch's as our engine runs it, with the numbers that PyTorch's worker has left."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import optree

import dynamic
from compare import engines
from compare.engines.graphduel import standin
from compare.engines.graphduel.functions import INSIDE, START
from compare.engines.graphduel.replayed import Repeated, Replay, replaying
from compare.engines.graphduel.tensors import as_tensors
from compare.engines.graphduel.training import AsBrought, TrainingStep
from compare.engines.reached import ReachedCode, names_of
from compare.engines.state import StartState
from compare.engines.step import loss_in
from compare.errors import InputsError
from compare.instruments import thin
from compare.instruments.parity import MOST_EXAMPLES, Expected
from compare.own import numbers, origin
from compare.own.question import Calls, Function, Question
from compare.records.record import DYNAMIC
from compare.workloads.base import Case
from graphs import tree
from static.convert.stage.places import putting_back
from static.trace.converting import callee


def called(question: Question) -> tuple[Function, Calls]:
    """The function, of whose results the loss counts, and its calls, with arrays for tensors.

    Raises InputsError, and whatever the file raises.
    """
    standin.stand_in()
    function, calls = origin.called(question.function, question.inputs)
    kinds = engines.named(engines.OWN).kinds()
    assert kinds is not None  # noqa: S101  (our engine has PyTorch's names)
    brought, calls = calls, numbers.take(question.numbers, kinds, function, calls)
    draws = numbers.draws(question.numbers)
    replay = Replay(draws) if draws else None if question.numbers else Repeated(question.seed)
    start = StartState(engines.named(engines.OWN).snapshot(function, calls))
    as_brought = AsBrought(kinds, brought[0])
    if numbers.trains(question.numbers, function, brought):
        training = TrainingStep(function, calls, kinds, start, as_brought, replay)
        return training.made(), training.calls(calls)
    return _standing(function, start, as_brought, replay, loss=question.gradient is not False), calls


def _standing(
    function: Function, start: StartState, as_brought: AsBrought, replay: Replay | None, *, loss: bool
) -> Function:
    """What a step runs: the loss alone, by the random numbers of PyTorch's, each time from the state of the start.

    A graph changes no running statistics, so that a trace leaves them as they are.
    """
    from dynamic.nn.functional.normalization import moved

    inside = any("grad" in names_of(reached) for reached in ReachedCode(function).functions)
    differentiating = dynamic.enable_grad if inside else contextlib.nullcontext

    @functools.wraps(function)
    def called(*args: Any) -> Any:
        with moved(), replaying(replay), as_tensors(), differentiating(), putting_back():
            value = callee(function)(*as_brought(args))
        if inside and not dynamic.is_grad_enabled():
            value = tree.tree_map(_detached, value)
        return loss_in(value) if loss else value

    vars(called)[START] = start
    if inside:
        vars(called)[INSIDE] = True
    return called


def _detached(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, dynamic.Tensor) else leaf


def references(case: Case, question: Question) -> list[Expected]:
    """What calls must give, from the shortest to the longest: what PyTorch gave.

    Without its numbers it is what our dynamic engine gives. Raises InputsError where gradients are not of the same
    parameters.
    """
    eager = engines.step(DYNAMIC, case)
    theirs = numbers.references(question.numbers) if question.numbers else {}
    expected = []
    for index in thin.sample(case.lengths, MOST_EXAMPLES):
        ours = eager(*case.examples[index])
        reference = _like(ours, theirs[index], question.name) if index in theirs else ours
        expected.append(Expected(case, index, reference, ours, foreign=index in theirs))
    return expected


def _like(ours: Any, theirs: numbers.Reference, name: str) -> Any:
    """What PyTorch gave, in the containers of what our engine gives.

    Of a training step that is the value and the parameters and buffers after it; sums of optimizers are ours.
    """
    if theirs.trains:
        (value, state), _ = ours
        (value, tensors) = _like((value, state["tensors"]), theirs._replace(trains=False), name)
        return (value, {**state, "tensors": tensors}), ()
    parts = []
    for what, values, leaves in zip(("values", "gradients"), ours, theirs[:2], strict=True):
        structure = optree.tree_structure(values)
        if structure.num_leaves != len(leaves):
            counts = f"{len(leaves)} in PyTorch and {structure.num_leaves} in our engine"
            raise InputsError(f"{name} gives another number of {what}: {counts}")
        parts.append(optree.tree_unflatten(structure, leaves))
    return tuple(parts)
