"""Items and aliases: what a branch writes into a container must be undone for the other branch, and merged."""

import heapq
from collections import defaultdict, deque, namedtuple

import graphs as g
from tests.static.convert.table import refused, right, rows

Pair = namedtuple("Pair", ["first", "second"])


@right
def an_item_of_an_inner_list(x):
    table = [[x[0], x[1]], [x[2], x[3]]]
    row = table[1]
    if g.sum(x) > 0:
        table[1][0] = x[0] * 5
    return row[0] + table[0][1]


@right
def an_item_augmented(x):
    totals = [x[0] * 0, x[0] * 0]
    for value in x:
        if value > 0:
            totals[0] += value
        else:
            totals[1] += value
    return totals[0] - 3 * totals[1]


@right
def a_list_grows_through_another_name(x):
    parts = [g.sum(x)]
    same = parts
    if parts[0] > 0:
        same.append(x[0])
    else:
        same.append(x[1])
    return parts[-1]


@right
def popped_from_either_end(x):
    parts = [x[0], x[1], x[2]]
    if g.sum(x) > 0:
        y = parts.pop()
    else:
        y = parts.pop(0)
    return y + 2 * parts[0] + 3 * parts[1]


@right
def pushed_and_popped_in_a_loop(x):
    stack, total = [x[0]], x[0] * 0
    for value in x:
        stack.append(value * 2)
        if value > 0:
            total = total + stack[-1]
        stack.pop()
    return total + stack[0]


@right
def entries_of_a_defaultdict(x):
    sums = defaultdict(float)
    for i, value in enumerate(x):
        if value > 0:
            sums[i % 2] = value * 2
        else:
            sums[i % 2] = value
    return sums[0] + 3 * sums[1]


@right
def nested_state_of_a_while(x):
    state = (g.sum(x), [x[0], {"k": x[1]}])
    while state[0] < 3:
        state = (state[0] + 1 + g.abs(state[1][0]), [state[1][0] * 2, {"k": state[1][1]["k"]}])
    return state[0] + state[1][0] + state[1][1]["k"]


@right
def a_deque_filled_in_both(x):
    parts = deque([x[0]])
    if g.sum(x) > 0:
        parts.appendleft(x[2])
    else:
        parts.appendleft(x[3])
    return parts[0] + 2 * parts[1]


@refused
def a_set_of_values(x):
    seen, total = set(), g.sum(x) * 0
    for value in x:
        if int(value) not in seen:
            seen.add(int(value))
            total = total + value
    return total


@right
def pairs_that_are_sorted(x):
    ranked = sorted([(value > 0, value, i) for i, value in enumerate(x)], reverse=True)
    ranked.sort()
    return ranked[0][1] + 10 * ranked[0][2] + 100 * ranked[-1][2]


@right
def a_heap_of_pairs(x):
    heap = []
    for i in range(4):
        heapq.heappush(heap, (x[i] > 0, i))
    first = heapq.heappop(heap)
    heapq.heappush(heap, (x[0] > 1, 7))
    last, again = heapq.heappop(heap), heapq.heappop(heap)
    return first[1] + 10 * last[1] + 100 * again[1] + x[0]


@right
def the_largest_of_pairs(x):
    best, least = max((x[i] > 0, i) for i in range(4)), min([[x[i] > 1, -i] for i in range(4)])
    return best[1] + 10 * least[1] + x[0]


@right
def pairs_that_are_compared(x):
    first = 1.0 if (x[0] > 0, x[1]) < (x[2] > 0, x[3]) else 2.0
    second = 10.0 if [x[1], 2] >= [x[1], x[2]] else 20.0
    return x[0] + first + second + (100.0 if (x[0], 1) > (x[0],) else 200.0)


@right
def beams(x):
    kept = [(0.0, [0])]
    for k in range(3):
        grown = [(score + x[k] * (j + 1), [*path, j]) for score, path in kept for j in range(2)]
        kept = sorted(grown, key=lambda beam: beam[0], reverse=True)[:2]
    return kept[0][0] + 10 * kept[0][1][-1] + 100 * kept[1][1][1]


@right
def a_merged_item_augmented_changes_its_source(x):
    named, row = {"k": x[2] * 1.0}, [x[0] * 1.0]
    if x[1] <= 0:
        row[0] = named["k"]
    row[0] += g.sin(x[1])
    return row[0] + 2 * named["k"]


@right
def a_tensor_augmented_in_a_branch_changes_its_other_names(x):
    y = x * 2.0
    z, held = y, [y]
    if g.sum(x) > 0:
        z += 1.0
    else:
        z = y * 3.0
    return g.sum(y * z + held[0])


