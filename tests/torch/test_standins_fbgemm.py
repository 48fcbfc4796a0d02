"""The stand-in for fbgemm_gpu: jagged operators against loops over lists, tables against torch's embedding bags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import halstream as hs
import pytest


@pytest.fixture
def fbgemm(torch: Any) -> Any:
    """Return the operators, registered."""
    import fbgemm_gpu  # type: ignore[import-not-found]  # noqa: F401

    return torch.ops.fbgemm


def test_sums_and_ranges(torch: Any, fbgemm: Any) -> None:
    lengths = torch.tensor([2, 0, 3], device="cuda")
    assert fbgemm.asynchronous_complete_cumsum(lengths).tolist() == [0, 2, 2, 5]
    assert fbgemm.asynchronous_inclusive_cumsum(lengths).tolist() == [2, 2, 5]
    assert fbgemm.asynchronous_exclusive_cumsum(lengths).tolist() == [0, 2, 2]
    assert fbgemm.asynchronous_complete_cumsum(lengths.view(1, 3)).tolist() == [[0, 2, 2, 5]]
    assert fbgemm.offsets_range(torch.tensor([0, 2, 2], device="cuda"), 5).tolist() == [0, 1, 0, 1, 2]
    assert fbgemm.lengths_range(lengths).tolist() == [0, 1, 0, 1, 2]
    values = torch.arange(10.0, device="cuda")
    assert fbgemm.segment_sum_csr(2, torch.tensor([0, 2, 5], device="cuda"), values).tolist() == [6, 39]
    assert fbgemm.invert_permute(torch.tensor([2, 0, 1], device="cuda")).tolist() == [1, 2, 0]


def parts(values: list[Any], lengths: list[int]) -> list[list[Any]]:
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    return [values[a : a + n] for a, n in zip(starts, lengths, strict=True)]


@pytest.mark.parametrize("total", [True, False])
def test_segments_are_permuted(torch: Any, fbgemm: Any, total: bool) -> None:
    lengths, values = [2, 0, 3, 1, 1, 2], list(range(9))
    weights = torch.rand(9, device="cuda")
    order = [2, 0, 2]
    given = (torch.tensor(order, dtype=torch.int32, device="cuda"), torch.tensor(lengths, device="cuda").view(3, 2))
    rows = [parts(values, lengths)[2 * i : 2 * i + 2] for i in order]
    flat = [one for row in rows for bag in row for one in bag]
    found = fbgemm.permute_2D_sparse_data(
        *given, torch.tensor(values, device="cuda"), weights, len(flat) if total else None
    )
    assert found[0].tolist() == [[1, 2], [2, 0], [1, 2]] and found[1].tolist() == flat
    assert torch.equal(found[2], weights[flat])
    one = fbgemm.permute_1D_sparse_data(given[0], given[1][:, 0].contiguous(), torch.arange(6, device="cuda"))
    assert one[0].tolist() == [1, 2, 1] and one[1].tolist() == [5, 0, 1, 5] and one[2] is None
    flat_input = fbgemm.permute_2D_sparse_data_input1D(given[0], given[1].flatten(), torch.tensor(values).cuda(), 2)
    assert flat_input[0].tolist() == [1, 2, 2, 0, 1, 2] and flat_input[1].tolist() == flat
    starts = torch.tensor([0, 2, 5, 6], device="cuda")
    out = torch.tensor([0, 1, 3, 6], device="cuda")
    jagged = fbgemm.expand_into_jagged_permute(torch.tensor([2, 0, 1], device="cuda"), starts, out, 6)
    assert jagged.tolist() == [5, 0, 1, 2, 3, 4]


def test_nothing_waits_for_the_device_where_the_total_is_given(torch: Any, fbgemm: Any, held: Any) -> None:
    lengths, values = torch.tensor([[2, 1], [0, 3]], device="cuda"), torch.arange(6, device="cuda")
    order, blocks = torch.tensor([1, 0], device="cuda"), torch.tensor([2, 4], device="cuda")
    offsets, side = torch.tensor([0, 2, 6], device="cuda"), torch.cuda.Stream()
    from fbgemm_gpu import split_table_batched_embeddings_ops_training as tbe

    tables = tbe.SplitTableBatchedEmbeddingBagsCodegen([(7, 4, tbe.EmbeddingLocation.DEVICE, tbe.ComputeDevice.CUDA)])
    side.wait_stream(torch.cuda.current_stream())
    gate = held(side)
    with torch.cuda.stream(side):
        tables(values, offsets).sum().backward()
        fbgemm.permute_2D_sparse_data(order, lengths, values, None, 6)
        fbgemm.block_bucketize_sparse_features(lengths.flatten(), values, True, True, blocks, 2)
        fbgemm.jagged_2d_to_dense(values.float().unsqueeze(1), offsets, 4)
    assert not side.query()
    gate.open()
    side.synchronize()


def test_indices_go_into_buckets_of_blocks(torch: Any, fbgemm: Any) -> None:
    lengths, indices = [2, 1, 0, 4], [5, 0, 3, 9, 1, 2, 6]  # two features of a batch of two
    blocks, size = [3, 2], 2
    weights = torch.rand(7, device="cuda")
    found = fbgemm.block_bucketize_sparse_features(
        torch.tensor(lengths, device="cuda"), torch.tensor(indices, device="cuda"), True, True,
        torch.tensor(blocks, device="cuda"), size, weights,
    )  # fmt: skip
    buckets: list[list[tuple[int, int, int]]] = [[] for _ in range(size * 4)]
    token = 0
    for bag, length in enumerate(lengths):
        for place in range(length):
            index, block = indices[token], blocks[bag // 2]
            inside = index < block * size
            bucket, row = (index // block, index % block) if inside else (index % size, index // size)
            buckets[4 * bucket + bag].append((row, token, place))
            token += 1
    flat = [one for bucket in buckets for one in bucket]
    assert found[0].tolist() == [len(bucket) for bucket in buckets]
    assert found[1].tolist() == [row for row, _, _ in flat]
    assert torch.equal(found[2], weights[[token for _, token, _ in flat]])
    assert found[3].tolist() == [place for _, _, place in flat]
    assert found[4].tolist() == [[token for _, token, _ in flat].index(i) for i in range(7)]
    with pytest.raises(NotImplementedError, match="total_num_blocks"):
        fbgemm.block_bucketize_sparse_features(
            torch.tensor(lengths).cuda(), torch.tensor(indices).cuda(), False, False, torch.tensor(blocks).cuda(), size,
            total_num_blocks=torch.tensor([4, 4]).cuda(),
        )  # fmt: skip


def test_jagged_tensors_become_dense_and_come_back(torch: Any, fbgemm: Any) -> None:
    values = torch.randn(5, 3, device="cuda", requires_grad=True)
    offsets = torch.tensor([0, 2, 2, 5], device="cuda")
    dense = fbgemm.jagged_to_padded_dense(values, [offsets], [2], -1.0)
    expected = torch.full((3, 2, 3), -1.0)
    expected[0], expected[2] = values[:2].cpu(), values[2:4].cpu()
    assert torch.equal(dense.cpu(), expected)
    gradient = torch.autograd.grad(dense.sum(), values)[0]
    assert gradient[:, 0].tolist() == [1, 1, 1, 1, 0]
    assert torch.equal(fbgemm.jagged_2d_to_dense(values, offsets, 2), dense.masked_fill(dense == -1, 0))
    padded = torch.full((3, 2), 7.0)
    padded[0], padded[2] = values[:2, 0].cpu(), values[2:4, 0].cpu()
    assert torch.equal(fbgemm.jagged_1d_to_dense(values[:, 0], offsets, 2, 7).cpu(), padded)
    y = torch.randn(3, 3, 3, device="cuda", requires_grad=True)
    back, same = fbgemm.dense_to_jagged(y, [offsets], 5)
    rows = torch.cat((y[0, :2], y[2]))
    assert torch.equal(back, rows) and same[0] is not None
    assert torch.autograd.grad(back.sum(), y)[0][:, :, 0].tolist() == [[1, 1, 0], [0, 0, 0], [1, 1, 1]]
    assert torch.equal(fbgemm.jagged_dense_elementwise_mul(values, [offsets], y)[0], values * rows)
    assert torch.equal(fbgemm.jagged_dense_elementwise_add_jagged_output(values, [offsets], y)[0], values + rows)
    with pytest.raises(NotImplementedError, match="2 jagged dimensions"):
        fbgemm.jagged_to_padded_dense(values, [offsets, offsets], [2, 2])


def test_sequences_are_selected(torch: Any, fbgemm: Any) -> None:
    values, lengths = torch.arange(6.0, device="cuda"), torch.tensor([1, 2, 0, 3], device="cuda")
    found = fbgemm.jagged_index_select(values, lengths, torch.tensor([3, 0, 3], device="cuda"))
    assert found[0].tolist() == [3, 4, 5, 0, 3, 4, 5] and found[1].tolist() == [3, 1, 3]
    offsets = fbgemm.asynchronous_complete_cumsum(lengths)
    one = torch.tensor([1], device="cuda")
    keyed = fbgemm.keyed_jagged_index_select_dim1(values, lengths, offsets, one, 2, values)
    assert keyed[0].tolist() == [1, 2, 3, 4, 5] and keyed[1].tolist() == [2, 3] and torch.equal(keyed[2], keyed[0])


def test_pooled_embeddings_are_merged_and_regrouped(torch: Any, fbgemm: Any) -> None:
    pooled = torch.arange(12.0, device="cuda").view(2, 6)
    columns = torch.tensor([0, 1, 3, 6], device="cuda")  # widths 1, 2 and 3
    order, back = torch.tensor([2, 0, 1], device="cuda"), torch.tensor([1, 2, 0], device="cuda")
    moved = fbgemm.permute_pooled_embs_auto_grad(
        pooled, columns, order, torch.tensor([0, 3, 4, 6], device="cuda"), back
    )
    assert torch.equal(moved, pooled[:, [3, 4, 5, 0, 1, 2]])
    other = pooled.to("cuda:1")
    merged = fbgemm.merge_pooled_embeddings([pooled, other], 2, torch.device("cuda:0"))
    assert torch.equal(merged, torch.cat((pooled, pooled), 1))
    groups = fbgemm.regroup_keyed_tensor(
        [pooled, pooled + 100], [["a", "b"], ["c"]], [[2, 4], [6]], [["c", "a"], ["b"]]
    )
    assert torch.equal(groups[0], torch.cat((pooled + 100, pooled[:, :2]), 1)) and torch.equal(groups[1], pooled[:, 2:])


SPECS = [(7, 4), (5, 8)]
MAP = [0, 1, 0]  # three features, two of them on the first table


def batch(torch: Any) -> tuple[Any, Any, Any]:
    """Return indices, offsets and weights of samples for three features of a batch of two; an index comes twice."""
    indices = torch.tensor([1, 1, 6, 4, 0, 2, 1, 3, 6], device="cuda")
    offsets = torch.tensor([0, 2, 3, 3, 5, 8, 9], device="cuda")
    return indices, offsets, torch.rand(9, device="cuda")


def pooled(torch: Any, tables: list[Any], mode: str, indices: Any, offsets: Any, samples: Any) -> Any:
    """Return the same by torch's embedding_bag for each feature, on the CPU."""
    found = []
    offsets = offsets.cpu()
    for feature, table in enumerate(MAP):
        begin, end = offsets[2 * feature], offsets[2 * feature + 2]
        own = indices.cpu()[begin:end]
        starts = offsets[2 * feature : 2 * feature + 2] - begin
        if mode == "mean" or samples is None:
            one = torch.nn.functional.embedding_bag(own, tables[table], starts, mode=mode)
        else:
            one = torch.nn.functional.embedding_bag(
                own, tables[table], starts, mode=mode, per_sample_weights=samples[begin:end]
            )
        found.append(one)
    return torch.cat(found, 1)


