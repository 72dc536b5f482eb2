"""The modes that a first look at a PyTorch step asks to be tried, by what Dynamo says; no PyTorch runs here."""

import pytest

from compare.engines.torch import trials
from compare.records.cells import CompilationRow, Compilations, CompiledRow
from compare.records.record import WRITTEN

FACTS = {"places": ["model 1", "Block 12", "optimizer 1"], "varying": ["x 0", "y 0", "y 1"]}
SIZE = "tensor 'x' size mismatch at index 0. expected 16, actual 24 (step.py:3)"
ITEM = (
    "Unsupported Tensor.item() call with capture_scalar_outputs=False (step.py:24: if s.item()>0: return s*2)\nadvice"
)


def told(*reasons, breaks=()):
    made = [CompilationRow(reason, 1.0) for reason in ("the first call of a piece of the graph", *reasons)]
    rows = {"eager": CompiledRow("ok", None), "compile": CompiledRow("ok", None, made, dict.fromkeys(breaks, 1))}
    return [Compilations(workload="f", size="given", version="1", eager="eager", modes=rows)]


def words(records, facts=FACTS, *, remedies=True):
    return {trial.name: trial.word for trial in trials.trials(records, facts, remedies=remedies)}


def test_places_are_the_blocks_then_the_model_alone_and_with_the_optimizer():
    assert words(told(SIZE), remedies=False) == {
        "Block": "compile(where='Block')",
        "Block-optimizer": "compile(where=('Block', 'optimizer'))",
        "model": "compile(where='model')",
        "model-optimizer": "compile(where=('model', 'optimizer'))",
    }


def test_the_outermost_blocks_and_the_model_come_before_the_blocks_that_blocks_hold():
    facts = {"places": ["model 1", "Stage 2", "Block 6", "Attention 6", "optimizer 1"]}
    assert [*words([], facts)] == ["Stage", "Stage-optimizer", "model", "model-optimizer", "Block"]


@pytest.mark.parametrize(
    ("records", "name", "word"),
    [
        (told(SIZE), "marked", "compile(mark_dynamic={'x': [0], 'y': [0, 1]})"),
        (told("no longer lr == 0.1 (step.py:14: f)"), "free-numbers",
         "compile(config={'specialize_float': False, 'allow_unspec_int_on_nn_module': True})"),
        (told("no longer G['m'].k == 2 (step.py:19: f)"), "free-numbers",
         "compile(config={'specialize_float': False, 'allow_unspec_int_on_nn_module': True})"),
        (told("no longer self.param_groups[0]['lr'] == 0.001 (step.py:40: f)"), "tensor-lr", "compile(tensor_lr=True)"),
        (told(breaks=[ITEM]), "scalars", "compile(config={'capture_scalar_outputs': True})"),
        (told(breaks=["Dynamic shape operator (step.py:33: f)"]), "free-shapes",
         "compile(config={'capture_dynamic_output_shape_ops': True, 'capture_scalar_outputs': True})"),
    ],
)  # fmt: skip
def test_what_dynamo_says_asks_for_a_remedy_before_the_places(records, name, word):
    tried = words(records)
    assert next(iter(tried.items())) == (name, word)
    assert len(tried) == trials.MOST
    assert name not in words(records, remedies=False)


def test_sizes_that_no_argument_shows_are_compiled_as_dynamic():
    assert words(told(SIZE), {}) == {"dynamic": "compile(dynamic=True)"}


def test_nothing_said_and_no_place_is_nothing_to_try():
    assert words(told("no longer mode == 'train'", breaks=["a print (step.py:2)"]), {}) == {}
    assert words([], {}) == {}
    assert WRITTEN not in words(told(), FACTS)


def test_a_change_says_what_a_user_writes():
    (marked, block, both, *_) = trials.trials(told(SIZE), FACTS, remedies=True)
    assert marked.change == (
        "mark the axes that vary: mark_dynamic(x, 0), mark_dynamic(y, 0) and mark_dynamic(y, 1), of torch._dynamo"
    )
    assert block.change == "compile the 12 Blocks by themselves: module.compile() of each"
    assert both.change.endswith("; compile the optimizer's step: optimizer.step = torch.compile(optimizer.step)")
    (free, *_) = trials.trials(told(breaks=[ITEM]), {}, remedies=True)
    assert free.change == "torch._dynamo.config.capture_scalar_outputs = True"
