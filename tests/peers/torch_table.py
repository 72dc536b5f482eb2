"""The table of PyTorch's names: `python -m tests.peers.torch_table > docs/torch-names.md` (needs PyTorch).

Every public name of `torch`, `torch.Tensor` and `torch.nn.functional` that `dynamic` has runs on generated arguments
in both. What PyTorch answers is compared: values, shapes, dtypes, the arguments afterwards, and gradients.
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import inspect
import io
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dynamic.pytorch import switches
from graphs.frontends.torch import names as definition
from graphs.frontends.torch.methods import TorchMethods
from graphs.wrong_calls import parameters
from tests.peers.torch_arguments import Call, Made, calls_of

USED = Path(__file__).parent.parent / "data" / "torch_names.csv"
SPACES = ("torch", "torch.Tensor", "torch.nn.functional")
DEFINITIONS = "## Definitions"
SWITCHES = "## Switches"
NO_FUNCTIONS = "a class, a module or a value"
SIGNS = dict.fromkeys(
    ["svd", "qr", "eigh", "lobpcg", "pca_lowrank"], "the signs of vectors are free; has tests of its own"
)
ELSEWHERE = {
    **dict.fromkeys(
        [
            "backward",
            "register_hook",
            "register_post_accumulate_grad_hook",
            "retain_grad",
            "requires_grad_",
            "compile",
            "load",
            "save",
        ],
        "has tests of its own",
    ),
    **dict.fromkeys(
        ["manual_seed", "seed", "set_grad_enabled", "no_grad", "enable_grad", "inference_mode"], "has tests of its own"
    ),
    **dict.fromkeys(
        ["set_default_dtype", "set_printoptions", "set_num_threads", "set_rng_state", "use_deterministic_algorithms"],
        "changes the process",
    ),
    **dict.fromkeys(
        ["get_rng_state", "initial_seed", "data_ptr", "cond", "while_loop", "vmap", "from_dlpack"],
        "has tests of its own",
    ),
    **dict.fromkeys(
        ["cholesky_inverse", "cholesky_solve"],
        "PyTorch's gradient depends on the triangle that its value does not read",
    ),
    **SIGNS,
}
UNTIED = frozenset(["kthvalue", "median", "nanmedian", "topk", "mode"])
ROUNDED = frozenset(["matrix_exp"])  # PyTorch loses digits in float32, where ours is computed in float64
DRAWS = frozenset(
    [
        "rand",
        "randn",
        "randint",
        "randperm",
        "rand_like",
        "randn_like",
        "randint_like",
        "normal",
        "bernoulli",
        "bernoulli_",
        "multinomial",
        "normal_",
        "uniform_",
        "random_",
        "empty",
        "resize_",
        "resize_as_",
        "empty_like",
        "new",
        "new_empty",
        "empty_permuted",
        "dropout",
        "dropout1d",
        "dropout2d",
        "dropout3d",
        "alpha_dropout",
        "feature_alpha_dropout",
        "exponential_",
        "poisson",
        "gumbel_softmax",
        "empty_strided",
    ]
)


class Row(NamedTuple):
    """A name: how many calls gave the same, how many were refused, and the calls that gave something else."""

    name: str
    same: int = 0
    refused: int = 0
    different: tuple[str, ...] = ()
    note: str = ""

    @property
    def verdict(self) -> str:
        """`different`, `same`, `partly`, `refused` or `not run`."""
        if self.different:
            return "different"
        if not self.same:
            return "refused" if self.refused else "not run"
        return "partly" if self.refused else "same"


# ---- one call in one framework ------------------------------------------------------------------------------------


class Answer(NamedTuple):
    """What a call gave, in plain data."""

    result: Any
    arguments: Any
    gradients: Any


class Side:
    """A framework: how it makes a tensor of an array, and what its words for dtypes are."""

    def __init__(self, space: Any) -> None:
        self.space = space

    def made(self, value: Any, with_gradient: bool) -> Any:
        if isinstance(value, Made):
            wanted = with_gradient and value.array.dtype.kind == "f"
            return self.space.tensor(value.array.copy(), requires_grad=wanted)
        if isinstance(value, str) and hasattr(np, value) and value[-1].isdigit():
            return getattr(self.space, value)
        if isinstance(value, (list, tuple)):
            return type(value)([self.made(item, with_gradient) for item in value])
        return value

    def run(self, function: Callable[..., Any], call: Call, name: str) -> Answer:
        """What the function gives; any exception is the caller's."""
        takes_gradient = not name.endswith("_") and name not in DRAWS
        args = [self.made(arg, takes_gradient) for arg in call.args]
        words = {word: self.made(value, takes_gradient) for word, value in call.words.items()}
        result = function(*args, **words)
        answer = self.plain(result, name in DRAWS)
        return Answer(answer, self.plain(args, name in DRAWS), self.gradients(result, args) if takes_gradient else None)

    def plain(self, value: Any, is_drawn: bool) -> Any:
        """Tensors as arrays, containers as tuples."""
        if isinstance(value, self.space.Tensor):
            array = np.array(value.detach().tolist(), str(value.dtype).removeprefix("torch.")).reshape(
                tuple(value.shape)
            )
            return np.zeros_like(array) if is_drawn else array
        if isinstance(value, (list, tuple)):
            return tuple([self.plain(item, is_drawn) for item in value])
        if isinstance(value, (np.dtype, type)) or type(value).__name__ == "dtype":
            return np.dtype(str(value).removeprefix("torch.") if not isinstance(value, type) else value).name
        if type(value).__name__ in ("device", "memory_format"):
            return (type(value).__name__, str(value))
        if isinstance(value, (bool, int, float, str, np.ndarray, type(None))):
            return value
        return ("object", type(value).__name__)

    def gradients(self, result: Any, args: Any) -> Any:
        """The gradients of the sum of the squares of all that has one, in every tensor."""
        leaves = [arg for arg in self.tensors(args) if arg.requires_grad and arg.is_leaf]
        outputs = (
            [out for out in self.tensors(result) if out.requires_grad and out.dtype == leaves[0].dtype]
            if leaves
            else []
        )
        if not outputs:
            return None
        sum((out * out).sum() for out in outputs).backward()
        return tuple([None if leaf.grad is None else self.plain(leaf.grad, False) for leaf in leaves])

    def tensors(self, value: Any) -> Iterator[Any]:
        if isinstance(value, self.space.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            for item in value:
                yield from self.tensors(item)


# ---- comparing ----------------------------------------------------------------------------------------------------


def _loose(call: Call) -> bool:
    """Whether half floats are among the arguments: sums of them are made in other orders and widths."""
    return any(isinstance(v, Made) and v.array.dtype == np.float16 for v in call.args)


def alike(ours: Any, theirs: Any) -> bool:
    """Whether two answers are the same: type, shape and dtype exactly, floats nearly."""
    if isinstance(theirs, tuple):
        return isinstance(ours, tuple) and len(ours) == len(theirs) and all(map(alike, ours, theirs))
    if isinstance(theirs, np.ndarray):
        return (
            isinstance(ours, np.ndarray)
            and ours.dtype == theirs.dtype
            and ours.shape == theirs.shape
            and _near(ours, theirs)
        )
    if isinstance(theirs, float):
        return isinstance(ours, float) and _near(np.asarray(ours), np.asarray(theirs))
    return type(ours) is type(theirs) and bool(ours == theirs)


def _near(ours: Any, theirs: Any) -> bool:
    loose = 1e-2 if theirs.dtype == np.float16 else 2e-4
    return bool(np.allclose(ours, theirs, rtol=loose, atol=loose / 10, equal_nan=True))


def row_of(name: str, ours: tuple[Side, Any], theirs: tuple[Side, Any], path: str) -> Row:
    """A name on every argument that PyTorch takes."""
    if name in ELSEWHERE:
        return Row(name, note=ELSEWHERE[name])
    same, refused, different = 0, 0, []
    for call in filter(lambda call: _is_asked(call, name, path), calls_of(name)):
        with warnings.catch_warnings(), np.errstate(all="ignore"), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            try:
                wanted = theirs[0].run(theirs[1], call, name)
            except Exception:  # noqa: BLE001  (whatever it is: it says nothing)
                continue
            try:
                found = ours[0].run(ours[1], call, name)
            except Exception:  # noqa: BLE001  (an error is what is asked for in place of another number)
                refused += 1
                continue
        if _same(found, wanted) or ((_loose(call) or name in ROUNDED) and _nearly(found, wanted)):
            same += 1
        else:
            different.append(f"{call!r}: {found} for {wanted}")
    return Row(name, same, refused, tuple(different))


def _nearly(found: Answer, wanted: Answer) -> bool:
    ours, theirs = found.result, wanted.result
    if not (isinstance(theirs, np.ndarray) and isinstance(ours, np.ndarray)):
        return False
    return ours.dtype == theirs.dtype and np.allclose(ours, theirs, 1e-2, 1e-2)


def _is_asked(call: Call, name: str, path: str) -> bool:
    """Whether a call is one that is compared."""
    if path == "torch.Tensor" and not (call.args and isinstance(call.args[0], Made)):
        return False
    if path == "torch.nn.functional" and not _is_usual(call):
        return False
    if name in ("max", "min") and "axis" in call.words:  # NumPy's word, which here has NumPy's meaning
        return False
    if name == "polygamma" and 250 in call.args:  # the value is finite, and PyTorch's a product of infinity and 0
        return False
    made = [arg.array for arg in call.args if isinstance(arg, Made)]
    return name not in UNTIED or all(np.unique(array).size == array.size for array in made)


def _is_usual(call: Call) -> bool:
    """Whether all numbers are finite: what layers make of others follows from how they are written."""
    return all(np.all(np.isfinite(getattr(v, "array", v))) for v in call.args if isinstance(v, (Made, float)))


def _same(found: Answer, wanted: Answer) -> bool:
    if not alike((found.result, found.arguments), (wanted.result, wanted.arguments)):
        return False
    if wanted.gradients is None or not _is_finite(wanted.result):  # what is no number has no slope
        return True
    return all(map(_same_slope, found.gradients or [None] * len(wanted.gradients), wanted.gradients))


def _is_finite(result: Any) -> bool:
    if isinstance(result, tuple):
        return all(map(_is_finite, result))
    return not isinstance(result, np.ndarray) or result.dtype.kind != "f" or bool(np.isfinite(result).all())


def _same_slope(ours: Any, theirs: Any) -> bool:
    """Whether two gradients are the same: none is zeros, and where PyTorch's is no number ours may be one."""
    if theirs is None:
        return ours is None or not np.any(ours)
    ours = np.zeros_like(theirs) if ours is None else ours
    return ours.dtype == theirs.dtype and alike(np.where(np.isnan(theirs), theirs, ours), theirs)


# ---- the table ----------------------------------------------------------------------------------------------------


def space_of(root: Any, path: str) -> Any:
    """The namespace `torch.nn.functional` of a framework, of `dynamic` too; None where there is none."""
    space = root
    for part in path.split(".")[1:]:
        with contextlib.suppress(ImportError):
            if not hasattr(space, part):
                importlib.import_module(f"{space.__name__}.{part}")
        space = getattr(space, part, None)
        if space is None:
            return None
    return space


def public(space: Any) -> list[str]:
    """The names of a namespace that stand for functions or values, sorted."""
    return sorted(name for name in dir(space) if not name.startswith("_"))


def rows(path: str, torch: Any, ours: Any, names: list[str] | None = None) -> list[Row]:
    """A row for every name that both have."""
    theirs_space, ours_space = space_of(torch, path), space_of(ours, path)
    found = []
    for name in names or public(theirs_space):
        if name == "dtype" or ours_space is None or not hasattr(ours_space, name):
            continue
        theirs = getattr(theirs_space, name)
        if path == "torch" and (("", name) in switches.NAMES or switches.is_place(name)):
            found.append(Row(name, note=f"one of the [switches](#{SWITCHES.partition(' ')[2].lower()})"))
            continue
        if _is_module(theirs) or (isinstance(theirs, type) and path != "torch.Tensor"):
            found.append(Row(name, note=NO_FUNCTIONS))
            continue
        is_function = callable(theirs)
        sides = [
            (Side(root), _called(space, name, path, is_function))
            for root, space in ((ours, ours_space), (torch, theirs_space))
        ]
        found.append(row_of(name, *sides, path))
    return found


def _is_module(value: Any) -> bool:
    return type(value).__name__.lower().endswith("module")


def _called(space: Any, name: str, path: str, is_function: bool) -> Callable[..., Any]:
    """The function of that name; of a value, what gives it."""
    if path == "torch.Tensor":
        return lambda x, *args, **words: getattr(x, name)(*args, **words) if is_function else getattr(x, name)
    value = getattr(space, name)
    return value if is_function else lambda: value


def missing(path: str, torch: Any, ours: Any) -> list[str]:
    """PyTorch's public names that are not there."""
    ours_space = space_of(ours, path)
    return [name for name in public(space_of(torch, path)) if name[0].islower() and not hasattr(ours_space, name)]


def used() -> list[tuple[str, int]]:
    """The names that public programs use, with the number of programs."""
    with USED.open() as file:
        return [
            (row["name"], int(row["programs"]))
            for row in csv.DictReader(line for line in file if not line.startswith("#"))
        ]


def is_there(name: str, ours: Any) -> bool:
    """Whether a name as `torch.nn.Linear` or `Tensor.sum` is there."""
    path, _, last = (name if name.startswith("torch.") else f"torch.{name}").rpartition(".")
    space = space_of(ours, path)
    return space is not None and hasattr(space, last)


def text(torch: Any, ours: Any) -> str:
    """The table, in Markdown."""
    lines = [__doc__.splitlines()[0]]
    counts: dict[str, int] = {}
    tables = []
    for path in SPACES:
        found = rows(path, torch, ours)
        for row in found:
            counts[row.verdict] = counts.get(row.verdict, 0) + 1
        tables += [
            f"## {path}",
            "",
            *_table(found),
            "",
            "Not there: " + ", ".join(f"`{n}`" for n in missing(path, torch, ours)) + ".",
            "",
        ]
    names = used()
    absent = [name for name, _ in names if not is_there(name, ours)]
    lines = [
        "# PyTorch's names",
        "",
        "Made by `python -m tests.peers.torch_table`; do not edit. Every public name of PyTorch's that `dynamic` has",
        "was called with generated arguments in both, and what PyTorch answers was compared: values, shapes, dtypes,",
        "arguments afterwards, gradients. *same* and *refused* count calls that PyTorch takes: an error is no other",
        "number. *partly* means that some calls are refused. Random functions are compared by shape and dtype: the",
        "generators are others. Not compared are gradients where a result is not finite, which of equal elements is",
        "found, and what nn.functional makes of numbers that are not finite. Where PyTorch's gradient is NaN, ours",
        "may be a number.",
        "",
        f"PyTorch {torch.__version__.partition('+')[0]}. Names: "
        + ", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items()))
        + ".",
        "",
        f"Of the {len(names)} names that two or more of 287 public programs use, {len(names) - len(absent)} are there"
        + (": all but " + ", ".join(f"`{n}`" for n in absent) + "." if absent else "."),
        "",
        DEFINITIONS,
        "",
        "One definition makes the function of `torch`, the method of a tensor and of what stands for one in a trace,",
        "and the method with `_` that changes it.",
        "",
        definitions(),
        "",
        *tables,
        SWITCHES,
        "",
        "Names for other devices, processes, compilers and formats. Each may be imported. What *returns*, *equals*,",
        "*gives back* or *surrounds* changes no number; what *refuses* raises an error when it is called, with the",
        "remedy beside it. `*` is every name of a place.",
        "",
        *switch_table(),
    ]
    return "\n".join(lines).rstrip() + "\n"


def definitions() -> str:
    """A row for each definition of a function or method: its names, its forms and its call."""
    groups: dict[Any, list[str]] = {}
    for name, function in (*definition.functions.items(), *vars(definition.Methods).items()):
        if hasattr(function, "__wrapped__") and name not in groups.setdefault(inspect.unwrap(function), []):
            groups[inspect.unwrap(function)].append(name)
    rows = [_definition(sorted(names, key=lambda n: n != f.__name__), f) for f, names in groups.items()]
    return "\n".join(["| name | also | forms | call |", "|---|---|---|---|", *sorted(rows)])


def switch_table() -> list[str]:
    """A row for each line of `dynamic.pytorch.switches`."""
    lines = ["| in | names | do | which |", "|---|---|---|---|"]
    for row in switches.SWITCHES:
        is_plain = row.value is None or isinstance(row.value, (bool, int, str))
        value = f" `{row.value!r}`" if row.does in ("returns", "equals") and is_plain else ""
        names = ", ".join(f"`{name}`" for name in row.names.split())
        lines.append(f"| `torch{'.' * bool(row.place)}{row.place}` | {names} | {row.does}{value} | {row.says} |")
    return lines


def _definition(names: list[str], function: Callable[..., Any]) -> str:
    name, *also = names
    spaces = {"function": definition.functions, "method": vars(definition.Methods)}
    forms = {form: inspect.unwrap(space.get(name, 0)) is function for form, space in spaces.items()}
    forms["in place"] = forms["method"] and hasattr(TorchMethods, f"{name}_")
    forms["method"] = forms["method"] and callable(getattr(TorchMethods, name))  # `x.real` is a value
    return " | ".join([
        f"| `{name}`",
        ", ".join(f"`{n}`" for n in also),
        ", ".join(form for form, is_there in forms.items() if is_there),
        f"`{name}{parameters(function)}` |",
    ])  # fmt: skip


def _table(found: list[Row]) -> list[str]:
    head = ["| name | verdict | same | refused | note |", "|---|---|---|---|---|"]
    return head + [f"| `{r.name}` | {r.verdict} | {r.same or ''} | {r.refused or ''} | {r.note} |" for r in found]


def main() -> None:
    """Print the table; the names that differ go to stderr."""
    import sys

    import torch

    import dynamic

    torch.set_num_threads(1)
    if len(sys.argv) > 1:
        path, *names = sys.argv[1:]
        for row in rows(path, torch, dynamic, names or None):
            if row.verdict != "same":
                sys.stderr.write(f"{row.name}: {row.verdict} {row.same} same {row.refused} refused {row.note}\n")
                sys.stderr.writelines(f"    {line[:400]}\n" for line in row.different[:4])
        return
    sys.stdout.write(text(torch, dynamic))


if __name__ == "__main__":
    main()
