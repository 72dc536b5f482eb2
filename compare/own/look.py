"""What a worker finds of a function of the user's in a file: the command that asks never imports that file itself.

The worker imports it, calls the function for the first time, and passes it through the gate. Then it leaves function
and calls for other workers, or measures them too where the user wants one process alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compare import steps
from compare.engines.graphduel.steps import STATIC
from compare.own import bundle, effects, measure, origin, traffic
from compare.own.case import arms_of, case_of, checked, converting
from compare.own.faults import answered
from compare.own.question import Question
from compare.records.job import Budget, Job
from compare.records.own import FunctionFault, FunctionLook
from compare.records.results import to_json
from compare.records.runs import Setting
from compare.run.progress import Reporter
from compare.workloads.base import Case


@dataclass(frozen=True)
class Subject:
    """A function that may be measured: its arms, the case made of its calls, and what it does besides its result."""

    name: str
    arms: tuple[str, ...]
    case: Case
    effects: list[str]

    @property
    def gradient(self) -> bool:
        """Whether a step takes gradients."""
        return self.case.argnum is not None

    @property
    def settings(self) -> dict[str, Setting]:
        """What it says of a run."""
        return {
            "function": self.name,
            "inputs": len(self.case.examples),
            "gradient": self.gradient,
            "converted": self.case.branches,
            "effects": list(self.effects),
        }

    def job(self, source: str, seed: int, seconds: float) -> Job:
        """The job of its gate, of which the others are made."""
        budget = Budget(seconds=seconds)
        return Job("parity", self.name, bundle.SIZE, source=source, seed=seed, arms=self.arms, budget=budget)


def subject(
    f: Any, inputs: Any, modes: Any, name: str | None, gradient: bool | None, dims: Any, *, allow_effects: bool
) -> Subject:
    """The function as it is measured. Raises InputsError and EffectsError, and what f raises."""
    arms = arms_of(modes)
    title = str(name or getattr(f, "__name__", type(f).__name__))
    steps.now(f"called {title}")
    with traffic.one_process(title):
        seen = effects.effects_of(f, checked(inputs)[0])
    if not allow_effects:
        effects.refuse(title, seen)
    case = case_of(f, inputs, gradient, dims)
    if any(arm.startswith(STATIC) for arm in arms):
        case = converting(case)
    return Subject(title, arms, case, list(map(str, seen)))


def measure_function(job: Job) -> FunctionLook | FunctionFault:
    """What a worker answers; what is wrong with the user's file is an answer too."""
    asked = Question.from_dict(job.asked)
    return answered(asked.function, lambda: _found(asked))


def _found(asked: Question) -> FunctionLook:
    steps.now(f"imported {asked.function.rpartition(':')[0]}")
    f, calls = origin.called(asked.function, asked.inputs)
    found = subject(f, calls, asked.arms, None, asked.gradient, None, allow_effects=asked.allow_effects)
    if asked.processes:
        source = measure.bundled(Path(asked.folder), f, calls, found.case, None)
        records = measure.untimed(found.job(source, asked.seed, asked.seconds), found.case, apart=asked.apart)
    else:
        source, what, here = "", found.job("", asked.seed, asked.seconds), measure.Here(found.case)
        records = measure.untimed(what, found.case, apart=asked.apart)
        records += measure.timed(
            what, records, here, _Steps(), measure.REPEATS, gradient=found.gradient, apart=asked.apart
        )
    return FunctionLook(found.name, list(found.arms), found.settings, source, beside=list(map(to_json, records)))


class _Steps(Reporter):
    """Tells each job as a step of this worker."""

    def start(self, label: str) -> None:
        """A job begins."""
        super().start(label)
        steps.now(f"measured {label}")
