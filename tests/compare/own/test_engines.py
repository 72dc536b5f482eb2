"""A file of PyTorch's in several engines: names that stand for others, numbers carried over, and a training step."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from compare.cli.command import graphduel
from compare.engines.graphduel.programs import Replay
from compare.engines.graphduel.standin import as_named
from compare.errors import InputsError, UnsupportedError
from compare.plans.comparison import plans_of

FILE = """
import torch
from torch import nn, optim
import torch.nn.functional as F
from beside import width

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.norm = nn.Linear(4, width), nn.BatchNorm1d(width)
        self.out = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(width, 2))

    def forward(self, x):
        return self.out(self.norm(self.hidden(x.view(x.size(0), -1))))

model = Net()
optimizer = optim.Adam(model.parameters(), lr=0.01)

def loss(x, y):
    value = F.cross_entropy(model(x), y)
    return value, value.detach()

def step(x, y):
    optimizer.zero_grad()
    value = F.cross_entropy(model(x), y)
    value.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return value.item()

def missing(x, y):
    return torch.stft(model(x).flatten(), 4, return_complex=True).abs().sum()

inputs = [(torch.randn(6, 4), torch.randint(0, 2, (6,))) for _ in range(2)]
"""
DECIDING = """
import torch
from torch import nn
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def step(x, y):
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            if loss > 0:
                parameter -= parameter.grad
    return loss.item()

inputs = [(torch.randn(6, 4), torch.randn(6, 2))]
"""
FIELD = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

def step(x, velocity):
    slope, = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    loss = ((slope - velocity) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss

inputs = [(torch.randn(6, 2, requires_grad=True), torch.randn(6, 2)) for _ in range(2)]
"""
CLOSING = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
optimizer = torch.optim.OPTIMIZER(model.parameters(), lr=0.1)

def step(x, y):
    def closure():
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        return loss

    return optimizer.step(closure)

inputs = [(torch.randn(6, 4), torch.randn(6, 2)) for _ in range(2)]
"""
SKIPPING = """
import torch
from torch import nn
model = nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

def step(x, y):
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    if torch.isfinite(loss):
        optimizer.step()
    return loss

inputs = [(torch.randn(6, 4), torch.randn(6, 2))]
"""
KEEPING = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm, self.drop = nn.Linear(4, 4), nn.InstanceNorm1d(4), nn.Dropout(0.5)

    def forward(self, x):
        self.penalty = x.square().mean()
        return torch.relu_(self.norm(self.drop(self.linear(x)).view(-1, 4, 1).expand(-1, 4, 3) * torch.arange(3.0)))

model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

def step(x):
    optimizer.zero_grad()
    loss = model(x).sum() + model.penalty
    loss += loss
    loss.backward()
    optimizer.step()
    return loss.item()

inputs = [(torch.randn(6, 4),) for _ in range(2)]
"""
QUICK = ["--processes", "0", "--seconds", "0.05"]


@pytest.fixture
def file(tmp_path):
    (tmp_path / "beside.py").write_text("import torch\nwidth = int(torch.tensor(8).item())\n", "utf-8")
    path = tmp_path / "mine.py"
    path.write_text(FILE, "utf-8")
    return path


def compared(file, function, *arguments):
    out = file.parent / "answer.json"
    command = ["compare", f"{file}:{function}", *QUICK, "--json", str(out), *arguments]
    done = CliRunner().invoke(graphduel, command)
    return done, json.loads(out.read_text("utf-8")) if out.exists() else None


def test_torch_is_our_engine_where_it_stands_in(file):
    program = (
        "import sys; from compare.engines.graphduel.standin import stand_in; stand_in(); sys.path.append(sys.argv[1]);"
        "import mine, torch, torch.nn.functional as F, dynamic;"
        "assert torch is dynamic and F is dynamic.nn.functional and mine.model.hidden.weight.shape == (8, 4);"
        "assert not any(name.startswith('torch._') for name in sys.modules)\n"
        "import torch.fft, torch.masked, torch.distributions.normal as normal\n"
        "assert normal.Normal is dynamic.distributions.Normal and torch.fft is dynamic.fft\n"
        "try: torch.masked.masked_tensor(torch.ones(4))\n"
        "except AttributeError as error: print(error)"
    )
    root = Path(__file__).parents[3]
    ran = subprocess.run(
        [sys.executable, "-c", program, str(file.parent)], capture_output=True, text=True, cwd=root, check=False
    )
    assert (ran.stdout, ran.stderr) == ("torch.masked is missing in our engine\n", "")


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("dynamic has no 'stft': x", "torch.stft is missing in our engine: x"),
        ("cannot import name 'Foo' from 'dynamic.nn' (/a/b.py)", "torch.nn.Foo is missing in our engine"),
        ("'Tensor' object has no attribute 'foo'", "torch.Tensor.foo is missing in our engine"),
    ],
)
def test_a_missing_name_is_pytorchs(said, named):
    assert as_named(said) == named


