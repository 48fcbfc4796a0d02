"""Stand-in for fbgemm_gpu.split_table_batched_embeddings_ops_training: tables whose backward pass steps their rows."""

from __future__ import annotations

import enum
from typing import Any

from halstream.torch._standins._common import accumulated, refuse

import torch

from .sparse_ops import _owner
from .split_embedding_configs import EmbOptimType, SparseType
from .tbe.config.embedding_config import BoundsCheckMode, ComputeDevice, EmbeddingLocation, PoolingMode

__all__ = [
    "ComputeDevice",
    "DenseTableBatchedEmbeddingBagsCodegen",
    "EmbeddingLocation",
    "OptimType",
    "PoolingMode",
    "SplitTableBatchedEmbeddingBagsCodegen",
    "WeightDecayMode",
]

OptimType = EmbOptimType
_OPTIMIZERS = (EmbOptimType.EXACT_SGD, EmbOptimType.EXACT_ROWWISE_ADAGRAD, EmbOptimType.ADAM)
_FLOATS = (SparseType.FP32, SparseType.FP16, SparseType.BF16)


class WeightDecayMode(enum.IntEnum):
    """How weights decay."""

    NONE = 0
    L2 = 1
    DECOUPLE = 2
    COUNTER = 3
    COWCLIP = 4
    DECOUPLE_GLOBAL = 5


