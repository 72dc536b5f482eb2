"""Names for other devices, processes and compilers: they are imported, change nothing, or are refused when called."""

from __future__ import annotations

import importlib
import itertools
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import dynamic as torch
import static
from dynamic import distributions, nn
from dynamic.pytorch import switches
from dynamic.utils import data
from graphs import tree
from graphs.errors import DTypeError, GraphError, OptionError

PROGRAM = """
import dynamic as torch
import dynamic.distributed as dist
import dynamic.multiprocessing as mp
from dynamic.cuda.amp import GradScaler, autocast
from dynamic.distributed.fsdp import FullyShardedDataParallel as FSDP
from dynamic.nn.parallel import DistributedDataParallel as DDP
from dynamic.nn.parallel.distributed import DistributedDataParallel
from dynamic.utils.data.distributed import DistributedSampler

torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")
mp.set_start_method("spawn")
model = torch.compile(torch.nn.Linear(2, 2))
scaler, optimizer = GradScaler(), torch.optim.SGD(model.parameters(), 0.1)
if dist.is_available() and dist.is_initialized():
    model = DDP(model)
with autocast():
    loss = model(torch.ones(1, 2)).sum()
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
torch.cuda.synchronize()
unwrapped = model.module if isinstance(model, (DDP, FSDP)) else model
print(type(unwrapped).__name__, torch.cuda.max_memory_allocated(), torch.backends.cudnn.benchmark)
"""


def test_a_program_for_several_gpus_trains_on_one_cpu() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.stdout == "Linear 0 True\n", done.stderr


def named() -> list[tuple[switches.SwitchRow, str]]:
    return [(row, name) for row in switches.SWITCHES for name in row.names.split() if name != switches.ALL]


def test_a_name_is_defined_once() -> None:
    names = [(row.place, name) for row, name in named()]
    assert len(names) == len(set(names)) > 200
    assert {row.does for row in switches.SWITCHES} == set(switches.MAKERS)


@pytest.mark.parametrize("place", sorted(switches.PLACES))
def test_each_place_is_imported_and_has_its_names(place: str) -> None:
    module = importlib.import_module(f"dynamic.{place}")
    for row, name in named():
        if row.place == place:
            getattr(module, name)
    assert not hasattr(module, "__no_such_name__")


@pytest.mark.parametrize(("row", "name"), [(r, n) for r, n in named() if r.does == "refuses"])
def test_what_is_refused_says_its_name_and_the_remedy(row: switches.SwitchRow, name: str) -> None:
    value = switches.make(row.place, name)
    assert not isinstance(3, value)
    path = ".".join(filter(None, ("torch", row.place, name)))
    with pytest.raises(RuntimeError) as caught:
        value(3, option=4)
    said = str(caught.value)
    assert said.startswith(f"{path} is not supported: ")
    assert row.says.partition(";")[0] in said


def test_all_of_a_place_is_refused() -> None:
    from dynamic.distributed.fsdp.wrap import transformer_auto_wrap_policy
    from dynamic.fx.passes import anything

    class Wrapped(anything):
        pass

    for call in (transformer_auto_wrap_policy, anything, Wrapped, torch.sparse.mm, torch.hub.load):
        with pytest.raises(RuntimeError, match="is not supported"):
            call()
    with pytest.raises(AttributeError, match="there is one process"):
        _ = torch.distributed.Backend.GLOO
    for absent in ("cuda.no_such_name", "backends.no_such_name", "nn.utils.no_such_name", "optim.no_such_name"):
        place, _dot, name = absent.rpartition(".")
        with pytest.raises(AttributeError, match=rf"{place} has no 'no_such_name'; docs/torch"):
            getattr(importlib.import_module(f"dynamic.{place}"), name)


def test_a_block_does_nothing_and_has_measured_nothing() -> None:
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as measured, torch.profiler.record_function("step"):
        measured.step()
    with pytest.raises(AttributeError, match=r"nothing is measured.*dynamic\.record"):
        measured.key_averages()

    @torch.autograd.profiler.record_function("name")
    def double(x: int) -> int:
        return 2 * x

    assert double(3) == 6


def test_a_generator_is_as_it_was_behind_a_fork() -> None:
    torch.manual_seed(3)
    with torch.random.fork_rng():
        torch.rand(4)
    after = torch.rand(4)
    torch.manual_seed(3)
    torch.cuda.manual_seed_all(4)
    assert torch.equal(torch.rand(4), after)


def test_samplers() -> None:
    endless = data.RandomSampler(range(7), num_samples=10**10)
    first = list(itertools.islice(endless, 14))
    assert (len(endless), sorted(first[:7]), sorted(first[7:])) == (10**10, list(range(7)), list(range(7)))
    repeated = data.RandomSampler(range(7), replacement=True, num_samples=10**10)
    assert set(itertools.islice(repeated, 200)) == set(range(7))
    torch.manual_seed(0)
    drawn = list(data.WeightedRandomSampler([1, 0, 3], 4000))
    assert np.bincount(drawn, minlength=3) == pytest.approx([1000, 0, 3000], abs=120)
    assert sorted(data.WeightedRandomSampler([1, 5, 3], 3, replacement=False)) == [0, 1, 2]
    with pytest.raises(ValueError, match="num_samples"):
        data.WeightedRandomSampler([1.0], 0)
    assert data.get_worker_info() is None


