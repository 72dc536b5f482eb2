"""PyTorch's names that are not there, with what to use instead."""

from __future__ import annotations

REMEDIES = {
    "bfloat16": "NumPy has no such dtype; use float16 or float32",
    "compile": "the dynamic engine runs op by op; compile the function with static.jit",
    **dict.fromkeys(
        (
            "complex",
            "complex32",
            "complex64",
            "complex128",
            "cfloat",
            "cdouble",
            "imag",
            "polar",
            "view_as_complex",
            "view_as_real",
        ),
        "tensors hold no complex numbers; keep two tensors, of real and imaginary parts",
    ),
    **dict.fromkeys(
        ("stft", "istft"), "there is no Fourier transform; use numpy.fft on x.detach().numpy(), without a gradient"
    ),
    "fft": "there is no Fourier transform; use numpy.fft on x.detach().numpy(), without a gradient",
    "sparse": "tensors are dense; use scatter_add, index_add or gather",
    "multiprocessing": "there is one process; use Python's multiprocessing with arrays",
    "distributed": "there is one process; use Python's multiprocessing with arrays",
    "onnx": "there is no export; save the graph of static.compile",
    "quantization": "there are no quantised tensors; use float16",
    "hub": "nothing is downloaded; define the model, and load its weights with load",
    "kl_div": "use nn.functional.kl_div, whose reduction has a name",
    "binary_cross_entropy_with_logits": "use nn.functional's, whose reduction has a name",
    "resize": "a tensor does not change its size; use reshape, or torch.empty",
}


def explained(name: str) -> str:
    """Why a name is not there, and what to use instead."""
    remedy = REMEDIES.get(name, "docs/torch-names.md lists what is there")
    return f"dynamic has no {name!r}: {remedy}"
