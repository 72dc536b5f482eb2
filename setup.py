"""The build: setuptools', with a C compiler from a wheel where the machine has none that answers, and with stubs.

`pyproject.toml` names this file as the backend (PEP 517), which asks for that wheel, and setuptools runs it as its
script, which builds the compiled tape. Without it the tape in Python runs: that is slower, and the build says why. The
stubs of names that packages gather when they are loaded are made too (`graphs.testing.stubs`), beside their modules.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.build_meta import *  # noqa: F403  (the hooks that are as they are)
from setuptools.build_meta import get_requires_for_build_editable as _for_editable
from setuptools.build_meta import get_requires_for_build_wheel as _for_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

LOOPS = Path("dynamic/loops")
COMPILER = "ziglang"
KNOWN = 'platform_machine in "x86_64 aarch64 arm64"'
"""Where there is such a wheel."""
HEADER = Path(sysconfig.get_path("include"), "Python.h")
NO_HEADERS = (
    f"graphduel is built without its compiled tape: {HEADER} is missing; install Python's headers (python3-dev, "
    "python3-devel), and then graphduel again"
)
NO_COMPILER = (
    "graphduel is built without its compiled tape: no C compiler works here; install one, and then graphduel again"
)
ZIG = [sys.executable, "-m", COMPILER, "cc", "-mcpu=baseline", "-fno-sanitize=undefined", "-ffp-contract=off"]
"""Code for each processor of the kind, as a distribution's compiler makes it, and not for this one."""

OPTIONS = ["-O3", "-DNDEBUG", "-fwrapv", "-fPIC"]


def get_requires_for_build_wheel(config_settings=None):
    """What a wheel is built with."""
    return [*_for_wheel(config_settings), *_compiler()]


def get_requires_for_build_editable(config_settings=None):
    """What an editable installation is built with."""
    return [*_for_editable(config_settings), *_compiler()]


def _compiler():
    """The wheel of a compiler where it is needed, and of use."""
    needed = HEADER.exists() and sys.platform != "win32" and not answers(_own())
    return [f"{COMPILER}; {KNOWN}"] if needed else []


def _own():
    """The compiler that setuptools takes by itself."""
    from setuptools._distutils.ccompiler import new_compiler
    from setuptools._distutils.sysconfig import customize_compiler

    compiler = new_compiler()
    customize_compiler(compiler)
    return compiler


def answers(compiler):
    """Whether a compiler makes a library of a line of C."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "line.c")
        source.write_text("int line(void) { return 0; }\n", "utf-8")
        try:
            objects = compiler.compile([str(source)], output_dir=folder)
            compiler.link_shared_object(objects, str(Path(folder, "line.so")))
        except Exception:  # noqa: BLE001  (a class of its own for each system, and for what is not there at all)
            return False
    return True


class Modules(build_py):
    """Makes the stubs before modules are collected, by the packages themselves with the tape in Python."""

    def run(self):
        """Fail where a package cannot be loaded: a wheel without stubs gives checkers of types wrong errors."""
        environment = os.environ | {"GRAPHDUEL_TAPE": "python"}
        subprocess.run([sys.executable, "-m", "graphs.testing.stubs"], check=True, env=environment)
        super().run()


class Build(build_ext):
    """Builds the tape anew, whatever an earlier compiler has left, and says why where it cannot."""

    def build_extensions(self):
        """Take the compiler of the wheel where the machine's does not answer."""
        self.force = True
        built = [Path(self.get_ext_fullpath(extension.name)) for extension in self.extensions]
        for path in built:
            path.unlink(missing_ok=True)
        if sys.platform != "win32" and not answers(self.compiler):
            shared = ["-dynamiclib", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
            self.compiler.set_executables(compiler_so=[*ZIG, *OPTIONS], linker_so=[*ZIG, *shared])
        super().build_extensions()
        if not all(path.exists() for path in built):
            self.warn(NO_COMPILER if HEADER.exists() else NO_HEADERS)


if __name__ == "__main__":
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:  # what lies in build/ may be of other sources, too
        setup(
            cmdclass={"build_ext": Build, "build_py": Modules},
            options={"build": {"build_base": folder}},
            ext_modules=[
                Extension(
                    "dynamic._native",
                    sources=sorted(path.as_posix() for path in LOOPS.glob("*.c")),
                    depends=sorted(path.as_posix() for path in LOOPS.glob("*.h")),
                    include_dirs=[np.get_include()],
                    optional=True,
                )
            ],
        )
