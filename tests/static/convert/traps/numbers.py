"""Python numbers: ints stay ints, floats are weak, bools are what `is` and `not` find, text and keys need the value."""

import numpy as np

import graphs as g
from tests.static.convert.table import right, rows


@right
def a_python_float_stays_weak(x):
    single, factor = g.astype(x, np.float32), 0.1
    if g.sum(x) > 0:
        factor /= 3
    scaled = single * factor
    return g.sum(scaled) * (1.0 if scaled.dtype == np.float32 else 1000.0)


@right
def a_float_of_a_loop_stays_weak(x):
    single, factor = g.astype(x, np.float32), 4.0
    while g.sum(x * x) < factor:
        factor = factor / 2
    return g.sum(single * factor)


@right
def divmod_of_a_count(x):
    n = 0
    for value in x:
        if value > 0:
            n += 3
    whole, rest = n // 2, n % 2
    return g.sum(x) * whole + rest


rows(
    __name__,
    right="""
step, rounds = 0.1, 0 | while g.sum(x * x) * step < 2: step *= 2; rounds += 1 | g.sum(x) * step + rounds
n = 9 | if g.sum(x) > 0: n = 4 | g.sum(x) * (n // 2) + n % 4 + n / 8
n = 1 | if g.max(x) > 1: n = 3 | g.sum(x) * (10 if isinstance(n, int) else 1)
if g.sum(x) > 0: n = 2 | else: n = 0.5 | g.sum(x) * n
n = 0 | for value in x: n += value > 0 | g.sum(x) * n
n = 0 | if g.sum(x) > 0: n = 2 | g.sum(x) if not n else g.sum(x) * n
best = x[0] | if g.sum(x) > 0: best = x[1] | g.sum(x) if best is None else best * 2
g.sum(x) * (2.0 if int(g.argmax(x)) in (0, 1) else 3.0)
factors = {"size4": 3.0} | if g.sum(x) > 0: return g.sum(x) * factors[f"size{x.shape[0]}"] | g.sum(x)
n = int(x[0] * 3) | g.sum(x) * n
g.sum(x) * float(x[1])
g.sum(x) if -1 < g.sum(x) <= 2 else g.sum(x) * 3
g.sum(x) * 2 if x[0] < x[1] < x[2] else g.sum(x)
n = 0 | while g.sum(x * x) > 2**n: n += 1 | g.sum(x) * 2.0**n
n = 3 | if g.sum(x) > 0: n /= 2 | g.sum(x) * n
max(g.sum(x), 0.5) * min(1.0, x[0], x[1])
n = 0 | for value in x: n += value > 0 | g.sum(x) * math.sqrt(1 - 0.9**n) / (1 + math.log(n + 2, 2))
n = 2 | if g.sum(x) > 0: n = 3 | g.sum(x) * (math.cos(n) + math.exp(-n) + math.pow(n, 0.5) + math.tanh(n / 4))
n = int(x[0] * 3) | g.sum(x) * (math.floor(n / 2) % 5 + math.ceil(n / 4) // 2 + math.fabs(n))
n = 0 | for value in x: n += int(value > 0) | g.sum(x) * g.sum(np.array([n, 3]) / 4 * np.asarray((float(n), 2.0)))
n = 1 | if x[0] > 0: n = 2 | g.sum(x) * g.sum(np.array([[n, 1], [2, 0.5]], dtype=np.float32))
""",
    refused="""
n, s = 1, g.sum(x * x) + 3 | while s > 1: n, s = n * 1_000_003, s * 0.6 | g.sum(x) * (n % 7)
above = True | if g.sum(x) > 0: above = False | g.sum(x) * (2 if above is True else 3)
place = 0 | if g.sum(x) > 0: place = 1 | g.sum(x) * {0: 2.0, 1: 3.0}[place]
g.sum(x) * (2.0 if int(g.argmax(x)) in {0, 1} else 3.0)
n = 1 | if g.sum(x) > 0: n = 2 | g.sum(x) * {"1": 5.0}.get(str(n), 7.0)
n = 1 | if g.sum(x) > 0: n = 2 | g.sum(x) * (5.0 if f"{n:02d}" == "01" else 7.0)
words = ["add", "scale"] | word = words[int(x[0] > 0)] | g.sum(x) + 1 if word == "add" else g.sum(x) * 2
""",
)
