"""How many files a user's function goes through before it is timed: those with a frame that holds it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST = 8
FILE = """
import numpy as np
import graphs as g

def loss(w, x):
    return g.mean(g.tanh(x @ w) ** 2)

w = np.eye(4, dtype="float32")
inputs = [(w, np.ones((n, 4), "float32")) for n in (3, 5)]
"""
PROGRAM = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
import compare, static, dynamic
from compare.own import origin
from compare.own.plan import plans_of
from compare.run.worker import perform

file, live = Path(sys.argv[1]), sys.argv[2] == "live"
loss, home, timed, held = None, {str(ROOT / "compare")!r}, [], {{}}

def note(frame):
    file = frame.f_code.co_filename
    if any(value is not None and value is loss for value in frame.f_locals.values()):
        held.setdefault(file, frame.f_code.co_qualname)

def line(frame, event, _):
    global loss
    if loss is None and origin.PREFIX + "mine" in sys.modules:
        loss = vars(sys.modules[origin.PREFIX + "mine"]).get("loss")
    note(frame)
    return line

def call(frame, *_):
    if not frame.f_code.co_filename.startswith(home) or timed:
        return None
    if frame.f_code.co_name == "call_each":
        timed.append(frame.f_code.co_filename)
        sys.settrace(None)
        return None
    return line(frame, "call", None)

if live:
    module = origin.import_file(file)
    loss = module.loss
    sys.settrace(call)
    compare.compare(loss, module.inputs, processes=0, seconds=0.01)
else:
    (plan,) = plans_of(["graphduel"], f"{{file}}:loss", processes=0, seconds=0.01)
    (job,) = plan.first()
    sys.settrace(call)
    perform(job)
print(*[f"{{Path(path).relative_to(home)}}:{{name}}" for path, name in held.items()], sep="\\n")
assert timed
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["live", "file"])
def test_a_function_goes_through_few_files_before_it_is_timed(way, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(FILE, "utf-8")
    ran = subprocess.run([sys.executable, "-c", PROGRAM, file, way], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert 0 < len(ran.stdout.split()) <= MOST, ran.stdout
