"""How many files a user's function goes through before it is timed: those with a frame that holds it."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from compare import engines

ROOT = Path(__file__).parents[2]
MOST = 8
FILE = """
{imports}

def loss(w, x):
    return {loss}

w = {array}([[1.0, 0.5], [0.25, 1.0]]{more})
inputs = [(w, {array}([[1.0, 2.0]] * n{more})) for n in (3, 5)]
"""
NUMPY = ("np.array", ', dtype="float32"')
WRITTEN = {
    "graphduel": ("import numpy as np, graphs as g", "g.mean(g.tanh(x @ w) ** 2)", *NUMPY),
    "autograd": ("import numpy as np, autograd.numpy as ap", "ap.mean(ap.tanh(x @ w) ** 2)", *NUMPY),
    "jax": ("import jax.numpy as jnp", "jnp.mean(jnp.tanh(x @ w) ** 2)", "jnp.array", ""),
    "tensorflow": ("import tensorflow as tf", "tf.reduce_mean(tf.tanh(x @ w) ** 2)", "tf.constant", ""),
    "torch": ("import torch", "torch.mean(torch.tanh(x @ w) ** 2)", "torch.tensor", ", requires_grad=True"),
}
PROGRAM = f"""
import sys
from os import _exit as leave  # in its own name, since compare replaces the one in os
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
import compare, static, dynamic
from compare.subjects import origin
from compare.plans.comparison import plans_of
from compare.run.worker import perform

file, way, engine = Path(sys.argv[1]), *sys.argv[2:]
loss, home, held = None, {str(ROOT / "compare")!r}, {{}}

def note(frame):
    if any(value is not None and value is loss for value in frame.f_locals.values()):
        held.setdefault(frame.f_code.co_filename, frame.f_code.co_qualname)

def line(frame, event, _):
    global loss
    if loss is None and origin.PREFIX + "mine" in sys.modules:
        loss = vars(sys.modules[origin.PREFIX + "mine"]).get("loss")
    note(frame)
    return line

def call(frame, *_):
    if not frame.f_code.co_filename.startswith(home):
        return None
    if frame.f_code.co_name == "call_each":
        names = [f"{{Path(path).relative_to(home)}}:{{name}}" for path, name in held.items()]
        sys.__stdout__.write(" ".join(names))
        sys.__stdout__.flush()
        leave(0)
    return line(frame, "call", None)

if way == "live":
    module = origin.import_file(file)
    loss = module.loss
    sys.settrace(call)
    compare.compare(loss, module.inputs, framework=engine, processes=0, seconds=0.01)
else:
    (plan,) = plans_of([engine], f"{{file}}:loss", processes=0, seconds=0.01)
    job, *_ = plan.first()
    sys.settrace(call)
    perform(job)
sys.exit("nothing was timed")
"""


ENGINES = [
    pytest.param(engine, id=engine, marks=[] if engine == "graphduel" else [pytest.mark.peers]) for engine in WRITTEN
]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["live", "file"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_function_goes_through_few_files_before_it_is_timed(engine, way, tmp_path):
    if find_spec(engines.find_engine(engine).module) is None:
        pytest.skip(f"{engine} is not installed")
    file, words = tmp_path / "mine.py", dict(zip(("imports", "loss", "array", "more"), WRITTEN[engine], strict=True))
    file.write_text(FILE.format(**words), "utf-8")
    command = [sys.executable, "-c", PROGRAM, file, way, engine]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert 0 < len(ran.stdout.split()) <= MOST, ran.stdout