# torch's embedding_bag has no weights of samples with means.
@pytest.mark.parametrize(("mode", "weighted"), [("sum", False), ("sum", True), ("mean", False)])
@pytest.mark.parametrize("optimizer", ["EXACT_SGD", "EXACT_ROWWISE_ADAGRAD", "ADAM"])
def test_the_backward_pass_steps_the_rows(torch: Any, fbgemm: Any, optimizer: str, mode: str, weighted: bool) -> None:
    from fbgemm_gpu import split_table_batched_embeddings_ops_training as tbe

    specs = [(*one, tbe.EmbeddingLocation.DEVICE, tbe.ComputeDevice.CUDA) for one in SPECS]
    tables = tbe.SplitTableBatchedEmbeddingBagsCodegen(
        specs, MAP, optimizer=tbe.OptimType[optimizer], pooling_mode=tbe.PoolingMode[mode.upper()], learning_rate=0.1,
        eps=1e-3,
    )  # fmt: skip
    tables.init_embedding_weights_uniform(-1, 1)
    host = [one.cpu().clone().requires_grad_() for one in tables.split_embedding_weights()]
    sums = [torch.zeros(rows) for rows, _ in SPECS]
    averages = [[torch.zeros(spec), torch.zeros(spec)] for spec in SPECS]
    for step in (1, 2):
        indices, offsets, samples = batch(torch)
        samples = samples.requires_grad_() if weighted else None
        out = tables(indices, offsets, samples)
        of_host = None if samples is None else samples.detach().cpu().requires_grad_()
        expected = pooled(torch, host, mode, indices, offsets, of_host)
        torch.testing.assert_close(out.cpu(), expected)
        grad = torch.randn(out.shape)
        out.backward(grad.cuda())
        expected.backward(grad)
        if samples is not None and of_host is not None:
            torch.testing.assert_close(samples.grad.cpu(), of_host.grad)
        with torch.no_grad():
            for table, weight in enumerate(host):
                g = weight.grad
                touched = (g != 0).any(1, keepdim=True)
                if optimizer == "EXACT_ROWWISE_ADAGRAD":
                    sums[table] += g.square().mean(1)
                    weight -= 0.1 * g / (sums[table].sqrt() + 1e-3).unsqueeze(1)
                elif optimizer == "ADAM":
                    m, v = averages[table]
                    m.copy_(torch.where(touched, 0.9 * m + 0.1 * g, m))
                    v.copy_(torch.where(touched, 0.999 * v + 0.001 * g * g, v))
                    update = m / (1 - 0.9**step) / ((v / (1 - 0.999**step)).sqrt() + 1e-3)
                    weight -= torch.where(touched, 0.1 * update, 0)
                else:
                    weight -= 0.1 * g
                weight.grad = None
        for one, wanted in zip(tables.split_embedding_weights(), host, strict=True):
            torch.testing.assert_close(one.cpu(), wanted.detach(), rtol=1e-4, atol=1e-5)


