"""What the programs of the corpus return, worked out another way: closed forms, NumPy, or by hand.

Each takes the arguments of a program; where that is simpler there is a list, a result for each of its inputs.
"""

import functools
import itertools
import math
from random import Random

import numpy as np
from scipy.optimize import brentq


def softmax(x):
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


def three_ways(x):
    return x * 3 if x.sum() > 10 else x**2 if x.sum() > 0 else x * 0.5


def nested_branches(x):
    if x.max() > 1:
        return np.ptp(x) if x.min() < -1 else np.exp(-x).sum()
    return x @ x if x.mean() > 0 else np.sin(x).sum()


def clip_norm(x, limit):
    return x * min(1, limit / np.linalg.norm(x))


def short_circuit(x):
    return np.log(x**2 + x.sum()) if x.sum() > math.e else x / 2


def match_largest(x):
    return [x.sum(), x[1] * x[2], x[1] * x[2], np.exp(x[0])][x.argmax()]


def clamp(x):
    return np.clip(x.sum(), None, 3 * x[0]).clip(x[-1], None)


def by_rank(x, weight):
    if x.ndim == 1:
        return weight * x.sum()
    return weight * (np.sum(x.sum(axis=0) ** 2) if x.shape[0] > x.shape[1] else np.sum(x.sum(axis=1) ** 2))


def triangle(matrix):
    return np.tril(matrix * matrix.T, -1).sum()


def grow(x):
    values = [x]
    while values[-1].sum() < 100:
        values.append(values[-1] ** 2 + 1)
    return values[-1]


def compound(x, times):
    return functools.reduce(lambda y, _: y + np.sin(y), range(times), x)


def halve_rows(rows):
    halvings = np.maximum(0, np.ceil(np.log2(np.linalg.norm(rows, axis=1))))
    return np.sum(rows / 2 ** halvings[:, None])


def spend(costs, budget):
    sums = np.cumsum(costs)
    return max(sums[sums <= budget], default=0.0)


def skip_negative(x):
    return np.sqrt(x.clip(0)).sum()


def first_above(x, threshold):
    places = np.flatnonzero(x > threshold)
    return x[places[0]] ** 2 if len(places) else x.sum()


def bisection(a):
    return next(root.real for root in np.roots([1, 0, 1, -a]) if abs(root.imag) < 1e-9)


def line_search(x):
    f = lambda x: np.sum(x**4 + x**2)  # noqa: E731
    for _ in range(3):
        slope = 4 * x**3 + 2 * x
        size = next(2.0**-k for k in itertools.count() if f(x - 2.0**-k * slope) <= 0.9 * f(x))
        x = x - size * slope
    return f(x)


def sinkhorn(matrix):
    """The scaling exists and is one: r and c with diag(r) A diag(c) of unit sums, by another iteration."""
    r = np.ones(len(matrix))
    for _ in range(2000):
        r = 1 / (matrix @ (1 / (matrix.T @ r)))
    return r[:, None] * matrix / (matrix.T @ r)


def tree_product(leaves, tree):
    return leaves[tree] if isinstance(tree, int) else np.tanh(
        tree_product(leaves, tree[0]) + 2 * tree_product(leaves, tree[1])
    )  # fmt: skip


def halves(x):
    return {1: lambda a: a, 4: lambda a, b, c, d: (a * b + 1) * (c * d + 1) + 1,
            5: lambda a, b, c, d, e: (a * b + 1) * (c * (d * e + 1) + 1) + 1}[len(x)](*x)  # fmt: skip


def minimax(leaves, tree):
    return max(min(leaves[i] for i in pair) for pair in tree)


def decision_tree(x, tree):
    if x[0] < 1:
        return -x if x[1] < 0 else 2 * x
    return x / 2 if x[2] < 3 else 4 * x


def adaptive_integral(width):
    """By the error function; Simpson's rule was allowed 1e-4 per unit of length."""
    return width * math.sqrt(math.pi) / 2 * math.erf(4 / width)


def named_layers(layers, x):
    steps = {"scale0": np.multiply, "shift0": np.add, "tanh0": lambda x, w: np.tanh(x * w)}
    for name in layers:
        x = steps[name](x, layers[name])
    return x


def postfix(values, words):
    a, b, c = values
    return {"x x *": a * b, "x x - x *": (a - b) * c, "x x x * -": a - b * c}[" ".join(words)]


def stack_machine(values, codes):
    a, b, c = values
    return {(1, 1, 2, 0, 0): a + b, (1, 1, 1, 3, 2): a + b * c, (1, 1, 3, 1, 3): a * b * c}[tuple(codes.tolist())]


