"""What an import costs a fresh process: the interpreter alone, with NumPy, and with each package."""

import subprocess
import sys

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

STATEMENTS = {
    "interpreter": "pass",
    "numpy": "import numpy",
    "numpy and optree": "import numpy, optree",
    "graphs": "import graphs",
    "static": "import static",
    "dynamic": "import dynamic",
    "compare": "import compare",
}


@pytest.mark.parametrize("label", STATEMENTS)
def test_import(benchmark: BenchmarkFixture, label: str) -> None:
    benchmark.group = "import in a fresh process"
    command = [sys.executable, "-c", STATEMENTS[label]]
    benchmark.pedantic(subprocess.run, (command,), {"check": True}, rounds=10, warmup_rounds=1)
