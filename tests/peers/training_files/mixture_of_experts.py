import torch
import torch.nn.functional as F
from torch import nn


class MoE(nn.Module):
    def __init__(self, dim=16, experts=4, k=2):
        super().__init__()
        self.gate = nn.Linear(dim, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, dim)) for _ in range(experts)
        )
        self.k = k

    def forward(self, x):
        logits = self.gate(x)
        top, indices = logits.topk(self.k, dim=-1)
        gates = torch.zeros_like(logits).scatter(1, indices, F.softmax(top, dim=-1))
        outputs = torch.stack([expert(x) for expert in self.experts], dim=1)
        importance = F.softmax(logits, dim=-1).mean(0)
        return (gates.unsqueeze(-1) * outputs).sum(1), (importance * importance.numel()).pow(2).mean()


model = MoE()


def loss(x, y):
    out, balance = model(x)
    return {"loss": F.mse_loss(out, y) + 0.01 * balance, "balance": balance}


inputs = [(torch.randn(32, 16), torch.randn(32, 16)) for _ in range(2)]
