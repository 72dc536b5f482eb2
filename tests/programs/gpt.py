"""A small GPT: causal self-attention written by hand, tied embeddings, groups with and without weight decay."""

import math

import numpy as np

import dynamic as torch
import dynamic.nn as nn
from dynamic.nn import functional as F
from tests.programs import start

VOCABULARY, BLOCK, WIDTH, HEADS = 11, 8, 16, 2


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH)
        self.c_proj = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", torch.tensor(np.tril(np.ones((1, 1, BLOCK, BLOCK), np.float32))))

    def forward(self, x):
        B, T, C = x.shape
        qkv = self.c_attn(x)
        q, k, v = (qkv[:, :, i * C : (i + 1) * C].view(B, T, HEADS, C // HEADS).permute(0, 2, 1, 3) for i in range(3))
        att = (q @ k.permute(0, 1, 3, 2)) * (1.0 / math.sqrt(k.shape[-1]))
        att = torch.where(self.mask[:, :, :T, :T] == 0, torch.tensor(float("-inf")), att)
        att = F.softmax(att, dim=-1)
        y = (att @ v).permute(0, 2, 1, 3).reshape(B, T, C)
        return self.c_proj(y)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH)
        self.attn = CausalSelfAttention()
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(WIDTH, 4 * WIDTH), "c_proj": nn.Linear(4 * WIDTH, WIDTH)})

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(VOCABULARY, WIDTH)
        self.wpe = nn.Embedding(BLOCK, WIDTH)
        self.h = nn.ModuleList([Block() for _ in range(2)])
        self.ln_f = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.lm_head.weight = self.wte.weight
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, idx, targets):
        positions = torch.arange(idx.shape[1])
        x = self.wte(idx) + self.wpe(positions)
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1), ignore_index=-1)


model = start(GPT())
decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=3e-3, betas=(0.9, 0.95)
)
rng = np.random.default_rng(1)
losses = []
for _ in range(5):
    data = rng.integers(0, VOCABULARY, (4, BLOCK + 1))
    targets = data[:, 1:].copy()
    targets[0, 0] = -1
    loss = model(torch.tensor(data[:, :-1]), torch.tensor(targets))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    losses += [loss.item(), norm.item()]
