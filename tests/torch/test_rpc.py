"""torch.distributed.rpc in processes that are redirected: CPU tensors travel, device maps are refused at once."""

from __future__ import annotations

from pathlib import Path

import ranks

BEGIN = """
import torch.distributed.rpc as rpc

def double_there(x):
    return (x.cuda() * 2).cpu()

def refused(call):
    try:
        call()
    except NotImplementedError as error:
        return str(error)
    raise SystemExit(f"{call} was not refused")
"""

CPU = """
options = rpc.TensorPipeRpcBackendOptions(init_method="file://" + sys.argv[2], rpc_timeout=60)
rpc.init_rpc(f"worker{rank}", rank=rank, world_size=world, rpc_backend_options=options)
if rank == 0:
    assert rpc.rpc_sync("worker1", double_there, args=(torch.ones(2),)).tolist() == [2, 2]
    try:
        rpc.rpc_sync("worker1", double_there, args=(torch.ones(2, device="cuda"),))
    except RuntimeError as error:
        assert "TensorPipe RPC backend only supports CPU tensors by default" in str(error), error
        assert "found tensor on device: cuda:0" in str(error), error
    else:
        raise SystemExit("a CUDA tensor was sent")
    assert rpc.remote("worker1", double_there, args=(torch.ones(2),)).to_here().tolist() == [2, 2]
rpc.shutdown()
print("over")
"""

MAPS = """
options = rpc.TensorPipeRpcBackendOptions(init_method="file://" + sys.argv[2])
text = refused(lambda: options.set_device_map("worker1", {0: 1}))
assert "leave set_device_map out, send x.cpu()" in text, text
text = refused(lambda: rpc.TensorPipeRpcBackendOptions(device_maps={"worker1": {0: 1}}))
assert "leave device_maps out, send x.cpu()" in text, text
print("over")
"""


def test_rpc_carries_cpu_tensors_and_refuses_others_in_torchs_words(tmp_path: Path) -> None:
    assert ranks.run(tmp_path, BEGIN + CPU) == ["over\n"] * 2


def test_device_maps_are_refused_by_name_with_what_to_do(tmp_path: Path) -> None:
    assert ranks.run(tmp_path, BEGIN + MAPS) == ["over\n"] * 2
