"""Statements with an effect, each to stand in a branch: what is set up before it, it, and what tells the effect."""

from __future__ import annotations

from typing import NamedTuple


class Effect(NamedTuple):
    """A statement, with what is set up before the branch and a number that shows whether it has run."""

    statement: str
    setup: str = "box = Box()"
    after: str = "box.calls"

    def program(self) -> str:
        """The text of f64[4] -> f64[], where a value decides whether the statement runs."""
        head = f"def f(x):\n    {self.setup}\n    y = g.sum(x)\n    if y > 0:\n"
        return f"{head}        {self.statement}\n    return y * ({self.after} + 1)\n"


HEAD = """
LOG, KEPT = [], {"n": 0}


class Box:
    def __init__(self):
        self.calls = 0

    def hit(self, *_):
        self.calls += 1
        return 1

    def __hash__(self):
        return self.hit()

    __add__ = __radd__ = __rmul__ = __matmul__ = __pow__ = __round__ = __int__ = __index__ = __eq__ = hit
    __ceil__ = __trunc__ = __abs__ = __sizeof__ = __instancecheck__ = hit

    def __format__(self, _=""):
        self.hit()
        return "a"

    __str__ = __repr__ = __fspath__ = __format__

    def __divmod__(self, _):
        return self.hit(), 1

    def __reversed__(self):
        self.hit()
        return iter([1.0])

    def __dir__(self):
        self.hit()
        return []

    def __copy__(self):
        self.hit()
        return self

    def __deepcopy__(self, _):
        return self.__copy__()

    def __reduce__(self):
        self.hit()
        return Box, ()

    def __array__(self, *_, **__):
        self.hit()
        return np.ones(2)


"""

OF_METHODS = """
box + 1; 1 + box; box @ 1; 2 * box; box ** 2; divmod(box, 2); round(box); [1, 2][box]; [1, 2][box:]
int(box); range(box)
list(reversed(box)); f"{box}"; f"{box!r}"; "%s" % box; "{}".format(box); str(box); repr(box); dir(box); copy.copy(box)
copy.deepcopy(box); pickle.dumps(box); sys.getsizeof(box); np.asarray(box); np.sum(box); math.ceil(box); abs(box)
isinstance(1, box); "a" * box; sum([box]); hash(box); box += 1; operator.add(box, 1)
functools.reduce(operator.add, [1, box])
list(itertools.accumulate([1, box])); max(box, box, key=Box.hit); sorted([box, box], key=Box.hit)
list(map(Box.hit, [box]))
list(filter(Box.hit, [box])); operator.methodcaller("hit")(box); min([box], key=operator.methodcaller("hit"))
list(map(operator.methodcaller("hit"), [box])); functools.partial(Box.hit, box)(); (lambda: box.hit())()
[box.hit() for _ in [1, 2]]; {box.hit(): 1}; any(box.hit() for _ in [1]); type(box).hit(box); getattr(box, "hit")()
Box.__dict__["hit"](box); vars(box).update(calls=5); box.__dict__["calls"] = 5; box.__dict__ |= {"calls": 5}
box.__setattr__("calls", 5); Box.__setattr__(box, "calls", 5); object.__setattr__(box, "calls", 5)
operator.setitem(vars(box), "calls", 5); types.MethodType(Box.hit, box)(); Box.hit.__get__(box)()
threading.Thread(target=box.hit).start(); dict.fromkeys([box.hit()]); sorted([1, 2], key=lambda _: box.hit())
list(itertools.starmap(Box.hit, [(box,)])); re.sub("a", lambda m: str(box.hit()), "aa"); weakref.proxy(box).hit()
json.dumps({1: box}, default=lambda b: b.hit()); sorted([1, 2], key=functools.cmp_to_key(lambda a, b: box.hit()))
np.vectorize(lambda v: box.hit())([1.0, 2.0]); np.fromiter((box.hit() for _ in [1]), float); [*(box.hit() for _ in [1])]
a, = (box.hit() for _ in [1]); dict((box.hit(), 1) for _ in [1]); [1].index(box); box == 1; 1 == box; [box].count(1)
[box] == [1]; {"k": box} == {"k": 1}; [1].remove(box); box in [1]; 1 in [box]
"""

