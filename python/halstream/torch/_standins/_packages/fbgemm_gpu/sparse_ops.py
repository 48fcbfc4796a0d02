"""Stand-in for fbgemm_gpu.sparse_ops: it registers the operators of torch.ops.fbgemm."""

from __future__ import annotations

from typing import Any

from halstream.torch._standins import _operators
from halstream.torch._standins._common import check, refuse

import torch

__all__: list[str] = []


def _owner(offsets: Any, count: int) -> Any:
    """Return for each of that many elements in which segment it lies; offsets begin with 0 and end with the count."""
    element = torch.arange(count, device=offsets.device)
    return torch.searchsorted(offsets.long().contiguous(), element, right=True) - 1


def asynchronous_complete_cumsum(t_in: Any) -> Any:
    """Return the sums up to each element, with a 0 in front."""
    return torch.nn.functional.pad(torch.cumsum(t_in, -1, dtype=t_in.dtype), (1, 0))


def asynchronous_inclusive_cumsum(t_in: Any) -> Any:
    """Return the sums up to each element."""
    return torch.cumsum(t_in.flatten(), 0, dtype=t_in.dtype).view(t_in.shape)


def asynchronous_exclusive_cumsum(t_in: Any) -> Any:
    """Return the sums up to before each element."""
    return asynchronous_inclusive_cumsum(t_in) - t_in


def offsets_range(offsets: Any, range_size: int) -> Any:
    """Return the place of each element in its segment; offsets are where segments begin."""
    return torch.arange(range_size, device=offsets.device, dtype=offsets.dtype) - offsets[_owner(offsets, range_size)]


def lengths_range(t_in: Any, shape: Any = None) -> Any:
    """Return 0, 1, ... for each length, one behind the other."""
    offsets = asynchronous_complete_cumsum(t_in)
    total = int(offsets[-1].item()) if shape is None else torch.Size(shape).numel()
    return offsets_range(offsets[:-1], total)


def segment_sum_csr(batch_size: int, csr_seg: Any, values: Any) -> Any:
    """Return the sums of segments, whose offsets count groups of `batch_size` values."""
    rows, offsets = csr_seg.numel() - 1, csr_seg * batch_size
    owner = _owner(offsets, values.numel()).clamp(0, max(rows - 1, 0))
    kept = torch.arange(values.numel(), device=values.device) < offsets[-1]
    return values.new_zeros(rows).index_add(0, owner, torch.where(kept, values, 0))


# -- permutations of segments ---------------------------------------------------------


def invert_permute(permute: Any) -> Any:
    """Return the permutation that undoes one."""
    order = torch.arange(permute.numel(), dtype=permute.dtype, device=permute.device)
    return torch.empty_like(permute).index_put((permute.long(),), order)


def _moved(order: Any, lengths: Any, total: Any) -> tuple[Any, Any]:
    """Return the lengths of segments in another order, and from where each of their elements comes.

    Without their total, the host waits for it.
    """
    offsets = asynchronous_complete_cumsum(lengths.long())
    moved = lengths[order]
    targets = asynchronous_complete_cumsum(moved.long())
    count = int(targets[-1].item()) if total is None else int(total)
    owner = _owner(targets, count).clamp(max=max(moved.numel() - 1, 0))
    return moved, offsets[order[owner]] + torch.arange(count, device=lengths.device) - targets[owner]


def permute_1d_sparse_data(
    permute: Any, lengths: Any, values: Any, weights: Any = None, permuted_lengths_sum: Any = None
) -> tuple[Any, Any, Any]:
    """Return lengths, values and weights of segments in another order."""
    moved, source = _moved(permute.long(), lengths, permuted_lengths_sum)
    return moved, values[source], None if weights is None else weights[source]


def permute_2d_sparse_data(
    permute: Any, lengths: Any, values: Any, weights: Any = None, permuted_lengths_sum: Any = None
) -> tuple[Any, Any, Any]:
    """Do the same with rows of segments: lengths is (rows, segments of a row)."""
    width = lengths.shape[1]
    order = (permute.long().unsqueeze(1) * width + torch.arange(width, device=permute.device)).flatten()
    moved, source = _moved(order, lengths.flatten(), permuted_lengths_sum)
    return moved.view(-1, width), values[source], None if weights is None else weights[source]


def permute_2d_sparse_data_input1d(
    permute: Any, lengths: Any, values: Any, stride: int, weights: Any = None, permuted_lengths_sum: Any = None
) -> tuple[Any, Any, Any]:
    """Do the same with lengths in one dimension, `stride` of them for each row."""
    moved, *rest = permute_2d_sparse_data(permute, lengths.view(-1, stride), values, weights, permuted_lengths_sum)
    return moved.flatten(), rest[0], rest[1]


