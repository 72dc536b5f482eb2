"""Training steps on texts, sound and other sequences: recurrent nets, transformers, loops over time."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.training import Step, Torch, classifying, labels, normal, parameters, training


def lstm(torch: Torch) -> Step:
    """A language model of characters: an LSTM of 128 over 30 steps, 20 texts."""
    nn: Any = torch.nn

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.lstm = nn.Embedding(100, 64), nn.LSTM(64, 128, batch_first=True)
            self.out = nn.Linear(128, 100)

        def forward(self, words: Any) -> Any:
            return self.out(self.lstm(self.embedding(words))[0]).reshape(-1, 100)

    return classifying(torch, Model(), labels(torch, 100, 20, 30), labels(torch, 100, 600))


def gru(torch: Torch) -> Step:
    """A GRU of two layers over the 28 rows of 50 images."""
    nn: Any = torch.nn

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.out = nn.GRU(28, 64, 2, batch_first=True), nn.Linear(64, 10)

        def forward(self, rows: Any) -> Any:
            return self.out(self.gru(rows)[0][:, -1])

    return classifying(torch, Model(), normal(torch, 50, 28, 28), labels(torch, 10, 50))


def tagger(torch: Torch) -> Step:
    """A bidirectional LSTM of 32 and a conditional random field of 9 tags, 16 sentences of 20 words."""
    nn: Any = torch.nn
    embedding, out = nn.Embedding(500, 50), nn.Linear(64, 9)
    reader = nn.LSTM(50, 32, bidirectional=True, batch_first=True)
    moves = nn.Parameter(normal(torch, 9, 9))
    words, tags = labels(torch, 500, 16, 20), labels(torch, 9, 16, 20)

    def loss() -> Any:
        scores = out(reader(embedding(words))[0])
        paths = scores[:, 0]
        for time in range(1, 20):
            paths = torch.logsumexp(paths[:, :, None] + moves[None] + scores[:, time][:, None], 1)
        right = scores.gather(2, tags[..., None]).squeeze(-1).sum(1) + moves[tags[:, :-1], tags[:, 1:]].sum(1)
        return (torch.logsumexp(paths, 1) - right).mean()

    optimizer = torch.optim.SGD([*parameters(embedding, reader, out), moves], lr=0.01, weight_decay=1e-4)
    return training(torch, optimizer, loss)


def seq2seq(torch: Torch) -> Step:
    """A GRU, and a decoder of cells that attends to it, 16 pairs of 12 words, gradients clipped."""
    nn: Any = torch.nn
    size, count, length, batch = 64, 200, 12, 16
    before, after = nn.Embedding(count, size), nn.Embedding(count, size)
    encoder, cell = nn.GRU(size, size, batch_first=True), nn.GRUCell(2 * size, size)
    both, energy, out = nn.Linear(2 * size, size), nn.Linear(size, 1), nn.Linear(size, count)
    source, target = labels(torch, count, batch, length), labels(torch, count, batch, length, seed=2)
    params = parameters(before, after, encoder, cell, both, energy, out)

    def loss() -> Any:
        keys, states = encoder(before(source))
        state, word, total = states[0], torch.zeros(batch, dtype=torch.long), 0
        for time in range(length):
            pairs = torch.cat([state[:, None].expand(-1, length, -1), keys], -1)
            weights = nn.functional.softmax(energy(torch.tanh(both(pairs))).squeeze(-1), -1)
            context = torch.bmm(weights[:, None], keys)[:, 0]
            state = cell(torch.cat([after(word), context], -1), state)
            word = target[:, time]
            total = total + nn.functional.cross_entropy(out(state), word)
        return total / length

    return training(torch, torch.optim.Adam(params, lr=1e-3), loss, 1.0, params)


def gpt(torch: Torch) -> Step:
    """Two decoder blocks of width 128 and 4 heads, PyTorch's attention, 8 texts of 64 characters, AdamW."""
    nn: Any = torch.nn
    functional = nn.functional

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.heads, self.drop = heads, nn.Dropout(0.1)
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.all, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            parts = self.all(self.norm1(x)).split(width, 2)
            heads = [part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts]
            mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.drop(self.out(mixed.transpose(1, 2).reshape(batch, length, width)))
            return x + self.drop(self.down(functional.gelu(self.up(self.norm2(x)))))

    class Gpt(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.word, self.place = nn.Embedding(65, 128), nn.Embedding(64, 128)
            self.blocks = nn.Sequential(Block(128, 4), Block(128, 4))
            self.norm, self.head = nn.LayerNorm(128), nn.Linear(128, 65, bias=False)

        def forward(self, words: Any) -> Any:
            places = self.place(torch.arange(words.shape[1]))
            return self.head(self.norm(self.blocks(self.word(words) + places)))

    model, words, following = Gpt(), labels(torch, 65, 8, 64), labels(torch, 65, 512)
    return training(
        torch, torch.optim.AdamW(model.parameters(), lr=1e-3),
        lambda: functional.cross_entropy(model(words).reshape(-1, 65), following), 1.0, model.parameters(),
    )  # fmt: skip


def masked_gpt(torch: Torch) -> Step:
    """Two decoder blocks of width 96 and 6 heads, whose attention is written out with a mask, 12 texts of 64."""
    nn: Any = torch.nn
    functional = nn.functional

    class Attention(nn.Module):  # type: ignore[misc]
        def __init__(self, width: int, heads: int, length: int) -> None:
            super().__init__()
            self.heads = heads
            self.key, self.query, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
            self.register_buffer("mask", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

        def forward(self, x: Any) -> Any:
            batch, length, width = x.size()
            key, query, value = (
                layer(x).view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                for layer in (self.key, self.query, self.value)
            )
            scores = (query @ key.transpose(-2, -1)) * (1.0 / math.sqrt(key.size(-1)))
            scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
            mixed = functional.softmax(scores, dim=-1) @ value
            return self.out(mixed.transpose(1, 2).contiguous().view(batch, length, width))

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.attention, self.norm1, self.norm2 = Attention(96, 6, 64), nn.LayerNorm(96), nn.LayerNorm(96)
            self.inner = nn.Sequential(nn.Linear(96, 384), nn.GELU(), nn.Linear(384, 96), nn.Dropout(0.1))

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm1(x))
            return x + self.inner(self.norm2(x))

    embedding, place = nn.Embedding(65, 96), nn.Parameter(torch.zeros(1, 64, 96))
    body, head = nn.Sequential(Block(), Block()), nn.Linear(96, 65)
    words, following = labels(torch, 65, 12, 64), labels(torch, 65, 12 * 64)
    params = [*parameters(embedding, body, head), place]

    def loss() -> Any:
        return functional.cross_entropy(head(body(embedding(words) + place)).view(-1, 65), following)

    return training(torch, torch.optim.AdamW(params, lr=3e-4), loss, 1.0, params)


def llama(torch: Torch) -> Step:
    """Two blocks with root mean square norms, rotated places and a gated perceptron of width 96, 8 texts of 64."""
    nn: Any = torch.nn
    functional, length, width, heads = nn.functional, 64, 96, 4
    rates = 1.0 / (10000 ** (torch.arange(0, width // heads, 2).float() / (width // heads)))
    angles = torch.outer(torch.arange(length).float(), rates)
    cos, sin = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()

    def rotated(x: Any) -> Any:
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat([-second, first], -1) * sin

    class Norm(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x: Any) -> Any:
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = Norm(), Norm()
            self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
            self.gate, self.up = nn.Linear(width, 256, bias=False), nn.Linear(width, 256, bias=False)
            self.down = nn.Linear(256, width, bias=False)

        def forward(self, x: Any) -> Any:
            inner = self.norm1(x)
            query, key, value = (
                layer(inner).view(len(x), length, heads, -1).transpose(1, 2)
                for layer in (self.query, self.key, self.value)
            )
            mixed = functional.scaled_dot_product_attention(rotated(query), rotated(key), value, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
            inner = self.norm2(x)
            return x + self.down(functional.silu(self.gate(inner)) * self.up(inner))

    embedding, body, norm = nn.Embedding(256, width), nn.Sequential(Block(), Block()), Norm()
    head, words, following = nn.Linear(width, 256, bias=False), labels(torch, 256, 8, length), labels(torch, 256, 512)
    params = parameters(embedding, body, norm, head)

    def loss() -> Any:
        return functional.cross_entropy(head(norm(body(embedding(words)))).view(-1, 256), following)

    return training(torch, torch.optim.AdamW(params, lr=3e-4), loss, 1.0, params)


def translation(torch: Torch) -> Step:
    """`nn.Transformer` of width 64 with two layers on each side, 16 pairs of 20 words."""
    nn: Any = torch.nn
    model = nn.Transformer(64, 4, 2, 2, 128, 0.1, batch_first=True)
    before, after, head = nn.Embedding(300, 64), nn.Embedding(300, 64), nn.Linear(64, 300)
    source, target = labels(torch, 300, 16, 20), labels(torch, 300, 16, 21, seed=2)
    mask = nn.Transformer.generate_square_subsequent_mask(20)

    def loss() -> Any:
        states = model(before(source) * 8, after(target[:, :-1]) * 8, tgt_mask=mask)
        return nn.functional.cross_entropy(head(states).reshape(-1, 300), target[:, 1:].reshape(-1), ignore_index=0)

    optimizer = torch.optim.Adam(parameters(model, before, after, head), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    return training(torch, optimizer, loss)


def wavenet(torch: Torch) -> Step:
    """Six gated layers of dilated convolution with weight norm, 32 channels, 4 waves of 512 samples."""
    nn: Any = torch.nn
    weight_norm = torch.nn.utils.weight_norm

    class Layer(nn.Module):  # type: ignore[misc]
        def __init__(self, dilation: int) -> None:
            super().__init__()
            self.dilation = dilation
            self.filter, self.gate = (weight_norm(nn.Conv1d(32, 32, 2, dilation=dilation)) for _ in range(2))
            self.residual, self.skip = nn.Conv1d(32, 32, 1), nn.Conv1d(32, 64, 1)

        def forward(self, x: Any) -> Any:
            padded = nn.functional.pad(x, (self.dilation, 0))
            inner = torch.tanh(self.filter(padded)) * torch.sigmoid(self.gate(padded))
            return x + self.residual(inner), self.skip(inner)

    first, layers = nn.Conv1d(1, 32, 1), nn.ModuleList([Layer(2**i) for i in range(6)])
    out = nn.Sequential(nn.ReLU(), nn.Conv1d(64, 64, 1), nn.ReLU(), nn.Conv1d(64, 256, 1))
    x, y = normal(torch, 4, 1, 512), labels(torch, 256, 4, 512)

    def loss() -> Any:
        states, total = first(x), 0
        for layer in layers:
            states, skip = layer(states)
            total = total + skip
        return nn.functional.cross_entropy(out(total), y)

    return training(torch, torch.optim.Adam(parameters(first, layers, out), lr=1e-3), loss)


def spiking(torch: Torch) -> Step:
    """Two layers of neurons that leak and fire over 25 steps, with a derivative of the author's own, 64 examples."""
    nn: Any = torch.nn

    class Spike(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, potential: Any) -> Any:
            ctx.save_for_backward(potential)
            return (potential > 0).float()

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            (potential,) = ctx.saved_tensors
            return gradient / (1 + 10 * potential.abs()) ** 2

    first, second = nn.Linear(100, 128), nn.Linear(128, 10)
    x, y = normal(torch, 25, 64, 100), labels(torch, 10, 64)

    def loss() -> Any:
        inner, outer, total = torch.zeros(64, 128), torch.zeros(64, 10), 0
        for time in range(25):
            inner = 0.9 * inner + first(x[time])
            spikes = Spike.apply(inner - 1)
            inner = inner - spikes.detach()
            outer = 0.9 * outer + second(spikes)
            total = total + outer
        return nn.functional.cross_entropy(total / 25, y)

    return training(torch, torch.optim.Adam(parameters(first, second), lr=5e-4), loss)


STEPS = (lstm, gru, tagger, seq2seq, gpt, masked_gpt, llama, translation, wavenet, spiking)
"""The steps of this file."""
