"""The steps in PyTorch, eager and compiled: the loss, and `torch.autograd.grad` in every parameter.

Written twice: with the fused functions of the library (`addmm`, `layer_norm`, attention ...), as its users would, and
op by op, the same ops in the same order as the rows are written over `graphs`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as nn

from benchmarks.modes import Mode, threads
from benchmarks.rows import Params, Row

Tensor = Any


def tiny_mlp(params: Params, x: Tensor, y: Tensor) -> Tensor:
    h = torch.tanh(torch.addmm(params["b1"], x, params["w1"]))
    h = torch.tanh(torch.addmm(params["b2"], h, params["w2"]))
    return nn.mse_loss(torch.addmm(params["b3"], h, params["w3"]), y)


def mlp(params: Params, x: Tensor, y: Tensor) -> Tensor:
    h = torch.relu(torch.addmm(params["b1"], x, params["w1"]))
    h = torch.relu(torch.addmm(params["b2"], h, params["w2"]))
    return nn.cross_entropy(torch.addmm(params["b3"], h, params["w3"]), y)


def chain(params: Params) -> Tensor:
    h = params["x"]
    for _ in range(4):
        h = torch.tanh(h * params["a"] + params["b"]) * torch.exp(-h * h) + h / 2
    return torch.mean(h * h)


def rnn(params: Params, xs: Tensor) -> Tensor:
    h = params["h"]
    for x in xs.unbind():
        h = torch.tanh(torch.addmm(params["b"], x, params["w"]) + h @ params["u"])
    return torch.mean(h * h)


def transformer(params: Params, x: Tensor, y: Tensor, heads: int = 4) -> Tensor:
    batch, length, width = x.shape

    def split(h: Tensor) -> Tensor:
        return h.view(batch, length, heads, width // heads).transpose(1, 2)

    q, k, v = (split(x @ params[name]) for name in ("wq", "wk", "wv"))
    mixed = nn.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
    h = nn.layer_norm(x + mixed @ params["wo"], (width,), params["scale1"], params["shift1"])
    inner = torch.relu(h @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]
    return nn.mse_loss(nn.layer_norm(h + inner, (width,), params["scale2"], params["shift2"]), y)


def tiny_mlp_ops(params: Params, x: Tensor, y: Tensor) -> Tensor:
    h = torch.tanh(x @ params["w1"] + params["b1"])
    h = torch.tanh(h @ params["w2"] + params["b2"])
    return torch.mean((h @ params["w3"] + params["b3"] - y) ** 2)


def mlp_ops(params: Params, x: Tensor, y: Tensor) -> Tensor:
    h = torch.relu(x @ params["w1"] + params["b1"])
    h = torch.relu(h @ params["w2"] + params["b2"])
    return nn.cross_entropy(h @ params["w3"] + params["b3"], y)


def rnn_ops(params: Params, xs: Tensor) -> Tensor:
    h = params["h"]
    for t in range(xs.shape[0]):
        h = torch.tanh(xs[t] @ params["w"] + h @ params["u"] + params["b"])
    return torch.mean(h * h)


def transformer_ops(params: Params, x: Tensor, y: Tensor, heads: int = 4) -> Tensor:
    batch, length, width = x.shape

    def split(h: Tensor) -> Tensor:
        return h.reshape(batch, length, heads, width // heads).permute(0, 2, 1, 3)

    q, k, v = (split(x @ params[name]) for name in ("wq", "wk", "wv"))
    scores = (q @ k.mT) / (width // heads) ** 0.5
    mixed = (torch.softmax(scores, -1) @ v).permute(0, 2, 1, 3)
    h = _normed(x + mixed.reshape(batch, length, width) @ params["wo"], params["scale1"], params["shift1"])
    inner = torch.relu(h @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]
    return torch.mean((_normed(h + inner, params["scale2"], params["shift2"]) - y) ** 2)


def _normed(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    centred = x - torch.mean(x, -1, keepdim=True)
    variance = torch.mean(centred * centred, -1, keepdim=True)
    return centred / torch.sqrt(variance + 1e-5) * scale + shift


def cnn(params: Params, x: Tensor, y: Tensor) -> Tensor:
    h = x
    for i in (1, 2):
        h = nn.conv2d(h, params[f"k{i}"], padding=1)
        h = torch.relu(nn.batch_norm(h, None, None, params[f"scale{i}"], params[f"shift{i}"], training=True))
        h = nn.max_pool2d(h, 2)
    return nn.cross_entropy(torch.addmm(params["b1"], h.flatten(1), params["w1"]), y)


def lstm(params: Params, words: Tensor, following: Tensor) -> Tensor:
    size = params["u"].shape[0]
    start = torch.zeros(1, words.shape[1], size)
    weights = [params["w"].T, params["u"].T, params["b"], torch.zeros_like(params["b"])]
    embedded = nn.embedding(words, params["embedding"])
    states, _, _ = torch._VF.lstm(embedded, (start, start), weights, True, 1, 0.0, True, False, False)
    logits = torch.addmm(params["b1"], states.view(-1, size), params["w1"])
    return nn.cross_entropy(logits, following.view(-1))


def lstm_ops(params: Params, words: Tensor, following: Tensor) -> Tensor:
    embedded, size = nn.embedding(words, params["embedding"]), params["u"].shape[0]
    h = c = torch.zeros(words.shape[1], size)
    states = []
    for t in range(words.shape[0]):
        gates = embedded[t] @ params["w"] + h @ params["u"] + params["b"]
        i, f, new, o = gates.split(size, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(new)
        h = torch.sigmoid(o) * torch.tanh(c)
        states.append(h)
    logits = torch.stack(states).view(-1, size) @ params["w1"] + params["b1"]
    return nn.cross_entropy(logits, following.view(-1))


def gpt(params: Params, words: Tensor, following: Tensor, heads: int = 4) -> Tensor:
    batch, length = words.shape
    x = nn.embedding(words, params["embedding"]) + params["positions"]
    width = x.shape[2]

    def split(h: Tensor) -> Tensor:
        return h.view(batch, length, heads, width // heads).transpose(1, 2)

    h = nn.layer_norm(x, (width,), params["scale1"], params["shift1"])
    q, k, v = (split(h @ params[name]) for name in ("wq", "wk", "wv"))
    mixed = nn.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
    x = x + mixed @ params["wo"]
    h = nn.layer_norm(x, (width,), params["scale2"], params["shift2"])
    x = x + nn.gelu(h @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]
    logits = nn.layer_norm(x, (width,), params["scale3"], params["shift3"]).view(-1, width) @ params["head"]
    return nn.cross_entropy(logits, following.view(-1))


def gpt_ops(params: Params, words: Tensor, following: Tensor, heads: int = 4) -> Tensor:
    batch, length = words.shape
    x = nn.embedding(words, params["embedding"]) + params["positions"]
    width = x.shape[2]

    def split(h: Tensor) -> Tensor:
        return h.reshape(batch, length, heads, width // heads).permute(0, 2, 1, 3)

    h = _normed(x, params["scale1"], params["shift1"])
    q, k, v = (split(h @ params[name]) for name in ("wq", "wk", "wv"))
    mask = torch.full((length, length), -torch.inf).triu(1)
    mixed = torch.softmax(q @ k.mT / (width // heads) ** 0.5 + mask, -1) @ v
    x = x + mixed.permute(0, 2, 1, 3).reshape(batch, length, width) @ params["wo"]
    h = _normed(x, params["scale2"], params["shift2"])
    x = x + nn.gelu(h @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]
    logits = _normed(x, params["scale3"], params["shift3"]).reshape(-1, width) @ params["head"]
    return nn.cross_entropy(logits, following.view(-1))


def vae(params: Params, x: Tensor, noise: Tensor) -> Tensor:
    h = torch.relu(torch.addmm(params["b1"], x, params["w1"]))
    mean, deviation = torch.addmm(params["bm"], h, params["wm"]), torch.addmm(params["bd"], h, params["wd"])
    h = torch.relu(torch.addmm(params["b2"], mean + torch.exp(deviation / 2) * noise, params["w2"]))
    logits = torch.addmm(params["b3"], h, params["w3"])
    pixels = nn.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    return pixels - torch.sum(1 + deviation - mean * mean - torch.exp(deviation)) / 2


def vae_ops(params: Params, x: Tensor, noise: Tensor) -> Tensor:
    h = torch.relu(x @ params["w1"] + params["b1"])
    mean, deviation = h @ params["wm"] + params["bm"], h @ params["wd"] + params["bd"]
    h = torch.relu((mean + torch.exp(deviation / 2) * noise) @ params["w2"] + params["b2"])
    logits = h @ params["w3"] + params["b3"]
    pixels = torch.sum(nn.softplus(logits) - logits * x)
    return pixels - torch.sum(1 + deviation - mean * mean - torch.exp(deviation)) / 2


LOSSES = {f.__name__: f for f in (tiny_mlp, mlp, chain, rnn, transformer, cnn, lstm, gpt, vae)}
OPS = {
    "tiny_mlp": tiny_mlp_ops, "mlp": mlp_ops, "chain": chain, "rnn": rnn_ops, "transformer": transformer_ops,
    "cnn": cnn, "lstm": lstm_ops, "gpt": gpt_ops, "vae": vae_ops,
}  # fmt: skip


def eager(row: Row) -> Mode:
    """The step as PyTorch runs it by default, with the library's fused functions."""
    return _mode(LOSSES[row.loss.__name__], row)


def op_by_op(row: Row) -> Mode:
    """The step as PyTorch runs it by default, in the ops of the row."""
    return _mode(OPS[row.loss.__name__], row)


def compiled(row: Row) -> Mode:
    """The step with its loss under `torch.compile`, for these shapes alone."""
    return _mode(torch.compile(LOSSES[row.loss.__name__], dynamic=False), row)


def _mode(loss: Any, row: Row) -> Mode:
    torch.set_num_threads(threads())
    params = {name: torch.from_numpy(value).requires_grad_() for name, value in row.params.items()}
    inputs, leaves = [torch.from_numpy(value) for value in row.inputs], list(params.values())

    def step() -> Any:
        value = loss(params, *inputs)
        return value, torch.autograd.grad(value, leaves)

    def arrays(result: Any) -> Any:
        value, grads = result
        return value.item(), {name: grad.numpy() for name, grad in zip(params, grads, strict=True)}

    return Mode(step, arrays)
