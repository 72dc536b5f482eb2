"""Complex numbers as pairs of real tensors, by NumPy's, in both engines; and dtypes that are not there."""

import pickle

import numpy as np
import pytest

import dynamic as torch
import dynamic.nn as nn
import dynamic.nn.functional as F  # noqa: N812
import static
from graphs.errors import DTypeError, GraphError

Z, W = np.array([1 + 2j, 3 - 4j, -0.5j]), np.array([0.5 + 1j, 1 - 1j, 2 + 0j])
R = np.array([2.0, -1.0, 3.0])


def pair(values):
    return torch.complex(torch.tensor(values.real.copy()), torch.tensor(values.imag.copy()))


FUNCTIONS = {
    "add": lambda z, w, r: (z + w) + r + 1,
    "subtract": lambda z, w, r: 2 - (r - (z - w)),
    "multiply": lambda z, w, r: (z * w) * r * 2,
    "python": lambda z, w, r: 1j * z + 2j * r,
    "divide": lambda z, w, r: z / w + 1 / w + z / r,
    "matmul": lambda z, w, r: z[None] @ w[:, None],
    "exp": lambda z, w, r: np.exp(z) if isinstance(z, np.ndarray) else torch.exp(z),
    "log": lambda z, w, r: np.log(w) if isinstance(z, np.ndarray) else w.log(),
    "conj": lambda z, w, r: z.conj() * w,
    "parts": lambda z, w, r: z[1:] * 1 - z[:2],
    "mean": lambda z, w, r: (z.reshape(3, 1) * w).mean(1).sum(),
    "abs": lambda z, w, r: abs(z),
    "equal": lambda z, w, r: z == w,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arithmetic_is_numpys(name):
    function = FUNCTIONS[name]
    found, expected = function(pair(Z), pair(W), torch.tensor(R)), function(Z, W, R)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


def spectral(x, library):
    """A spectral layer: some frequencies of a signal, times weights, among zeros."""
    out = library.zeros((2, 3), dtype=library.complex128 if library is torch else complex)
    out[:, :2] = library.fft.rfft(x)[:, :2] * 2j
    out[:, 2] += 1
    out[0, 0] = 3 - 1j
    picked = out[[1, 0], [0, 2]]
    return (library.fft.irfft(out, 4) ** 2).sum() + (picked.real * picked.imag).sum()


def test_a_pair_of_zeros_is_written_by_parts():
    x = np.random.default_rng(0).standard_normal((2, 4))
    np.testing.assert_allclose(spectral(torch.tensor(x), torch).numpy(), spectral(x, np), rtol=1e-12)
    np.testing.assert_allclose(static.jit(lambda x: spectral(x, torch))(x), spectral(x, np), rtol=1e-12)
    assert torch.autograd.gradcheck(lambda x: spectral(x, torch), torch.tensor(x, requires_grad=True))
    z = torch.ones(2, dtype=torch.cfloat)
    assert (z.dtype, z.numpy().tolist()) == (torch.complex64, [1, 1])


def test_functions_of_torch_take_pairs():
    z, w = pair(Z), pair(W)
    np.testing.assert_allclose(torch.cat([z, w]).numpy(), np.concatenate([Z, W]))
    np.testing.assert_allclose(torch.stack([z, w]).mH.numpy(), np.stack([Z, W]).conj().T)
    np.testing.assert_allclose(torch.einsum("i,j->ij", z, w).numpy(), np.outer(Z, W))
    np.testing.assert_allclose(torch.angle(z), np.angle(Z))
    np.testing.assert_allclose(torch.polar(z.abs(), z.angle()).numpy(), Z, atol=1e-15)
    np.testing.assert_array_equal(torch.view_as_real(torch.view_as_complex(torch.ones(3, 2))), np.ones((3, 2)))
    assert (z.dtype, pair(Z.astype(np.complex64)).dtype) == (torch.complex128, torch.cfloat)
    assert torch.is_complex(z)
    assert isinstance(z, torch.Tensor)
    assert torch.real(z).tolist() == z.real.tolist() == [1.0, 3.0, 0.0]
    assert torch.imag(z).tolist() == [2.0, -4.0, -0.5]
    assert z[0].item() == 1 + 2j
    ends = torch.complex(torch.tensor([np.inf, 1.0]), torch.tensor([1.0, -np.inf])).numpy()
    assert (ends.real.tolist(), ends.imag.tolist()) == ([np.inf, 1.0], [1.0, -np.inf])


def test_what_would_need_a_conjugate_is_refused_by_name():
    z = pair(Z)
    for refused, words in (
        (z.var, "var: takes no complex"),
        (lambda: torch.vdot(z, z), "vdot: takes no complex"),
        (lambda: torch.linalg.norm(z), "norm: takes no complex"),
        (lambda: F.mse_loss(z, z), "mse_loss: takes no complex"),
        (lambda: z < z, "less: there is no rule"),
        (lambda: z**2, "pow: there is no rule"),
        (lambda: z.to(torch.float32), "has two parts"),
        (lambda: nn.Parameter(z), "view_as_real"),
        (lambda: torch.ones(2) + np.array([1j]), "complex128"),
        (lambda: torch.imag(z.real), "zeros_like"),
        (lambda: torch.view_as_complex(z.real), "size 2"),
    ):
        with pytest.raises(DTypeError, match=words):
            refused()


def frequencies(dim, end):
    freqs = 1.0 / (10000.0 ** (torch.arange(0, dim, 2)[: dim // 2].float() / dim))
    freqs = torch.outer(torch.arange(end, dtype=torch.float32), freqs)
    return torch.polar(torch.ones_like(freqs), freqs)


def rotated(x, freqs_cis):
    x_ = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    shape = [d if i in (1, x_.ndim - 1) else 1 for i, d in enumerate(x_.shape)]
    return torch.view_as_real(x_ * freqs_cis.view(*shape)).flatten(3).type_as(x)


def test_rotary_embeddings_turn_pairs_in_both_engines():
    x = np.random.default_rng(0).standard_normal((2, 4, 3, 8)).astype(np.float32)
    freqs_cis = frequencies(8, 6).to("cpu")[:4]
    held = (x[..., ::2] + 1j * x[..., 1::2]) * freqs_cis.numpy()[None, :, None]
    expected = np.stack([held.real, held.imag], -1).reshape(x.shape)
    np.testing.assert_allclose(rotated(torch.tensor(x), freqs_cis), expected, rtol=1e-5, atol=1e-6)

    def loss(x):
        return (rotated(x, freqs_cis) ** 2 * torch.tensor(expected)).sum()

    np.testing.assert_allclose(static.jit(loss)(x), loss(torch.tensor(x)), rtol=1e-5)
    np.testing.assert_allclose(static.jit(static.grad(loss))(x), torch.grad(loss)(x), rtol=1e-5, atol=1e-6)


def test_a_pair_beside_a_real_number_is_one_in_a_trace_too():
    """Whichever comes first, in a function and in a training step: `-exp(a) + 1j * b` of diagonal state spaces."""
    forms = {
        "sum": lambda x, z: x + z, "sum, turned": lambda x, z: z + x, "difference": lambda x, z: x - z,
        "product": lambda x, z: x * z, "quotient": lambda x, z: z / x, "joined": lambda x, z: torch.cat([z, z * x]),
    }  # fmt: skip
    x = torch.tensor([1.0, 2.0, 0.5])
    for name, form in forms.items():

        def real(x, form=form):
            return torch.view_as_real(form(-torch.exp(x), 1j * x))

        np.testing.assert_allclose(static.jit(real)(x), real(x), rtol=1e-6, err_msg=name)
        traced, by_tape = (engine.grad(lambda x, real=real: (real(x) ** 2).sum()) for engine in (static, torch))
        np.testing.assert_allclose(static.jit(traced)(x), by_tape(x), rtol=1e-5, err_msg=name)
    losses = []
    for trace in (lambda step, *_: step, static.trace_step):
        a, b = (torch.nn.Parameter(torch.ones(3)) for _ in range(2))
        optimizer = torch.optim.SGD([a, b], lr=0.1)

        def step(y, a=a, b=b, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (torch.view_as_real(-torch.exp(a) + 1j * b) ** 2).sum() * y
            loss.backward()
            optimizer.step()
            return loss

        stepped = trace(step, optimizer)
        losses.append([float(stepped(torch.ones(()))) for _ in range(3)])
    np.testing.assert_allclose(*losses, rtol=1e-6)


def test_a_pair_is_an_attribute_of_a_module_and_in_no_state_dict():
    module = nn.Linear(2, 2)
    module.register_buffer("freqs", pair(Z), persistent=False)
    assert module.to(torch.float64).freqs.shape == (3,)
    assert [*module.state_dict()] == ["weight", "bias"]
    with pytest.raises(GraphError, match="persistent=False"):
        module.register_buffer("more", pair(Z))


def test_bfloat16_is_a_name_that_programs_compare_with_and_no_dtype_of_a_tensor():
    kinds = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    x = torch.ones(2)
    assert x.dtype == kinds["float32"] != torch.bfloat16
    assert x.dtype not in (torch.bfloat16, torch.float16)
    assert torch.bfloat16.is_floating_point
    assert not torch.bfloat16.is_complex
    assert repr(pickle.loads(pickle.dumps(torch.bfloat16))) == "torch.bfloat16"
    for refused in (
        x.bfloat16,
        lambda: x.to(torch.bfloat16),
        lambda: torch.zeros(2, dtype=torch.bfloat16),
        lambda: nn.Linear(1, 1).bfloat16(),
        lambda: nn.Linear(1, 1).to(torch.bfloat16),
    ):
        with pytest.raises(DTypeError, match=r"tensors are not bfloat16 here.*NumPy has none; use float32"):
            refused()


def test_autocast_changes_nothing_and_says_so_once(recwarn):
    torch.amp._say_once.cache_clear()
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.autocast(device_type="cpu"):
        y = torch.ones(2, 2) @ torch.ones(2, 2)
        assert not torch.is_autocast_enabled()
    with torch.autocast("cuda", dtype=torch.float16), torch.autocast("cpu", enabled=False):
        pass
    assert y.dtype == torch.float32
    assert [str(warning.message) for warning in recwarn] == [
        "autocast changes nothing here: ops compute in the dtypes of their operands, PyTorch in bfloat16"
    ]


def test_complex_data_is_a_pair_of_leaves():
    data = np.array([1 + 2j, 3])
    for make in (torch.tensor, torch.as_tensor, torch.asarray, torch.from_numpy):
        made = make(data)
        assert made.dtype == torch.complex128
        np.testing.assert_array_equal(made.numpy(), data)
    assert torch.tensor([1, 2j]).dtype == torch.tensor(1j).dtype == torch.scalar_tensor(1j).dtype == torch.complex64
    assert torch.full((2,), 1j).tolist() == [1j, 1j]
    shared = torch.from_numpy(data)
    data[0] = 5j
    assert shared.tolist() == [5j, 3]
    assert torch.tensor(data, requires_grad=True).imag.requires_grad
