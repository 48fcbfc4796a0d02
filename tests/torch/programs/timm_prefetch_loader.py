# needs: timm
# module: timm.data.loader
# without: consumer_stream.wait_stream(self.stream)
"""timm's PrefetchLoader copies and normalizes the next batch on a stream of its own while a model trains."""

from timm.data.loader import PrefetchLoader

import torch

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
generator = torch.Generator().manual_seed(1)
images = torch.randint(0, 256, (24, 3, 16, 16), dtype=torch.uint8, generator=generator)
labels = torch.randint(0, 5, (24,), generator=generator)


def loader():
    data = torch.utils.data.TensorDataset(images, labels)
    return torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True)


def normalized():
    mean, std = (torch.tensor(of).mul(255).view(1, 3, 1, 1) for of in (MEAN, STD))
    for image, label in loader():
        yield image.float().sub(mean).div(std), label


def train(batches, device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(784, 5))
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for image, label in batches:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(image), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).cpu()


batches = PrefetchLoader(loader(), mean=MEAN, std=STD, channels=3, device=torch.device("cuda"))
found, expected = train(batches, "cuda"), train(normalized(), "cpu")
assert torch.allclose(found, expected, rtol=1e-4), (found, expected)
