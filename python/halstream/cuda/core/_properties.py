"""DeviceProperties: attributes of a device by the package's names."""

from __future__ import annotations

from typing import Any

from ..._core._strict import strict
from ..._dialects._adapt import raising
from ..._dialects._cuda_attributes import attribute
from ._errors import ERRORS

__all__ = ["DeviceProperties"]

# CUDA's number of each; a question mark stands behind what is True or False.
_NUMBERS = """
    max_threads_per_block=1 max_block_dim_x=2 max_block_dim_y=3 max_block_dim_z=4 max_grid_dim_x=5
    max_grid_dim_y=6 max_grid_dim_z=7 max_shared_memory_per_block=8 total_constant_memory=9 warp_size=10
    max_pitch=11 maximum_texture1d_width=21 maximum_texture1d_linear_width=69
    maximum_texture1d_mipmapped_width=77 maximum_texture2d_width=22 maximum_texture2d_height=23
    maximum_texture2d_linear_width=70 maximum_texture2d_linear_height=71 maximum_texture2d_linear_pitch=72
    maximum_texture2d_mipmapped_width=73 maximum_texture2d_mipmapped_height=74 maximum_texture3d_width=24
    maximum_texture3d_height=25 maximum_texture3d_depth=26 maximum_texture3d_width_alternate=47
    maximum_texture3d_height_alternate=48 maximum_texture3d_depth_alternate=49 maximum_texturecubemap_width=52
    maximum_texture1d_layered_width=42 maximum_texture1d_layered_layers=43 maximum_texture2d_layered_width=27
    maximum_texture2d_layered_height=28 maximum_texture2d_layered_layers=29
    maximum_texturecubemap_layered_width=53 maximum_texturecubemap_layered_layers=54 maximum_surface1d_width=55
    maximum_surface2d_width=56 maximum_surface2d_height=57 maximum_surface3d_width=58
    maximum_surface3d_height=59 maximum_surface3d_depth=60 maximum_surface1d_layered_width=61
    maximum_surface1d_layered_layers=62 maximum_surface2d_layered_width=63 maximum_surface2d_layered_height=64
    maximum_surface2d_layered_layers=65 maximum_surfacecubemap_width=66 maximum_surfacecubemap_layered_width=67
    maximum_surfacecubemap_layered_layers=68 max_registers_per_block=12 clock_rate=13 texture_alignment=14
    texture_pitch_alignment=51 gpu_overlap?=15 multiprocessor_count=16 kernel_exec_timeout?=17 integrated?=18
    can_map_host_memory?=19 compute_mode=20 concurrent_kernels?=31 ecc_enabled?=32 pci_bus_id=33
    pci_device_id=34 pci_domain_id=50 tcc_driver?=35 memory_clock_rate=36 global_memory_bus_width=37
    l2_cache_size=38 max_threads_per_multiprocessor=39 unified_addressing?=41 compute_capability_major=75
    compute_capability_minor=76 global_l1_cache_supported?=79 local_l1_cache_supported?=80
    max_shared_memory_per_multiprocessor=81 max_registers_per_multiprocessor=82 managed_memory?=83
    multi_gpu_board?=84 multi_gpu_board_group_id=85 host_native_atomic_supported?=86
    single_to_double_precision_perf_ratio=87 pageable_memory_access?=88 concurrent_managed_access?=89
    compute_preemption_supported?=90 can_use_host_pointer_for_registered_mem?=91 cooperative_launch?=95
    max_shared_memory_per_block_optin=97 pageable_memory_access_uses_host_page_tables?=100
    direct_managed_mem_access_from_host?=101 virtual_memory_management_supported?=102
    handle_type_posix_file_descriptor_supported?=103 handle_type_win32_handle_supported?=104
    handle_type_win32_kmt_handle_supported?=105 max_blocks_per_multiprocessor=106
    generic_compression_supported?=107 max_persisting_l2_cache_size=108 max_access_policy_window_size=109
    gpu_direct_rdma_with_cuda_vmm_supported?=110 reserved_shared_memory_per_block=111
    sparse_cuda_array_supported?=112 read_only_host_register_supported?=113 memory_pools_supported?=115
    gpu_direct_rdma_supported?=116 gpu_direct_rdma_flush_writes_options=117 gpu_direct_rdma_writes_ordering=118
    mempool_supported_handle_types=119 deferred_mapping_cuda_array_supported?=121 numa_config=130 numa_id=131
    multicast_supported?=132 surface_alignment=30 async_engine_count=40 can_tex2d_gather?=44
    maximum_texture2d_gather_width=45 maximum_texture2d_gather_height=46 stream_priorities_supported?=78
    can_flush_remote_writes?=98 host_register_supported?=99 timeline_semaphore_interop_supported?=114
    cluster_launch?=120 can_use_64_bit_stream_mem_ops?=122 can_use_stream_wait_value_nor?=123
    dma_buf_supported?=124 ipc_event_supported?=125 mem_sync_domain_count=126 tensor_map_access_supported?=127
    handle_type_fabric_supported?=128 unified_function_pointers?=129 mps_enabled?=133 host_numa_id=134
    d3d12_cig_supported?=135 mem_decompress_algorithm_mask=136 mem_decompress_maximum_length=137
    vulkan_cig_supported?=138 gpu_pci_device_id=139 gpu_pci_subsystem_id=140
    host_numa_virtual_memory_management_supported?=141 host_numa_memory_pools_supported?=142
    host_numa_multinode_ipc_supported?=143 host_memory_pools_supported?=144
    host_virtual_memory_management_supported?=145 host_alloc_dma_buf_supported?=146
    only_partial_host_native_atomic_supported?=147
"""

_attribute = raising(ERRORS)(attribute)


class DeviceProperties:
    """cuda.core's properties of a device (1.2.2).

    Difference: what a device does not have is 0, or False.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("DeviceProperties cannot be instantiated directly. Please use Device APIs.")

    _ordinal: int

    @classmethod
    def _of(cls, ordinal: int) -> DeviceProperties:
        new = object.__new__(cls)
        new._ordinal = ordinal
        return new


def _property(number: int, kind: type) -> property:
    def get(self: DeviceProperties) -> Any:
        return kind(_attribute(self._ordinal, number))

    get.__doc__ = f"CUDA's attribute {number} of the device."
    return property(get)


for _word in _NUMBERS.split():
    _name, _, _number = _word.partition("=")
    setattr(DeviceProperties, _name.rstrip("?"), _property(int(_number), bool if _name.endswith("?") else int))
DeviceProperties.__module__ = "halstream.cuda.core"
strict.add(DeviceProperties)