@right
def a_tensor_augmented_in_a_loop_changes_its_other_name(x):
    y = x * 2.0
    z, total = y, g.sum(x) * 0.0
    while g.sum(z) < 20.0:
        total = total + g.sum(y)
        z += 1.5
    return total + g.sum(y)


@right
def a_tensor_that_one_branch_augments_and_the_other_renames(x):
    y = x * 2.0
    z = y
    if g.sum(x) > 0:
        z += 1.0
        w = z
    else:
        w = y
        w -= 3.0
    w += 1.0
    return g.sum(y * z * w)


@right
def a_tensor_made_and_augmented_in_every_round(x):
    y = x * 2.0
    n = 0
    while g.sum(y * y) < 400.0 and n < 8:
        t = y * 0.5
        u = t
        t += y
        if g.sum(u) > 0:
            u *= 1.1
        y = t + u
        n += 1
    return g.sum(y)


@refused
def a_tensor_of_the_first_round_only_has_another_name(x):
    y = x * 2.0
    z, total = y, g.sum(x) * 0.0
    while g.sum(z) < 20.0:
        total = total + g.sum(y)
        w = z
        w += 1.0
        z = w + 1.5
    return total + g.sum(y)


@refused
def a_tensor_that_a_round_renames_and_the_next_augments(x):
    y = x * 2.0
    z, n = y, 0
    while g.sum(z) < 20.0:
        if n > 3:
            y = z
        w = z
        w += 1.0
        z = w + 1.5
        n += 1
    return g.sum(y)


@refused
def an_augmented_item_that_may_be_a_number(x):
    row = [x[0] * 1.0, x[1] * 2.0]
    if x[2] < 0:
        row[1] = 0.25
    kept = row[1]
    row[1] += g.sum(x)
    return kept + row[1]


@right
def a_tensor_that_is_another_on_one_path_changes_with_it(x):
    y, z = x * 1.0, x * 2.0
    w = y
    if g.sum(x) > 0:
        w = z
    w += 1.0
    y *= 2.0
    if x[1] > 0:
        z += y
    return g.sum(y * z * w)


@right
def tensors_that_change_places_and_are_picked_from(x):
    y, z = x * 1.0, x * 2.0
    w, v = y, z
    if g.sum(x) > 0:
        w, v = v, w
    if x[1] > 0:
        w += 1.0
    else:
        v *= 3.0
        y += w
    u = w if x[0] > 0 else v
    u += z
    return g.sum(y * z * w * v) + g.sum(u)


@right
def a_tensor_made_anew_or_augmented_in_turn(x):
    y = x * 1.0
    z = y
    for i in range(3):
        if x[i] > 0:
            z = y * 2.0
        else:
            z += 1.0
    return g.sum(y * z)


@refused
def a_loop_augments_a_tensor_that_may_be_another(x):
    y, z = x * 1.0, x * 2.0
    w, n = y, 0
    if g.sum(x) > 0:
        w = z
    while g.sum(w * w) < 100.0 and n < 5:
        w += 1.0
        z = z * 1.5
        n += 1
    return g.sum(y * z * w)


@refused
def an_item_that_one_path_may_change_in_place_and_the_other_replaces(x):
    row, y = [x[0] * 2], x[1] * 1
    if x[2] > 0:
        y = row[0] if x[1] > 0 else 0.25
        y += row[0]
    else:
        row[0] = x[3] * 2
    return y + row[0] * 10


