"""The textbook program: a Python `if` on a tensor's sum. Only its import line differs from PyTorch's."""

import dynamic as torch

for values in ([1.0, -1.0, 2.0], [-3.0, -2.0, -1.0]):
    x = torch.tensor(values, requires_grad=True)
    y = x * 2 if x.sum() > 0 else x - 2
    print(y)
    y.backward(torch.ones_like(y))
    print(x.grad)

x = torch.tensor([2.0, 3.0, 4.0], requires_grad=True)
y = x * 3 if x.sum() > 10 else x / 2
y.sum().backward()
print(y, x.grad)
