import math

import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=50):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return self.dropout(x + self.pe[: x.size(0)])


class TransformerModel(nn.Module):
    def __init__(self, ntoken=40, d_model=32):
        super().__init__()
        self.pos_encoder = PositionalEncoding(d_model)
        self.embedding = nn.Embedding(ntoken, d_model)
        layer = nn.TransformerEncoderLayer(d_model, 4, 64, 0.1)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.linear = nn.Linear(d_model, ntoken)
        self.d_model = d_model

    def forward(self, src, mask=None):
        src = self.pos_encoder(self.embedding(src) * math.sqrt(self.d_model))
        if mask is None:
            mask = nn.Transformer.generate_square_subsequent_mask(len(src))
        return self.linear(self.encoder(src, mask))


model = TransformerModel()
criterion = nn.CrossEntropyLoss()


def loss(data, targets):
    return criterion(model(data).view(-1, 40), targets.reshape(-1))


inputs = [(torch.randint(0, 40, (12, 4)), torch.randint(0, 40, (12, 4))) for _ in range(2)]
