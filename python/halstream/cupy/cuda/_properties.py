"""cupy.cuda.runtime: attributes of devices, by number and by name."""

from __future__ import annotations

from typing import Any

from ... import _core as core
from ..._core import _interop
from ..._dialects import _cuda_attributes
from ..._dialects._adapt import raising
from ..._memory import memory_info
from . import _constants as constants
from ._errors import ERRORS, c_int

__all__ = ["deviceGetAttribute", "getDeviceProperties"]

#: Every attribute by its name without the prefix.
ATTRIBUTES = {
    name.removeprefix("cudaDevAttr"): value for name, value in vars(constants).items() if name.startswith("cudaDevAttr")
}

# Entries of the properties that are one attribute each.
_SINGLE = {
    "ECCEnabled": "EccEnabled",
    "asyncEngineCount": "AsyncEngineCount",
    "canMapHostMemory": "CanMapHostMemory",
    "canUseHostPointerForRegisteredMem": "CanUseHostPointerForRegisteredMem",
    "clockRate": "ClockRate",
    "computeMode": "ComputeMode",
    "computePreemptionSupported": "ComputePreemptionSupported",
    "concurrentKernels": "ConcurrentKernels",
    "concurrentManagedAccess": "ConcurrentManagedAccess",
    "cooperativeLaunch": "CooperativeLaunch",
    "cooperativeMultiDeviceLaunch": "CooperativeMultiDeviceLaunch",
    "deviceOverlap": "GpuOverlap",
    "directManagedMemAccessFromHost": "DirectManagedMemAccessFromHost",
    "globalL1CacheSupported": "GlobalL1CacheSupported",
    "hostNativeAtomicSupported": "HostNativeAtomicSupported",
    "integrated": "Integrated",
    "isMultiGpuBoard": "IsMultiGpuBoard",
    "kernelExecTimeoutEnabled": "KernelExecTimeout",
    "l2CacheSize": "L2CacheSize",
    "localL1CacheSupported": "LocalL1CacheSupported",
    "managedMemory": "ManagedMemory",
    "maxBlocksPerMultiProcessor": "MaxBlocksPerMultiprocessor",
    "maxSurface1D": "MaxSurface1DWidth",
    "maxSurfaceCubemap": "MaxSurfaceCubemapWidth",
    "maxTexture1D": "MaxTexture1DWidth",
    "maxTexture1DLinear": "MaxTexture1DLinearWidth",
    "maxTexture1DMipmap": "MaxTexture1DMipmappedWidth",
    "maxTextureCubemap": "MaxTextureCubemapWidth",
    "maxThreadsPerBlock": "MaxThreadsPerBlock",
    "maxThreadsPerMultiProcessor": "MaxThreadsPerMultiProcessor",
    "memoryBusWidth": "GlobalMemoryBusWidth",
    "memoryClockRate": "MemoryClockRate",
    "multiGpuBoardGroupID": "MultiGpuBoardGroupID",
    "multiProcessorCount": "MultiProcessorCount",
    "pageableMemoryAccess": "PageableMemoryAccess",
    "pageableMemoryAccessUsesHostPageTables": "PageableMemoryAccessUsesHostPageTables",
    "pciBusID": "PciBusId",
    "pciDeviceID": "PciDeviceId",
    "pciDomainID": "PciDomainId",
    "regsPerBlock": "MaxRegistersPerBlock",
    "regsPerMultiprocessor": "MaxRegistersPerMultiprocessor",
    "reservedSharedMemPerBlock": "ReservedSharedMemoryPerBlock",
    "sharedMemPerBlock": "MaxSharedMemoryPerBlock",
    "sharedMemPerBlockOptin": "MaxSharedMemoryPerBlockOptin",
    "sharedMemPerMultiprocessor": "MaxSharedMemoryPerMultiprocessor",
    "singleToDoublePrecisionPerfRatio": "SingleToDoublePrecisionPerfRatio",
    "streamPrioritiesSupported": "StreamPrioritiesSupported",
    "surfaceAlignment": "SurfaceAlignment",
    "tccDriver": "TccDriver",
    "textureAlignment": "TextureAlignment",
    "texturePitchAlignment": "TexturePitchAlignment",
    "totalConstMem": "TotalConstantMemory",
    "unifiedAddressing": "UnifiedAddressing",
    "warpSize": "WarpSize",
}

