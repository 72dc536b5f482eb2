"""Small programs in the style of autograd's examples, for `import graphs as np`; each leaves its `losses` behind."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.py") if path.stem != "__init__")
OF_AUTOGRAD = {
    r"import graphs as np": "import autograd.numpy as np",
    r"from dynamic import": "from autograd import",
    r"\bgraphs\.(special|stats|integrate|linalg)\b": r"autograd.scipy.\1",
    r"autograd\.scipy\.linalg": "autograd.numpy.linalg",
}


def source(name, engine):
    """The text of a program, its gradients from an engine, or all its imports from autograd."""
    text = (HERE / f"{name}.py").read_text(encoding="utf-8")
    if engine == "autograd":
        for ours, theirs in OF_AUTOGRAD.items():
            text = re.sub(ours, theirs, text)
        return f"from autograd.builtins import tuple\n{text}"  # Python's own is opaque to autograd
    return text.replace("from dynamic import", f"from {engine} import")


def losses(name, engine="dynamic"):
    """What a program leaves behind when it runs."""
    space = {"__name__": name}
    exec(compile(source(name, engine), f"{name}.py", "exec"), space)
    return np.array(space["losses"], np.float64)