class _Tables(torch.nn.Module):
    """What both kinds of tables have in common: all rows in one parameter, and lookups of features in them."""

    def __init__(
        self, specs: list[tuple[int, int]], feature_table_map: list[int] | None, weights_precision: SparseType,
        output_dtype: SparseType, pooling_mode: PoolingMode, device: Any, name: str,
    ) -> None:  # fmt: skip
        super().__init__()
        for argument, kind in (("weights_precision", weights_precision), ("output_dtype", output_dtype)):
            if kind not in _FLOATS:
                refuse(f"{name}({argument}={kind})", f"give one of {', '.join(map(str, _FLOATS))}")
        self.pooling_mode, self.embedding_specs = pooling_mode, specs
        self.feature_table_map = list(range(len(specs))) if feature_table_map is None else feature_table_map
        self.dims = [specs[table][1] for table in self.feature_table_map]
        if pooling_mode == PoolingMode.NONE and len(set(self.dims)) > 1:
            raise ValueError("tables without pooling must have one embedding dimension")
        self.total_D, self.max_D = sum(self.dims), max(self.dims)
        self._output = output_dtype.as_dtype()
        total = sum(rows * width for rows, width in specs)
        rows = torch.nn.Parameter(torch.zeros(total, dtype=weights_precision.as_dtype(), device=device))
        self.register_parameter(self._parameter, rows)
        counts = torch.tensor([specs[table][0] for table in self.feature_table_map], device=device)
        self.register_buffer("rows_per_table", counts, persistent=False)

    _parameter = "weights"  #: what the package calls the parameter

    @property
    def _rows(self) -> Any:
        return getattr(self, self._parameter)

    def split_embedding_weights(self) -> list[Any]:
        """Return the tables, (rows, width) each, as parts of the parameter."""
        parts = self._rows.detach().split([rows * width for rows, width in self.embedding_specs])
        return [part.view(spec) for part, spec in zip(parts, self.embedding_specs, strict=True)]

    def init_embedding_weights_uniform(self, min_val: float, max_val: float) -> None:
        """Fill the tables with random numbers."""
        self._rows.data.uniform_(min_val, max_val)

    def _looked_up(self, tables: list[Any], indices: Any, offsets: Any, weights: Any) -> Any:
        """Return what the bags of all features read: (batch, all widths), or (indices, width) without pooling."""
        features = len(self.feature_table_map)
        bags, count = offsets.numel() - 1, indices.numel()
        batch = bags // features
        bag = _owner(offsets, count).clamp(max=max(bags - 1, 0))
        factors = None if weights is None else accumulated(weights).unsqueeze(1)
        if self.pooling_mode == PoolingMode.MEAN:
            share = 1 / (offsets[1:] - offsets[:-1]).clamp(min=1).float()[bag].unsqueeze(1)
            factors = share if factors is None else factors * share
        found: list[Any] = []
        for feature, table in enumerate(self.feature_table_map):
            own = (bag // max(batch, 1)) == feature
            rows = accumulated(tables[table][torch.where(own, indices, 0).long()])
            if factors is not None:
                rows = rows * factors
            rows = rows.masked_fill(~own.unsqueeze(1), 0)
            if self.pooling_mode == PoolingMode.NONE:
                found.append(rows)
            else:
                pooled = rows.new_zeros(batch, self.dims[feature])
                found.append(pooled.index_add(0, torch.where(own, bag - feature * batch, 0), rows))
        whole = torch.stack(found).sum(0) if self.pooling_mode == PoolingMode.NONE else torch.cat(found, 1)
        return whole.to(self._output)


class DenseTableBatchedEmbeddingBagsCodegen(_Tables):
    """Tables whose parameter gets a gradient."""

    def __init__(
        self,
        embedding_specs: list[tuple[int, int]],
        feature_table_map: list[int] | None = None,
        weights_precision: SparseType = SparseType.FP32,
        pooling_mode: PoolingMode = PoolingMode.SUM,
        use_cpu: bool = False,
        output_dtype: SparseType = SparseType.FP32,
        use_mtia: bool = False,
    ) -> None:
        device = "cpu" if use_cpu else "cuda"
        super().__init__(
            embedding_specs,
            feature_table_map,
            weights_precision,
            output_dtype,
            pooling_mode,
            device,
            type(self).__name__,
        )

    def forward(
        self, indices: Any, offsets: Any, per_sample_weights: Any = None, feature_requires_grad: Any = None,
        batch_size_per_feature_per_rank: Any = None,
    ) -> Any:  # fmt: skip
        """Return what the bags of all features read."""
        _refuse_variable(type(self).__name__, feature_requires_grad, batch_size_per_feature_per_rank)
        parts = self._rows.split([rows * width for rows, width in self.embedding_specs])
        tables = [part.view(spec) for part, spec in zip(parts, self.embedding_specs, strict=True)]
        return self._looked_up(tables, indices, offsets, per_sample_weights)


def _refuse_variable(name: str, feature_requires_grad: Any, batch_sizes: Any) -> None:
    if feature_requires_grad is not None:
        refuse(f"{name}.forward(feature_requires_grad=...)", "put such features into tables of their own")
    if batch_sizes is not None:
        refuse(f"{name}.forward(batch_size_per_feature_per_rank=...)", "give all features the same batch size")


class SplitTableBatchedEmbeddingBagsCodegen(_Tables):
    """Tables whose rows the backward pass steps, each once with the sum of its gradients."""

    _parameter = "weights_dev"

    def __init__(
        self,
        embedding_specs: list[tuple[int, int, EmbeddingLocation, ComputeDevice]],
        feature_table_map: list[int] | None = None,
        cache_algorithm: Any = None,
        cache_load_factor: float = 0.2,
        cache_sets: int = 0,
        cache_reserved_memory: float = 0.0,
        cache_precision: Any = None,
        weights_precision: SparseType = SparseType.FP32,
        output_dtype: SparseType = SparseType.FP32,
        enforce_hbm: bool = False,
        optimizer: EmbOptimType = EmbOptimType.EXACT_SGD,
        record_cache_metrics: Any = None,
        gather_uvm_cache_stats: bool | None = False,
        stochastic_rounding: bool = True,
        gradient_clipping: bool = False,
        max_gradient: float = 1.0,
        max_norm: float = 0.0,
        learning_rate: float = 0.01,
        eps: float = 1.0e-8,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        weight_decay_mode: WeightDecayMode = WeightDecayMode.NONE,
        eta: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        pooling_mode: PoolingMode = PoolingMode.SUM,
        device: Any = None,
        bounds_check_mode: BoundsCheckMode = BoundsCheckMode.WARNING,
        table_names: list[str] | None = None,
        **others: Any,
    ) -> None:
        name = type(self).__name__
        if optimizer not in _OPTIMIZERS:
            refuse(f"{name}(optimizer={optimizer})", f"give one of {', '.join(map(str, _OPTIMIZERS))}")
        if weight_decay_mode > WeightDecayMode.DECOUPLE:
            refuse(f"{name}(weight_decay_mode={weight_decay_mode!r})", "give NONE, L2 or DECOUPLE")
        for argument, value in {"max_norm": max_norm, **others}.items():
            if value:
                refuse(f"{name}({argument}={value!r})", "leave it out")
        if device is None:
            device = "cpu" if all(spec[3] == ComputeDevice.CPU for spec in embedding_specs) else "cuda"
        specs = [(rows, width) for rows, width, *_ in embedding_specs]
        super().__init__(specs, feature_table_map, weights_precision, output_dtype, pooling_mode, device, name)
        self.optimizer, self.bounds_check_mode = optimizer, bounds_check_mode
        self.max_gradient = max_gradient if gradient_clipping else None
        self.learning_rate, self.eps, self.betas = learning_rate, eps, (beta1, beta2)
        self.weight_decay, self.weight_decay_mode, self.iterations = weight_decay, weight_decay_mode, 0
        sizes = {
            EmbOptimType.EXACT_SGD: [],
            EmbOptimType.EXACT_ROWWISE_ADAGRAD: [lambda spec: spec[:1]],
            EmbOptimType.ADAM: [lambda spec: spec, lambda spec: spec],
        }[optimizer]
        self._states = [[torch.zeros(size(spec), device=device) for size in sizes] for spec in specs]

    def split_optimizer_states(self) -> list[list[Any]]:
        """Return the states of each table: sums of squares by rows for Adagrad, two averages for Adam."""
        return self._states

    def set_learning_rate(self, lr: float) -> None:
        """Change the rate of the steps to come."""
        self.learning_rate = lr

    def get_learning_rate(self) -> float:
        """Return the rate."""
        return self.learning_rate

    def set_optimizer_step(self, step: int) -> None:
        """Change how many steps there were."""
        self.iterations = step

    def flush(self) -> None:
        """Write back what a cache holds: there is none."""

    def prefetch(self, indices: Any, offsets: Any, forward_stream: Any = None, **others: Any) -> None:
        """Load rows into a cache: there is none."""

    def forward(
        self, indices: Any, offsets: Any, per_sample_weights: Any = None, feature_requires_grad: Any = None,
        batch_size_per_feature_per_rank: Any = None, total_unique_indices: int | None = None,
    ) -> Any:  # fmt: skip
        """Return what the bags of all features read."""
        _refuse_variable(type(self).__name__, feature_requires_grad, batch_size_per_feature_per_rank)
        self.iterations += 1
        if self.bounds_check_mode not in (BoundsCheckMode.FATAL, BoundsCheckMode.NONE, BoundsCheckMode.V2_FATAL):
            indices = self._inside(indices, offsets)
        return _Lookup.apply(self._rows, self, indices, offsets, per_sample_weights)

    def _inside(self, indices: Any, offsets: Any) -> Any:
        """Return the indices with 0 for those that are in no table."""
        bags = offsets.numel() - 1
        batch = max(bags // len(self.feature_table_map), 1)
        feature = _owner(offsets, indices.numel()).clamp(max=max(bags - 1, 0)) // batch
        return torch.where((indices >= 0) & (indices < self.rows_per_table[feature]), indices, 0)

    def _step(self, table: int, indices: Any, own: Any, grads: Any) -> None:
        """Step the rows of a table that `own` indices name, by the sums of their gradients.

        Each index writes the whole new row, so that an index that comes twice writes the same twice.
        Those of other tables name a row of this one as well, and write what it gets anyway.
        """
        weights, states = self.split_embedding_weights()[table], self._states[table]
        first = own.int().argmax(0, keepdim=True)  # an index of no dimension would wait for the device
        rows = torch.where(own, indices, torch.where(own[first], indices[first], 0)).long()
        summed = grads.new_zeros(weights.shape).index_add(0, rows, grads.masked_fill(~own.unsqueeze(1), 0))
        before, grad = accumulated(weights[rows]), summed[rows]
        after, new = self._stepped(before, grad, [state[rows] for state in states])
        weights[rows] = torch.where(own.any(), after, before).to(weights.dtype)
        for state, value in zip(states, new, strict=True):
            state[rows] = torch.where(own.any(), value, state[rows])

    def _stepped(self, w: Any, g: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        """Return rows and states after a step."""
        lr, mode, decay = self.learning_rate, self.weight_decay_mode, self.weight_decay
        if self.optimizer is EmbOptimType.EXACT_SGD:
            return w - lr * g, []
        if self.optimizer is EmbOptimType.EXACT_ROWWISE_ADAGRAD:
            if mode == WeightDecayMode.L2:
                g = g + decay * w
            total = states[0] + g.square().mean(1)
            update = lr / (total.sqrt() + self.eps).unsqueeze(1) * g
            return w - update - (lr * decay * w if mode == WeightDecayMode.DECOUPLE else 0), [total]
        beta1, beta2 = self.betas
        m, v = (beta * old + (1 - beta) * new for beta, old, new in zip(self.betas, states, (g, g * g), strict=True))
        m_hat, v_hat = m / (1 - beta1**self.iterations), v / (1 - beta2**self.iterations)
        return w - lr * (m_hat / (v_hat.sqrt() + self.eps) + decay * w), [m, v]


class _Lookup(torch.autograd.Function):
    """The lookup, whose backward pass steps the tables and gives weights of samples their gradient."""

    @staticmethod
    def forward(ctx: Any, weights: Any, tables: Any, indices: Any, offsets: Any, samples: Any) -> Any:
        ctx.tables = tables
        ctx.save_for_backward(indices, offsets, samples)
        return tables._looked_up(tables.split_embedding_weights(), indices, offsets, samples)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
        tables, (indices, offsets, samples) = ctx.tables, ctx.saved_tensors
        if tables.max_gradient is not None:
            grad = grad.clamp(-tables.max_gradient, tables.max_gradient)
        grad = accumulated(grad)
        features = len(tables.feature_table_map)
        bags, count = offsets.numel() - 1, indices.numel()
        batch = max(bags // features, 1)
        bag = _owner(offsets, count).clamp(max=max(bags - 1, 0))
        of_samples = None if samples is None else torch.zeros_like(accumulated(samples))
        share = 1.0
        if tables.pooling_mode == PoolingMode.MEAN:
            share = 1 / (offsets[1:] - offsets[:-1]).clamp(min=1).float()[bag].unsqueeze(1)
        by_table: dict[int, list[tuple[Any, Any]]] = {}
        column = 0
        for feature, table in enumerate(tables.feature_table_map):
            own, width = (bag // batch) == feature, tables.dims[feature]
            if tables.pooling_mode == PoolingMode.NONE:
                one = grad
            else:
                one = grad[:, column : column + width][torch.where(own, bag - feature * batch, 0)] * share
                column += width
            if of_samples is not None:
                rows = accumulated(tables.split_embedding_weights()[table][torch.where(own, indices, 0).long()])
                of_samples = of_samples + (one * rows).sum(1).masked_fill(~own, 0)
                one = one * accumulated(samples).unsqueeze(1)
            by_table.setdefault(table, []).append((own, one))
        if count:
            for table, parts in by_table.items():
                owns = torch.stack([own for own, _ in parts])
                grads = torch.stack([one.masked_fill(~own.unsqueeze(1), 0) for own, one in parts]).sum(0)
                tables._step(table, indices, owns.any(0), grads)
        return None, None, None, None, None if of_samples is None else of_samples.to(samples.dtype)
