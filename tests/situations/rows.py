"""The rows. `__init__.py` says how one is added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.situations import parts
from tests.situations.axes import AXES
from tests.situations.parts import frameworks, states

MODES = {"torch": 2, "stand-in": 2, "graphduel": 2, "jax": 2, "tensorflow": 2, "autograd": 1}
"""How many modes of a framework are timed where all is well."""
WRITTEN = ("compiled already", "regionally compiled")
"""What is timed as it is written as well."""
WHOLE = ("jax", "tensorflow")
"""Where a whole step that the file compiles is the mode that compiles, unless gradients are taken of it."""


@dataclass(frozen=True)
class Right:
    """What is right: exit codes, words that are said, why modes are refused, how many at least are timed, who is the fastest.

    `compiles` are how often a mode compiles.

    A run in one process of a framework has no interval, so that `cannot tell`, exit code 3, is as right as an answer.
    """

    codes: tuple[int, ...] = (0, 3)
    says: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    timed: int = 0
    faster: str = ""
    compiles: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One situation: the user's files, how the function is named, and what is right.

    One that `waits` says for which mend; until it is there the tests leave it out. They leave out what is `dear` too,
    which `python -m tests.situations` runs: CI has ten minutes for all rows.
    """

    name: str
    framework: str
    files: Mapping[str, str]
    place: str
    right: Right
    values: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    waits: str = ""
    dear: bool = False

    @property
    def is_notebook(self) -> bool:
        """Whether it is asked in the process that has the function."""
        return self.values.get("where") == "notebook"

    @property
    def is_installed(self) -> bool:
        """Whether its files are a library among others."""
        return self.values.get("where") == "installed"


def row(*values: str, right: Right | None = None, **more: Any) -> Row:
    """The row of a value of each axis, in the order of AXES; without `right` every mode is timed."""
    named = dict(zip(AXES, values, strict=True))
    unknown = [value for axis, value in named.items() if value not in AXES[axis]]
    assert not unknown, f"no value of its axis: {unknown}"
    is_whole = named["framework"] in WHOLE and named["asked"] != "loss" and named["form"] == "compiled already"
    is_written = named["form"] in WRITTEN and not is_whole
    right = right or Right(timed=MODES[named["framework"]] + is_written)
    files, place = parts.files_of(named), parts.place_of(named)
    return Row("-".join(values).replace(" ", "_"), named["framework"], files, place, right, named, **more)


def special(name: str, framework: str, source: str, place: str, right: Right, **more: Any) -> Row:
    """A row that the axes cannot say: the text of its file f.py, and how the function is named."""
    return Row(name, framework, {"f.py": source}, place, right, **more)


BRANCH = """
import numpy as np
import graphs as g

def loss(x):
    return g.sum(x) if g.sum(x) > 0 else g.sum(x * x)

inputs = [(np.array([1.0, 2.0]),), (np.array([-1.0, 2.0]),)]
"""


def _of_state(name: str, text: str, function: str) -> Row:
    """A row of state that a call leaves: it is right that all modes are timed and agree."""
    is_own = name == "an optimizer of the user's own"
    options = states.BOTH if name in states.BESIDE else states.GRAPHS if is_own else ()
    right = Right(timed=4 if is_own else 2)
    return special(f"torch-{name.replace(' ', '_')}", "torch", text, f"f.py:{function}", right, options=options)


# PyTorch 2.13 divides by the counter of the next call in backward, once a graph is captured: its gradients are wrong.
COUNTER = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 1)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
    def forward(self, x):
        self.count += 1
        return self.layer(x) / (1 + self.count).to(x.dtype)

torch.manual_seed(0)
model = Model()

def loss(x):
    return model(x).pow(2).mean()

def batches():
    torch.manual_seed(1)
    return [(torch.randn(4, 8),) for _ in range(3)]
"""
WRONG = Right(codes=(4,), refused={"aot-eager": "disagree"}, timed=1)


# A busy machine gives no ratio on two threads, so that no times are asked for.
THREADED = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
inputs = [(torch.randn(8, 16),)]

def step(x):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
"""
ON_TWO = (
    "This holds for 2 threads on the CPU, float32, PyTorch",
    "each mode had processes of its own",
    "a training step",
)
ON_EACH = ("With 1 thread: ", "With 2 threads: ", "This holds for 1 and 2 threads on the CPU")


# Second moments of AdamW in pure float16 are 0.001 of a square, and become 0: by hand a weight moves by 0.5 in a call where
# the learning rate of 0.01 bounds it, eager too. Nothing can be compared, and each mode is timed with the warning first.
def _underflow(*modes: str) -> Right:
    says = ("Eager disagrees: the parameter", "ill-conditioned", "No mode was measured that agrees.")
    return Right(codes=(4,), says=says, refused=dict.fromkeys(modes, "disagree"))