def merge_smallest(x):
    merged = {(1, 2, 4, 8): (3, 7, 15), (5, 1, 3, 2): (3, 6, 11), (4, 4.5, 5, 6): (8.5, 11, 19.5)}
    return np.sum(np.square(merged[tuple(x)]))


def group_by(x, labels):
    return np.prod([x[labels == label].sum() for label in np.unique(labels)])


def masked_mean(x):
    return x[x > 0].mean() if (x > 0).any() else 0.0


def first_of_each(x, labels):
    return np.prod(x[np.unique(labels, return_index=True)[1]])


def trim(x):
    return np.mean(x[: np.flatnonzero(abs(x) >= 0.1)[-1] + 1] ** 2)


def crop_mean(image, box):
    return image[box[0] : box[1], box[2] : box[3]].mean()


def nucleus(scores, mass):
    p = np.sort(softmax(scores))[::-1]
    q = p[: np.searchsorted(np.cumsum(p), mass) + 1]
    return -np.sum(q / q.sum() * np.log(q / q.sum()))


def trajectory(x):
    states = [x]
    while abs(states[-1]) > 0.1 and len(states) <= 8:
        states.append(0.7 * np.sin(states[-1]))
    return np.array(states[1:])


def descend(x):
    """Momentum as a matrix: (x, speed) -> [[0.6, 0.5], [-0.4, 0.5]] (x, speed)."""
    matrix = np.array([[0.6, 0.5], [-0.4, 0.5]])
    for steps in range(13):
        now = (np.linalg.matrix_power(matrix, steps) @ np.stack([x, 0 * x]))[0]
        if now @ now <= 0.01 or steps == 12:
            return now.sum() + steps
    return None


def bouncing_ball(height):
    speed, bounces = 1.0, 0
    for _ in range(11):  # 0.1 ten times is less than 1 in floating point
        speed -= 0.9
        height = height + 0.1 * speed  # `+=` would change the array that is passed in
        if height < 0:
            height, speed, bounces = -height, -0.8 * speed, bounces + 1
        if bounces == 3:
            break
    return height


def log_or_line(x):
    return np.log(x) if x >= 0.5 else 2 * x


def place_or_last(x, place):
    return dict(enumerate(x**2)).get(int(place), x[-1])


def table_or_default(x, key):
    return [2 * x, x + 1, -x, x / 2, x + 1][key]


def retry_damped(a):
    damping = next(d for k in itertools.count() if np.linalg.eigvalsh(a + (d := 0.1 * 4**k) * np.eye(2)).min() > 0)
    return np.linalg.slogdet(a + damping * np.eye(2))[1] - damping


def sum_of_shrinking(x):
    """x, then x^2 / 2, ...: the n-th is 2 (x / 2)^(2^n)."""
    terms = [2 * (x / 2) ** 2**n for n in range(12)]
    return sum(term for term in terms if term > 0.01)


def windows(x, width):
    return np.log(np.exp(np.lib.stride_tricks.sliding_window_view(x, width).prod(axis=1)).sum())


def leading(x):
    return sum(x[: [*(x > 0), False].index(False)] ** 2)


def next_above(x, threshold):
    return x[x > threshold][0] ** 2 if (x > threshold).any() else threshold


def smoothed(x, rate):
    n = len(x)
    lag = np.subtract.outer(np.arange(n), np.arange(n))
    return rate ** np.arange(1, n + 1) * x[0] + np.where(lag >= 0, (1 - rate) * rate ** lag.clip(0), 0) @ x


def early_exit(layers, x):
    outputs = [softmax(3 * (x := np.tanh(x @ weight))) for weight in layers]
    return next((y for y in outputs if y.max() > 0.7), outputs[-1])


def mixture_of_experts(params, rows):
    choices = (rows @ params["gate"]).argmax(axis=1)
    return np.tanh(np.einsum("ni,nij->nj", rows, np.array(params["experts"])[choices]))


def stochastic_depth(inputs):
    """The results of all calls in order: each draws on."""
    chance, results = Random(5), []
    for layers, x in inputs:
        kept = [weight for weight in layers if chance.random() < 0.5]
        for weight in kept:
            x = x + np.tanh(x @ weight)
        results.append(x)
    return results


def recurrent(params, xs, length=None):
    hidden = params["start"]
    for x in xs[:length]:
        hidden = np.tanh(x + hidden @ params["weight"])
    return hidden


def growing_memory(weight, xs):
    memory, state = np.zeros((0, 3)), xs[0]
    for x in xs:
        memory = np.vstack([memory, np.tanh(x + state @ weight)])
        state = softmax(memory @ memory[-1]) @ memory
    return state


def pondering(params, x):
    states = [x]
    for _ in range(6):
        states.append(np.tanh(states[-1] @ params["weight"]))
    states = np.array(states[1:])
    p = 1 / (1 + np.exp(-states @ params["halt"]))
    spent = np.minimum(np.cumsum(p), 1)
    return np.diff(spent, prepend=0) @ states