rows(
    __name__,
    right="""
kept = [x[0], x[1]] | if g.sum(x) > 0: kept[0] = x[2] | kept[0] + 2 * kept[1]
kept = [x[0], x[1]] | if g.sum(x) > 0: kept[0] = x[2] | else: kept[1] = x[3] | kept[0] + 2 * kept[1]
kept, place = [x[0], x[1]], 0 | if g.sum(x) > 0: place += 1; kept[place] = x[2] | kept[0] + 2 * kept[1]
kept = [x[0], x[1]] | same = kept | if g.sum(x) > 0: same[0] = x[3] | kept[0] * 2 + same[1]
row = [x[0]] | table = [row, row] | if g.sum(x) > 0: table[0][0] = x[1] | table[1][0] * 2
flags, s = [0.0, 0.0], g.sum(x * x) + 1.5 | while s > 1: flags[0] = 5.0; s = s / 2 | g.sum(x) * flags[0] + s
flags, s = [0.0, 0.0], g.sum(x) | while s > 1: flags[0] = 5.0; s = s / 2 | g.sum(x) * (1 + flags[0])
parts = [g.sum(x)] | if parts[0] > 0: parts.append(x[0]) | else: parts.append(x[1] * 2) | g.sum(g.stack(parts))
parts = [x[0], x[1]] | if g.sum(x) > 0: parts.insert(0, x[2]); del parts[1] | parts[0] + 2 * parts[1]
parts = [x[0], x[1], x[2]] | if g.sum(x) > 0: parts.reverse() | parts[0] + 2 * parts[1] + 3 * parts[2]
parts = [x[0], x[1], x[2]] | if g.sum(x) > 0: parts[:2] = [x[2], x[3]] | parts[0] + 2 * parts[1] + 3 * parts[2]
named = {"a": x[0]} | if g.sum(x) > 0: named["a"] = x[1] * 2 | named["a"]
named = {} | if g.sum(x) > 0: named["a"] = x[0] | else: named["a"] = x[1] | named["a"] * 2
named = {"a": x[0], "b": x[1]} | if g.sum(x) > 0: named.update(a=x[2], b=x[3]) | named["a"] + 2 * named["b"]
pair = Pair(x[0], x[1]) if g.sum(x) > 0 else Pair(x[2], x[3]) | pair.first + 2 * pair.second
pair = (x[0], 1) | if g.sum(x) > 0: pair = (x[1], 2) | pair[0] * pair[1]
parts = deque([x[0], x[1], x[2]]) | if g.sum(x) > 0: parts.rotate(1) | parts[0] + 2 * parts[1] + 3 * parts[2]
ranked = sorted(x) | ranked[0] * 2 + ranked[-1] * 3
ranked = sorted(x, key=lambda value: value * value, reverse=True) | ranked[0] * 2 + ranked[1]
heap = [x[0], x[1], x[2]] | heapq.heapify(heap) | heapq.heappop(heap) * 2
kept = np.zeros(3) | kept[1] = 5.0 | if g.sum(x) > 0: return g.sum(x) * kept[1] | g.sum(x)
y = x * 1.0 | z = y + 0 | if g.sum(x) > 0: y = y + 1 | g.sum(y) + 2 * g.sum(z)
place = int(g.argmax(x)) | [x[0] * 2, x[1] * 3, x[2] * 4, x[3]][place]
place, parts = 0, [x[0], x[1] * 2, x[2] * 3] | while place < 2 and parts[place] < 0: place += 1 | parts[place]
kept = [x[0], x[1]] | other = list(kept) | if g.sum(x) > 0: other[0] = x[2] | kept[0] + 2 * other[0]
y = x * 1.0 | z = y | z += 1 | g.sum(y) * 2 if y[0] > 0 else g.sum(y)
kept = [x[0] * 1.0] | first = kept[0] | kept[0] += x[1] | first if g.sum(x) > 0 else first * 2
""",
    refused="""
x[0] * heapq.nlargest(2, [(v, i) for i, v in enumerate(x)])[1][1]
x[0] * heapq.nsmallest(1, range(4), key=lambda i: -x[i])[0]
heap = [x[0], x[1]] | heapq.heapify(heap) | heapq.heappushpop(heap, x[2]) + heapq.heappop(heap)
heap = [x[0], x[1]] | heapq.heapify(heap) | heapq.heapreplace(heap, x[2]) + heapq.heappop(heap)
parts = [g.sum(x)] | if g.sum(x) > 0: parts.append(x[0]) | g.sum(g.stack(parts))
parts, s = [], g.sum(x * x) + 1 | while s > 1: parts.append(s); s = s / 2 | g.sum(g.stack(parts))
named = {"a": x[0]} | if g.sum(x) > 0: named["b"] = x[1] | sum(named.values())
parts = (x[0],) | if g.sum(x) > 0: parts = (x[0], x[1]) | sum(parts)
seen = {1} | if g.sum(x) > 0: seen.add(2) | g.sum(x) * len(seen)
counts = Counter(int(value > 0) for value in x) | g.sum(x) * counts[1]
ranked = sorted([(x[i], "abcd"[i]) for i in range(4)]) | ranked[0][0]
kept = np.zeros(3) | if g.sum(x) > 0: kept[0] = 5.0 | g.sum(x) * (1 + kept[0])
kept = [value for value in x if value > 0] | g.sum(x) * len(kept)
kept = x[x > 0] | g.sum(kept * kept)
named = {"k": x[2] * 1.0} | if g.sum(x) > 100: named["k"] = g.sin(0.5) | named["k"] -= x[0] | named["k"]
""",
)