OF_OBJECTS = """
d = np.ones(3) | d += 1 | d[0]
d = np.ones(3) | d[1:] *= 3 | d[1]
d = np.ones(3) | np.multiply(d, 2, d) | d[0]
d = np.ones(3) | np.ndarray.__setitem__(d, 0, 5.0) | d[0]
d = np.ones(3) | d.T[0] = 5.0 | d[0]
d = np.ones(3) | d.data[0] = 5.0 | d[0]
d = np.ones(3) | np.clip(d, 3, 4, d) | d[0]
d = np.ones(3) | d.cumsum(0, None, d) | d[1]
d = np.ones(3) | d.flags.writeable = False | int(d.flags.writeable)
d = np.array([3.0, 1.0, 2.0]) | np.ndarray.sort(d) | d[0]
d = ctypes.c_double(1.0) | d.value = 5.0 | d.value
d = (ctypes.c_double * 2)() | d[0] = 5.0 | d[0]
d = collections.ChainMap({"a": 1}) | d.maps[0]["a"] = 5 | d["a"]
d = decimal.getcontext().copy() | d.prec = 5 | d.prec
d = random.Random(1) | d.seed(2) | d.random()
d = itertools.cycle([1, 2]) | next(d) | next(d)
d = (v for v in [1, 2]) | d.close() | next(d, 5)
d = threading.Lock() | d.acquire() | int(d.locked())
d = threading.local(); d.v = 1 | d.v = 5 | d.v
d = threading.Event() | d.set() | int(d.is_set())
d = io.BytesIO(b"abc") | d.read(1) | len(d.read())
d = io.StringIO("abc") | next(d) | len(d.read())
d = array.array("d", [1.0]) | d += d | len(d)
d = struct.Struct("d"); b = bytearray(8) | d.pack_into(b, 0, 5.0) | d.unpack(b)[0]
d = weakref.WeakKeyDictionary(); k = LOG.__class__ | d[type(k)] = 1 | len(d)
d = types.SimpleNamespace(v=1) | d.__dict__.update(v=5) | d.v
d = {1} | d |= {5} | len(d)
d = [1]; e = d.append | e(5); d.pop() | len(d)
d = [1, 2] | list(map(d.append, [1])); d.pop() | len(d)
d = [1, 2] | operator.methodcaller("reverse")(d) | d[0]
d = [1, 2] | functools.partial(d.append, 1)() | len(d)
d = [[1, 2]] | copy.copy(d)[0].reverse() | d[0][0]
d = {"a": [1, 2]} | list(d.values())[0].reverse() | d["a"][0]
d = Box() | d.calls, e = 5, 6 | d.calls
d = Box() | [0 for d.calls in [5]] | d.calls
d = Box() | with contextlib.nullcontext(5) as d.calls: pass | d.calls
d = Box() | d.__class__ = int | 1
d = Box() | Box.extra = 5 | getattr(Box, "extra", 1)
d = Box() | class Q: LOG.append(1) | len(LOG)
d = enum.Enum("E", "a b") | d.a.extra = 5 | getattr(d.a, "extra", 1)
d = functools.lru_cache(lambda: LOG.append(1) or 1) | d() | len(LOG)
d = collections.Counter(a=1) | d.subtract(a=5) | d["a"]
"""


def effects() -> list[Effect]:
    """All of them."""
    of_methods = [Effect(one.strip()) for line in OF_METHODS.strip().splitlines() for one in line.split(";")]
    rows = [[part.strip() for part in line.split(" | ")] for line in OF_OBJECTS.strip().splitlines()]
    return [*of_methods, *(Effect(statement, setup, after) for setup, statement, after in rows)]
