"""A function of a file of PyTorch's as our engine runs it, with the numbers that PyTorch's worker has left."""

from __future__ import annotations

from typing import Any

import optree

from compare import engines
from compare.engines.graphduel import standin
from compare.engines.graphduel.losses import LossProgram
from compare.engines.graphduel.programs import StandingProgram
from compare.engines.graphduel.replay import Repeated, Replay
from compare.engines.graphduel.training import TrainingProgram
from compare.errors import InputsError, count_as_users
from compare.instruments import sample
from compare.instruments.parity import MOST_EXAMPLES, Expected
from compare.own import numbers, origin
from compare.own.question import Calls, Function, Question, calls_in
from compare.records.record import DYNAMIC
from compare.workloads.base import Case


def called(question: Question) -> tuple[Function, Calls]:
    """The function of what it trains, of whose results the loss counts, and its calls, with arrays for tensors.

    Raises InputsError, and whatever the file raises.
    """
    standin.stand_in()
    function, inputs = origin.called(question.function, question.inputs)
    count_as_users(function)
    brought = calls_in(inputs, function)
    engine = engines.named(engines.OWN)
    kinds = engine.kinds()
    assert kinds is not None  # noqa: S101  (our engine has PyTorch's names)
    taken = numbers.take(question.numbers, kinds, function, brought)
    draws = numbers.draws(question.numbers)
    replay = Repeated(question.seed) if not question.numbers else Replay(draws)
    kind: type[StandingProgram] = (
        TrainingProgram if numbers.trains(question.numbers, function, brought) else LossProgram
    )
    wanted = question.gradient is not False and numbers.has_gradients(question.numbers)
    program = kind(function, brought, taken, kinds, engine.snapshot, replay, wanted=wanted)
    return program.made(), origin.Inputs.like(brought, program.calls_of())


def references(case: Case, question: Question) -> list[Expected]:
    """What calls must give, from the shortest to the longest: what PyTorch gave.

    Without its numbers it is what our dynamic engine gives. Raises InputsError where gradients are not of the same
    parameters.
    """
    eager = engines.step(DYNAMIC, case)
    theirs = numbers.references(question.numbers) if question.numbers else {}
    expected = []
    for index in sample.sample(case.lengths, MOST_EXAMPLES):
        ours = eager(*case.examples[index])
        reference = _like(ours, theirs[index], question.name) if index in theirs else ours
        expected.append(Expected(case, index, reference, ours, foreign=index in theirs))
    return expected


def _like(ours: Any, theirs: numbers.Reference, name: str) -> Any:
    """What PyTorch gave, in the containers of what our engine gives.

    Of a training step that is the value and the tensors after it, of which PyTorch may have had some alone; sums of
    optimizers are ours.
    """
    if theirs.after is not None:
        (value, state), _ = ours
        after = {name: theirs.after.get(name, own) for name, own in state["tensors"].items()}
        return (_filled("values", value, theirs.value, name), {**state, "tensors": after}), ()
    value, gradients = ours
    return _filled("values", value, theirs.value, name), _filled("gradients", gradients, theirs.gradients, name)


def _filled(what: str, ours: Any, leaves: list[Any], name: str) -> Any:
    structure = optree.tree_structure(ours)
    if structure.num_leaves != len(leaves):
        counts = f"{len(leaves)} in PyTorch and {structure.num_leaves} in our engine"
        raise InputsError(f"{name} gives another number of {what}: {counts}")
    return optree.tree_unflatten(structure, leaves)
