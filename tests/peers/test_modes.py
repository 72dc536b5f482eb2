"""Modes as words in the frameworks themselves: what they take, what they compute, and what a word sets meanwhile."""

import json
import sys
import venv

import numpy as np
import pytest
from click.testing import CliRunner

from compare import engines
from compare.cli.command import graphduel
from compare.errors import InputsError, UnsupportedError
from compare.subjects.subject import mode_of


def step_of(engine, word, loss, calls, argnum=0):
    adapter = engines.find_engine(engine)
    return adapter, adapter.build(mode_of(adapter, word), loss, argnum)


def results(engine, word, loss, *calls):
    """The loss and the gradients of each call, as arrays."""
    adapter, step = step_of(engine, word, loss, calls)
    found = []
    for call in calls:
        value, gradients = step.bind(*adapter.arrays(call))()
        found += [np.asarray(adapter.numpy(value)), np.asarray(adapter.numpy(gradients))]
    return found, adapter.observed(step)


def calls_of(*sizes):
    rng = np.random.default_rng(0)
    w = rng.standard_normal((4, 3)).astype(np.float32)
    return [(w, rng.standard_normal((size, 4)).astype(np.float32)) for size in sizes]


def right(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


# PyTorch


def torch_loss(w, x):
    return ((x @ w).tanh() ** 2).mean()


@pytest.fixture
def torch():
    found = pytest.importorskip("torch")
    engines.find_engine("torch").compiler.forget()
    return found


@pytest.mark.parametrize(
    "word",
    [
        "aot_eager",
        "compile(backend='aot_eager', dynamic=True, fullgraph=True)",
        "compile(backend='aot_eager', config={'capture_scalar_outputs': True, 'activation_memory_budget': 0.5})",
        "compile(backend='aot_eager', compiled_autograd=True)",
    ],
)
def test_a_word_of_pytorch_computes_what_eager_does(torch, word):
    calls = calls_of(3, 5)
    expected, _ = results("torch", "eager", torch_loss, *calls)
    found, observed = results("torch", word, torch_loss, *calls)
    right(found, expected)
    assert observed.compilations


def test_a_stance_holds_from_the_second_run_on(torch):
    calls = calls_of(3, 5, 3)
    found, observed = results("torch", "compile(backend='aot_eager', stance='eager_on_recompile')", torch_loss, *calls)
    right(found, results("torch", "eager", torch_loss, *calls)[0])
    assert len(observed.compilations) == 1


def test_settings_hold_while_a_mode_runs(torch):
    from compare.engines.torch import modes

    before = torch._dynamo.config.capture_scalar_outputs
    with modes.settings({"capture_scalar_outputs": not before, "epilogue_fusion": False}):
        assert torch._dynamo.config.capture_scalar_outputs is not before
        assert torch._inductor.config.epilogue_fusion is False
    assert torch._dynamo.config.capture_scalar_outputs is before
    with pytest.raises(InputsError, match="PyTorch has no setting 'no_such'"), modes.settings({"no_such": 1}):
        pass


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("compile(dynamc=True)", "takes no 'dynamc'; did you mean 'dynamic'"),
        (
            "compile(options={'epilogue_fusoin': False})",
            "options has no 'epilogue_fusoin'; did you mean 'epilogue_fusion'",
        ),
        ("compile(config={'capture_scalar_output': True})", "config has no .*did you mean 'capture_scalar_outputs'"),
        ("aot_eagr", "PyTorch has no mode 'aot_eagr'; did you mean 'aot_eager'"),
    ],
)
def test_what_pytorch_does_not_take_is_refused(torch, word, said):
    with pytest.raises(InputsError, match=said):
        mode_of(engines.find_engine("torch"), word)


def test_a_mode_of_inductor_is_a_word(torch):
    adapter = engines.find_engine("torch")
    mode = adapter.traits(mode_of(adapter, "max-autotune-no-cudagraphs"))
    assert (mode.name, mode.options) == ("max-autotune-no-cudagraphs", {"mode": "max-autotune-no-cudagraphs"})


def test_aot_has_no_gradients(torch):
    with pytest.raises(UnsupportedError, match="aot compiles functions that take no gradients"):
        step_of("torch", "aot", torch_loss, calls_of(3))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # PyTorch loads a package by code that it deprecates