def test_draws_are_given_out_from_the_first_in_each_call():
    normal, mask = np.ones((2, 3)), np.array([True, False])
    replay = Replay([[normal, mask], [np.zeros(5)]])
    for _ in range(2):
        replay.begin()
        assert replay.standard_normal((2, 3)) is normal
        assert replay.kept((2,), 0.5).tolist() == [True, False]
    replay.begin()
    assert replay.standard_normal((1, 2, 3)).shape == (1, 2, 3)  # the same numbers in the same order
    with pytest.raises(UnsupportedError, match="random numbers number 2, of shape"):
        replay.random((3, 2))
    replay.begin()
    assert replay.random(5).shape == (5,)
    with pytest.raises(UnsupportedError, match="random numbers number 2, of shape"):
        replay.random((7,))


def test_engines_that_cannot_run_a_file_are_refused(tmp_path):
    path = tmp_path / "ours.py"
    path.write_text("import graphs\ndef f(x): return x\n", "utf-8")
    with pytest.raises(InputsError, match="written for graphduel, which"):
        plans_of(["autograd", "graphduel"], f"{path}:f", "", None)


def test_a_training_step_is_one_graph_of_our_engine_alone(file):
    done, answer = compared(file, "step", "--engines", "graphduel", "--modes", "dynamic,static")
    assert done.exit_code in (0, 3), done.output
    assert set(answer["verdict"]["steady"]["values"]) == {"dynamic", "static-exact"}


@pytest.mark.slow
def test_a_step_that_draws_and_keeps_attributes_is_converted(tmp_path):
    path = tmp_path / "keeping.py"
    path.write_text(KEEPING, "utf-8")
    done, answer = compared(path, "step", "--engines", "graphduel", "--modes", "dynamic,static,static-converted")
    assert done.exit_code in (0, 3), done.output
    assert set(answer["verdict"]["steady"]["values"]) == {"dynamic", "static-exact", "static-converted"}
    assert "training.py" not in done.output  # nothing of ours is a line of the user's
    assert path.read_text("utf-8") == KEEPING
    left = {file.name for file in tmp_path.iterdir()} - {"__pycache__"}  # which Python writes, unless told not to
    assert left == {"keeping.py", "answer.json"}


@pytest.mark.slow
def test_a_parameter_that_only_a_run_decides_to_change_is_refused_with_the_line(tmp_path):
    path = tmp_path / "deciding.py"
    path.write_text(DECIDING, "utf-8")
    done, answer = compared(path, "step", "--engines", "graphduel", "--modes", "dynamic,static-converted")
    assert "a parameter changes where only the run knows" in answer["verdict"]["refused"]["static-converted"], (
        done.output
    )
    line = DECIDING[: DECIDING.index("parameter -=")].count("\n") + 1
    assert f"(deciding.py:{line})" in answer["verdict"]["refused"]["static-converted"]


@pytest.mark.slow
def test_a_closure_that_a_step_calls_once_is_part_of_the_graph(tmp_path):
    path = tmp_path / "closing.py"
    path.write_text(CLOSING.replace("OPTIMIZER", "SGD"), "utf-8")
    done, answer = compared(path, "step", "--engines", "graphduel", "--modes", "dynamic,static-exact")
    assert done.exit_code in (0, 3), done.output
    assert set(answer["verdict"]["steady"]["values"]) == {"dynamic", "static-exact"}


@pytest.mark.slow
def test_lbfgs_runs_in_the_dynamic_engine_and_no_graph_takes_it(tmp_path):
    """How often it runs its closure only the run knows."""
    path = tmp_path / "closing.py"
    path.write_text(CLOSING.replace("OPTIMIZER", "LBFGS"), "utf-8")
    done, answer = compared(path, "step", "--engines", "graphduel", "--modes", "dynamic,static-exact,static-converted")
    assert set(answer["verdict"]["steady"]["values"]) == {"dynamic"}, done.output
    line = CLOSING[: CLOSING.index("return optimizer.step")].count("\n") + 1
    words = f"LBFGS.step decides by values what it does, and a graph cannot (closing.py:{line}); run it in mode dynamic"
    assert words in answer["verdict"]["refused"]["static-exact"]
    assert words in answer["verdict"]["refused"]["static-converted"]


