"""Which results lie in the memory of an argument, and what is seen through them when it is filled: as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynamic
from graphs.errors import InplaceError, ShapeError
from tests.helpers.together import check_each, together

Make = Callable[[Any, Any], Any]  # of the library and a matrix of 4 by 4

COPIES: dict[str, Make] = {
    "flip": lambda t, x: x.flip(0),
    "flip of no axis": lambda t, x: x.flip(()),
    "fliplr": lambda t, x: t.fliplr(x),
    "flipud": lambda t, x: t.flipud(x),
    "rot90": lambda t, x: t.rot90(x),
    "rot90 by nothing": lambda t, x: t.rot90(x, 0),
    "diag": lambda t, x: t.diag(x),
    "ravel of columns": lambda t, x: x[:, ::2].ravel(),
    "ravel of every second": lambda t, x: x.reshape(16)[::2].ravel(),
    "contiguous of a transpose": lambda t, x: x.t().contiguous(),
    "contiguous of a column": lambda t, x: x[:, 1].contiguous(),
    "expand, contiguous": lambda t, x: x.expand(2, 4, 4).contiguous(),
    "pad by nothing": lambda t, x: t.nn.functional.pad(x, (0, 0)),
    "pad by less": lambda t, x: t.nn.functional.pad(x[None], (-1, 0), mode="replicate"),
    "pad round by nothing": lambda t, x: t.nn.functional.pad(x[None], (0, 0), mode="circular"),
    "adaptive_avg_pool2d": lambda t, x: t.nn.functional.adaptive_avg_pool2d(x[None], (None, None)),
    "adaptive_max_pool1d": lambda t, x: t.nn.functional.adaptive_max_pool1d(x[None], 4),
    "pixel_shuffle": lambda t, x: t.nn.functional.pixel_shuffle(x[None, None], 1),
    "pixel_unshuffle": lambda t, x: t.nn.functional.pixel_unshuffle(x[None, None], 1),
    "channel_shuffle": lambda t, x: t.nn.functional.channel_shuffle(x[None, None], 1),
    "repeat": lambda t, x: x.repeat(1, 1),
    "repeat of a row": lambda t, x: x[:1, :1].repeat(2, 3),
    "tile": lambda t, x: x.tile(1),
    "repeat_interleave": lambda t, x: x.repeat_interleave(1, 0),
    "roll": lambda t, x: x.roll(0),
    "tril": lambda t, x: x.tril(9),
    "clamp": lambda t, x: x.clamp(-99, 99),
    "cat": lambda t, x: t.cat([x]),
    "stack": lambda t, x: t.stack([x]),
    "a list of rows": lambda t, x: x[[0, 1, 2, 3]],
    "a mask": lambda t, x: x[t.ones(4, dtype=t.bool)],
    "sum over nothing": lambda t, x: x[:, :1].sum(1),
    "max of one": lambda t, x: x[:, :1].max(1).values,
    "cumsum of one": lambda t, x: x[:1].cumsum(0),
    "max_pool2d of one": lambda t, x: t.nn.functional.max_pool2d(x[None], 1),
    "clone": lambda t, x: x.clone(),
    "tensor": lambda t, x: x.new_tensor(x.tolist()),
}
VIEWS: dict[str, Make] = {
    "contiguous": lambda t, x: x.contiguous(),
    "ravel": lambda t, x: x.ravel(),
    "flatten": lambda t, x: x.flatten(),
    "reshape": lambda t, x: x.reshape(2, 8),
    "view": lambda t, x: x.view(-1),
    "unfold, apart": lambda t, x: x.unfold(0, 2, 2),
    "unfold, overlapping": lambda t, x: x.unfold(1, 3, 1)[:, 1],
    "broadcast_to": lambda t, x: t.broadcast_to(x, (4, 4)),
    "expand": lambda t, x: x.expand(1, 4, 4),
    "expand_as": lambda t, x: x.expand_as(t.zeros(1, 4, 4)),
    "broadcast_tensors": lambda t, x: t.broadcast_tensors(x, t.zeros(4))[0],
    "dropout in evaluation": lambda t, x: t.nn.functional.dropout(x, training=False),
    "float": lambda t, x: x.float(),
    "to": lambda t, x: x.to(t.float32),
    "positive": lambda t, x: +x,
    "real": lambda t, x: t.real(x),
    "diagonal": lambda t, x: x.diagonal(),
    "diagonal of a transpose": lambda t, x: x.t().diagonal(1),
    "diagonal of columns": lambda t, x: x[:, ::2].diagonal(-1),
    "einsum, a diagonal": lambda t, x: t.einsum("ii->i", x),
    "transpose": lambda t, x: x.transpose(0, 1),
    "permute": lambda t, x: x.permute(1, 0),
    "movedim": lambda t, x: x.movedim(0, 1),
    "split": lambda t, x: x.split(2)[0],
    "chunk": lambda t, x: x.chunk(2, 1)[1],
    "unbind": lambda t, x: x.unbind()[1],
    "narrow": lambda t, x: x.narrow(0, 1, 2),
    "select": lambda t, x: x.select(0, 1),
    "squeeze": lambda t, x: x[:1].squeeze(),
    "unsqueeze": lambda t, x: x.unsqueeze(0),
    "a slice": lambda t, x: x[1:, ::2],
    "detach": lambda t, x: x.detach(),
    "numpy": lambda t, x: t.from_numpy(x.numpy()),
    "meshgrid of one": lambda t, x: t.meshgrid(x[0], indexing="ij")[0],
}
KINDS = [(name, make, False) for name, make in COPIES.items()] + [(name, make, True) for name, make in VIEWS.items()]


def changes(torch: Any, make: Make) -> bool:
    """Whether what is written into the result is seen in the argument."""
    x = torch.arange(16.0).reshape(4, 4)
    make(torch, x).fill_(-1.0)
    return bool((x == -1).any())


@together("name,make,shares", KINDS, [name for name, *_ in KINDS])
def test_a_result_shares_memory_or_does_not(name: str, make: Make, shares: bool) -> None:
    assert changes(dynamic, make) is shares


def test_pytorch_shares_the_same() -> None:
    torch = pytest.importorskip("torch")

    def check(kind: tuple[str, Make, bool]) -> None:
        assert changes(torch, kind[1]) is kind[2]

    check_each(KINDS, check, lambda kind: kind[0])


def test_contiguous_is_what_the_strides_say() -> None:
    x = dynamic.zeros(2, 3, 4, 5)
    assert x.is_contiguous()
    assert x[:1].is_contiguous()
    assert not x.transpose(0, 1).is_contiguous()
    assert not x[..., 0].is_contiguous()
    assert x.contiguous() is x
    assert x.transpose(0, 3).contiguous().stride() == (24, 8, 2, 1)
    last = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    assert last.is_contiguous(memory_format=dynamic.channels_last)
    assert not last.is_contiguous()
    assert x.contiguous(memory_format=dynamic.channels_last).stride() == last.stride()
    assert x.to(memory_format=dynamic.channels_last).stride() == last.stride()


def test_channels_stay_last_through_layers() -> None:
    x = dynamic.randn(2, 3, 8, 8).to(memory_format=dynamic.channels_last)
    model = dynamic.nn.Sequential(
        dynamic.nn.Conv2d(3, 4, 3), dynamic.nn.BatchNorm2d(4), dynamic.nn.ReLU(), dynamic.nn.MaxPool2d(2)
    )
    assert model(x).is_contiguous(memory_format=dynamic.channels_last)
    assert not model(x.contiguous()).is_contiguous(memory_format=dynamic.channels_last)
    weights = model.to(memory_format=dynamic.channels_last)[0].weight
    assert weights.stride() == (27, 1, 9, 3)
    assert model(x.contiguous()).is_contiguous(memory_format=dynamic.channels_last)
    with pytest.raises(ShapeError, match="an order of 4 axes, not of 2"):
        dynamic.zeros(2, 3).contiguous(memory_format=dynamic.channels_last)


def test_a_view_is_refused_where_it_would_copy() -> None:
    matrix = dynamic.arange(6.0).reshape(2, 3)
    for shape in ((6,), (2, 3)):
        with pytest.raises(ShapeError, match=r"steps of \(1, 3\) .* use reshape\(\)"):
            matrix.t().view(shape)
    assert matrix.t().view(3, 2, 1).stride() == (1, 3, 3)
    assert matrix.t().reshape(6).tolist() == [0, 3, 1, 4, 2, 5]


def test_results_of_two_orders_lie_as_the_first_operand() -> None:
    x, y = dynamic.ones(3, 4).t(), dynamic.ones(4, 3)
    assert [(x + y).stride(), (y + x).stride(), (x > y).stride()] == [(1, 4), (3, 1), (1, 4)]
    assert (x + y).tolist() == [[2.0] * 3] * 4


def test_views_by_steps_share_memory_and_have_gradients() -> None:
    x = dynamic.arange(6.0).requires_grad_()
    doubled = x * 2
    windows = doubled.as_strided((4, 3), (1, 1))
    (windows**2).sum().backward()
    assert x.grad.tolist() == [0, 16, 48, 72, 64, 40]
    base = dynamic.zeros(6)
    base.as_strided((2, 2), (3, 1), 1).fill_(7)
    assert base.tolist() == [0, 7, 7, 0, 7, 7]
    assert base[2:].as_strided((2,), (1,)).tolist() == [7, 0]
    assert base[2:].as_strided((2,), (1,), 0).tolist() == [0, 7]
    with pytest.raises(ShapeError, match="places 0 to 6 are not all in memory of 6"):
        base.as_strided((7,), (1,))


def test_a_view_that_repeats_is_not_written_to() -> None:
    for view in (dynamic.ones(3, 1).expand(3, 4), dynamic.meshgrid(dynamic.ones(2), dynamic.ones(3), indexing="ij")[0]):
        with pytest.raises(InplaceError, match="expanded tensor"):
            view.add_(1.0)


def test_a_diagonal_of_columns_has_gradients() -> None:
    x = dynamic.tensor(np.arange(12.0).reshape(2, 2, 3), requires_grad=True)
    turned = x.permute(0, 2, 1)
    for offset in (-2, -1, 0, 1):
        weights = dynamic.arange(1.0, 1.0 + turned.diagonal(offset, 1, 2).numel(), dtype=dynamic.float64)
        mine, plain = ((t.diagonal(offset, 1, 2).flatten() ** 2 * weights).sum() for t in (turned, turned.contiguous()))
        (found,), (wanted,) = (dynamic.autograd.grad(loss, x, retain_graph=True) for loss in (mine, plain))
        assert found.tolist() == wanted.tolist()


def test_windows_have_gradients() -> None:
    x = dynamic.tensor(np.arange(6.0), requires_grad=True)
    (first,) = dynamic.autograd.grad((x.unfold(0, 3, 2) ** 3).sum(), x, create_graph=True)
    assert first.tolist() == [0, 3, 24, 27, 48, 0]
    assert dynamic.autograd.grad(first.sum(), x)[0].tolist() == [0, 6, 24, 18, 24, 0]


# Views and the order of filling ---------------------------------------------------------------------------------------

Views = dict[str, Callable[[Any], Any]]
PLACES: Views = {
    "a row": lambda x: x[1],
    "a column": lambda x: x[:, 0],
    "a number": lambda x: x[1, 0],
    "all": lambda x: x.view(-1),
    "turned": lambda x: x.t()[0],
    "every second": lambda x: x.flatten()[::2],
    "windows": lambda x: x.view(-1).unfold(0, 3, 1),
    "a view of a view": lambda x: x[:, 1:].transpose(0, 1)[0, 1:],
}
FILLS: dict[str, Callable[[Any, Any], Any]] = {
    "setitem": lambda buffer, r: buffer.__setitem__(slice(None), r.expand(3, 2) * 3),
    "rows": lambda buffer, r: [buffer.__setitem__(i, r**i) for i in range(3)],
    "copy_": lambda buffer, r: buffer.copy_(r * r),
    "add_": lambda buffer, r: buffer.add_(r).mul_(r),
    "operators": lambda buffer, r: buffer.__iadd__(r).__imul__(2),
    "twice": lambda buffer, r: (buffer.copy_(r), buffer.__setitem__(1, r * r)),
    "masked": lambda buffer, r: buffer.masked_fill_(buffer == 0, 2.0).mul_(r),
}


def filled(torch: Any, place: str, fill: str, *, view_first: bool) -> tuple[Any, Any]:
    """What a view of a buffer that is filled shows, and the gradient that goes through it."""
    r, buffer = torch.tensor([2.0, 5.0], requires_grad=True), torch.zeros(3, 2)
    view = PLACES[place](buffer) if view_first else None
    FILLS[fill](buffer, r)
    view = view if view_first else PLACES[place](buffer)
    weights = torch.arange(1.0, 1.0 + view.numel()).reshape(view.shape)
    (view * weights).sum().backward()
    return view.tolist(), None if r.grad is None else r.grad.tolist()


@together("place", PLACES)
def test_a_view_has_the_history_of_its_base_whichever_comes_first(place: str) -> None:
    for fill in FILLS:
        assert filled(dynamic, place, fill, view_first=True) == filled(dynamic, place, fill, view_first=False), fill


def test_pytorch_gives_the_same_through_views() -> None:
    torch = pytest.importorskip("torch")
    cases = [(place, fill, first) for place in PLACES for fill in FILLS for first in (True, False)]

    def check(case: tuple[str, str, bool]) -> None:
        place, fill, first = case
        assert filled(dynamic, place, fill, view_first=first) == filled(torch, place, fill, view_first=first)

    check_each(cases, check)


def test_what_is_cut_off_from_the_history_stays_so() -> None:
    r, buffer = dynamic.tensor([2.0], requires_grad=True), dynamic.zeros(2)
    apart = [buffer.detach(), buffer.data, dynamic.from_numpy(buffer.numpy())]
    apart += [buffer.view(2, 1).detach(), buffer[:1].data, buffer.detach()[:1]]
    buffer[0] = r[0]
    assert [x.requires_grad for x in apart] == [False] * 6
    assert buffer.tolist() == [2, 0]
    assert [x.tolist() for x in apart] == [[2, 0]] * 3 + [[[2], [0]], [2], [2]]
    assert not buffer.detach()[0].requires_grad


def test_a_view_may_be_changed_and_its_base_sees_it() -> None:
    r = dynamic.tensor([2.0, 5.0], requires_grad=True)
    alone = dynamic.zeros(4).reshape(2, 2)
    alone[0] = r * 3
    alone.sum().backward()
    assert r.grad.tolist() == [3, 3]
    base = dynamic.zeros(4)
    base.reshape(2, 2)[0] = r
    base.sum().backward()
    assert r.grad.tolist() == [4, 4]


def test_the_gradient_that_is_kept_is_that_of_the_value_there_is() -> None:
    a = dynamic.tensor([1.0], requires_grad=True).clone()
    seen = []
    a.retain_grad()
    a.register_hook(lambda g: seen.append(g.tolist()))
    a *= 3
    a.sum().backward()
    assert (a.grad.tolist(), seen) == ([1.0], [[3.0]])
