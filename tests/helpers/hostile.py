"""Files that a comparison of functions must survive: they end, hang, fork or tamper, at import or when they are called.

Each is told by lines at the top of the file or in the function, and by what the command must say: words of its error,
or None where there is an answer all the same.
"""

from __future__ import annotations

from typing import NamedTuple


class Hostile(NamedTuple):
    """A file: its lines, what is said of it, and the exit code: without words there is an answer, and it is 0 or 3."""

    name: str
    told: str | None
    top: str = ""
    body: str = ""
    code: int = 1


ENDS = "ends the process, so that there is no answer"
SILENT = "and without an answer"
DIED = "mine.py:loss: the worker died of"
LATE = "mine.py:loss: the worker ran longer than"
FILES = (
    # sys.exit and its like
    Hostile("sys.exit in the function", f"mine.py:8: sys.exit(0) {ENDS}", body="sys.exit(0)"),
    Hostile("sys.exit at import", "mine.py ends the program when it is imported", "sys.exit(0)", code=2),
    Hostile("os._exit in the function", f"mine.py:8: os._exit(0) {ENDS}", body="os._exit(0)"),
    Hostile("os._exit at import", f"mine.py:2: os._exit(0) {ENDS}", "os._exit(0)"),
    Hostile("_exit by another name", f"{SILENT} while it called loss", body="import posix; posix._exit(0)"),
    Hostile(
        "a subclass of SystemExit", f"mine.py:8: sys.exit(0) {ENDS}", "class Bye(SystemExit): pass", "raise Bye(0)"
    ),
    Hostile("KeyboardInterrupt", "KeyboardInterrupt:  (mine.py:8)", body="raise KeyboardInterrupt"),
    Hostile("KeyboardInterrupt at import", "KeyboardInterrupt:  (mine.py:2)", "raise KeyboardInterrupt"),
    Hostile("another program", f"mine.py:2: os.execv('/bin/true') {ENDS}", "os.execl('/bin/true', 'true')"),
    Hostile(
        "another program by another name",
        "closed the pipe of its answer while it imported mine.py",
        "import posix; posix.execv('/bin/sleep', ['sleep', '1000'])",
    ),
    # signals and crashes
    Hostile("SIGKILL", f"{DIED} SIGKILL", body="os.kill(os.getpid(), signal.SIGKILL)"),
    Hostile("SIGTERM", f"{DIED} SIGTERM", body="os.kill(os.getpid(), signal.SIGTERM)"),
    Hostile(
        "a crash in C", f"{DIED} SIGSEGV while it called loss: mine.py:8", body="import ctypes; ctypes.string_at(0)"
    ),
    Hostile(
        "a crash in C at import",
        f"{DIED} SIGSEGV while it imported mine.py: mine.py:2",
        "import ctypes; ctypes.string_at(0)",
    ),
    Hostile("recursion", "RecursionError", "def deep(): return deep()", "deep()"),
    Hostile(
        "recursion in C",
        f"{DIED} SIGSEGV",
        "sys.setrecursionlimit(10**9)\ndef deep(f): return [*map(deep, [f])]",
        "deep(1)",
    ),
    Hostile(
        "faulthandler",
        f"exit code 1 {SILENT}",
        "import faulthandler; faulthandler.dump_traceback_later(.5, exit=True); time.sleep(9)",
    ),
    # what takes for ever
    Hostile("a loop without end at import", f"{LATE} 6 s while it imported mine.py", "while True: pass"),
    Hostile("a loop without end", f"{LATE} 6 s while it called loss", body="while True: pass"),
    Hostile("a sleep without end", f"{LATE} 6 s while it imported mine.py", "time.sleep(1000)"),
    Hostile(
        "signals ignored",
        f"{LATE} 6 s while it imported mine.py",
        "[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 3, 15)]\nwhile True: pass",
    ),
    Hostile("a thread that goes on", None, "threading.Thread(target=time.sleep, args=(1000,), name='T').start()"),
    Hostile("a slow exit handler", None, "atexit.register(time.sleep, 1000)"),
    Hostile("an exit handler that ends", None, "atexit.register(os._exit, 0)"),
    # forks
    Hostile("a fork at import", "mine.py: mine.py:2: os.fork() has both processes go on", "os.fork()"),
    Hostile("a fork in the function", "loss: mine.py:8: os.fork() has both processes go on", body="os.fork()"),
    Hostile("a daemon", f"mine.py:2: os._exit(0) {ENDS}", "os.fork() and os._exit(0)"),
    # files and streams
    Hostile("another folder", None, "os.chdir('/')"),
    Hostile("closed descriptors", None, "os.close(1); os.close(2)"),
    Hostile("all descriptors closed", "while it imported mine.py", "os.closerange(0, 256)"),
    Hostile("closed streams", None, "sys.stdout.close(); sys.stderr.close()"),
    Hostile("another stdout", None, "import io; sys.stdout = sys.stderr = io.StringIO()"),
    Hostile("no stdout", None, "sys.stdout = sys.stderr = None"),
    Hostile("bytes that are no text", None, "os.write(1, b'\\xff\\xfe\\n'); os.write(2, b'\\xff\\xfe\\n')"),
    Hostile(
        "bytes, and an end", f"exit code 3 {SILENT}", "import posix; os.write(2, b'\\xff\\xfe\\n'); posix._exit(3)"
    ),
    Hostile("a file that removes itself", None, "os.remove(__file__)"),
    # tampering
    Hostile("modules gone", "mine.py:loss: ", "sys.modules.clear()"),
    Hostile("modules barred", "mine.py:loss: ", "for name in list(sys.modules): sys.modules[name] = None"),
    Hostile("print replaced", None, "import builtins; builtins.print = None"),
    Hostile("open replaced", "Nothing was measured", "import builtins; builtins.open = None", code=5),
    Hostile("len replaced", "mine.py:loss: ", "import builtins; builtins.len = None"),
)

NAMED = {hostile.name: hostile for hostile in FILES}


def source(hostile: Hostile, library: str, result: str, calls: str) -> str:
    """The text of the file: a function over `library` that returns `result`, and its calls, below the hostile lines."""
    head = f"import atexit, os, signal, sys, threading, time; import numpy as np; {library}"
    filler = "\n" * (4 - hostile.top.count("\n"))
    return (
        f"{head}\n{hostile.top}{filler}\ndef loss(w, x):\n    {hostile.body or 'pass'}\n    return {result}\n{calls}\n"
    )