@pytest.mark.slow
def test_a_step_of_an_optimizer_that_only_the_run_decides_on_is_refused_with_the_remedy(tmp_path):
    path = tmp_path / "skipping.py"
    path.write_text(SKIPPING, "utf-8")
    _, answer = compared(path, "step", "--engines", "graphduel", "--modes", "dynamic,static-converted")
    assert set(answer["verdict"]["steady"]["values"]) == {"dynamic"}
    refused = answer["verdict"]["refused"]["static-converted"]
    line = SKIPPING[: SKIPPING.index("optimizer.step")].count("\n") + 1
    assert f"Adam.step is called where only the run knows whether that is reached (skipping.py:{line})" in refused
    assert "choose each parameter by torch.where(condition, new, old), or run it in mode dynamic" in refused


def test_a_name_that_a_neighbour_lacks_is_named_with_its_line(tmp_path):
    (tmp_path / "beside.py").write_text("import torch\nwidth = torch.sparse_coo_tensor([[0]], [1.0], (2,))\n", "utf-8")
    path = tmp_path / "mine.py"
    path.write_text(
        "import torch\nfrom beside import width\ndef loss(x): return x.sum()\ninputs = [(torch.ones(2),)]\n"
    )
    done, _ = compared(path, "loss", "--engines", "graphduel")
    assert done.exit_code != 0
    assert "torch.sparse_coo_tensor is not supported: tensors are dense (beside.py:2)" in done.output


def test_an_extension_of_pytorchs_is_refused_by_its_name(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from torch.utils import cpp_extension\ncpp_extension.load('f', ['f.cpp'])\ndef loss(x): return x\n"
        "inputs = [(1,)]\n"
    )
    done, _ = compared(path, "loss", "--engines", "graphduel")
    assert done.exit_code != 0
    assert "cpp_extension.load is not supported" in done.output
    assert "mine.py:2" in done.output


@pytest.mark.slow
def test_our_modes_are_held_to_the_numbers_of_the_first_engine(file, tmp_path):
    """The numbers are left by our own engine here, and one of them is changed after."""
    program = (
        "import sys, numpy as np; from pathlib import Path\n"
        "from compare.own import measure; from compare.subjects import exchange\n"
        "from compare.subjects.case import case_of\n"
        "from compare.plans.comparison import plans_of\n"
        "from compare import engines\n"
        "plan, = plans_of(['graphduel'], sys.argv[1], '', ['dynamic', 'static'])\n"
        "plan.subject.started()\n"
        "function, calls = exchange.program_of(plan.subject, plan.situation)\n"
        "case = case_of(function, calls, None, None)\n"
        "step = engines.step('dynamic', case)\n"
        "stored = {'tolerance': np.array(1e-4)}\n"
        "for i, example in enumerate(case.examples):\n"
        "    value, gradients = step(*example)\n"
        "    stored[f'value:{i}:0'] = np.asarray(value) * float(sys.argv[3])\n"
        "    stored |= {f'gradient:{i}:{j}': np.asarray(gradients[k]) for j, k in enumerate(sorted(gradients))}\n"
        "np.savez(Path(sys.argv[2], 'expected.npz'), **stored)\n"
        "plan = plan.within(numbers=sys.argv[2])\n"
        "record = measure._gate(plan.job('parity', plan.subject.modes), case, plan)\n"
        "print(*[row.status for row in record.modes.values()])\n"
    )
    root = Path(__file__).parents[3]
    for factor, status in (("1", "ok"), ("1.01", "disagree")):
        command = [sys.executable, "-c", program, f"{file}:loss", str(tmp_path), factor]
        ran = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
        assert ran.stdout.split() == [status, status], ran.stderr