def test_gradients_are_clipped_as_they_come_in(torch: Any, fbgemm: Any) -> None:
    from fbgemm_gpu import split_table_batched_embeddings_ops_training as tbe

    tables = tbe.SplitTableBatchedEmbeddingBagsCodegen(
        [(3, 4, tbe.EmbeddingLocation.DEVICE, tbe.ComputeDevice.CUDA)], pooling_mode=tbe.PoolingMode.MEAN,
        gradient_clipping=True, max_gradient=0.5, learning_rate=1.0,
    )  # fmt: skip
    indices, offsets = torch.tensor([0, 0, 1, 0, 2], device="cuda"), torch.tensor([0, 2, 4, 5], device="cuda")
    tables(indices, offsets).backward(torch.tensor([[3.0], [0.8], [-0.25]], device="cuda").expand(3, 4).contiguous())
    # The means of the first two bags each give half of 0.5 to each of their indices.
    assert tables.split_embedding_weights()[0][:, 0].tolist() == [-0.75, -0.25, 0.25]


def test_tables_without_pooling_and_dense_ones(torch: Any, fbgemm: Any) -> None:
    from fbgemm_gpu import split_table_batched_embeddings_ops_training as tbe

    indices, offsets, _ = batch(torch)
    spec = (7, 4, tbe.EmbeddingLocation.DEVICE, tbe.ComputeDevice.CUDA)
    none = tbe.SplitTableBatchedEmbeddingBagsCodegen(
        [spec], [0, 0, 0], pooling_mode=tbe.PoolingMode.NONE, learning_rate=1.0
    )
    none.init_embedding_weights_uniform(-1, 1)
    before = none.split_embedding_weights()[0].clone()
    out = none(indices, offsets)
    assert torch.equal(out, before[indices])
    out.sum().backward()
    expected = before - torch.bincount(indices, minlength=7).unsqueeze(1)
    torch.testing.assert_close(none.split_embedding_weights()[0], expected)
    dense = tbe.DenseTableBatchedEmbeddingBagsCodegen(SPECS, MAP)
    dense.init_embedding_weights_uniform(-1, 1)
    host = [one.cpu().clone().requires_grad_() for one in dense.split_embedding_weights()]
    out = dense(indices, offsets)
    expected = pooled(torch, host, "sum", indices, offsets, None)
    torch.testing.assert_close(out.cpu(), expected)
    out.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(dense.weights.grad.cpu(), torch.cat([one.grad.flatten() for one in host]))