# fmt: off
ROWS = [
    special("torch-counter-that-is-divided-by", "torch", COUNTER, "f.py:loss", WRONG),
    *(_of_state(*file) for file in states.files()),
    *(special(name, framework, text, "f.py:step", Right(**right)) for name, framework, text, right in frameworks.files()),
    special("torch-a_generator", "torch", states.HEAD + states.BATCHES + states.GENERATOR, "f.py:loss", Right(codes=(1,), says=("the global `rates` (f.py:", "which nothing brings back"), timed=0)),
    special("graphduel-branch-on-a-value", "graphduel", BRANCH, "f.py:loss", Right(says=("static with convert=True",), timed=2)),
    special("torch-two-threads", "torch", THREADED, "f.py:step", Right(says=ON_TWO), options=("--modes", "eager,aot-eager", "--processes", "3", "--threads", "2")),
    special("graphduel-one-thread-and-two", "graphduel", BRANCH, "f.py:loss", Right(says=ON_EACH), options=("--processes", "3", "--threads", "1,2")),
    row("loss", "torch", "float32", "counter", "none", "dataclass", "tuple", "compile disabled", "file"),
    row("loss", "torch", "bfloat16 autocast", "none", "none", "list", "number", "plain", "file"),
    row("step", "torch", "bfloat16 autocast", "none", "AdamW", "list", "number", "plain", "file"),
    row("loss", "torch", "bfloat16 autocast", "running statistics", "none", "list", "ModelOutput", "compiled already", "installed"),
    row("loss", "torch", "float16", "buffer assigned", "none", "DataLoader", "number", "checkpointed", "notebook"),
    row("step", "torch", "float32", "buffer assigned", "clipping", "list", "None", "plain", "notebook"),
    row("step", "torch", "float32", "buffer assigned", "AdamW", "list", "tuple", "compiled already", "installed"),
    row("step", "torch", "float32", "buffer assigned", "accumulation", "DataLoader", "ModelOutput", "compiled already", "file"),
    row("step", "torch", "float32", "buffer in place", "schedule that ends", "DataLoader", "ModelOutput", "compiled already", "file"),
    row("step", "torch", "float64", "buffer assigned", "schedule that ends", "dict", "tuple", "regionally compiled", "closure"),
    row("step", "torch", "float64", "buffer in place", "schedule that ends", "dict", "number", "compile disabled", "closure"),
    row("step", "torch", "float64", "running statistics", "clipping", "dict", "None", "compiled already", "file"),
    row("step", "torch", "bfloat16 autocast", "none", "clipping", "DataLoader", "None", "compile disabled", "package"),
    row("step", "torch", "bfloat16 autocast", "buffer assigned", "schedule that ends", "dataclass", "dict", "compile disabled", "package"),
    row("step", "torch", "bfloat16 autocast", "buffer assigned", "clipping", "keywords", "number", "compile disabled", "method"),
    row("step", "torch", "bfloat16 autocast", "buffer in place", "accumulation", "list", "tuple", "compile disabled", "installed"),
    row("step", "torch", "bfloat16 autocast", "running statistics", "schedule that ends", "keywords", "number", "compile disabled", "installed"),
    row("step", "torch", "bfloat16 autocast", "counter", "schedule that ends", "DataLoader", "tuple", "plain", "notebook"),
    row("step", "torch", "bfloat16 autocast", "EMA", "clipping", "dict", "ModelOutput", "regionally compiled", "method"),
    row("step", "torch", "float16", "none", "schedule that ends", "keywords", "None", "compiled already", "closure"),
    row("step", "torch", "float16", "none", "clipping", "dataclass", "dict", "regionally compiled", "package"),
    row("step", "torch", "float16", "buffer in place", "clipping", "DataLoader", "ModelOutput", "regionally compiled", "installed"),
    row("step", "torch", "float16", "running statistics", "AdamW", "dict", "None", "regionally compiled", "notebook"),
    row("step", "torch", "float16", "counter", "accumulation", "keywords", "None", "compiled already", "package", right=_underflow("eager", "aot-eager", "as-written")),
    row("step", "torch", "float16", "EMA", "AdamW", "DataLoader", "dict", "compile disabled", "file", right=_underflow("eager", "aot-eager")),
    row("inference", "torch", "float64", "buffer in place", "none", "dict", "ModelOutput", "compile disabled", "notebook"),
    row("inference", "torch", "float64", "counter", "none", "DataLoader", "dict", "compiled already", "method"),
    row("inference", "torch", "float64", "counter", "none", "DataLoader", "dict", "compiled already", "closure"),
    row("loss", "stand-in", "float32", "buffer in place", "none", "keywords", "dict", "plain", "package"),
    row("step", "stand-in", "float32", "none", "AdamW", "dataclass", "ModelOutput", "plain", "closure"),
    row("step", "stand-in", "float32", "running statistics", "accumulation", "DataLoader", "dict", "checkpointed", "file"),
    row("step", "stand-in", "float32", "EMA", "schedule that ends", "list", "None", "plain", "installed"),
    row("step", "stand-in", "float64", "buffer in place", "AdamW", "dataclass", "None", "checkpointed", "method"),
    row("step", "stand-in", "float64", "counter", "clipping", "list", "number", "checkpointed", "package"),
    row("step", "stand-in", "float64", "counter", "accumulation", "dict", "number", "plain", "method"),
    row("step", "stand-in", "float64", "EMA", "accumulation", "DataLoader", "tuple", "checkpointed", "closure"),
    row("inference", "stand-in", "float32", "buffer assigned", "none", "dataclass", "ModelOutput", "checkpointed", "installed"),
    row("loss", "graphduel", "float64", "none", "none", "list", "dict", "plain", "file"),
    row("loss", "graphduel", "float64", "none", "none", "keywords", "dict", "plain", "installed"),
    row("loss", "graphduel", "float64", "none", "none", "dict", "tuple", "plain", "notebook"),
    row("loss", "graphduel", "float64", "none", "none", "list", "number", "plain", "package"),
    row("inference", "graphduel", "float32", "none", "none", "list", "number", "plain", "closure"),
    row("inference", "graphduel", "float32", "none", "none", "dict", "tuple", "plain", "method"),
    row("loss", "jax", "float64", "EMA", "none", "dataclass", "number", "compiled already", "notebook"),
    row("loss", "jax", "bfloat16 autocast", "running statistics", "none", "dict", "dict", "checkpointed", "closure"),
    row("loss", "jax", "float16", "counter", "none", "list", "ModelOutput", "regionally compiled", "method", dear=True),
    row("step", "jax", "float32", "running statistics", "accumulation", "dataclass", "ModelOutput", "regionally compiled", "notebook", dear=True),
    row("step", "jax", "float32", "counter", "AdamW", "dict", "number", "regionally compiled", "installed", dear=True),
    row("step", "jax", "bfloat16 autocast", "EMA", "AdamW", "keywords", "ModelOutput", "compiled already", "package", dear=True),
    row("step", "jax", "float16", "none", "accumulation", "keywords", "dict", "checkpointed", "notebook", dear=True),
    row("step", "jax", "float16", "running statistics", "schedule that ends", "keywords", "ModelOutput", "checkpointed", "method"),
    row("step", "jax", "float16", "EMA", "clipping", "dataclass", "tuple", "regionally compiled", "closure", dear=True),
    row("inference", "jax", "bfloat16 autocast", "EMA", "none", "keywords", "number", "regionally compiled", "file"),
    row("inference", "jax", "float16", "running statistics", "none", "dict", "tuple", "plain", "package"),
    row("loss", "tensorflow", "float64", "counter", "none", "dict", "number", "plain", "notebook"),
    row("step", "tensorflow", "float32", "none", "AdamW", "list", "tuple", "compiled already", "file"),
    row("step", "tensorflow", "float16", "running statistics", "schedule that ends", "list", "tuple", "regionally compiled", "method", dear=True),
    row("step", "tensorflow", "float16", "EMA", "clipping", "keywords", "None", "regionally compiled", "closure", dear=True),
    row("step", "tensorflow", "bfloat16 autocast", "none", "accumulation", "keywords", "ModelOutput", "regionally compiled", "installed"),
    row("inference", "tensorflow", "bfloat16 autocast", "running statistics", "none", "DataLoader", "dict", "regionally compiled", "package"),
    row("loss", "autograd", "float32", "none", "none", "dict", "number", "plain", "method"),
    row("loss", "autograd", "float32", "none", "none", "list", "tuple", "plain", "file"),
    row("loss", "autograd", "float32", "none", "none", "list", "tuple", "plain", "package"),
    row("loss", "autograd", "float64", "none", "none", "list", "dict", "plain", "closure"),
    row("inference", "autograd", "float64", "none", "none", "keywords", "tuple", "plain", "installed"),
    row("inference", "autograd", "float64", "none", "none", "list", "number", "plain", "notebook"),
]
# fmt: on