def greedy_tokens(scores, first):
    token, found = int(first), []
    while token != 0 and len(found) < 6:
        found.append(np.log(softmax(scores[token]).max()))
        token = scores[token].argmax()
    return np.array(found)


def beam(scores, first):
    """All paths of three tokens, those that a beam of two keeps at each length."""
    log_p = np.log(softmax(scores))
    beams = {(int(first),): 0.0}
    for _ in range(3):
        longer = {path: total for path, total in beams.items() if path[-1] == 0}
        alive = [path for path in beams if path[-1] != 0]
        longer |= {(*path, after): beams[path] + log_p[path[-1], after] for path in alive for after in range(4)}
        beams = dict(sorted(longer.items(), key=lambda item: -item[1])[:2])
    return max(beams.values())


def collapse(log_p):
    labels = log_p.argmax(axis=1)
    first_of_run = np.append(True, np.diff(labels) != 0)
    return log_p.max(axis=1)[first_of_run & (labels != 0)].sum()


def edit_distance(costs, first, second):
    """How often one deletes, inserts and replaces: (k -> s)itt(e -> i)n(+ g), and t(+ r)a(p -> c)e."""
    edits = {("kitten", "sitting"): (0, 1, 2), ("graph", "graph"): (0, 0, 0), ("tape", "trace"): (0, 1, 1)}
    return np.dot(edits[first, second], costs)


def time_warping(x, y):
    """The cheapest of all monotone paths, each tried."""
    best = math.inf
    paths = [[(0, 0)]]
    while paths:
        path = paths.pop()
        i, j = path[-1]
        if (i, j) == (len(x) - 1, len(y) - 1):
            best = min(best, sum((x[a] - y[b]) ** 2 for a, b in path))
        steps = ((i + 1, j), (i, j + 1), (i + 1, j + 1))
        paths += [[*path, step] for step in steps if step[0] < len(x) and step[1] < len(y)]
    return best


def viterbi(emissions, transitions):
    """The best of all paths, each tried."""
    times, states = emissions.shape
    return max(
        sum(emissions[t, s] for t, s in enumerate(path)) + sum(transitions[a, b] for a, b in itertools.pairwise(path))
        for path in itertools.product(range(states), repeat=times)
    )


def knapsack(values, weights, capacity):
    """The best of all choices, each tried."""
    choices = itertools.product((0, 1), repeat=len(values))
    return max(np.dot(choice, values) for choice in choices if np.dot(choice, weights) <= capacity)


def shortest_path(lengths, edges, nodes):
    """The shortest of the three ways there are."""
    a, b, c, d, e = lengths
    return min(a + b + d, c + d, a + e)


def heaviest_rising(x):
    """The best of all subsequences that rise, each tried."""
    chosen = (part for n in range(1, len(x) + 1) for part in itertools.combinations(x, n))
    return max(sum(part) for part in chosen if all(a < b for a, b in itertools.pairwise(part)))


VALUES = {
    **{name: value for name, value in globals().items() if getattr(value, "__module__", "") == __name__},
    "branch_on_sum": lambda x: x * 2 if x.sum() > 0 else x - 2,
    "leaky_elements": lambda x: np.maximum(x, 0.1 * x),
    "power": lambda x, exponent: x**exponent,
    "newton_sqrt": np.sqrt,
    "fixed_point": lambda c: brentq(lambda x: x - math.cos(c * x), 0, 2, xtol=1e-14, rtol=1e-14),
    "power_iteration": lambda matrix: np.linalg.eigvalsh(matrix)[-1],
    "series": lambda x, term: np.exp(x),
    "quickselect": lambda x, rank: np.sort(x)[rank],
    "mean_of_means": lambda parts: np.mean([part.mean() for part in parts]),
    "select_positive": lambda x: np.compress(x > 0, x),
    "steps_between_kept": lambda x: np.sum(np.diff(x[x >= 0]) ** 2),
    "repeat_each": np.repeat,
    "thermostat": [0.5**2 + 1.5**2 + 0.2**2, 0.0, 0.5**2 + 0.6**2 + 1.9**2 + 1.1**2 + 0.1**2],
    "warm_up": [[1 / 3, 1], [4 / 3, 4 / 3], [-1, 5], [0, 8]],
    "running_mean": [[1, 9], [1, 1], [6.25, 12.25], [1.75**2, 6.25**2]],
    "number_or_one": [[3, -6, 9], [1, -2, 3], [-2, 4, -6]],
    "fold": lambda x: x @ 0.5 ** np.arange(len(x))[::-1],
    "recurrent_until": recurrent,
    "greedy": lambda scores, first: greedy_tokens(scores, first).mean(),
}