def test_what_tables_do_not_have_is_refused_by_name(torch: Any, fbgemm: Any) -> None:
    from fbgemm_gpu import split_table_batched_embeddings_ops_training as tbe
    from fbgemm_gpu.split_embedding_configs import SparseType

    spec = [(7, 4, tbe.EmbeddingLocation.DEVICE, tbe.ComputeDevice.CUDA)]
    made = tbe.SplitTableBatchedEmbeddingBagsCodegen
    with pytest.raises(NotImplementedError, match=r"optimizer=lamb.*exact_sgd, exact_row_wise_adagrad, adam"):
        made(spec, optimizer=tbe.OptimType.LAMB)
    with pytest.raises(NotImplementedError, match="weights_precision=int8"):
        made(spec, weights_precision=SparseType.INT8)
    with pytest.raises(NotImplementedError, match=r"max_norm=1\.0"):
        made(spec, max_norm=1.0)
    with pytest.raises(NotImplementedError, match="batch_size_per_feature_per_rank"):
        made(spec)(*batch(torch)[:2], batch_size_per_feature_per_rank=[[1]])
    outside = made(spec)
    outside.init_embedding_weights_uniform(1, 1)
    found = outside(torch.tensor([99], device="cuda"), torch.tensor([0, 1], device="cuda"))
    assert found.tolist() == [[1, 1, 1, 1]]  # row 0, as the package has it where it does not end the program


