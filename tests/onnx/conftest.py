"""What reads ONNX needs the package onnx, and is not collected where there is none."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("onnx") else ["test_*.py"]
