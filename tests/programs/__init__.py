"""Small programs in PyTorch's style, which run with `import dynamic as torch`; each leaves its `losses` behind."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.py") if path.stem != "__init__")


def start(model, seed=0):
    """Give every parameter of a module of either engine the same numbers, by its name, and return the module."""
    rng = np.random.default_rng(seed)
    for _, param in sorted(model.named_parameters()):
        values = param.detach().numpy()  # shares memory with the parameter
        values[...] = rng.uniform(-1, 1, values.shape) / np.sqrt(values.shape[-1] if values.ndim else 1)
    return model


def source(name, package="dynamic"):
    """The text of a program, its imports from another package."""
    text = (HERE / f"{name}.py").read_text(encoding="utf-8")
    plain = f"import {package} as torch" if package != "torch" else "import torch"
    text = text.replace("import dynamic as torch", plain)
    return re.sub(r"^(import|from) dynamic(?=[. ])", rf"\1 {package}", text, flags=re.MULTILINE)


def losses(name, package="dynamic"):
    """What a program leaves behind when it runs."""
    space = {"__name__": name}
    exec(compile(source(name, package), f"{name}.py", "exec"), space)
    return np.array(space["losses"], np.float64)
