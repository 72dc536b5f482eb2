"""PyTorch's names for other devices, processes, compilers and formats: those that do nothing here, and those refused.

Ops run one by one, on the CPU, in this process. What says otherwise may be imported and asked: a switch that would
leave all numbers the same does nothing, and what would compute another thing is refused by name when it is called, with
what to use instead. Each of `SWITCHES` defines names in one place; docs/torch-names.md has the table of them.
"""

from __future__ import annotations

import contextlib
import typing
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

from dynamic.paths import ROOT
from graphs.errors import OptionError, locate

__all__ = ["NAMES", "PLACES", "SWITCHES", "SwitchModule", "SwitchRow", "is_place", "make"]


class SwitchRow(NamedTuple):
    """Names in one place of `torch`, what they do, why or what to use instead, and the value that they give."""

    place: str
    does: str
    names: str
    says: str
    value: Any = None


# What a name may do ---------------------------------------------------------------------------------------------------


class _Refusal(type):
    """The class of names that are refused: they may be imported, derived from and asked by isinstance, never called."""

    says: str

    def __call__(cls, *_: Any, **__: Any) -> NoReturn:
        raise OptionError(locate(f"{cls.__qualname__} is not supported: {cls.says}"))

    def __getattr__(cls, name: str) -> NoReturn:
        raise AttributeError(f"{cls.__qualname__} is not supported: {cls.says}")