def test_shares_of_a_data_set() -> None:
    from dynamic.utils.data.distributed import DistributedSampler

    shares = [DistributedSampler(range(5), num_replicas=2, rank=rank) for rank in range(2)]
    assert sorted({*shares[0], *shares[1]}) == list(range(5))
    assert [len(share) for share in shares] == [3, 3]
    first = list(shares[0])
    assert first == list(shares[0])
    orders = []
    for epoch in range(5):
        shares[0].set_epoch(epoch)
        orders.append(tuple(shares[0]))
    assert len(set(orders)) > 1
    with pytest.raises(RuntimeError, match="give num_replicas and rank"):
        DistributedSampler(range(5))


def test_switches_warn_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.use_deterministic_algorithms(True)
        model = torch.jit.script(nn.Linear(2, 2))
    assert isinstance(model, nn.Linear)


def test_a_writer_writes_nothing_and_says_so(tmp_path: Path) -> None:
    from dynamic.utils.tensorboard import SummaryWriter

    with pytest.warns(UserWarning, match="no events are written; take tensorboardX"):
        writer = SummaryWriter(str(tmp_path / "runs"))
    writer.add_scalar("loss", 0.5, 1)
    writer.close()
    assert not list(tmp_path.iterdir())


def test_older_paths_and_names_of_files() -> None:
    from dynamic.nn.modules.module import register_module_forward_hook
    from dynamic.nn.modules.utils import _reverse_repeat_tuple
    from dynamic.optim.adamw import AdamW
    from dynamic.utils.data._utils.collate import default_collate_err_msg_format

    assert AdamW is torch.optim.AdamW
    assert torch._jit_internal.Optional[torch.Tensor] == torch.Tensor | None
    assert not torch.nn.functional.has_torch_function((torch.ones(2),))
    assert _reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    assert (torch.get_autocast_dtype("cpu"), torch.get_autocast_dtype("cuda")) == (torch.bfloat16, torch.float16)
    for call, remedy in (
        (register_module_forward_hook, "each of model.modules"),
        (default_collate_err_msg_format, "fn"),
    ):
        with pytest.raises(RuntimeError, match=remedy):
            call(print)
    with pytest.raises(AttributeError, match=r"nn\.modules\.module has no 'no_such_name'; docs/torch"):
        _ = torch.nn.modules.module.no_such_name


MADE = {
    "numbers": lambda: (
        torch.tensor([1.5]),
        torch.as_tensor(1.0),
        torch.Tensor([1]),
        torch.Tensor(2),
        torch.full((2,), 0.5),
    ),
    "sizes": lambda: (torch.zeros(2), torch.ones(2), torch.empty(2), torch.eye(2), torch.linspace(0, 1, 3)),
    "steps": lambda: (torch.arange(0, 1, 0.5), torch.logspace(0, 1, 3), torch.hann_window(4), torch.fft.fftfreq(4)),
    "random": lambda: (torch.rand(2), torch.randn(2), torch.normal(0.0, 1.0, (2,)), nn.init.normal_(torch.empty(2))),
    "ints": lambda: (
        INTS * 0.5,
        INTS / 2,
        2.0**INTS,
        torch.sin(INTS),
        (INTS > 1) * 1.0,
        torch.where(INTS > 1, INTS, 0.5),
    ),
    "layers": lambda: (*nn.Linear(2, 3).parameters(), *nn.LSTM(2, 2).parameters(), *nn.BatchNorm1d(2).buffers()),
    "drawn": lambda: (
        distributions.Normal(0.0, 1.0).sample(),
        distributions.Normal(0, 1).rsample((2,)),
        distributions.Bernoulli(0.5).sample(),
    ),
    "traced": lambda: (static.jit(lambda x: x * 0.5)(INTS), static.jit(lambda x: x + torch.ones(3))(INTS)),
}
INTS = torch.arange(3)


@pytest.mark.parametrize("kind", MADE)
def test_the_default_dtype_is_that_of_floats_without_another(kind: str) -> None:
    before = {t.dtype for t in MADE[kind]()}
    torch.set_default_dtype(torch.float64)
    try:
        made = {t.dtype for t in MADE[kind]()}
        assert torch.get_default_dtype() is torch.float64
        assert {torch.ones(2, dtype=torch.float32).mul(2.0).dtype, INTS.float().dtype} == {torch.float32}
        assert str(torch.tensor([1.5])) == "tensor([1.5000])"
    finally:
        torch.set_default_tensor_type("torch.FloatTensor")
    assert (before - {torch.int64}, made - {torch.int64}) == ({torch.float32}, {torch.float64})


def test_only_floats_are_the_default() -> None:
    with pytest.raises(DTypeError, match=r"the default dtype is one of floats, not int64, .*; use float32 or float64"):
        torch.set_default_dtype(torch.int64)
    with pytest.raises(OptionError, match="there is no device 'cuda'"):
        torch.set_default_tensor_type("torch.cuda.FloatTensor")


def test_a_shape_counts_its_elements() -> None:
    x = torch.ones(2, 3)
    assert isinstance(x.shape, torch.Size)
    assert (x.shape, x.shape.numel(), x.size().numel(), torch.Size([4, 5]).numel()) == ((2, 3), 6, 6, 20)
    assert (x.shape[1:].numel(), x.shape[0], x.shape[-1:]) == (3, 2, (3,))
    assert tree.leaves([x.shape]) == [2, 3]
    assert static.jit(lambda x, shape: x.reshape(shape))(x, x.shape).shape == (2, 3)


def test_there_is_no_accelerator() -> None:
    found = torch.accelerator
    assert (found.is_available(), found.current_accelerator(), found.device_count()) == (False, None, 0)
    with pytest.raises(GraphError, match=r"ask accelerator.is_available\(\) first"):
        found.synchronize()
