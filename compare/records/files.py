"""Writing a file so that a reader never sees half of it."""

import os
import tempfile
from pathlib import Path


def write_atomic(path: Path, content: bytes) -> Path:
    """Write `content` to `path` in one step (folders are made): the old file stays until the new is whole.

    What is there and no file, as a pipe or a device, is written into: it must not be replaced.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        temporary.chmod(0o644)  # mkstemp makes it private to its writer; a report is there to be read
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path
