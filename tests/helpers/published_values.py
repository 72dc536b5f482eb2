"""What the programs after published kinds return, worked out another way, as in `tests/helpers/corpus_values.py`."""

import functools
import itertools
import math

import numpy as np


def falling(height):
    """The speeds do not depend on the height: they are 19.6 (0.95^n - 1)."""
    speeds = 19.6 * (0.95 ** np.arange(400) - 1)
    heights = height + 0.1 * np.cumsum(speeds)
    last = int(np.argmax(heights <= 0))
    return 0.1 * last - (heights[last] - 0.1 * speeds[last]) / speeds[last]


def backward_euler(rate):
    """The real root of a cubic, three times."""
    y = 1.0
    for _ in range(3):
        roots = np.roots([0.1 * rate, 0, 1, -y])
        y = float(roots[np.argmin(abs(roots.imag))].real)
    return y


def predators(x):
    """All the states there could be, and the first that ends it."""
    states = [np.array(x)]
    for _ in range(40):
        prey, hunters = states[-1]
        states.append(states[-1] + 0.1 * np.array([prey * (1 - hunters), hunters * (prey - 1)]))
    few = np.flatnonzero(np.array(states)[:, 0] <= 0.5)
    steps = few[0] if len(few) else 40
    return states[steps] @ [1, steps]


def first_accepted(scale, proposals, heights):
    accepted = [p for p, h in zip(proposals, heights, strict=True) if math.log(h) < -p * p / scale]
    return scale * next(iter(accepted), proposals[-1])


def metropolis(start, moves, draws):
    """Of all ways to accept, the one that agrees with itself."""
    for accepted in itertools.product((0, 1), repeat=len(moves)):
        chain = start + np.cumsum(moves * accepted)
        before = np.append(start, chain[:-1])
        if np.array_equal(draws < np.exp((before**2 - (before + moves) ** 2) / 2), np.array(accepted, bool)):
            return np.mean(chain**2)
    return None


def drawn(weights, draws):
    p = weights / weights.sum()
    return np.log(p[np.searchsorted(np.cumsum(p), draws, side="right")]).sum()


def thinned(gaps, marks, end):
    times = np.cumsum(gaps)
    return (times * marks)[(times <= end) & (marks >= 0.5)].sum()


def early_stopping(x, rates):
    """All points, and how long ago the lowest before each was."""
    points = [x]
    for rate in rates:
        points.append(points[-1] - rate * (4 * points[-1] ** 3 + 1))
    losses = [np.sum(point**4 + point) for point in points]
    lowest = [int(np.argmin(losses[: t + 1])) for t in range(len(points))]
    stopped = next((t for t in range(len(points)) if t - lowest[t] >= 2), len(points) - 1)
    return points[lowest[stopped]]


def rejected_steps(x, rate):
    for _ in range(5):
        after = x - 4 * rate * x**3
        x, rate = (after, rate) if (after**4).sum() < (x**4).sum() else (x, rate / 4)
    return x.sum() + rate


def loss_scaling(x, gradients):
    """The scales by hand: 8 8 16; 8 4; 8 16 8 (too large for the third); 8 4 (too large)."""
    kept, scale = {(1, 1, 3, 0): ([0], 4), (1, 0, 0, 1, 1, 1, 0.5, 0): ([0, 1, 2, 3], 32), (9, 0): ([], 4)}[
        tuple(gradients.ravel())
    ]
    return scale * x * np.prod([1 - 0.1 * gradients[i] for i in kept], axis=0)


def hard_examples(weight, rows, targets):
    losses = (rows @ weight - targets) ** 2
    return losses[losses >= 0.5].mean() if (losses >= 0.5).any() else 0.0


def composed(vectors, tree):
    a, b, c, d, e = vectors

    def gate(x, y):
        return y / (1 + np.exp(-x))

    return {
        "mean": lambda: (a + b + gate(c, d)) / 3,
        "sum": lambda: np.tanh((e + a) / 2 + b),
        "gate": lambda: gate(a, np.tanh(b + c + d + e)),
    }[tree[0]]()


