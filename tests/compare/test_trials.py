"""The modes that a first look at a PyTorch step asks to be tried, by what Dynamo says; no PyTorch runs here."""

import math
from functools import partial

import numpy as np
import pytest

import graphs
from compare.claims import remedies
from compare.engines import OWN, find_engine
from compare.engines.mode import Mode, ModeTrial
from compare.engines.torch import trials
from compare.engines.torch.dynamo import CARRIED
from compare.own import run
from compare.records.cells import CompilationRow, Compilations, CompiledRow, Memory, MemoryRow
from compare.records.own import FunctionLook, PolicyCompile, PolicyCount, ShapePolicies
from compare.records.record import WRITTEN
from compare.subjects import origin
from tests.helpers.plans import plan_of

FACTS = {"places": ["model 1", "Block 12", "optimizer 1"], "varying": ["x 0", "y 0", "y 1"]}
SIZE = "tensor 'x' size mismatch at index 0. expected 16, actual 24 (step.py:3)"
ITEM = (
    "Unsupported Tensor.item() call with capture_scalar_outputs=False (step.py:24: if s.item()>0: return s*2)\nadvice"
)
PRINT = "Failed to trace builtin operator (step.py:80: print('loss', loss))\nadvice"
BACKWARD = "Unsupported Tensor.backward() call (step.py:12: loss.backward())\nadvice"


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
    assert words(told(), {"places": ["optimizer 2"]}, remedies=False) == {"optimizer": "compile(where='optimizer')"}


NUMBERS = {"numbers": ["scale"]}


def test_the_outermost_blocks_and_the_model_come_before_the_blocks_that_blocks_hold():
    facts = {"places": ["model 1", "Stage 2", "Block 6", "Attention 6", "optimizer 1"]}
    assert [*words([], facts, remedies=False)] == ["Stage", "Stage-optimizer", "model", "model-optimizer", "Block"]


@pytest.mark.parametrize(
    ("records", "facts", "name", "word"),
    [
        (told(SIZE), FACTS, "marked", "compile(mark_dynamic={'x': [0], 'y': [0, 1]})"),
        (told(SIZE), {}, "dynamic", "compile(dynamic=True)"),
        (told("no longer scale == 0.1 (step.py:14: f)"), NUMBERS, "tensor-numbers",
         "compile(tensor_numbers=['scale'])"),
        (told("no longer G['m'].k == 2 (step.py:19: f)"), NUMBERS, "free-numbers",
         "compile(config={'specialize_float': False, 'allow_unspec_int_on_nn_module': True})"),
        (told("no longer G['m'].k == 2 (step.py:19: f)", "no longer self.n == 3 (step.py:20: f)"), NUMBERS,
         "dynamic-numbers", """compile(config={'dynamic_sources': "G['m'].k,L['self'].n"})"""),
        (told("no longer self.param_groups[0]['lr'] == 0.001 (step.py:40: f)"), FACTS, "tensor-lr",
         "compile(tensor_lr=True)"),
        (told(breaks=[ITEM]), FACTS, "scalars", "compile(config={'capture_scalar_outputs': True})"),
        (told(breaks=["Dynamic shape operator (step.py:33: f)"]), FACTS, "free-shapes",
         "compile(config={'capture_dynamic_output_shape_ops': True, 'capture_scalar_outputs': True})"),
        (told(breaks=[PRINT, PRINT.replace("80", "90")]), FACTS, "no-print",
         "compile(without=['step.py:80', 'step.py:90'])"),
        (told(breaks=[BACKWARD]), FACTS, "traced-backward", "compile(config={'trace_autograd_ops': True})"),
        (told(breaks=[BACKWARD]), FACTS, "compiled-autograd", "compile(compiled_autograd=True)"),
    ],
)  # fmt: skip
def test_what_dynamo_says_asks_for_a_remedy(records, facts, name, word):
    assert words(records, facts)[name] == word
    assert name not in words(records, facts, remedies=False)