@pytest.mark.slow
def test_what_a_mode_has_wrong_in_the_state_is_found_and_named(file):
    """Sums of Adam's are much smaller than parameters, and judged by their own size."""
    program = (
        "import sys, optree; from compare import engines\n"
        "from compare.subjects import exchange; from compare.subjects.case import case_of\n"
        "from compare.plans.comparison import plans_of\n"
        "from compare.instruments import parity; from tests.helpers.mutants import altered\n"
        "plan, = plans_of(['graphduel'], sys.argv[1], '', ['dynamic', 'static'])\n"
        "plan.subject.started()\n"
        "case = case_of(*exchange.program_of(plan.subject, plan.situation), None, None)\n"
        "expected, honest = parity.expectations(case, 1), engines.step\n"
        "for part in ('tensors', 'sums'):\n"
        "    def change(value, gradients):\n"
        "        wrong = optree.tree_map(lambda x: x * x.dtype.type(1.01), value[1][part])\n"
        "        return (value[0], {**value[1], part: wrong}), gradients\n"
        "    def step(mode, case):\n"
        "        made = honest(mode, case)\n"
        "        made.built = altered(made.built, change) if mode == 'static-exact' else made.built\n"
        "        return made\n"
        "    engines.step = step\n"
        "    print(parity.check_mode('static-exact', case, expected).reason)\n"
    )
    command = [sys.executable, "-c", program, f"{file}:step"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3], check=False)
    tensors, sums = ran.stdout.splitlines()
    off = r"`model\.[a-z._0-9]+` after call 1 is off by 0\.01, allowed 0\.0001"
    assert re.fullmatch(f"the (parameter|buffer) {off}", tensors), ran.stderr
    assert re.fullmatch(f"`exp_avg(_sq)?` of the parameter {off}", sums), ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "modes"), [("loss", "eager,dynamic,static"), ("step", "torch-eager,dynamic,static-exact")]
)
def test_a_file_of_pytorch_runs_in_both_engines_from_the_same_numbers(file, function, modes):
    pytest.importorskip("torch")
    done, answer = compared(file, function, "--engines", "torch,graphduel", "--modes", modes)
    assert done.exit_code in (0, 3), done.output
    assert answer["modes"] == ["torch-eager", "dynamic", "static-exact"]
    assert set(answer["verdict"]["steady"]["values"]) == set(answer["modes"])
    assert answer["verdict"]["steady"]["base"] == "torch-eager"


@pytest.mark.slow
def test_an_input_that_requires_a_gradient_requires_one_in_both_engines(tmp_path):
    """A Hamiltonian network is trained by the slopes at its inputs."""
    pytest.importorskip("torch")
    path = tmp_path / "field.py"
    path.write_text(FIELD, "utf-8")
    done, answer = compared(path, "step", "--engines", "torch,graphduel", "--modes", "torch-eager,dynamic,static-exact")
    assert done.exit_code in (0, 3), done.output
    assert set(answer["verdict"]["steady"]["values"]) == {"torch-eager", "dynamic", "static-exact"}


@pytest.mark.slow
def test_what_our_engine_lacks_is_named_and_pytorch_is_judged_alone(file):
    pytest.importorskip("torch")
    done, answer = compared(file, "missing", "--engines", "torch,graphduel", "--modes", "eager,dynamic,static")
    assert done.exit_code == 5, done.output
    assert set(answer["verdict"]["steady"]["values"]) == {"torch-eager"}
    assert "torch.stft is missing in our engine" in answer["verdict"]["refused"]["dynamic"]
    assert "Traceback" not in done.output


STANDING = Path(__file__).with_name("standing_file.py")
REFUSED = {"averaged_again": "is off by"}
"""What a graph does not give: the second run of a checkpoint reads weights that the first one has changed."""


def stood(*arguments):
    command = [sys.executable, "-m", "tests.compare.own.standing", *map(str, arguments)]
    done = subprocess.run(command, cwd=STANDING.parents[3], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


FRAMES = 4
"""The most frames of the harness in a timed call: what differentiates, and what finds a loss in a container."""


def wrong(found):
    """What is not as it must be: a mode that disagrees or is refused, but for those of a graph that must be."""
    return {
        (name, what): said
        for name, modes in found.items()
        for what, said in modes.items()
        if not _is_right(name, what, said)
    }


def _is_right(name, what, said):
    if what == "frames":
        return int(said) <= FRAMES or name.startswith("dropped")  # whose masks are given
    if what == "static-exact" and name in REFUSED:
        return REFUSED[name] in said
    return said.startswith(("ok", "ill-conditioned"))


@pytest.mark.parametrize(
    "names",
    [
        ["encoding", "counted_loss", "one_cycle"],
        pytest.param([], id="all", marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_what_people_bring_to_pytorch_is_taken_by_both_modes_of_ours(names):
    found = stood("graphduel", STANDING, *names)
    assert len(found) == len(names) or len(found) > 30
    assert not wrong(found)


@pytest.mark.peers
@pytest.mark.slow
def test_both_modes_of_ours_give_what_pytorch_gives(tmp_path):
    pytest.importorskip("torch")
    assert not wrong(
        {name: modes for name, modes in stood("torch", "--numbers", tmp_path, STANDING).items() if "raised" in modes}
    )
    found = stood("graphduel", "--numbers", tmp_path, STANDING)
    assert len(found) > 30
    assert not wrong(found)
