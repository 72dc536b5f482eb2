"""Packed sequences and buffers beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynamic

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

LENGTHS = [2, 5, 1, 3]


def answer(space: Any, model: Any, x: np.ndarray[Any, Any], state: Any, batch_first: bool) -> list[Any]:
    """The padded outputs, the lengths, the states and all gradients."""
    values = space.tensor(x, requires_grad=True)
    packed = space.nn.utils.rnn.pack_padded_sequence(values, LENGTHS, batch_first, enforce_sorted=False)
    outputs, last = model(
        packed, state and (tuple(map(space.tensor, state)) if len(state) > 1 else space.tensor(state[0]))
    )
    padded, lengths = space.nn.utils.rnn.pad_packed_sequence(outputs, batch_first, -1.0, total_length=7)
    states = last if isinstance(last, tuple) else (last,)
    (padded.sum() + sum((part**2).sum() for part in states)).backward()
    gradients = [values.grad, *(weight.grad for weight in model.parameters())]
    held = [padded, lengths, packed.data, packed.batch_sizes, packed.sorted_indices, *states, *gradients]
    return [value.detach().numpy() for value in held]


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("has_state", [False, True])
def test_a_recurrent_layer_of_packed_sequences(kind: str, bidirectional: bool, has_state: bool) -> None:
    rng = np.random.default_rng(0)
    options = {"num_layers": 2, "bidirectional": bidirectional, "batch_first": has_state}
    theirs = getattr(torch.nn, kind)(3, 4, **options).double()
    ours = getattr(dynamic.nn, kind)(3, 4, **options).double()
    ours.load_state_dict({name: value.numpy() for name, value in theirs.state_dict().items()})
    x = rng.standard_normal((4, 5, 3) if has_state else (5, 4, 3))
    shape = (4 if bidirectional else 2, 4, 4)
    state = [rng.standard_normal(shape) for _ in range(2 if kind == "LSTM" else 1)] if has_state else None
    for found, expected in zip(
        answer(dynamic, ours, x, state, has_state), answer(torch, theirs, x, state, has_state), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_sequences_in_descending_order() -> None:
    parts = [np.arange(3.0), np.arange(2.0) + 5, np.arange(1.0) + 9]
    answers = []
    for space in (dynamic, torch):
        rnn = space.nn.utils.rnn
        packed = rnn.pack_sequence([space.tensor(part) for part in parts])
        padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True)
        unpadded = rnn.unpad_sequence(padded, lengths, batch_first=True)
        answers.append([x.tolist() for x in (packed.data, packed.batch_sizes, padded, lengths, *unpadded)])
        assert packed.sorted_indices is None
        with pytest.raises(RuntimeError):
            rnn.pack_padded_sequence(space.zeros(3, 2), [1, 3])
        with pytest.raises(RuntimeError):
            rnn.pack_padded_sequence(space.zeros(3, 2), [3, 0])
    assert answers[0] == answers[1]


def test_buffers() -> None:
    answers = []
    for space in (dynamic, torch):
        module = space.nn.Module()
        module.kept = space.nn.Buffer(space.ones(2))
        module.left = space.nn.Buffer(space.ones(2), persistent=False)
        module.plain = space.ones(2)
        assert isinstance(module.kept, space.nn.Buffer)
        assert not isinstance(module.plain, space.nn.Buffer)
        answers.append([list(module.state_dict()), [name for name, _ in module.named_buffers()]])
    assert answers[0] == answers[1]


def test_places_of_elements() -> None:
    for indices, shape in ((np.array([[0, 5], [11, 3]]), (3, 4)), (np.array(7), (2, 2, 2)), (np.array([3]), 4)):
        ours = dynamic.unravel_index(dynamic.tensor(indices), shape)
        theirs = torch.unravel_index(torch.tensor(indices), shape)
        assert [part.tolist() for part in ours] == [part.tolist() for part in theirs]


def test_the_gradient_of_a_row_by_how_often_it_is_looked_up() -> None:
    gradients = []
    for space in (dynamic, torch):
        table = space.nn.Embedding(5, 2, padding_idx=3, scale_grad_by_freq=True)
        rows = space.tensor([[0, 1, 1], [1, 3, 4]])
        (table(rows) * space.arange(12.0).reshape(2, 3, 2)).sum().backward()
        gradients.append(table.weight.grad.numpy())
    np.testing.assert_allclose(*gradients, rtol=1e-6)