def test_a_number_in_the_place_of_a_result_that_broke_the_graph_is_no_number_of_the_users():
    assert words(told(f"no longer {CARRIED} == 2.1 (step.py:3: f)"), {}) == {}


def test_nothing_said_is_nothing_to_try():
    assert words(told("no longer mode == 'train'", breaks=["a loop (step.py:2: for x in y:)"]), {}) == {}
    assert words([], {}) == {}
    assert WRITTEN not in words(told(), FACTS)


def counting(**counts):
    """What makes graphs without kernels, by a part of a remedy's word; a remedy without a count fails."""

    def count(keywords, _worthless, _seconds):
        found = (made for part, made in counts.items() if part in str(keywords))
        return counts["usual"] if not keywords else next(found, None)

    return count


def made(graphs, breaks=0, seconds=1.0, *said, guards=0.0):
    return trials.GraphCount(graphs, breaks, seconds, said, guards)


def kept(usual, facts=FACTS, **counts):
    return [
        word.partition("=")[0] for word in trials.worth(trials.FirstLook.of(facts), counting(usual=usual, **counts))
    ]


def test_what_leaves_fewer_graphs_is_worth_a_try_and_what_fails_or_leaves_as_many_is_not():
    usual = made(3, 1, 1.0, SIZE, ITEM)
    assert kept(usual, {}, dynamic=made(3, 1)) == []
    assert kept(usual, {"varying": ["x 0"]}, mark_dynamic=made(2, 1)) == ["marked"]
    assert kept(usual, {"places": ["model 1"]}, model=made(1, 0, 0.5)) == ["model"]
    assert kept(None) == []


def test_remedies_that_each_help_are_tried_together_where_that_leaves_fewer():
    usual, both = made(4, 1, 1.0, SIZE, ITEM), "'x': [0]}, 'config'"
    counts = {"'x': [0]}, 'config'": made(1), "mark_dynamic": made(2, 1), "capture_scalar_outputs": made(2)}
    facts = {"varying": ["x 0"]}
    assert kept(usual, facts, **counts) == ["together", "scalars", "marked"]
    assert kept(usual, facts, **{**counts, both: made(2)}) == ["scalars", "marked"]


def test_a_place_may_take_less_time_and_leave_as_many_graphs_but_not_none():
    assert kept(made(1, 0, 1.0), FACTS, Block=made(2, 0, 0.3), model=made(0)) == ["Block", "Block-optimizer"]
    assert kept(made(1, 0, 1.0), FACTS, Block=made(1, 0, 0.9)) == []


def test_a_count_ends_where_it_is_worth_no_try():
    usual = made(3, 1, 10.0, SIZE)
    assert usual.outdoes(made(3, 1, 1.0))
    assert not usual.outdoes(made(2, 1, 20.0))
    assert usual.outdoes(made(9, 1, 7.0), place=True)
    assert not usual.outdoes(made(9, 1, 6.9), place=True)
    ends = []

    def count(keywords, worthless, seconds):
        assert seconds == (30.0 if keywords else math.inf)
        ends.append((not keywords, worthless(made(4, 0, 5.0)), worthless(made(4, 0, 9.0))))
        return made(4, 0, 8.0) if keywords else usual

    trials.worth(trials.FirstLook.of({"varying": ["x 0"], "places": ["model 1"]}), count)
    assert (True, False, False) in ends
    assert (False, True, True) in ends
    assert (False, False, True) in ends


def test_a_count_of_a_short_step_has_some_seconds_all_the_same():
    asked = []

    def count(keywords, _worthless, seconds):
        asked.append(seconds)
        return made(3, 1, 0.2, SIZE)

    trials.worth(trials.FirstLook.of({"varying": ["x 0"]}), count)
    assert {*asked} == {math.inf, trials.LEAST_PATIENCE}


def test_guards_are_skipped_where_they_are_dear():
    assert kept(made(1, 0, 1.0, guards=0.3), {}) == ["no-guards"]
    assert kept(made(1, 0, 1.0, guards=0.05), {}) == []


