"""A model of modules, in PyTorch or in our dynamic engine, which runs the same file."""

from __future__ import annotations

from collections.abc import Mapping

from tests.situations.parts.source import ARGUMENTS, UNPACKED, Source, returned, shifted

IMPORTS = """\
from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset
"""

STATE = {
    "none": ("", ""),
    "buffer assigned": (
        'self.register_buffer("slots", torch.zeros(16))\n',
        "self.slots = 0.5 * self.slots + h.detach().mean(0).to(self.slots.dtype)\nh = h + self.slots.to(h.dtype)\n",
    ),
    "buffer in place": (
        'self.register_buffer("slots", torch.zeros(16))\n',
        """\
with torch.no_grad():
    self.slots.mul_(0.5).add_(h.detach().mean(0).to(self.slots.dtype))
h = h + self.slots.to(h.dtype)
""",
    ),
    "running statistics": ("self.norm = nn.BatchNorm1d(16)\n", "h = self.norm(h)\n"),
    "counter": (
        'self.register_buffer("count", torch.zeros((), dtype=torch.int64))\n',
        "self.count += 1\nh = h + 0.01 * self.count.to(h.dtype)\n",
    ),
    "EMA": (
        "self.teacher = nn.Linear(8, 16).requires_grad_(False)\n",
        """\
with torch.no_grad():
    for kept, now in zip(self.teacher.parameters(), self.inner.parameters()):
        kept.mul_(0.9).add_(0.1 * now)
h = h + self.teacher(x)
""",
    ),
}
"""For each kind of state what makes it in a block, and what the block does with it."""

MODEL = """\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 16)
{made}
    def forward(self, x):
        h = torch.tanh(self.inner(x))
{used}
        return h


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.head = nn.Linear(16, 4)

    def forward(self, x, y=None):
        return {head}
"""
HEAD = {
    "checkpointed": "self.head(checkpoint(self.block, x, use_reentrant=False))",
    "compile disabled": "aside(self.head, self.block(x))",
}
ASIDE = "@torch.compiler.disable\ndef aside(layer, h):\n    return layer(h)\n\n\n"
BATCH = "\n\n@dataclass\nclass Batch:\n    x: torch.Tensor\n    y: torch.Tensor\n"
OUTPUT = """

class Output(OrderedDict):  # as the outputs of transformers' models: a dict whose items are attributes as well
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None
"""
KINDS = {"float64": "torch.float64", "float16": "torch.float16"}
COMPILED = {
    "compiled already": 'model = torch.compile(model, backend="aot_eager")\n',
    "regionally compiled": 'model.block.compile(backend="aot_eager")\n',
}
SCHEDULE = "schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=6)\n"
EACH = {"dict": '{"x": a, "y": b}', "keywords": '{"x": a, "y": b}', "dataclass": "Batch(a, b)"}


def source(values: Mapping[str, str]) -> Source:
    """The file of a row."""
    made, used = STATE[values["state"]]
    head = HEAD.get(values["form"], "self.head(self.block(x))")
    model = MODEL.format(made=shifted(made, 2), used=shifted(used, 2), head=head)
    first = "prediction" if values["asked"] == "inference" else "loss"
    names = {"model": True, "optimizer": values["asked"] == "step", "schedule": _ends(values)}
    return Source(
        imports=IMPORTS,
        definitions=(ASIDE if values["form"] == "compile disabled" else "")
        + model
        + (BATCH if values["calls"] == "dataclass" else "")
        + (OUTPUT if values["outputs"] == "ModelOutput" else ""),
        setting=_setting(values),
        arguments=ARGUMENTS.get(values["calls"], "batch"),
        body=UNPACKED.get(values["calls"], "") + _body(values) + returned(values["outputs"], first, "prediction"),
        batches=_batches(values),
        closed=tuple(name for name, is_there in names.items() if is_there),
    )


def _ends(values: Mapping[str, str]) -> bool:
    return values["training"] == "schedule that ends"


def _kind(values: Mapping[str, str]) -> str:
    return KINDS.get(values["dtype"], "torch.float32")


def _setting(values: Mapping[str, str]) -> str:
    text = f"torch.manual_seed(0)\nmodel = Model().to({_kind(values)})\n{COMPILED.get(values['form'], '')}"
    if values["asked"] == "inference":
        return f"{text}model.eval()\n"
    if values["asked"] == "step":
        eps = ", eps=1e-4" if values["dtype"] == "float16" else ""  # the usual one is 0 in float16
        text += f"optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2{eps})\n"
    return text + (SCHEDULE if _ends(values) else "")


def _body(values: Mapping[str, str]) -> str:
    is_halved = values["training"] == "accumulation"
    given = "x" if is_halved else "**batch" if values["calls"] == "keywords" else "x"
    predict = f"prediction = model({given})\n"
    if values["dtype"] == "bfloat16 autocast":
        predict = f'with torch.autocast("cpu", torch.bfloat16):\n    {predict}'
    if values["asked"] == "inference":
        return f"with torch.no_grad():\n{shifted(predict, 1)}"
    target = "z" if is_halved else "y"
    value = f"{predict}loss = mse_loss(prediction.to({target}.dtype), {target})\n"
    if values["asked"] == "loss":
        return value
    if is_halved:  # two halves of a batch, and one step
        whole = 'batch["x"]' if values["calls"] == "keywords" else "x"
        halves = f"for x, z in zip({whole}.chunk(2), y.chunk(2)):\n{shifted(f'{value}(loss / 2).backward()', 1)}"
        return f"optimizer.zero_grad()\n{halves}optimizer.step()\n"
    clip = "nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n" if values["training"] == "clipping" else ""
    after = "schedule.step()\n" if _ends(values) else ""
    return f"optimizer.zero_grad()\n{value}loss.backward()\n{clip}optimizer.step()\n{after}"


def _batches(values: Mapping[str, str]) -> str:
    each = EACH.get(values["calls"], "(a, b)")
    calls = f"[{each} for a, b in zip(x.split(4), y.split(4))]"
    if values["calls"] == "DataLoader":
        calls = "DataLoader(TensorDataset(x, y), batch_size=4)"
    kind = _kind(values)
    return (
        "def batches():\n    torch.manual_seed(1)\n"
        f"    x, y = torch.randn(12, 8).to({kind}), torch.randn(12, 4).to({kind})\n"
        f"    return {calls}\n"
    )
