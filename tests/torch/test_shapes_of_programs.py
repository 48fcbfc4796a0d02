"""What programs do with torch.cuda besides operators on streams: each was broken in a program once."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.filterwarnings("ignore")  # torch deprecates some of what programs still call


def close(torch: Any, found: Any, expected: Any) -> None:
    torch.testing.assert_close(found.detach().cpu(), expected.detach().cpu(), rtol=1e-4, atol=1e-5)


def test_data_parallel_uses_both_devices(torch: Any) -> None:
    here = torch.nn.Linear(8, 4)
    there = torch.nn.DataParallel(copy.deepcopy(here).cuda())
    x = torch.randn(6, 8)
    there(x.cuda()).square().sum().backward()
    here(x).square().sum().backward()
    close(torch, there.module.weight.grad, here.weight.grad)


def test_the_functions_of_torch_cuda_comm(torch: Any) -> None:
    from torch.cuda import comm

    x = torch.arange(6.0, device="cuda").reshape(3, 2)
    copies = comm.broadcast(x, (0, 1))
    assert [one.device.index for one in copies] == [0, 1] and torch.equal(copies[1].cpu(), x.cpu())
    parts = comm.scatter(x, (0, 1), chunk_sizes=(1, 2))
    assert parts[1].shape == (2, 2) and torch.equal(comm.gather(parts, destination=0), x)
    assert torch.equal(comm.reduce_add(copies), x * 2)
    assert comm.gather(parts, destination=-1).device.type == "cpu"


def test_a_storage_is_emptied_and_filled_again_as_fsdp_does(torch: Any) -> None:
    x = torch.ones(256, device="cuda")
    storage = x.untyped_storage()
    before = torch.cuda.memory_allocated()
    storage.resize_(0)
    assert torch.cuda.memory_allocated() == before - 1024 and storage.size() == 0
    storage.resize_(1024)
    x.copy_(torch.arange(256.0))
    assert x[255].item() == 255
    typed = torch.cuda.FloatStorage([1.0, 2.0])
    typed.resize_(4)
    assert typed[1] == 2.0


def test_packed_sequences_take_lengths_of_the_host(torch: Any) -> None:
    x, lengths = torch.randn(3, 5, 8), [5, 4, 2]
    here = torch.nn.LSTM(8, 6, batch_first=True)
    there = copy.deepcopy(here).cuda()
    pack = torch.nn.utils.rnn.pack_padded_sequence
    found, _ = there(pack(x.cuda(), lengths, batch_first=True))
    expected, _ = here(pack(x, lengths, batch_first=True))
    close(torch, found.data, expected.data)


def test_an_encoder_with_a_padding_mask_in_evaluation(torch: Any) -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    here = torch.nn.TransformerEncoder(layer, 2).eval()
    there = copy.deepcopy(here).cuda()
    x = torch.randn(2, 5, 16)
    mask = torch.zeros(2, 5, dtype=torch.bool)
    mask[:, 4] = True
    with torch.no_grad():
        found = there(x.cuda(), src_key_padding_mask=mask.cuda())[:, :4]
        close(torch, found, here(x, src_key_padding_mask=mask)[:, :4])


@pytest.mark.parametrize("name", ["FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "MATH"])
def test_attention_with_a_kernel_that_the_program_chooses(torch: Any, name: str) -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    dtype = torch.float16 if name in ("FLASH_ATTENTION", "CUDNN_ATTENTION") else torch.float32  # what these take
    q = torch.randn(1, 2, 8, 16, dtype=dtype)
    with sdpa_kernel(getattr(SDPBackend, name)):
        found = torch.nn.functional.scaled_dot_product_attention(q.cuda(), q.cuda(), q.cuda(), is_causal=True)
    expected = torch.nn.functional.scaled_dot_product_attention(*[q.float()] * 3, is_causal=True)
    tolerance = {"rtol": 1e-2, "atol": 1e-2} if dtype == torch.float16 else {}
    torch.testing.assert_close(found.cpu().float(), expected, **tolerance)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_softmax_of_16_bit_numbers_in_32_bits(torch: Any, dtype: str) -> None:
    x = torch.randn(3, 5, dtype=getattr(torch, dtype)).cuda().requires_grad_()
    for function in (torch.softmax, torch.log_softmax):
        x.grad = None
        result = function(x, dim=-1, dtype=torch.float32)
        result.square().sum().backward()
        here = x.detach().cpu().float().requires_grad_()
        function(here, dim=-1).square().sum().backward()
        assert result.dtype is torch.float32 and x.grad.dtype is x.dtype
        torch.testing.assert_close(x.grad.cpu().float(), here.grad, rtol=1e-2, atol=1e-2)


def test_batch_norm_over_processes_is_that_of_one_process(torch: Any, tmp_path: Path) -> None:
    import ranks

    ranks.run(
        tmp_path,
        """