def test_what_is_worth_a_try_is_tried_and_nothing_else():
    worth = ["scalars=compile(config={'capture_scalar_outputs': True})", "model=compile(where='model')"]
    facts = {**FACTS, "worth": [*worth, "third=compile(dynamic=True)"]}
    assert list(words(told(SIZE), facts)) == ["scalars", "model"]
    assert words(told(SIZE), {**FACTS, "worth": []}) == {}


def test_much_memory_beside_parameters_asks_for_checkpoints_and_a_budget():
    rows = {"eager": MemoryRow("ok", None), "compile": MemoryRow("ok", None, peak=10 * 2**20)}
    memory = Memory(workload="f", size="given", eager="eager", modes=rows)
    facts = {"places": ["model 1", "Block 3"], "held": [str(2**20)], "worth": []}
    assert words([memory], facts) == {
        "checkpoint": "compile(checkpoint='Block')",
        "memory-budget": "compile(config={'activation_memory_budget': 0.5})",
    }
    assert words([memory], {**facts, "held": [str(3 * 2**20)]}) == {}
    rows["compile"].peak = 2**19
    assert words([memory], {**facts, "held": ["100"]}) == {}


def test_the_bytes_of_a_first_look_reach_what_is_tried():
    pytest.importorskip("torch")
    subject = plan_of("torch", "f.py:loss", "", None).subject
    rows = {"eager": MemoryRow("ok", None), "compile": MemoryRow("ok", None, peak=10 * 2**20)}
    facts = {"places": ["model 1", "Block 3"], "held": [str(2**20)], "worth": []}
    look = FunctionLook("f", list(subject.modes), facts, "")
    memory = Memory(workload="f", size="given", eager="eager", modes=rows)
    tried = [trial.name for trial in subject.trials([look, *told(), memory], "remedies")]
    assert tried == ["checkpoint", "memory-budget"]


MASKED = {"varying": ["x 1", "mask 1"], "masked": ["x 1 48", "mask 1 48"]}


def test_where_sizes_vary_with_a_mask_they_are_padded_too():
    assert words(told(SIZE), MASKED) == {
        "marked": "compile(mark_dynamic={'x': [1], 'mask': [1]})",
        "padded": "compile(pad={'x': {1: 48}, 'mask': {1: 48}})",
    }
    look = trials.FirstLook.of({**MASKED, "inputs_at": "step.py:31"})
    assert trials.change({"pad": look.masked}, look) == (
        "pad axis 1 of x to 48 and axis 1 of mask to 48 (inputs at step.py:31), where the mask is false: "
        "torch.nn.functional.pad"
    )


def test_our_engines_try_the_policies_that_compile_less_often_and_machine_code():
    again = [PolicyCompile(number, "a new shape") for number in (1, 2, 3)]
    policies = {
        "exact": PolicyCount("ok", None, "shapes='exact'", again),
        "auto": PolicyCount("ok", None, "shapes='auto'", again),
        "symbolic": PolicyCount("ok", None, "shapes='symbolic'", again[:1]),
        "bucket": PolicyCount("ok", None, "shapes='bucket', dims=(None,)", again[:2], 1.5),
        "pad": PolicyCount("unsupported", "no mask", "shapes='pad'", []),
    }
    record = ShapePolicies("f", "given", shapes=3, left_out=0, policies=policies)
    ours = find_engine(OWN).trials
    assert [(trial.word, trial.change) for trial in ours.modes([record], {}, remedies=True)] == [
        ("static(shapes='symbolic')", "let shapes vary: static.jit(f, shapes='symbolic')"),
        ("static(shapes='bucket')", "let shapes vary: static.jit(f, shapes='bucket', dims=(None,))"),
        ("static(backend='native')", "compile to machine code: static.jit(f, backend='native')"),
    ]
    assert ours.modes([record], {}, remedies=False) == []


