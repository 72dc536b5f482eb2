"""The sine by its Taylor series, term by term with a Python loop, and its slope."""

import graphs as np
from dynamic import grad


def taylor(x):
    total = term = x
    i = 0
    while i < 12:
        term = -term * x * x / ((2 * i + 3) * (2 * i + 2))
        total = total + term
        i += 1
    return total


losses = []
for point in np.linspace(-3, 3, 9):
    losses += [taylor(point), grad(taylor)(point), grad(grad(taylor))(point)]
losses += [grad(lambda x: np.sin(np.abs(x)))(np.pi / 4)]
