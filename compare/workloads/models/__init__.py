"""Real models, as the suite `models` measures them: PyTorch as people write it, random weights, nothing downloaded.

Each is a file here with a loss, or a whole training step, and its calls as `inputs` or `batches()`, so that `graphduel
compare NAME.py:loss` takes it as it takes a function of the user's. Its docstring names the source, the licence and
the sizes. What is random is drawn from a seed.

Further ones are of packages, and there where the package is: torchvision's, timm's and transformers', made small. A
configuration says the sizes, and a seed the weights. Each is a row of TABLE, whose `loss` and `batches()` are what a
file of a model has beside it. A package is imported when one of its models is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, Literal

LENGTHS = (48, 31, 64, 48, 17)
"""Those of a stream of sentences."""
CLASSES, WORDS = 10, 512


@dataclass(frozen=True)
class InstalledModel:
    """A model of a package: how it is made of the package, what its loss is, and its calls, which begin with it."""

    title: str
    package: str
    made: Callable[[Any], Any]
    loss: Callable[..., Any]
    calls: Callable[[], Sequence[tuple[Any, ...]]]
    varies: str = ""

    def batches(self) -> list[tuple[Any, ...]]:
        """The model with random weights, in each call."""
        import torch

        torch.manual_seed(0)
        model = self.made(import_module(self.package))
        return [(model, *call) for call in self.calls()]


# What is made of a package -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ConfiguredClass:
    """A class of transformers with its configuration of these sizes."""

    model: str
    config: str
    sizes: dict[str, Any] = field(default_factory=dict)

    def __call__(self, package: Any) -> Any:
        """The model."""
        return getattr(package, self.model)(getattr(package, self.config)(**self.sizes))


def of_torchvision(name: str, package: Any) -> Any:
    """The model of that name, without weights."""
    return package.models.get_model(name, weights=None, num_classes=CLASSES)


def of_timm(name: str, options: dict[str, Any], package: Any) -> Any:
    """The model of that name, without weights."""
    return package.create_model(name, pretrained=False, num_classes=CLASSES, **options)


# Losses, and what they are called with -----------------------------------------------------------------------------


def classified(model: Any, images: Any, labels: Any) -> Any:
    """The cross entropy of a batch of images."""
    import torch

    out = model(images)
    return torch.nn.functional.cross_entropy(getattr(out, "logits", out), labels)


def predicted(model: Any, words: Any) -> Any:
    """How badly a language model predicts the words that it reads."""
    return model(input_ids=words, labels=words).loss


def images(side: int = 64, count: int = 8) -> list[tuple[Any, ...]]:
    """A batch."""
    import torch

    return [(torch.randn(count, 3, side, side), torch.randint(0, CLASSES, (count,)))]


def sentences() -> list[tuple[Any, ...]]:
    """Batches of sentences of several lengths."""
    import torch

    return [(torch.randint(1, WORDS, (4, length)),) for length in LENGTHS]


# The table ---------------------------------------------------------------------------------------------------------

_LAYERS = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 256}
_TEXT = {**_LAYERS, "vocab_size": WORDS, "max_position_embeddings": 128}
_ENDS = {"bos_token_id": 0, "eos_token_id": 0}


def _text(title: str, model: str, config: str, **sizes: Any) -> InstalledModel:
    made = ConfiguredClass(model, config, sizes)
    return InstalledModel(f"{title} (transformers)", "transformers", made, predicted, sentences, "length")


def _vision(name: str, title: str) -> InstalledModel:
    return InstalledModel(f"{title} (torchvision)", "torchvision", partial(of_torchvision, name), classified, images)


def _timm(name: str, title: str, **options: Any) -> InstalledModel:
    return InstalledModel(f"{title} (timm)", "timm", partial(of_timm, name, options), classified, images)


TABLE = SimpleNamespace(
    torchvision_resnet18=_vision("resnet18", "ResNet-18"),
    torchvision_mobilenet_v3=_vision("mobilenet_v3_small", "MobileNetV3, small"),
    torchvision_shufflenet=_vision("shufflenet_v2_x0_5", "ShuffleNetV2"),
    timm_vit_tiny=_timm("vit_tiny_patch16_224", "ViT, tiny", img_size=64),
    timm_convnext_atto=_timm("convnext_atto", "ConvNeXt, atto"),
    timm_mobilevit=_timm("mobilevitv2_050", "MobileViTv2"),
    transformers_bert=_text("BERT", "BertForMaskedLM", "BertConfig", **_TEXT),
    transformers_gpt2=_text(
        "GPT-2", "GPT2LMHeadModel", "GPT2Config",
        vocab_size=WORDS, n_embd=128, n_layer=2, n_head=4, n_positions=128, **_ENDS,
    ),
    transformers_llama=_text("LLaMA", "LlamaForCausalLM", "LlamaConfig", **_TEXT, num_key_value_heads=2),
    transformers_mixtral=_text(
        "Mixtral", "MixtralForCausalLM", "MixtralConfig", **_TEXT, num_key_value_heads=2, num_local_experts=4
    ),
    transformers_t5=_text(
        "T5", "T5ForConditionalGeneration", "T5Config",
        vocab_size=WORDS, d_model=128, d_kv=32, d_ff=256, num_layers=2, num_heads=4, decoder_start_token_id=0,
    ),
    transformers_vit=InstalledModel(
        "ViT (transformers)", "transformers",
        ConfiguredClass(
            "ViTForImageClassification", "ViTConfig",
            {**_LAYERS, "image_size": 32, "patch_size": 4, "num_labels": CLASSES},
        ),
        classified, partial(images, 32),
    ),
)  # fmt: skip
"""Every model by its name."""


# Every model ----------------------------------------------------------------------------------------------------------


SIZE = "model"
"""The one size that each has: an eager step of 5 to 150 ms on one slow core."""
FRAMEWORK = "torch"
"""What they are written for."""
Varies = Literal["", "length", "structure"]
Layers = Literal["", "convolution", "attention", "recurrence"]


@dataclass(frozen=True)
class Model:
    """A model: what people call it, and what differs from call to call.

    That is the size of its inputs, its structure (which ops run, in which order), or nothing. `function` is what a step
    calls: its `loss`, or a training step of its own. `package` is what it is a part of; "" for a file here. `layers`
    are those that take most of a step's time; "" for products and gathers.
    """

    title: str
    varies: Varies = ""
    function: str = "loss"
    package: str = ""
    layers: Layers = ""


MODELS: Mapping[str, Model] = {
    "resnet18": Model("ResNet-18", layers="convolution"),
    "mobilenet_v3": Model("MobileNetV3, small", layers="convolution"),
    "convnext_atto": Model("ConvNeXt, atto", layers="convolution"),
    "vit_tiny": Model("ViT, tiny", layers="attention"),
    "unet": Model("U-Net", "length", layers="convolution"),
    "dcgan": Model("DCGAN", function="step", layers="convolution"),
    "wgan_gp": Model("WGAN with gradient penalty", layers="convolution"),
    "progressive_gan": Model("GAN that grows", "structure", layers="convolution"),
    "vae": Model("VAE", "length", "step"),
    "diffusion": Model("Diffusion model", layers="convolution"),
    "bert_tiny": Model("BERT, tiny", "length", layers="attention"),
    "gpt2": Model("GPT-2 of four layers", layers="attention"),
    "t5_tiny": Model("T5, tiny", "length", layers="attention"),
    "lstm_language": Model("LSTM language model", "length", layers="recurrence"),
    "seq2seq": Model("Seq2seq with attention", "length", layers="recurrence"),
    "packed_sequences": Model("Packed sequences", "length", layers="recurrence"),
    "crf": Model("LSTM-CRF", "length", layers="recurrence"),
    "ctc": Model("Speech by CTC", "length", layers="convolution"),
    "wavenet": Model("WaveNet", layers="convolution"),
    "gcn": Model("GCN", "length"),
    "gat": Model("GAT", "length"),
    "tree_lstm_of_parses": Model("Tree-LSTM", "structure", layers="recurrence"),
    "stochastic_depth": Model("Stochastic depth", "structure", layers="convolution"),
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
    place = f":TABLE.{name}." if model.package else f".{name}:"
    return f"{__name__}{place}{model.function}"


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