def test_a_branch_on_a_value_is_shown_and_not_tried():
    said = "Data-dependent branching (step.py:25: if out.mean() > 0:)"
    assert words(told(breaks=[said]), {}) == {}
    (shown,) = trials.by_hand([said, said])
    assert shown.startswith("step.py:25 branches on a value (if out.mean() > 0): write torch.where(test, a, b)")


@pytest.mark.parametrize(
    ("keywords", "change"),
    [
        ({"mark_dynamic": {"x": [0], "y": [1]}}, (
            "mark axis 0 of x and axis 1 of y dynamic: "
            "torch._dynamo.mark_dynamic(x, 0), torch._dynamo.mark_dynamic(y, 1)"
        )),
        ({"where": "Block"}, "compile the 12 Blocks by themselves: module.compile() of each"),
        ({"where": ("model", "optimizer")}, (
            "compile the model by itself: model = torch.compile(model); compile the optimizer's step: "
            "optimizer.step = torch.compile(optimizer.step)"
        )),
        ({"tensor_numbers": ["a", "b"]}, "give a and b as a tensor: torch.tensor(a), torch.tensor(b)"),
        ({"without": ["step.py:8"]}, "take step.py:8 out of the step, or call it outside"),
        ({"config": {"capture_scalar_outputs": True}}, "set torch._dynamo.config.capture_scalar_outputs = True"),
        ({"config": {"dynamic_sources": "L['a'].n"}}, """set torch.compiler.config.dynamic_sources = "L['a'].n\""""),
    ],
)  # fmt: skip
def test_a_change_says_what_a_user_writes(keywords, change):
    assert trials.change(keywords, trials.FirstLook.of(FACTS)) == change


def test_a_change_of_arguments_says_where_they_are_made():
    look = trials.FirstLook.of({"inputs_at": "step.py:31"})
    said = trials.change({"mark_dynamic": {"x": [0]}}, look)
    assert said == "mark axis 0 of x dynamic (inputs at step.py:31): torch._dynamo.mark_dynamic(x, 0)"


def test_the_line_that_makes_the_calls_is_found_without_running_the_file(tmp_path):
    file = tmp_path / "step.py"
    file.write_text("raise SystemExit\n\ninputs: list = []\nmore = []\n\ndef made():\n    return []\n")
    at = partial(origin.line_of_inputs, f"{file}:loss")
    assert (at(""), at("more"), at(f"{file}:made"), at("none")) == ("step.py:3", "step.py:4", "step.py:6", "")
    assert origin.line_of_inputs("", "") == origin.line_of_inputs(f"{file}x:loss", "") == ""


@pytest.mark.parametrize(
    ("usual", "word"),
    [
        ("compile()", "compile(config={'a': 1})"),
        (
            "compile(mode='reduce-overhead', config={'b': 2})",
            "compile(mode='reduce-overhead', config={'b': 2, 'a': 1})",
        ),
        ("export()", "compile(config={'a': 1})"),
    ],
)
def test_a_trial_keeps_the_options_of_the_mode_beside_which_it_is_tried(usual, word):
    assert ModeTrial("scalars", "compile(config={'a': 1})").beside(Mode("usual", usual)).word == word


@pytest.mark.slow
def test_what_our_engines_try_passes_the_gate_and_is_weighed():
    def loss(w, x):
        return graphs.mean(graphs.tanh(x @ w) ** 2)

    calls = [(np.ones((3, 2)), np.ones((n, 3))) for n in (2, 4, 6)]
    plan = plan_of(OWN, "f.py:loss", "", None, tries="remedies", seconds=0.02, processes=0)
    found = run.here(plan, loss, calls, processes=0)
    tried = {each.mode: each for each in remedies.tried_changes(found.records)}
    assert {*tried} >= {"symbolic", "native"}
    assert tried["symbolic"].compiles == 1
    assert not tried["symbolic"].refused
    assert " tried" in str(found)