@pytest.mark.parametrize("compiler", ["export", "aot"])
def test_a_captured_program_holds_its_modules(torch, compiler):
    from compare.engines.torch.modes import COMPILERS

    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3)
    with torch.no_grad():
        run = COMPILERS[compiler](lambda m, x: m(x).tanh())
        for size in (2, 5):
            x = torch.randn(size, 4)
            np.testing.assert_allclose(run(model, x), model(x).tanh(), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_aot_is_compared_from_the_command_line(torch, tmp_path):
    file, told = tmp_path / "mine.py", tmp_path / "told.json"
    file.write_text(
        "import torch\n\nmodel = torch.nn.Linear(4, 3)\ninputs = [(torch.ones(2, 4),)]\n\n\n"
        "def step(x):\n    return model(x).tanh()\n",
        "utf-8",
    )
    asked = ["--inputs", "inputs", "--modes", "eager,aot", "--no-gradient", "--processes", "1", "--threads", "1"]
    done = CliRunner().invoke(graphduel, ["compare", f"{file}:step", *asked, "--seconds", "0.05", "--json", str(told)])
    assert done.exit_code == 3, done.output  # one process has no interval
    verdict = json.loads(told.read_text("utf-8"))["verdict"]
    assert list(verdict["of_base"]) == ["aot"]
    answer = " ".join(done.output.split())
    assert "agree with float64 and eager" in answer
    assert "aot ran all of the ops of a forward pass compiled" in answer


@pytest.mark.slow
def test_a_captured_program_has_the_modules_and_parameters_that_its_function_reaches(torch):
    from compare.engines.torch.modes import COMPILERS

    model, scale, shift = torch.nn.Linear(4, 3), torch.nn.Parameter(torch.ones(3) * 2), torch.ones(3)
    with torch.no_grad():
        run = COMPILERS["export"](lambda x: (model(x) * scale + shift).tanh())
        x = torch.randn(2, 4)
        np.testing.assert_allclose(run(x), (model(x) * scale + shift).tanh(), rtol=1e-5, atol=1e-6)


# JAX and TensorFlow


@pytest.mark.parametrize(
    "word",
    [
        "jit(donate_argnums=(0,))",
        "jit(remat=True)",
        "jit(remat='dots_saveable', keep_unused=True)",
        "jit(config={'jax_default_matmul_precision': 'highest'})",
    ],
)
def test_a_word_of_jax_computes_what_eager_does(word):
    jnp = pytest.importorskip("jax.numpy")

    def loss(w, x):
        return (jnp.tanh(x @ w) ** 2).mean()

    expected, _ = results("jax", "eager", loss, *calls_of(3, 5))
    found, observed = results("jax", word, loss, *calls_of(3, 5))
    right(found, expected)
    assert len(observed.compilations) == 2


def test_donated_arguments_are_gone():
    jax = pytest.importorskip("jax")
    adapter, step = step_of("jax", "jit(donate_argnums=(0,))", lambda w, x: (x @ w).sum(), ())
    w, x = adapter.arrays(calls_of(4)[0])
    jax.block_until_ready(step.bind(w, x).run())
    assert (w.is_deleted(), x.is_deleted()) == (True, False)


def test_a_word_of_tensorflow_computes_what_eager_does():
    tf = pytest.importorskip("tensorflow")

    def loss(w, x):
        return tf.reduce_mean(tf.tanh(x @ w) ** 2)

    expected, _ = results("tensorflow", "eager", loss, *calls_of(3, 5))
    found, observed = results("tensorflow", "function(autograph=False, reduce_retracing=True)", loss, *calls_of(3, 5))
    right(found, expected)
    assert observed.compilations


@pytest.mark.slow
def test_a_mode_runs_by_another_python_with_the_framework_of_that(tmp_path):
    pytest.importorskip("torch")
    venv.create(tmp_path / "old", symlinks=True)
    (packages,) = (tmp_path / "old").glob("lib/python*/site-packages")
    there = [entry for entry in sys.path if "site-packages" in entry]
    (packages / "there.pth").write_text("\n".join(there))
    (packages / "torch-0.0.1.dist-info").mkdir()
    fake = "Metadata-Version: 2.1\nName: torch\nVersion: 0.0.1\n"
    (packages / "torch-0.0.1.dist-info" / "METADATA").write_text(fake)
    step = tmp_path / "step.py"
    made = "import torch\nw = torch.ones(4, 4, requires_grad=True)\ninputs = [(torch.ones(2, 4),)]\n\n\n"
    step.write_text(f"{made}def loss(x):\n    return (x @ w).tanh().mean()\n")
    words = ["--mode", "new=compile(backend='eager')", "--mode", "old=compile(backend='eager')"]
    words += ["--python", f"old={tmp_path / 'old'}", "--threads", "1", "--processes", "1", "--seconds", "0.05"]
    done = CliRunner().invoke(graphduel, ["compare", f"{step}:loss", *words])
    assert "old ran in PyTorch 0.0.1, Python" in done.output, done.output
    rows = [line.split() for line in done.output.splitlines() if line.split()[:1] in (["eager"], ["new"], ["old"])]
    assert [row[0] for row in rows][:3] == ["eager", "new", "old"]
