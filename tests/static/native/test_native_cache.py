"""Kernels on disk: found again in another process, never taken from where others may write, and never half written."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import graphs as g
import static

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

from static.native import link
from static.native import target as machines
from static.native.target import Target, host

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kernels are kept where owners of files are known")
HERE = Target("here", "")
CODE = """
import numpy as np, static
from static.native import link
made = []
compiled = link.compile_modules
link.compile_modules = lambda *args: made.append(1) or compiled(*args)
x = np.arange(37, dtype='f4')
exe = static.compile(lambda x: x * 3 + 1, x, backend='native')
assert (exe(x) == x * 3 + 1).all()
print(len(made))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    place = tmp_path / "kernels"
    monkeypatch.setenv(machines.CACHE_SWITCH, str(place))
    return place


def compiled_in_a_new_process():
    """How often that compiles; what kernels give is checked there."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_a_second_process_compiles_nothing(folder):
    assert compiled_in_a_new_process() > 0
    assert folder.stat().st_mode & 0o777 == 0o700
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in folder.iterdir())
    assert compiled_in_a_new_process() == 0


@pytest.mark.slow
def test_damaged_files_are_compiled_again(folder):
    first = compiled_in_a_new_process()
    for file in folder.iterdir():
        file.write_bytes(file.read_bytes()[:-3] + b"abc")
    assert compiled_in_a_new_process() == first
    for file in folder.iterdir():
        file.write_bytes(b"")
    assert compiled_in_a_new_process() == first


@pytest.mark.slow
def test_switched_off(folder, monkeypatch):
    monkeypatch.setenv(machines.CACHE_SWITCH, "off")
    assert machines.cache_folder() is None
    assert compiled_in_a_new_process() > 0
    assert not folder.exists()


def test_what_is_kept_comes_back(folder):
    assert machines.load_code("a" * 64) is None
    machines.save_code("a" * 64, b"code")
    assert machines.load_code("a" * 64) == b"code"
    assert [file.name for file in folder.iterdir()] == ["a" * 64]


def test_a_folder_that_others_may_write_to_is_neither_read_nor_written(folder):
    machines.save_code("a" * 64, b"code")
    folder.chmod(0o777)
    assert machines.load_code("a" * 64) is None
    machines.save_code("b" * 64, b"code")
    assert len(list(folder.iterdir())) == 1


def test_a_file_that_others_may_write_to_is_not_read(folder):
    machines.save_code("a" * 64, b"code")
    (folder / ("a" * 64)).chmod(0o666)
    assert machines.load_code("a" * 64) is None


def test_a_link_to_a_folder_is_not_trusted(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    machines.save_code("a" * 64, b"code")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_folder_of_somebody_else_is_not_trusted(folder, monkeypatch):
    machines.save_code("a" * 64, b"code")
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert machines.load_code("a" * 64) is None


def test_a_folder_that_cannot_be_made_is_no_error(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(machines.CACHE_SWITCH, str(tmp_path / "file" / "kernels"))
    machines.save_code("a" * 64, b"code")
    assert machines.load_code("a" * 64) is None


def test_the_key_tells_machines_and_kernels_apart():
    keys = {
        machines.kernel_key(["a"], HERE),
        machines.kernel_key(["b"], HERE),
        machines.kernel_key(["a", "b"], HERE),
        machines.kernel_key(["a"], Target("there", "")),
    }
    assert len(keys) == 4
    assert machines.kernel_key(["a"], HERE) in keys


def test_a_kernel_in_use_is_compiled_once_a_process(monkeypatch):
    monkeypatch.setenv(machines.CACHE_SWITCH, "off")
    link.entry(host())
    made = []
    compiled = link.compile_modules
    monkeypatch.setattr(link, "compile_modules", lambda *args: made.append(1) or compiled(*args))
    x = np.arange(41, dtype="f4")
    kept = [static.compile(lambda x, f=f: x * f - 3, x, backend="native") for f in (1.25, 1.25, 2.5)]
    kept.append(static.compile(lambda x: g.maximum(x * 1.25, 3), x, backend="native"))
    assert len(kept) == 4
    assert len(made) == 2


def test_a_folder_may_be_named_from_home_on(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for said in ("~/kernels", str(tmp_path / "kernels")):
        monkeypatch.setenv(machines.CACHE_SWITCH, said)
        assert machines.cache_folder() == tmp_path / "kernels"
    monkeypatch.setenv(machines.CACHE_SWITCH, "~nobody_of_that_name/kernels")
    assert machines.cache_folder() is None


def test_nothing_is_kept_for_a_user_who_is_at_home_nowhere(monkeypatch):
    for name in (machines.CACHE_SWITCH, "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _: {}["no entry"])
    assert machines.cache_folder() is None
    assert machines.load_code("x") is None
    machines.save_code("x", b"code")


@pytest.fixture
def in_parts(monkeypatch):
    """The number of modules of each compilation, on a machine with three cores that cuts the least kernels too."""
    monkeypatch.setattr(link, "LEAST", 1)
    monkeypatch.setattr(machines, "cores", lambda: 3)
    made = []
    compiled = link.compile_modules

    def compile_modules(target, texts):
        made.append(len(texts))
        return compiled(target, texts)

    monkeypatch.setattr(link, "compile_modules", compile_modules)
    return made


def step(a, b):
    """A product, a row of ops and a sum: on shapes that nothing else here has, their kernels are new."""
    return g.sum(g.exp(g.matmul(a, b) * 0.1) + 1, axis=1)


def agrees(rows):
    a, b = (np.random.default_rng(rows).standard_normal((rows, rows), np.float32) for _ in range(2))
    exe = static.compile(step, a, b, backend="native")
    np.testing.assert_allclose(exe(a, b), np.sum(np.exp(a @ b * np.float32(0.1)) + 1, axis=1), rtol=1e-5)


def test_modules_of_one_compilation_are_kept_together(folder, in_parts, monkeypatch):
    agrees(41)
    assert max(in_parts) > 1
    link._in_use.clear()
    monkeypatch.setattr(link, "compile_modules", None)  # all comes from the disk
    agrees(41)


def test_without_further_threads_one_compiles_all(folder, in_parts, monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    agrees(43)
    assert max(in_parts) > 1


@pytest.mark.parametrize("bad", [0, 1])
def test_the_error_of_a_module_is_raised_whichever_thread_has_it(bad, capsys):
    texts = ["define void @f() { ret void }"] * 2
    one, other = link.compile_modules(host(), texts)
    assert one == other
    texts[bad] = "define void @g() { nothing }"
    with pytest.raises(RuntimeError, match="nothing"):
        link.compile_modules(host(), texts)
    assert not capsys.readouterr().err


def test_code_is_generated_without_the_lock_of_llvmlite():
    from llvmlite.binding import ffi

    assert callable(ffi.lib.LLVMPY_TargetMachineEmitToMemory._cfn)  # else first calls take a core alone, silently
