"""Nothing that is saved destroys what was saved before: every writer of the product is the one of `graphs/files.py`."""

import ast
import errno
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import dynamic
from graphs.errors import ArtifactError
from graphs.files import replacement, write_file
from static.native import target as machines
from tests.helpers.together import together
from tests.helpers.writers import WRITERS, attempts, full_after

ROOT = Path(__file__).parents[2]
PACKAGES = ("graphs", "static", "dynamic", "compare")
IN_PARTS = {
    "compare/records/results.py": "adds a line to a journal, and takes it back where the disk is full",
    "compare/records/journal.py": "a lock is held through an open file",
    "compare/subjects/exchange.py": "a folder of this command's own",
    "compare/engines/library.py": "a folder of this command's own",
    "compare/instruments/memory.py": "a switch of the kernel's",
    "graphs/files.py": "the one writer, and a zip in memory",
    "dynamic/pytorch/saving.py": "a zip in the file that the one writer gives, or that the user has opened",
    "graphs/drawing/drawing.py": "a picture in memory",
    "compare/report/figures/style.py": "a picture in memory",
    "compare/steps.py": "an answer into a pipe",
}
"""The files that write by other means, and why they may."""
WRITING = {
    "write_text", "write_bytes", "touch", "savefig", "savez", "savez_compressed", "savetxt", "tofile", "dump",
    "NamedTemporaryFile", "mkstemp", "copyfile", "copytree", "rename", "symlink", "ZipFile", "truncate", "ftruncate",
}  # fmt: skip


def writes(path: Path) -> Iterator[str]:
    """The calls in a file by which it may write a file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        modes = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        modes += [k.value.value for k in node.keywords if k.arg == "mode" and isinstance(k.value, ast.Constant)]
        is_open = name in ("open", "fdopen") and any(set(m) <= set("rwaxbt+") and set(m) & set("wax+") for m in modes)
        descriptor = name in ("open", "write") and getattr(getattr(node.func, "value", None), "id", "") == "os"
        if name in WRITING or is_open or descriptor:
            yield f"{path.relative_to(ROOT)}:{node.lineno} calls {name}"


def test_what_writes_a_file_uses_the_one_writer_or_says_why_not():
    found = {
        str(path.relative_to(ROOT)): list(writes(path))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    others = [line for file, lines in found.items() for line in lines if file not in IN_PARTS]
    assert not others, "write by graphs.files.write_file, and add the writer to tests/helpers/writers.py"
    assert [file for file in IN_PARTS if not found.get(file)] == []


@together("writer", WRITERS, ids=lambda writer: writer.file)
def test_a_full_disk_leaves_the_earlier_file_and_nothing_beside_it(tmp_path, monkeypatch, writer):
    monkeypatch.setenv(machines.CACHE_SWITCH, "off")
    said = []

    def attempt(path, size):
        try:
            with full_after(size):
                writer.save(path, 2)
        except Exception as error:  # noqa: BLE001  (OSError, or CompareError: what the user sees)
            said.append(str(error))

    assert attempts(tmp_path, writer, attempt) == []
    assert len(said) == (0 if writer.file == "kernel" else 4)  # a cache is not missed
    assert [text for text in said if f"/{writer.file}" not in text or os.strerror(errno.EFBIG) not in text] == []


@pytest.mark.slow
def test_a_process_that_is_killed_at_a_byte_leaves_the_earlier_file(tmp_path):
    command = [sys.executable, "-W", "ignore", "-m", "tests.helpers.writers", str(tmp_path)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


class Unsaved:
    """What no format has a place for, and pickle neither."""

    def __reduce__(self):
        raise TypeError("not to be pickled")


VALUES = {
    "an object": Unsaved(),
    "in a list": [1, {"a": Unsaved()}],
    "an array of objects": np.array([Unsaved()], object),
    "an array of text": np.array(["a"]),
    "a structured array": np.zeros(2, [("a", "f4")]),
    "complex numbers": np.ones(2, complex),
    "times": np.zeros(2, "datetime64[s]"),
    "a float of 80 bits": np.ones(2, np.longdouble),
    "a mask": np.ma.masked_array([1.0, 2.0], [True, False]),
    "an int that Python writes not": 10**5000,
}


@together("name", VALUES)
def test_a_value_that_cannot_be_saved_leaves_the_earlier_file(tmp_path, name):
    path = tmp_path / f"{name}.pt"
    dynamic.save({"w": dynamic.tensor([1.0])}, path)
    for folder in (tmp_path, os.fsencode(tmp_path), str(tmp_path)):
        place = os.path.join(folder, os.fsencode(path.name) if isinstance(folder, bytes) else path.name)  # noqa: PTH118
        with pytest.raises(ArtifactError, match="save: "):
            dynamic.save({"w": dynamic.tensor([2.0]), "x": VALUES[name]}, place)
    assert dynamic.load(path)["w"].tolist() == [1.0]
    opened = io.BytesIO(b"earlier")
    with pytest.raises(ArtifactError, match="save: "):
        dynamic.save([np.ones(3), VALUES[name]], opened)
    assert opened.getvalue() == b"earlier"


def test_a_save_takes_what_is_there_as_a_user_left_it(tmp_path):
    secret, link = tmp_path / "secret", tmp_path / "link"
    secret.write_bytes(b"1")
    secret.chmod(0o640)
    link.symlink_to(secret)
    for name in (f".secret.{os.getpid()}", f".link.{os.getpid()}"):  # what an earlier release wrote to
        (tmp_path / name).symlink_to(tmp_path / "victim")
    write_file(link, b"2")
    assert (secret.read_bytes(), secret.stat().st_mode & 0o777, link.is_symlink()) == (b"2", 0o640, True)
    assert not (tmp_path / "victim").exists()
    assert write_file(tmp_path / "new" / ("n" * 255), b"3").read_bytes() == b"3"
    umask = os.umask(0o027)
    try:
        assert write_file(tmp_path / "masked", b"").stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(umask)


def test_a_block_that_is_interrupted_leaves_the_earlier_file(tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    for error in (KeyboardInterrupt, SystemExit, ValueError):
        with pytest.raises(error), replacement(tmp_path / "a") as file:
            raise error(file.write(b"2"))
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"1")]


UNWRITABLE = {
    "a folder": lambda folder: folder,
    "a file for a folder": lambda folder: folder / "file" / "a",
    "a name that is too long": lambda folder: folder / ("n" * 256),
    "no name of a file": lambda folder: folder / "a\0b",
    "a link that leads to itself": lambda folder: folder / "loop",
    "a protected file": lambda folder: folder / "protected",
    "a protected folder": lambda folder: folder / "closed" / "a",
}


@together("name", UNWRITABLE)
def test_what_cannot_be_written_is_named(tmp_path, name):
    folder = tmp_path / name.replace(" ", "_")
    (folder / "closed").mkdir(parents=True)
    (folder / "file").write_bytes(b"1")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "protected").write_bytes(b"1")
    (folder / "protected").chmod(0o400)
    (folder / "closed").chmod(0o500)
    if "protected" in name and os.getuid() == 0:
        return  # root may write everywhere
    path = UNWRITABLE[name](folder)
    with pytest.raises((OSError, ValueError)) as caught:
        write_file(path, b"2")
    assert isinstance(caught.value, ValueError) or Path(caught.value.filename) in (path, path.parent)
    assert "None" not in str(caught.value)
    assert sorted(path.name for path in folder.iterdir()) == ["closed", "file", "loop", "protected"]
    assert (folder / "file").read_bytes() == (folder / "protected").read_bytes() == b"1"
