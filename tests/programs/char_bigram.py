"""A bigram model of characters: first by counting, then by gradient descent on logits."""

import dynamic as torch
import dynamic.nn.functional as F

words = ["emma", "olivia", "ava", "isabella", "sophia", "mia", "amelia", "harper", "evelyn", "abigail"]
chars = sorted(set("".join(words)))
stoi = {s: i + 1 for i, s in enumerate(chars)}
stoi["."] = 0
V = len(stoi)
N = torch.zeros((V, V), dtype=torch.int32)
xs, ys = [], []
for w in words:
    chs = ["."] + list(w) + ["."]
    for ch1, ch2 in zip(chs, chs[1:]):
        N[stoi[ch1], stoi[ch2]] += 1
        xs.append(stoi[ch1])
        ys.append(stoi[ch2])
P = (N + 1).float()
P /= P.sum(1, keepdims=True)
xs, ys = torch.tensor(xs), torch.tensor(ys)
losses = [-P[xs, ys].log().mean().item()]
W = (torch.arange(V * V, dtype=torch.float32).view(V, V) % 7 / 7 - 0.5).requires_grad_()
for k in range(20):
    xenc = F.one_hot(xs, num_classes=V).float()
    logits = xenc @ W
    counts = logits.exp()
    probs = counts / counts.sum(1, keepdims=True)
    loss = -probs[torch.arange(xs.nelement()), ys].log().mean() + 0.01 * (W**2).mean()
    W.grad = None
    loss.backward()
    W.data += -50 * W.grad
    losses.append(loss.item())
