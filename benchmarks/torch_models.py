"""Models of the benchmark of torch; the file runs in torch's environment.

Written for the benchmark: they have the layers and sizes of their namesakes, and no more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.nn import functional

import torch
from torch import nn

Step = Callable[[], Any]


class Residual(nn.Module):
    """Two 3x3 convolutions beside a shortcut."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels:
            convolution = nn.Conv2d(channels_in, channels, 1, stride, bias=False)
            self.shortcut = nn.Sequential(convolution, nn.BatchNorm2d(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's result."""
        y = functional.relu(self.first_norm(self.first(x)), inplace=True)
        y = self.second_norm(self.second(y))
        return functional.relu(y + self.shortcut(x), inplace=True)


def resnet18() -> nn.Module:
    """Return ResNet-18 for images of 32x32 with ten classes."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    before = 64
    for channels, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Residual(before, channels, stride), Residual(channels, channels, 1)]
        before = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class Transformer(nn.Module):
    """Predicts tokens: four layers of width 256 with four heads."""

    def __init__(self, tokens: int, length: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, 256)
        self.position = nn.Parameter(torch.zeros(length, 256))
        layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(256, tokens)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the scores of each token at each place."""
        scores: torch.Tensor = self.head(self.layers(self.embedding(tokens) + self.position))
        return scores.flatten(0, 1)


def training(model: nn.Module, optimizer: Any, inputs: torch.Tensor, labels: torch.Tensor) -> Step:
    """Return a function that makes one training step and returns the loss, as a tensor."""

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def resnet_step(device: str) -> Step:
    """Return a step of ResNet-18 on 32 images."""
    model = resnet18().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images, labels = torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))
    return training(model, optimizer, images.to(device), labels.to(device))


def transformer_step(device: str) -> Step:
    """Return a step of the transformer on 16 sequences of 64 tokens."""
    model = Transformer(1000, 64).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, 1000, (16, 64)).to(device)
    return training(model, optimizer, tokens, tokens.flatten())


def block_step(device: str) -> Step:
    """Return a forward and backward pass of a transformer layer of width 256 over 64 tokens; on 'cuda' compiled."""
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True).to(device)
    called = torch.compile(layer) if device == "cuda" else layer
    tokens = torch.randn(1, 64, 256, device=device)

    def step() -> torch.Tensor:
        layer.zero_grad()
        loss = called(tokens).square().mean()
        loss.backward()
        return loss.detach()

    return step