start("nccl")
torch.manual_seed(0)
x = torch.randn(4, 3, 5, 5)
here = torch.nn.BatchNorm2d(3)
there = torch.nn.SyncBatchNorm.convert_sync_batchnorm(torch.nn.BatchNorm2d(3)).cuda()
there = torch.nn.parallel.DistributedDataParallel(there, device_ids=[rank])
part = x[rank * 2:rank * 2 + 2].cuda().requires_grad_()
whole = x.clone().requires_grad_()
found, expected = there(part), here(whole)
torch.testing.assert_close(found.detach().cpu(), expected[rank * 2:rank * 2 + 2].detach(), rtol=1e-4, atol=1e-5)
found.pow(3).sum().backward()
expected.pow(3).sum().backward()
torch.testing.assert_close(part.grad.cpu(), whole.grad[rank * 2:rank * 2 + 2], rtol=1e-3, atol=1e-4)
torch.testing.assert_close(there.module.running_var.cpu(), here.running_var, rtol=1e-4, atol=1e-5)
dist.destroy_process_group()
""",
    )


def test_memory_that_is_registered_counts_as_pinned(torch: Any) -> None:
    x, runtime = torch.ones(20), torch.cuda.cudart()
    assert runtime.cudaHostRegister(x.data_ptr(), 80, 0) == 0 and x.is_pinned()
    assert x.cuda(non_blocking=True).sum().item() == 20
    assert runtime.cudaHostUnregister(x.data_ptr()) == 0 and not x.is_pinned()
    with pytest.raises(torch.cuda.CudaError, match="out of memory"):
        torch.cuda.check_error(2)


def test_a_share_of_the_memory_is_a_limit(torch: Any) -> None:
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(0.001)
    try:
        with pytest.raises(torch.cuda.OutOfMemoryError, match="Tried to allocate"):
            torch.empty(total // 100, dtype=torch.int8, device="cuda")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert torch.cuda.get_per_process_memory_fraction() == 1.0
    with pytest.raises(torch.cuda.OutOfMemoryError, match="more than 1EB"):
        torch.empty(1 << 62, dtype=torch.int8, device="cuda")


def test_the_profiler_measures_the_stream(torch: Any) -> None:
    with torch.autograd.profiler.profile(use_device="cuda", use_kineto=False) as found:
        torch.ones(64, 64, device="cuda").matmul(torch.ones(64, 64, device="cuda"))
    assert sum(event.device_time_total for event in found.function_events) > 0


CHILDREN = """
import torch
import torch.multiprocessing as mp

def child(number):
    assert torch.ones(2, device="cuda").sum().item() == 2

if __name__ == "__main__":
    mp.spawn(child, nprocs=2)
    print("both")
"""


def test_processes_that_a_program_starts_are_redirected_as_well(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(CHILDREN)
    command = [sys.executable, "-m", "halstream", "run", "--torch", "app.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout) == (0, "both\n"), done.stderr
