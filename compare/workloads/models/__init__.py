"""Real models, as the suite `models` measures them: PyTorch as people write it, random weights, nothing downloaded.

Each is a file here with a loss, or a whole training step, and its calls as `inputs` or `batches()`, so that `graphduel
compare NAME.py:loss` takes it as it takes a function of the user's. Its docstring names the source, the licence and the
sizes. What is random is drawn from a seed. Further ones are of packages, and there where the package is
(`compare.workloads.models.installed`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from compare.workloads.models.installed import TABLE

SIZE = "model"
"""The one size that each has: an eager step of 5 to 150 ms on one slow core."""
FRAMEWORK = "torch"
"""What they are written for."""
Varies = Literal["", "length", "structure"]


@dataclass(frozen=True)
class Model:
    """A model: what people call it, and what differs from call to call.

    That is the size of its inputs, its structure (which ops run, in which order), or nothing. `function` is what a step
    calls: its `loss`, or a training step of its own. `package` is what it is a part of; "" for a file here.
    """

    title: str
    varies: Varies = ""
    function: str = "loss"
    package: str = ""


MODELS: Mapping[str, Model] = {
    "resnet18": Model("ResNet-18"),
    "mobilenet_v3": Model("MobileNetV3, small"),
    "convnext_atto": Model("ConvNeXt, atto"),
    "vit_tiny": Model("ViT, tiny"),
    "unet": Model("U-Net", "length"),
    "dcgan": Model("DCGAN", function="step"),
    "wgan_gp": Model("WGAN with gradient penalty"),
    "progressive_gan": Model("GAN that grows", "structure"),
    "vae": Model("VAE", "length", "step"),
    "diffusion": Model("Diffusion model"),
    "bert_tiny": Model("BERT, tiny", "length"),
    "gpt2": Model("GPT-2 of four layers"),
    "t5_tiny": Model("T5, tiny", "length"),
    "lstm_language": Model("LSTM language model", "length"),
    "seq2seq": Model("Seq2seq with attention", "length"),
    "packed_sequences": Model("Packed sequences", "length"),
    "crf": Model("LSTM-CRF", "length"),
    "ctc": Model("Speech by CTC", "length"),
    "wavenet": Model("WaveNet"),
    "gcn": Model("GCN", "length"),
    "gat": Model("GAT", "length"),
    "tree_lstm_of_parses": Model("Tree-LSTM", "structure"),
    "stochastic_depth": Model("Stochastic depth", "structure"),
    "supernet": Model("Supernet", "structure"),
    "mixture_of_experts": Model("Mixture of experts", "structure"),
    "dlrm": Model("DLRM", "length"),
    "dqn": Model("DQN", function="step"),
    "maml": Model("MAML"),
    "pinn": Model("PINN"),
    "neural_ode": Model("Neural ODE", "structure"),
    **{name: Model(each.title, each.varies, package=each.package) for name, each in vars(TABLE).items()},
}
"""Every model by its file, then those of packages, in the order in which a run measures them."""


def source(name: str) -> str:
    """Where the function of a model is defined, as `module:attribute`; of a package's, an attribute of a row."""
    model = MODELS[name]
    place = f"installed:TABLE.{name}." if model.package else f"{name}:"
    return f"{__name__}.{place}{model.function}"


def holder_of(source: str) -> tuple[Any, Any]:
    """What holds a model's `batches` or `inputs`, a module or a row of a table; and the function that a step calls."""
    module, _, path = source.partition(":")
    *holders, function = path.split(".")
    holder = reduce(getattr, holders, import_module(module))
    return holder, getattr(holder, function)


def missing(name: str) -> str:
    """The package that a model is a part of, where it is not installed; else ""."""
    package = MODELS[name].package
    return package if package and find_spec(package) is None else ""


def is_model(workload: str | None) -> bool:
    """Whether what was measured is one of these."""
    return workload in MODELS
