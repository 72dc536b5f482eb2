"""The pieces of a user's file, put together as a user would write it."""

from __future__ import annotations

from collections.abc import Mapping

from tests.situations.parts import arrays, modules, tensors
from tests.situations.parts.source import shifted

MAKERS = {
    "torch": modules.source,
    "stand-in": modules.source,
    "graphduel": arrays.source,
    "jax": arrays.source,
    "autograd": arrays.source,
    "tensorflow": tensors.source,
}
NAMES = {"loss": "loss", "step": "step", "inference": "infer"}
PACKAGE = "situation"
IN_PACKAGES = ("package", "installed")


def files_of(values: Mapping[str, str]) -> dict[str, str]:
    """The user's files by their paths."""
    source, name, where = MAKERS[values["framework"]](values), NAMES[values["asked"]], values["where"]
    owned = ", ".join(source.closed)
    if where == "method":
        method = f"{source.decorator}def {name}(self, {source.arguments}):\n{shifted(source.body, 1)}"
        function = f"class Trainer:\n{shifted(method, 1)}\n\ntrainer = Trainer()\n"
    else:
        function = f"{source.decorator}def {name}({source.arguments}):\n{shifted(source.body, 1)}"
    if where == "closure":
        function = f"def made({owned}):\n{shifted(function, 1)}\n    return {name}\n\n\n{name} = made({owned})\n"
    script = f"{source.setting}\n\n{function}\n\n{source.batches}"
    if where not in IN_PACKAGES:
        return {"f.py": f"{source.imports}\n\n{source.definitions}\n\n{script}"}
    model = f"{source.imports}\n\n{source.definitions}"
    train = f"{source.imports}\nfrom .model import *\n\n{script}"
    return {f"{PACKAGE}/__init__.py": "", f"{PACKAGE}/model.py": model, f"{PACKAGE}/train.py": train}


def place_of(values: Mapping[str, str]) -> str:
    """How the user names the function."""
    name = NAMES[values["asked"]]
    if values["where"] in IN_PACKAGES:
        return f"{PACKAGE}.train:{name}"
    return f"f.py:trainer.{name}" if values["where"] == "method" else f"f.py:{name}"
