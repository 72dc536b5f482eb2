"""What the preloaded library counts: how far the bytes from malloc rise in a call, seen in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from compare.engines import process

MIB = 1 << 20
CALLS = {
    "what a call drops and takes again": ("held[:] = [block()]", 1),
    "what it takes while it holds the old": ("new = [block()]; held[:] = new", 1),
    "two at once": ("first, second = block(), block()", 2),
    "two, one after the other": ("block(); block()", 1),
    "what it drops at its end is no rise": ("held.clear()", 0),
    "gradients that are dropped first": ("held.clear(); held.append(block()); other = block()", 2),
    "a block that grows": ("grown = bytearray(1); grown.extend(bytes(1)); grown *= 1048576", 1),
}
CODE = """
import sys
from compare.engines import process
def block():
    return bytearray({size})
held = [block()]
def call():
    {call}
print(process.peak(call))
"""


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    variables = process.heap_environment(tmp_path_factory.mktemp("heap"))
    if not variables:
        pytest.skip("the library is for glibc, and a C compiler builds it")
    return variables


def rise(call: str, variables: dict[str, str]) -> str:
    root = str(Path(__file__).resolve().parents[2])
    code = CODE.format(size=2 * MIB, call=call)
    environment = {**os.environ, "PYTHONPATH": root, **variables}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(("call", "blocks"), CALLS.values(), ids=CALLS)
def test_a_call_is_counted_from_the_least_before(call: str, blocks: int, counting: dict[str, str]) -> None:
    assert abs(int(rise(call, counting)) - blocks * 2 * MIB) < 64 * 1024


def test_a_process_without_the_library_counts_nothing() -> None:
    assert rise("block()", {"LD_PRELOAD": ""}) == "None"