def test_a_missing_wait_before_a_lookup_is_reported(torch: Any, fbgemm: Any) -> None:
    from fbgemm_gpu import split_table_batched_embeddings_ops_training as tbe

    spec = [(7, 4, tbe.EmbeddingLocation.DEVICE, tbe.ComputeDevice.CUDA)]
    tables, side = tbe.SplitTableBatchedEmbeddingBagsCodegen(spec), torch.cuda.Stream()
    offsets = torch.tensor([0, 2], device="cuda")
    for waits in (True, False):
        indices = torch.zeros(2, dtype=torch.long, device="cuda")
        torch.cuda.synchronize()
        with hs.sanitize(on="collect") as report:
            indices.fill_(3)
            if waits:
                side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                tables(indices, offsets)
            torch.cuda.synchronize()
        assert bool(report.races) is not waits, str(report)


def test_a_package_whose_libraries_cannot_be_loaded_is_replaced(program: Any, tmp_path: Path) -> None:
    package = tmp_path / "fbgemm_gpu"
    package.mkdir()
    (package / "helpers.py").write_text("")
    (package / "__init__.py").write_text(
        "from . import helpers\nimport torch\ntorch.ops.load_library('/nowhere/fbgemm_gpu_py.so')\n"
    )
    done = program(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import halstream.torch.cuda_on_host, torch
        import fbgemm_gpu
        from fbgemm_gpu.split_embedding_configs import SparseType
        print(torch.ops.fbgemm.asynchronous_complete_cumsum(torch.ones(2, dtype=torch.int, device="cuda")).tolist())
        print("fbgemm_gpu.helpers" in sys.modules)
        """
    )
    assert done.stdout == "[0, 1, 2]\nFalse\n", done.stderr
    assert "halstream: fbgemm_gpu cannot be loaded (" in done.stderr and "fbgemm_gpu_py.so" in done.stderr


def test_an_error_of_a_package_that_is_not_of_a_library_stays(program: Any, tmp_path: Path) -> None:
    (tmp_path / "fbgemm_gpu.py").write_text("import no_such_module")
    done = program(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import halstream.torch.cuda_on_host
        import fbgemm_gpu
        """
    )
    assert done.returncode == 1 and "No module named 'no_such_module'" in done.stderr, done.stderr
    assert "stand-in" not in done.stderr
