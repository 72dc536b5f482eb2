"""`torch.fft`: by NumPy's transforms, with gradients by finite differences, in both engines."""

import numpy as np
import pytest

import dynamic as torch
import dynamic.fft
import static
from graphs.errors import DTypeError, GraphError, OptionError
from graphs.testing import check_grads

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 6, 5))
Z = X + 1j * RNG.standard_normal((3, 6, 5))


def pair(values):
    return torch.complex(torch.tensor(values.real.copy()), torch.tensor(values.imag.copy()))


@pytest.mark.parametrize("norm", [None, "ortho", "forward", "backward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
@pytest.mark.parametrize(("n", "dim"), [(None, -1), (None, 1), (4, 1), (9, -1), (8, 0)])
def test_transforms_along_an_axis_are_numpys(name, n, dim, norm):
    values, given = (X, torch.tensor(X)) if name == "rfft" else (Z, pair(Z))
    found = getattr(torch.fft, name)(given, n=n, dim=dim, norm=norm).numpy()
    np.testing.assert_allclose(found, getattr(np.fft, name)(values, n, dim, norm), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"])
@pytest.mark.parametrize("norm", [None, "ortho"])
def test_transforms_over_several_axes_are_numpys(name, norm):
    values, given = (X, torch.tensor(X)) if name.startswith("rfft") else (Z, pair(Z))
    found = getattr(torch.fft, name)(given, norm=norm).numpy()
    np.testing.assert_allclose(found, getattr(np.fft, name)(values, norm=norm), rtol=1e-10, atol=1e-12)
    sizes = (4, 7)
    found = getattr(torch.fft, name)(given, s=sizes, dim=(0, 1)).numpy()
    np.testing.assert_allclose(found, getattr(np.fft, name)(values, s=sizes, axes=(0, 1)), rtol=1e-10, atol=1e-12)


def test_frequencies_and_their_order_are_numpys():
    np.testing.assert_allclose(torch.fft.fftfreq(5, 0.5), np.fft.fftfreq(5, 0.5))
    np.testing.assert_allclose(torch.fft.rfftfreq(6), np.fft.rfftfreq(6))
    np.testing.assert_array_equal(torch.fft.fftshift(torch.tensor(X)), np.fft.fftshift(X))
    np.testing.assert_array_equal(torch.fft.ifftshift(pair(Z), dim=1).numpy(), np.fft.ifftshift(Z, 1))


def convolution(x, kernel):
    """A causal convolution as state spaces have it: by transforms of twice the length."""
    n = 2 * x.shape[-1]
    return torch.fft.irfft(torch.fft.rfft(x, n=n) * torch.fft.rfft(kernel, n=n), n=n)[..., : x.shape[-1]]


def test_gradients_go_through_transforms_in_both_engines():
    x, kernel = RNG.standard_normal((2, 5)), RNG.standard_normal(5)
    expected = np.stack([np.convolve(row, kernel)[:5] for row in x])
    np.testing.assert_allclose(convolution(torch.tensor(x), torch.tensor(kernel)), expected)
    np.testing.assert_allclose(static.jit(convolution)(x, kernel), expected)
    for engine in (torch, static):
        check_grads(convolution, (x, kernel), 2, engine=engine)
        check_grads(lambda x: torch.fft.rfft2(x, norm="ortho").abs() ** 2, (X,), engine=engine)


def test_single_precision_stays_single():
    z = dynamic.fft.fft(torch.ones(4))
    assert (z.dtype, z.real.dtype) == (torch.complex64, torch.float32)
    assert torch.fft.rfft(torch.ones(4, dtype=torch.int64)).dtype == torch.complex64
    with pytest.raises(OptionError, match="'ortho'"):
        torch.fft.fft(torch.ones(4), norm="both")
    with pytest.raises(DTypeError, match="float32 and float64"):
        torch.fft.fft(torch.ones(4).half())
    with pytest.raises(GraphError, match="no axis 3"):
        torch.fft.fft(torch.ones(4), dim=3)
