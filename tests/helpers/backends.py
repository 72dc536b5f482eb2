"""The backends of static that this environment has: native code needs LLVM."""

from importlib.util import find_spec

BACKENDS = ("numpy", "native") if find_spec("llvmlite") else ("numpy",)