# Entries that are several attributes each.
_SEVERAL = {
    "maxGridSize": ("MaxGridDimX", "MaxGridDimY", "MaxGridDimZ"),
    "maxSurface1DLayered": ("MaxSurface1DLayeredWidth", "MaxSurface1DLayeredLayers"),
    "maxSurface2D": ("MaxSurface2DWidth", "MaxSurface2DHeight"),
    "maxSurface2DLayered": (
        "MaxSurface2DLayeredWidth",
        "MaxSurface2DLayeredHeight",
        "MaxSurface2DLayeredLayers",
    ),
    "maxSurface3D": ("MaxSurface3DWidth", "MaxSurface3DHeight", "MaxSurface3DDepth"),
    "maxSurfaceCubemapLayered": ("MaxSurfaceCubemapLayeredWidth", "MaxSurfaceCubemapLayeredLayers"),
    "maxTexture1DLayered": ("MaxTexture1DLayeredWidth", "MaxTexture1DLayeredLayers"),
    "maxTexture2D": ("MaxTexture2DWidth", "MaxTexture2DHeight"),
    "maxTexture2DGather": ("MaxTexture2DGatherWidth", "MaxTexture2DGatherHeight"),
    "maxTexture2DLayered": (
        "MaxTexture2DLayeredWidth",
        "MaxTexture2DLayeredHeight",
        "MaxTexture2DLayeredLayers",
    ),
    "maxTexture2DLinear": (
        "MaxTexture2DLinearWidth",
        "MaxTexture2DLinearHeight",
        "MaxTexture2DLinearPitch",
    ),
    "maxTexture2DMipmap": ("MaxTexture2DMipmappedWidth", "MaxTexture2DMipmappedHeight"),
    "maxTexture3D": ("MaxTexture3DWidth", "MaxTexture3DHeight", "MaxTexture3DDepth"),
    "maxTexture3DAlt": ("MaxTexture3DWidthAlt", "MaxTexture3DHeightAlt", "MaxTexture3DDepthAlt"),
    "maxTextureCubemapLayered": ("MaxTextureCubemapLayeredWidth", "MaxTextureCubemapLayeredLayers"),
    "maxThreadsDim": ("MaxBlockDimX", "MaxBlockDimY", "MaxBlockDimZ"),
}

# Entries that are attributes of the driver for which the package has no constant.
_BY_NUMBER = {"persistingL2CacheMaxSize": 108, "accessPolicyMaxWindowSize": 109}

_NUMBERS = frozenset(ATTRIBUTES.values())

_attribute = raising(ERRORS)(_cuda_attributes.attribute)


@raising(ERRORS)
def _ordinal(device: int) -> int:
    return core.ordinal(c_int(device))


def all_attributes(device: int) -> dict[str, int]:
    """Return every attribute by its name; what the device does not have is 0."""
    ordinal = _ordinal(device)
    return {name: _attribute(ordinal, number) for name, number in ATTRIBUTES.items()}


def deviceGetAttribute(attrib: int, device: int) -> int:
    """cupy.cuda.runtime.deviceGetAttribute (14.2.0); what a device does not have is 0.

    Differences: features of a vendor's device that are not built yet, such as
    managed memory, count as absent.
    """
    number, ordinal = c_int(attrib), _ordinal(device)
    if number not in _NUMBERS:
        raise ERRORS["invalid_value"](f"no attribute of a device has the number {attrib}")
    return _attribute(ordinal, number)


@raising(ERRORS)
def getDeviceProperties(device: int) -> dict[str, Any]:
    """cupy.cuda.runtime.getDeviceProperties (14.2.0); what a device does not have is 0.

    Differences: `luid` is zero bytes, as it is outside Windows.
    """
    ordinal = _ordinal(device)
    facts, known = _interop.device_facts(ordinal), all_attributes(device)
    by_number = {name: _attribute(ordinal, number) for name, number in _BY_NUMBER.items()}
    return {
        "name": facts["name"].encode(),
        "major": facts["major"],
        "minor": facts["minor"],
        "totalGlobalMem": memory_info(ordinal)[1],
        "uuid": bytes.fromhex(_interop.device_uuid(ordinal).replace("-", "")),
        "luid": bytes(8),
        "luidDeviceNodeMask": 0,
        **{name: known[attribute] for name, attribute in _SINGLE.items()},
        **{name: tuple(known[part] for part in parts) for name, parts in _SEVERAL.items()},
        **by_number,
    }
