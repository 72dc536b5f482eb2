"""The recurrent network of PyTorch's tutorial that classifies names letter by letter, on words of 3 to 12 letters.

graphduel compare examples/frameworks/char_rnn.py:loss --framework torch
"""

import string

import torch
from torch import nn

WORDS = (
    "oak",
    "pine",
    "maple",
    "willow",
    "redwood",
    "hawthorn",
    "jacaranda",
    "sandalwood",
    "cottonwoods",
    "beechforests",
)


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size, hidden_size)
        self.h2h = nn.Linear(hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, input, hidden):
        hidden = torch.tanh(self.i2h(input) + self.h2h(hidden))
        output = self.h2o(hidden)
        output = self.softmax(output)
        return output, hidden

    def initHidden(self):
        return torch.zeros(1, self.hidden_size)


def loss(rnn, category_tensor, line_tensor):
    hidden = rnn.initHidden()
    for i in range(line_tensor.size()[0]):
        output, hidden = rnn(line_tensor[i], hidden)
    return nn.functional.nll_loss(output, category_tensor)


def batches():
    torch.manual_seed(0)
    rnn = RNN(len(string.ascii_letters), 128, 18)
    return [(rnn, torch.tensor([len(word)]), letters(word)) for word in WORDS]


def letters(word):
    """One-hot letters, f32[letters, 1, alphabet]."""
    at = torch.tensor([string.ascii_letters.index(letter) for letter in word])
    return nn.functional.one_hot(at, len(string.ascii_letters)).float().unsqueeze(1)