class _Block(contextlib.ContextDecorator):
    """A block, or a decorator, in which nothing changes."""

    def __init__(self, says: str, *_: Any, **__: Any) -> None:
        self._says = says

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def step(self, *_: Any, **__: Any) -> None:
        """Do nothing."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a block that does nothing has no {name!r}: {self._says}")


class _Silent(_Block):
    """A writer that writes nothing: each of its methods does nothing. Making one says so in a warning."""

    def __init__(self, says: str, *_: Any, **__: Any) -> None:
        super().__init__(says)
        warnings.warn(says, UserWarning, stacklevel=3)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


def _same(function: Any = None, *_: Any, **__: Any) -> Any:
    """The function or the module itself; called with options alone, what gives it back."""
    return function if callable(function) else _same


def _refuse(path: str, row: SwitchRow) -> Any:
    return _Refusal(path.rpartition(".")[2], (), {"__qualname__": f"torch.{path}", "says": row.says})


def _definition_of(path: str, row: SwitchRow) -> Any:
    return getattr(import_module(f"{ROOT}.{row.value}".rstrip(".")), path.rpartition(".")[2])


MAKERS: dict[str, Callable[[str, SwitchRow], Any]] = {
    "returns": lambda _, row: lambda *_, **__: row.value,
    "equals": lambda _, row: row.value,
    "gives back": lambda *_: _same,
    "surrounds": lambda _, row: partial(_Block, row.says),
    "writes nothing": lambda _, row: partial(_Silent, row.says),
    "stands for": _definition_of,
    "stands for a GPU's": lambda path, row: _with_device(_definition_of(path, row)),
    "refuses": _refuse,
}
ALL = "*"  # every name of a place, and of the places inside it


def _with_device(made: Any) -> Any:
    """The class as the older name in `cuda.amp` takes its options: without the device."""

    def make_for_gpu(*args: Any, **options: Any) -> Any:
        words = dict(zip(("enabled", "dtype", "cache_enabled"), args, strict=False))
        return made("cuda", **words, **options)

    return make_for_gpu


NO_GPU = "there is no GPU; ask cuda.is_available() first"
CPU = "there is no GPU"
ONE = "there is one process"
ALONE = "there is one process; leave the call out, or share work by Python's multiprocessing, with arrays"
RUNS = "Python runs the code"
ALIKE = "ops run in this thread, each time alike"
EXACT = "products are in full precision"
IS_COMPILED = "ops run one by one; compile the function with static.jit"
SAVES = "save a state_dict() by torch.save, or a graph by static.compile(...).save"
UNMEASURED = "nothing is measured: dynamic.record counts ops and bytes, and `graphduel compare` times a function"
DENSE = "tensors are dense; use scatter_add, index_add or gather"
UNQUANTISED = "there are no quantised tensors; use float16"
OFFLINE = "nothing is downloaded; define the model, and load its weights with torch.load"
_OPS = {name: name.lower() for name in ("SUM", "PRODUCT", "MIN", "MAX", "AVG", "BAND", "BOR", "BXOR")}
_DEVICES = {"CPU": "cpu", "CUDA": "cuda"}
_GRAPHS = "ops are no objects of a graph; static.compile(function, ...).graph is one to read"

_ = SwitchRow
SWITCHES = (
    # Compilers
    _("", "gives back", "compile", f"{RUNS}; static.jit compiles a function"),
    _("", "returns", "set_num_threads set_num_interop_threads set_float32_matmul_precision set_warn_always "
        "use_deterministic_algorithms set_deterministic_debug_mode", ALIKE),
    _("", "returns", "get_num_threads get_num_interop_threads", "ops run in this thread", 1),
    _("", "returns", "get_float32_matmul_precision", EXACT, "highest"),
    _("", "returns", "are_deterministic_algorithms_enabled", "all algorithms are deterministic", True),
    _("", "returns", "set_flush_denormal", "small numbers are kept", False),
    _("", "stands for", "vmap", "is that of torch.func", "func"),
    _("", "stands for", "autocast get_autocast_dtype is_autocast_enabled", "are those of torch.amp", "amp"),
    _("compiler", "gives back", "compile disable allow_in_graph", RUNS),
    _("compiler", "returns", "is_compiling is_dynamo_compiling", RUNS, False),
    _("compiler", "returns", "reset cudagraph_mark_step_begin", RUNS),
    _("_dynamo", "gives back", "disable allow_in_graph", RUNS),
    _("_dynamo", "returns", "reset mark_dynamic", RUNS),
    _("_dynamo", "refuses", ALL, IS_COMPILED),
    _("_inductor", "refuses", ALL, IS_COMPILED),
    _("jit", "gives back", "script script_method trace trace_module script_if_tracing export unused ignore interface "
        "freeze optimize_for_inference _overload_method", f"{RUNS}; static.jit compiles a function"),
    _("jit", "returns", "is_scripting is_tracing", RUNS, False),
    _("jit", "surrounds", "optimized_execution fuser", RUNS),
    _("jit", "equals", "TracerWarning", "is never given", Warning),
    _("jit", "equals", "Final", "is Python's", typing.Final),
    _("jit.annotations", "equals", "List BroadcastingList2", "for annotations", list),
    _("jit.annotations", "equals", "Tuple", "for annotations", tuple),
    _("_jit_internal", "equals", "Optional", "is Python's", typing.Optional),
    _("_jit_internal", "gives back", "_overload ignore export unused", RUNS),
    _("jit", "refuses", "ScriptModule ScriptFunction RecursiveScriptModule", IS_COMPILED),
    _("jit", "refuses", "save load", SAVES),
    _("_C", "returns", "_jit_set_profiling_mode _jit_set_profiling_executor _jit_override_can_fuse_on_cpu "
        "_jit_override_can_fuse_on_gpu _jit_set_texpr_fuser_enabled _jit_set_nvfuser_enabled", RUNS),
    _("_C", "refuses", ALL, "there is no compiled library; use what torch has by a public name"),
    _("onnx", "returns", "is_in_onnx_export", RUNS, False),
    _("onnx", "refuses", ALL, "write the graph of a function by static.compile(function, ...).to_onnx(path)"),
    _("fx", "gives back", "wrap", RUNS),
    _("fx", "refuses", ALL, _GRAPHS),
    _("export", "refuses", ALL, SAVES),
    _("package", "refuses", ALL, SAVES),
    _("library", "refuses", ALL, "write an op as a torch.autograd.Function, or see docs/own_ops.md"),
    _("ops", "refuses", ALL, "call the op by its name in torch"),
    _("_ops", "refuses", ALL, "call the op by its name in torch"),
    _("classes", "refuses", ALL, "write a class in Python"),
    _("futures", "refuses", ALL, ALONE),
    # Devices
    _("accelerator", "returns", "is_available", CPU, False),
    _("accelerator", "returns", "current_accelerator", CPU),
    _("accelerator", "returns", "device_count", CPU, 0),
    _("accelerator", "refuses", ALL, "there is no GPU; ask accelerator.is_available() first"),
    _("cuda", "returns", "is_available is_initialized is_bf16_supported is_current_stream_capturing", CPU, False),
    _("cuda", "equals", "_initialized", CPU, False),
    _("cuda", "returns", "device_count memory_allocated max_memory_allocated memory_reserved max_memory_reserved "
        "memory_cached max_memory_cached", CPU, 0),
    _("cuda", "returns", "set_device empty_cache synchronize init ipc_collect manual_seed manual_seed_all seed "
        "seed_all reset_peak_memory_stats reset_max_memory_allocated set_per_process_memory_fraction", CPU),
    _("cuda", "surrounds", "device device_of stream", CPU),
    _("cuda", "refuses", "current_device get_device_name get_device_properties get_device_capability mem_get_info "
        "memory_summary memory_stats current_stream default_stream Stream Event CUDAGraph graph make_graphed_callables "
        "FloatTensor DoubleTensor HalfTensor LongTensor IntTensor ShortTensor CharTensor ByteTensor BoolTensor "
        "get_rng_state set_rng_state get_rng_state_all set_rng_state_all utilization", NO_GPU),
    _("cuda.amp", "stands for a GPU's", "autocast GradScaler", "are those of torch.amp", "amp"),
    _("cuda.amp.autocast_mode", "stands for a GPU's", "autocast", "is that of torch.amp", "amp"),
    _("cuda.amp.grad_scaler", "stands for a GPU's", "GradScaler", "is that of torch.amp", "amp"),
    _("cuda.nccl", "refuses", ALL, ALONE),
    _("cuda.amp", "gives back", "custom_fwd custom_bwd", CPU),
    _("cuda.nvtx", "returns", "range_push range_pop mark", UNMEASURED),
    _("cuda.nvtx", "surrounds", "range", UNMEASURED),
    _("cuda.profiler", "returns", "start stop", UNMEASURED),
    _("cuda.profiler", "surrounds", "profile", UNMEASURED),
    _("cuda.random", "returns", "manual_seed manual_seed_all", CPU),
    _("mps", "returns", "is_available", CPU, False),
    _("mps", "returns", "empty_cache synchronize manual_seed", CPU),
    _("xpu", "returns", "is_available", CPU, False),
    _("backends.cudnn", "equals", "benchmark deterministic", CPU, False),
    _("backends.cudnn", "equals", "enabled allow_tf32", CPU, True),
    _("backends.cudnn", "returns", "is_available", CPU, False),
    _("backends.cudnn", "returns", "version", CPU),
    _("backends.cudnn", "surrounds", "flags", CPU),
    _("backends.mps", "returns", "is_available is_built", CPU, False),
    _("backends.cuda", "returns", "is_built flash_sdp_enabled cudnn_sdp_enabled mem_efficient_sdp_enabled", CPU, False),
    _("backends.cuda", "returns", "enable_flash_sdp enable_mem_efficient_sdp enable_math_sdp enable_cudnn_sdp", CPU),
    _("backends.cuda", "surrounds", "sdp_kernel", CPU),
    _("backends.cuda.matmul", "equals", "allow_tf32 allow_fp16_reduced_precision_reduction "
        "allow_bf16_reduced_precision_reduction", EXACT, False),
    _("backends.mkldnn", "returns", "is_available", "NumPy computes", False),
    _("backends.mkldnn", "equals", "enabled", "NumPy computes", False),
    _("backends.mkl", "returns", "is_available", "NumPy computes", False),
    _("backends.openmp", "returns", "is_available", "NumPy computes", False),
    # Processes
    _("distributed", "returns", "is_available is_initialized is_torchelastic_launched is_nccl_available "
        "is_gloo_available is_mpi_available", ONE, False),
    _("distributed", "equals", "ReduceOp", "names only", type("ReduceOp", (), _OPS)),
    _("distributed", "refuses", ALL, ALONE),
    _("distributed.elastic.multiprocessing.errors", "gives back", "record", ONE),
    _("multiprocessing", "returns", "set_start_method set_sharing_strategy freeze_support", ONE),
    _("multiprocessing", "returns", "get_start_method", ONE, "fork"),
    _("multiprocessing", "refuses", ALL, "tensors are not shared; use Python's multiprocessing, with arrays"),
    _("nn.parallel", "stands for", "DataParallel data_parallel", "calls its module in this process", "nn.containers"),
    _("nn.parallel", "refuses", ALL, "there is one process; use the module itself, or DataParallel"),
    _("nn.modules._functions", "refuses", ALL, "there is one process; use nn.SyncBatchNorm"),
    _("_utils", "refuses", ALL, ALONE),
    # Measurements
    _("profiler", "surrounds", "profile record_function", UNMEASURED),
    _("profiler", "returns", "schedule tensorboard_trace_handler", UNMEASURED),
    _("profiler", "equals", "ProfilerActivity", "names only", type("ProfilerActivity", (), _DEVICES)),
    _("autograd.profiler", "surrounds", "profile record_function emit_nvtx emit_itt", UNMEASURED),
    _("utils.benchmark", "refuses", ALL, UNMEASURED),
    _("utils.flop_counter", "refuses", ALL, UNMEASURED),
    _("utils.tensorboard", "writes nothing", "SummaryWriter", "no events are written; take tensorboardX.SummaryWriter"),
    _("testing", "stands for", "assert_close", "compares, by PyTorch's tolerances", "pytorch.seldom"),
    _("utils.checkpoint", "stands for", "checkpoint checkpoint_sequential", "computes again", "pytorch.seldom"),
    _("utils.checkpoint", "returns", "get_device_states", CPU, ([], [])),
    _("utils.checkpoint", "returns", "set_device_states", CPU),
    # Formats and files
    _("sparse", "refuses", ALL, DENSE),
    _("", "refuses", "sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor", DENSE),
    _("quantization", "refuses", ALL, UNQUANTISED),
    _("ao", "refuses", ALL, UNQUANTISED),
    _("nn.quantized", "refuses", ALL, UNQUANTISED),
    _("nn.qat", "refuses", ALL, UNQUANTISED),
    _("nn.utils.prune", "refuses", ALL, "multiply the weight by a mask that is a buffer"),
    _("hub", "refuses", ALL, OFFLINE),
    _("utils.model_zoo", "refuses", ALL, OFFLINE),
    _("utils.cpp_extension", "refuses", ALL, "write an op in Python, with NumPy's functions as kernels"),
    _("serialization", "stands for", "load save", "are those of torch", ""),
    _("serialization", "returns", "add_safe_globals clear_safe_globals", "no file is a pickle"),
    _("serialization", "refuses", ALL, SAVES),
    # Names of types, and of the program itself
    _("version", "equals", "cuda hip xpu debug git_version", CPU),
    _("version", "stands for", "__version__", "of the PyTorch whose names these are", ""),
    _("__config__", "returns", "show parallel_info", "NumPy computes", "graphduel: NumPy computes, on the CPU"),
    *[_(place, "returns", "has_torch_function has_torch_function_unary has_torch_function_variadic", RUNS, False)
      for place in ("overrides", "nn.functional")],  # which copies of PyTorch's own functions ask
    _("overrides", "refuses", ALL, "ops are called as they are; put a function of your own in their place"),
    _("utils._python_dispatch", "refuses", ALL, "ops are called as they are; dynamic.record shows them"),
    _("utils._pytree", "refuses", ALL, "containers are optree's; use optree.tree_map, with none_is_leaf=True"),
    _("utils.data._utils", "refuses", ALL, "give DataLoader a collate_fn"),
    _("nn._reduction", "refuses", ALL, "give a loss its reduction by the word"),
    _("nn.utils.fusion", "refuses", ALL, "a layer and its batch norm stay two; call eval()"),
    _("nn.modules.module", "refuses", "register_module_forward_hook register_module_forward_pre_hook "
        "register_module_full_backward_hook register_module_backward_hook", "a hook is one module's; add it to each of "
        "model.modules()"),
    _("types", "equals", "Number", "is Python's", int | float | bool),
    _("types", "equals", "Device _int _float _bool _dtype _size", "for annotations", Any),
    _("nn.common_types", "equals", "_size_1_t _size_2_t _size_3_t _size_2_opt_t _size_3_opt_t _size_any_t "
        "_size_any_opt_t _ratio_2_t _ratio_3_t _ratio_any_t", "for annotations", Any),
    _("nn.attention", "stands for", "SDPBackend sdpa_kernel", "there is one kernel", "nn.transformer"),
)  # fmt: skip
del _


# The places -----------------------------------------------------------------------------------------------------------

NAMES = {(row.place, name): row for row in SWITCHES for name in row.names.split()}
_WHOLE = {row.place: row for row in SWITCHES if row.names == ALL}
PLACES = {"backends", *(row.place for row in SWITCHES if row.place)}


def is_place(path: str) -> bool:
    """Whether a path without `torch.` is a module made of switches, or lies in one that is refused as a whole."""
    return path in PLACES or _row_of_all(path) is not None


def _row_of_all(path: str) -> SwitchRow | None:
    """The row that refuses all of a place; None for other places."""
    return next((_WHOLE[above] for above in _upwards(path) if above in _WHOLE), None)


def _upwards(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition(".")[0]


def make(place: str, name: str) -> Any:
    """What a name in a place is. Raises AttributeError where no row defines it."""
    row = NAMES.get((place, name)) or (None if name.startswith("__") else _row_of_all(place))
    if row is None:
        raise AttributeError(f"{place or ROOT} has no {name!r}; docs/torch-names.md lists what is there")
    return MAKERS[row.does](f"{place}.{name}".lstrip("."), row)


class SwitchModule(ModuleType):
    """A module of PyTorch's that is made of rows: a name is made when it is first read."""

    def __getattr__(self, name: str) -> Any:
        place = self.__name__.partition(".")[2]
        inner = f"{place}.{name}"
        is_module = inner in PLACES and (place, name) not in NAMES
        made = import_module(f"{ROOT}.{inner}") if is_module else make(place, name)
        setattr(self, name, made)
        return made
