"""Files: written atomically, and zips read within bounds.

A save that fails at any byte (a full disk, a value that cannot be written, a killed process) leaves the earlier file as
it was. The journal of a run is appended to in parts and has its own function: `append` in
`compare/records/results.py`.

Then the zip files that the engines save. The inflated size is checked before anything is inflated.

graph.json     the document of a graph; for tensors in containers the document is tree.json
arrays/N.npy   the data of constants or tensors
digest.txt     the SHA-256 of all members above; only saved graphs have it
"""

from __future__ import annotations

import errno
import hashlib
import io
import math
import os
import re
import secrets
import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from graphs.errors import ArtifactError, GraphError


def write_file(path: str | Path, content: bytes, mode: int | None = None) -> Path:
    """Write `content` to a file atomically, as `replacement` does. Returns its path."""
    with replacement(path, mode) as file:
        file.write(content)
    return Path(path)


@contextmanager
def replacement(path: str | Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Open a file that replaces the one at `path` when the block ends without an error.

    Missing folders are made. The file has the permissions `mode`, by default those of the earlier file. A symbolic link
    stays a link, and the file it points to is replaced. A pipe or a device is written into, because it must not be
    replaced. Raises OSError, which names `path`.
    """
    place = Path(os.path.realpath(path))
    beside = place.with_name(f".graphduel-{secrets.token_hex(8)}")  # nobody can guess it; a long name has room for it
    try:
        if place.exists() and not place.is_file():
            with place.open("wb") as file:
                yield file
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        earlier = _permissions(place)
        try:
            with open(beside, "xb", opener=partial(os.open, mode=mode or 0o666)) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())  # some disks are known to be full only now
            if earlier is not None and mode is None:
                beside.chmod(earlier)
            beside.replace(place)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise
    except OSError as error:
        if error.filename in (None, str(beside), str(place)):
            error.filename = str(path)
            del error.filename2  # None would be shown
        raise


def _permissions(place: Path) -> int | None:
    """The permissions of a file; None where there is none. Raises PermissionError for a write-protected file."""
    try:
        mode = stat.S_IMODE(place.stat().st_mode)
    except FileNotFoundError:
        return None
    if not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
    return mode


# Zips -----------------------------------------------------------------------------------------------------------------

RATIO = 100  # bytes inflated for each byte of the file, beyond
FREE = 1 << 24  # bytes that any file may have
_MEMBER = re.compile(r"(graph|tree)\.json|digest\.txt|arrays/(0|[1-9]\d{0,8})\.npy", re.ASCII)
_KINDS = "biuf"

# The exceptions that reading and decoding raise on a file that no release has written.
DAMAGE = (
    ArithmeticError, AssertionError, AttributeError, BufferError, EOFError, GraphError, LookupError, MemoryError,
    OSError, RuntimeError, StopIteration, SyntaxError, TypeError, ValueError, struct.error, tokenize.TokenError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def write(path: Path, document: bytes, arrays: Sequence[np.ndarray[Any, Any]]) -> None:
    """Write the zip, compressed unless `read` would refuse the compression ratio."""
    files = {"graph.json": document} | {f"arrays/{i}.npy": npy(array) for i, array in enumerate(arrays)}
    files["digest.txt"] = digest(files).encode()
    data = _zip(files, zipfile.ZIP_DEFLATED)
    if sum(map(len, files.values())) > most(len(data)):
        data = _zip(files, zipfile.ZIP_STORED)
    write_file(path, data)


def _zip(files: Mapping[str, bytes], compression: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def is_storable(dtype: np.dtype[Any]) -> bool:
    """Whether `read` accepts arrays of a dtype: bools, ints and floats of up to 64 bits, the same on every machine."""
    return dtype.kind in _KINDS and dtype.itemsize <= 8


def npy(array: np.ndarray[Any, Any]) -> bytes:
    """An array as a `.npy` file."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def read(path: Path) -> dict[str, bytes]:
    """Read all members but the digest, which is checked. Raises ArtifactError, and OSError for an unreadable file."""
    with path.open("rb") as file:
        try:
            files = members(file)
        except ArtifactError as error:
            raise ArtifactError(f"{path.name}: {error}") from None
        except DAMAGE as error:
            raise ArtifactError(f"{path.name}: not a graph saved by graphduel, or cut off ({error})") from error
    if files.pop("digest.txt", b"").decode(errors="replace") != digest(files):
        raise ArtifactError(f"{path.name}: altered or damaged, its digest does not match; save it again")
    return files


def digest(files: Mapping[str, bytes]) -> str:
    """The SHA-256 over the names, sizes and contents of all members."""
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(f"{name}:{len(files[name])}:".encode())
        total.update(files[name])
    return total.hexdigest()


def members(file: IO[bytes]) -> dict[str, bytes]:
    """Inflate all members of a zip. Raises ArtifactError for members we never save, and exceptions in `DAMAGE`."""
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        _check(entries, size)
        return {member.filename: _inflate(archive, member) for member in entries}


def _check(members: Sequence[zipfile.ZipInfo], size: int) -> None:
    """Raise ArtifactError for members we never save, and when the members inflate to more than `most(size)` bytes."""
    names = [member.filename for member in members]
    strange = [name for name in names if not _MEMBER.fullmatch(name)]
    if strange or len(set(names)) < len(names):
        raise ArtifactError(f"not saved by graphduel, it holds {(strange or ['a member twice'])[0]!r}")
    if any(m.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or m.flag_bits & 1 for m in members):
        raise ArtifactError("not saved by graphduel, it is compressed in another way")
    inflated = sum(member.file_size for member in members)
    if inflated > most(size):
        raise ArtifactError(f"{size:,} bytes would inflate to {inflated:,}; what is saved inflates to less")


def most(size: int) -> int:
    """The most bytes that a file of `size` bytes may inflate to; no saved file inflates to more."""
    return FREE + RATIO * size


def _inflate(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    with archive.open(member) as opened:
        data = opened.read(member.file_size + 1)  # never more than was declared, whatever is in there
    if len(data) != member.file_size:
        raise ArtifactError(f"damaged, {member.filename} is not as long as it says; save it again")
    return data


def array_of(data: bytes) -> np.ndarray[Any, Any]:
    """Read the array from the bytes of a `.npy` file, format 1.0. Raises ArtifactError for other formats or sizes."""
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ArtifactError(f"damaged, an array of version {version}; save it again")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    if not is_storable(dtype) or dtype.shape:
        raise ArtifactError(f"damaged, an array of {dtype}, which would need pickle or is no number; save it again")
    rest = len(data) - file.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != rest:
        raise ArtifactError(f"damaged, an array of shape {shape} in {rest:,} bytes; save it again")
    flat = np.frombuffer(data, dtype, offset=file.tell())
    whole = flat.reshape(shape[::-1]).T if is_fortran else flat.reshape(shape)
    return np.array(whole, dtype.newbyteorder("="), order="K")