def expand_into_jagged_permute(permute: Any, input_offset: Any, output_offset: Any, output_size: int) -> Any:
    """Return from where each element of permuted segments comes."""
    owner = _owner(output_offset, output_size).clamp(max=max(permute.numel() - 1, 0))
    place = torch.arange(output_size, device=permute.device) - output_offset[owner]
    return (input_offset[permute[owner].long()] + place).to(permute.dtype)


def block_bucketize_sparse_features(
    lengths: Any,
    indices: Any,
    bucketize_pos: bool,
    sequence: bool,
    block_sizes: Any,
    my_size: int,
    weights: Any = None,
    batch_size_per_feature: Any = None,
    max_B: int = -1,
    block_bucketize_pos: Any = None,
    keep_orig_idx: bool = False,
    total_num_blocks: Any = None,
    keep_orig_idx_per_feature: Any = None,
) -> tuple[Any, Any, Any, Any, Any]:
    """Return lengths, indices, weights and places by the block of rows in which indices lie, and how to go back."""
    given = {
        "batch_size_per_feature": batch_size_per_feature, "block_bucketize_pos": block_bucketize_pos,
        "total_num_blocks": total_num_blocks, "keep_orig_idx_per_feature": keep_orig_idx_per_feature,
    }  # fmt: skip
    for name, value in given.items():
        if value is not None:
            refuse(f"block_bucketize_sparse_features({name}=...)", "give blocks of one size for each feature")
    bags, batch = lengths.numel(), lengths.numel() // block_sizes.numel()
    offsets = asynchronous_complete_cumsum(lengths.long())
    owner = _owner(offsets, indices.numel()).clamp(max=max(bags - 1, 0))
    size = block_sizes.long()[owner // batch]
    inside = indices < size * my_size
    block = torch.where(inside, indices // size, indices % my_size)
    row = indices if keep_orig_idx else torch.where(inside, indices % size, indices // my_size)
    bucket = block * bags + owner
    order = bucket.argsort(stable=True)
    counts = torch.zeros(my_size * bags, dtype=lengths.dtype, device=lengths.device)
    counts = counts.index_add(0, bucket, torch.ones_like(bucket, dtype=lengths.dtype))
    place = torch.arange(indices.numel(), device=indices.device) - offsets[owner]
    return (
        counts,
        row[order],
        None if weights is None else weights[order],
        place[order].to(indices.dtype) if bucketize_pos else None,
        invert_permute(order).to(indices.dtype) if sequence else None,
    )


# -- jagged and dense -----------------------------------------------------------------


def _one(operator: str, offsets: Any) -> Any:
    if len(offsets) != 1:
        refuse(f"{operator} with {len(offsets)} jagged dimensions", "pad one dimension at a time")
    return offsets[0]


def jagged_to_padded_dense(values: Any, offsets: Any, max_lengths: Any, padding_value: float = 0.0) -> Any:
    """Return (batch, longest, ...) with the padding behind each sequence."""
    starts, longest = _one("jagged_to_padded_dense", offsets), int(max_lengths[0])
    place = torch.arange(longest, device=values.device)
    there = place < (starts[1:] - starts[:-1]).unsqueeze(1)
    if not values.shape[0]:
        return values.new_full((starts.numel() - 1, longest, *values.shape[1:]), padding_value)
    found = values[(starts[:-1].long().unsqueeze(1) + place).clamp(max=values.shape[0] - 1)]
    return found.masked_fill(~there.view(*there.shape, *[1] * (values.dim() - 1)), padding_value)


def jagged_2d_to_dense(values: Any, offsets: Any, max_sequence_length: int) -> Any:
    """Return (batch, longest, width) with zeros behind each sequence."""
    return jagged_to_padded_dense(values, [offsets], [max_sequence_length])


def jagged_1d_to_dense(values: Any, offsets: Any, max_sequence_length: int, padding_value: int) -> Any:
    """Return (batch, longest) with the padding behind each sequence."""
    return jagged_to_padded_dense(values, [offsets], [max_sequence_length], padding_value)


def _elements(dense: Any, starts: Any, count: int) -> Any:
    """Return what a padded tensor has for each element; what lies behind the longest is 0."""
    owner = _owner(starts, count).clamp(max=max(dense.shape[0] - 1, 0))
    place = torch.arange(count, device=dense.device) - starts.long()[owner]
    behind = place >= dense.shape[1]
    found = dense[owner, place.clamp(max=dense.shape[1] - 1)]
    return found.masked_fill(behind.view(-1, *[1] * (found.dim() - 1)), 0)


def dense_to_jagged(dense: Any, x_offsets: Any, total_L: Any = None) -> tuple[Any, Any]:
    """Return the elements of a padded tensor; without their number the host waits for it."""
    starts = _one("dense_to_jagged", x_offsets)
    return _elements(dense, starts, int(starts[-1].item()) if total_L is None else int(total_L)), x_offsets


def jagged_dense_elementwise_mul(x_values: Any, x_offsets: Any, y: Any) -> tuple[Any, Any]:
    """Return the products of the elements with those of a padded tensor."""
    starts = _one("jagged_dense_elementwise_mul", x_offsets)
    return x_values * _elements(y, starts, x_values.shape[0]), x_offsets


def jagged_dense_elementwise_add_jagged_output(x_values: Any, x_offsets: Any, y: Any) -> tuple[Any, Any]:
    """Return the sums of the elements with those of a padded tensor."""
    starts = _one("jagged_dense_elementwise_add_jagged_output", x_offsets)
    return x_values + _elements(y, starts, x_values.shape[0]), x_offsets


def jagged_index_select(values: Any, lengths: Any, indices: Any, num_dense_output_rows: Any = None) -> list[Any]:
    """Return the sequences of these numbers, and their lengths."""
    moved, source = _moved(indices.long(), lengths, num_dense_output_rows)
    return [values[source], moved]


def keyed_jagged_index_select_dim1(
    values: Any, lengths: Any, offsets: Any, indices: Any, batch_size: int, weights: Any = None,
    selected_lengths_sum: Any = None,
) -> list[Any]:  # fmt: skip
    """Return the values and lengths, and weights, of these numbers in the batch of each key."""
    keys = lengths.numel() // batch_size
    order = (torch.arange(keys, device=indices.device).unsqueeze(1) * batch_size + indices.long()).flatten()
    moved, source = _moved(order, lengths, selected_lengths_sum)
    return [values[source], moved] if weights is None else [values[source], moved, weights[source]]


# -- pooled embeddings ----------------------------------------------------------------


def permute_pooled_embs_auto_grad(
    pooled_embs: Any, offset_dim_list: Any, permute_list: Any, inv_offset_dim_list: Any, inv_permute_list: Any
) -> Any:
    """Return the columns of features in another order."""
    width = pooled_embs.shape[1]
    column = torch.arange(width, device=pooled_embs.device)
    owner = _owner(inv_offset_dim_list, width).clamp(max=max(permute_list.numel() - 1, 0))
    source = offset_dim_list[permute_list.long()[owner]] + column - inv_offset_dim_list[owner]
    return pooled_embs.index_select(1, source.long())


def all_to_one_device(input_tensors: Any, target_device: Any) -> list[Any]:
    """Return the tensors on one device."""
    return [one.to(target_device, non_blocking=True) for one in input_tensors]


def merge_pooled_embeddings(pooled_embeddings: Any, uncat_dim_size: int, target_device: Any, cat_dim: int = 1) -> Any:
    """Return the tensors on one device, one beside the other."""
    return torch.cat(all_to_one_device(pooled_embeddings, target_device), cat_dim)


def sum_reduce_to_one(input_tensors: Any, target_device: Any) -> Any:
    """Return the sum of the tensors on one device."""
    return torch.stack(all_to_one_device(input_tensors, target_device)).sum(0)


def regroup_keyed_tensor(pooled_embs: Any, keys: Any, lengths: Any, groups: Any) -> list[Any]:
    """Return for each group the columns of its keys."""
    columns: dict[str, Any] = {}
    for tensor, names, widths in zip(pooled_embs, keys, lengths, strict=True):
        check(tensor.shape[1] == sum(widths), "the widths of keys must be those of the tensor's columns")
        columns.update(zip(names, tensor.split(list(widths), 1), strict=True))
    return [torch.cat([columns[name] for name in group], 1) for group in groups]


_SPARSE = "Tensor lengths, Tensor values, "
_MORE = "Tensor? weights=None, SymInt? permuted_lengths_sum=None) -> (Tensor, Tensor, Tensor?)"
_BUCKETIZE = (
    "(Tensor lengths, Tensor indices, bool bucketize_pos, bool sequence, Tensor block_sizes, SymInt my_size, "
    "Tensor? weights=None, Tensor? batch_size_per_feature=None, SymInt max_B=-1, Tensor[]? block_bucketize_pos=None, "
    "bool keep_orig_idx=False, Tensor? total_num_blocks=None, Tensor? keep_orig_idx_per_feature=None) "
    "-> (Tensor, Tensor, Tensor?, Tensor?, Tensor?)"
)
_PERMUTE_POOLED = (
    "(Tensor pooled_embs, Tensor offset_dim_list, Tensor permute_list, Tensor inv_offset_dim_list, "
    "Tensor inv_permute_list) -> Tensor"
)

_operators.register(
    "fbgemm_gpu",
    "fbgemm",
    {
        "asynchronous_complete_cumsum(Tensor t_in) -> Tensor": asynchronous_complete_cumsum,
        "asynchronous_inclusive_cumsum(Tensor t_in) -> Tensor": asynchronous_inclusive_cumsum,
        "asynchronous_exclusive_cumsum(Tensor t_in) -> Tensor": asynchronous_exclusive_cumsum,
        "offsets_range(Tensor offsets, SymInt range_size) -> Tensor": offsets_range,
        "lengths_range(Tensor t_in, SymInt[]? shape=None) -> Tensor": lengths_range,
        "segment_sum_csr(SymInt batch_size, Tensor csr_seg, Tensor values) -> Tensor": segment_sum_csr,
        "invert_permute(Tensor permute) -> Tensor": invert_permute,
        f"permute_1D_sparse_data(Tensor permute, {_SPARSE}{_MORE}": permute_1d_sparse_data,
        f"permute_2D_sparse_data(Tensor permute, {_SPARSE}{_MORE}": permute_2d_sparse_data,
        f"permute_sparse_data(Tensor permute, {_SPARSE}{_MORE}": permute_2d_sparse_data,
        f"permute_2D_sparse_data_input1D(Tensor permute, {_SPARSE}SymInt stride, {_MORE}": (
            permute_2d_sparse_data_input1d
        ),
        "expand_into_jagged_permute(Tensor permute, Tensor input_offset, Tensor output_offset, SymInt output_size) "
        "-> Tensor": expand_into_jagged_permute,
        f"block_bucketize_sparse_features{_BUCKETIZE}": block_bucketize_sparse_features,
        "jagged_to_padded_dense(Tensor values, Tensor[] offsets, SymInt[] max_lengths, float padding_value=0) "
        "-> Tensor": jagged_to_padded_dense,
        "jagged_2d_to_dense(Tensor values, Tensor offsets, SymInt max_sequence_length) -> Tensor": jagged_2d_to_dense,
        "jagged_1d_to_dense(Tensor values, Tensor offsets, SymInt max_sequence_length, int padding_value) -> Tensor": (
            jagged_1d_to_dense
        ),
        "dense_to_jagged(Tensor dense, Tensor[] x_offsets, SymInt? total_L=None) -> (Tensor, Tensor[])": (
            dense_to_jagged
        ),
        "jagged_dense_elementwise_mul(Tensor x_values, Tensor[] x_offsets, Tensor y) -> (Tensor, Tensor[])": (
            jagged_dense_elementwise_mul
        ),
        "jagged_dense_elementwise_add_jagged_output(Tensor x_values, Tensor[] x_offsets, Tensor y) "
        "-> (Tensor, Tensor[])": jagged_dense_elementwise_add_jagged_output,
        "jagged_index_select(Tensor values, Tensor lengths, Tensor indices, SymInt? num_dense_output_rows=None) "
        "-> Tensor[]": jagged_index_select,
        "keyed_jagged_index_select_dim1(Tensor values, Tensor lengths, Tensor offsets, Tensor indices, "
        "SymInt batch_size, Tensor? weights=None, SymInt? selected_lengths_sum=None) -> Tensor[]": (
            keyed_jagged_index_select_dim1
        ),
        f"permute_pooled_embs{_PERMUTE_POOLED}": permute_pooled_embs_auto_grad,
        f"permute_pooled_embs_auto_grad{_PERMUTE_POOLED}": permute_pooled_embs_auto_grad,
        "merge_pooled_embeddings(Tensor[] pooled_embeddings, SymInt uncat_dim_size, Device target_device, "
        "SymInt cat_dim=1) -> Tensor": merge_pooled_embeddings,
        "all_to_one_device(Tensor[] input_tensors, Device target_device) -> Tensor[]": all_to_one_device,
        "sum_reduce_to_one(Tensor[] input_tensors, Device target_device) -> Tensor": sum_reduce_to_one,
        "regroup_keyed_tensor(Tensor[] pooled_embs, str[][] keys, int[][] lengths, str[][] groups) -> Tensor[]": (
            regroup_keyed_tensor
        ),
    },
    composite=True,
)