def spelled(params, words):
    def vector(word):
        letters = (params["letters"][letter] for letter in word)
        return functools.reduce(lambda h, x: np.tanh(h + x), letters, params["start"])

    rows = [params["words"].get(word, vector(word) if word not in params["words"] else None) for word in words]
    return functools.reduce(lambda hidden, row: np.tanh(hidden / 2 + row), rows, params["start"])


def shift_reduce(words):
    """The stack as a tuple, from the end of a list of words to its start."""

    def joined(stack):
        if len(stack) > 1 and stack[0] @ stack[1] > 0:
            return joined((np.tanh(stack[1] + 2 * stack[0]), *stack[2:]))
        return stack

    return np.sum(functools.reduce(lambda stack, word: joined((word, *stack)), words, ()), axis=0)


def messages(x, edges):
    values = np.array(x)
    for start, end in edges:
        values[end] = max(values[end], (values[end] + values[start]) / 2)
    return values


def neural_stack(values, pushes, pops):
    """In grains of 0.01, each of which is pushed and popped whole."""
    stack = []
    for t, (push, pop) in enumerate(zip(pushes, pops, strict=True)):
        stack = stack[: max(len(stack) - round(100 * pop), 0)] + [t] * round(100 * push)
    return values[stack[-100:]].sum(axis=0) / 100


def least_used(writes, use):
    slots, use = np.zeros((3, writes.shape[1])), np.array(use)
    for write in writes:
        slots[use.argmin()] = np.tanh(slots[use.argmin()] + write)
        use[use.argmin()] += 1
    return slots


def nearest(params, x, reach):
    distances = np.linalg.norm(params["keys"] - x, axis=1) ** 2
    if distances.min() > reach:
        return np.tanh(x * params["keys"].sum())
    return params["values"][distances.argmin()] / np.exp(distances.min())


def ring(x, width):
    return (x[width:] / x[:-width]).sum()


def nesting(x, codes):
    """Of each sequence the depths, by hand: nothing, then one that is closed, and so on."""
    a, _, c, d, e = x
    return {(0, 1, 0, 2, 0): a + c / 2 + e, (1, 1, 0, 0, 2): (c + d) / 4, (0, 2, 0, 1, 0): a}[tuple(codes.tolist())]


def formula(values, text):
    a, b, c, d = values
    return {"0+1*2-3": a + b * c - d, "(0-1)*(2+3)": (a - b) * (c + d), "0*1*(2-3*0)": a * b * (c - d * a)}[text]


def bracketing(scores):
    """The best of all binary trees, each written out."""

    def trees(start, end):
        if end == start + 1:
            return [scores[start, start]]
        halves = (itertools.product(trees(start, m), trees(m, end)) for m in range(start + 1, end))
        return [scores[start, end - 1] + left + right for pairs in halves for left, right in pairs]

    return max(trees(0, len(scores)))


def runs(x, codes):
    parts = np.split(x, np.flatnonzero(np.diff(codes)) + 1)
    return sum(part.sum() ** 2 for part in parts)


def rising_fit(x):
    """The least squares of all ways to cut it into blocks whose means rise."""
    n, best = len(x), (math.inf, None)
    for cuts in itertools.product((False, True), repeat=n - 1):
        parts = np.split(x, np.flatnonzero(cuts) + 1)
        fit = np.concatenate([np.full(len(part), part.mean()) for part in parts])
        if (np.diff(fit) >= 0).all():
            best = min(best, (((fit - x) ** 2).sum(), fit), key=lambda pair: pair[0])
    return best[1]


def trust_region(x, radius):
    def height(x):
        return (x * x - 1) ** 2

    for _ in range(3):
        after = x + np.clip(4 * x * (1 - x * x), -radius, radius)
        gain = height(x) - height(after)
        x, radius = (after, radius * (2 if gain > 0.5 else 1)) if gain > 0 else (x, radius / 4)
    return x + radius


VALUES = {
    **{name: value for name, value in globals().items() if getattr(value, "__module__", "") == __name__},
    "step_doubling": lambda rate: np.exp(-rate),
    "log_gamma": math.lgamma,
    "interpolated": lambda heights, knots, at: np.interp(at, knots, heights),
    "deviation": lambda x: np.median(abs(x - np.median(x))),
}
