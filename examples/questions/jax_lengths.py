"""A step of JAX whose last batch is smaller, and which is given its rate as a number of NumPy's or Python's."""

import jax.numpy as jnp
import numpy as np


def loss(w, x, rate):
    return jnp.mean(jnp.tanh(x @ w) ** 2) * rate


def batches():
    w = np.full((16, 8), 0.1, np.float32)
    return [(w, np.ones((n, 16), np.float32), rate) for n, rate in ((32, 1.0), (32, np.float32(0.5)), (20, 1.0))]
