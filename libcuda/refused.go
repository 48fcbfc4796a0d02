package libcuda

// What a device without the hardware does not have: each call fails by name, and says why.

const (
	noTextures   = "kernels here have no textures, surfaces and arrays; use linear memory"
	noProcesses  = "pools are not shared between processes; share memory of cuMemAlloc by cuIpcGetMemHandle"
	noExternal   = "there is no other device whose memory or semaphores could be imported"
	noVirtual    = "addresses are not mapped piece by piece; use cuMemAlloc or cuMemAllocAsync"
	noGreen      = "a device here has no parts that could be reserved; use its primary context"
	noTensorMap  = "tensor maps need a device of capability 9.0, and this one has 8.0"
	noClusters   = "clusters of blocks need a device of capability 9.0, and this one has 8.0"
	noMulticast  = "multicast memory needs NVLink"
	noGraphics   = "there is no graphics library beside the device"
	noCoredump   = "there are no dumps of a device's state; the text of a fault names the kernel and the line"
	noCheckpoint = "processes are not checkpointed"
	noFabric     = "there is no NVLink whose other machines could be reached"
	noLogs       = "messages are not kept; HALSTREAM_CUDA_MESSAGES=all writes each of them to stderr"
	noDiscard    = "batches of ranges are not prefetched or discarded; use cuMemPrefetchAsync for each range"
	noCopyHints  = "copies have no attributes here; use cuMemcpyAsync, cuMemcpyBatchAsync or cuMemcpy3DAsync"
	noAtomics    = "there is no list of what is atomic between devices; kernels of all devices have the atomics of the host"
	noOldLaunch  = "launches as before CUDA 4 are not built; use cuLaunchKernel"
	noNarrow     = "addresses and sizes have 64 bits; use the function with _v2 at the end of its name"
	noCounting   = "contexts do not count their uses; create and destroy them"
	noSeveral    = "there are no launches on several devices at once; launch on each"
	noAsyncNews  = "a device does not tell of changes by itself"
	noInterop    = "streams are not captured for graphics"
	noRecapture  = "a graph is not captured again; make it anew"
	noUnpacking  = "devices have no unit that decompresses; decompress in a kernel, or on the host"
)

// unsupported returns a function that refuses every call.
func unsupported(why string) func(*caller, *args) error {
	return func(*caller, *args) error { return refuse(notSupported, "%s", why) }
}

// refusedNames are the functions that are refused, by the reason.
var refusedNames = map[string][]string{
	noTextures: {
		"cuArrayCreate_v2", "cuArrayDestroy", "cuArrayGetDescriptor_v2", "cuArray3DCreate_v2", "cuArray3DGetDescriptor_v2",
		"cuArrayGetMemoryRequirements", "cuArrayGetPlane", "cuArrayGetSparseProperties", "cuMipmappedArrayCreate",
		"cuMipmappedArrayDestroy", "cuMipmappedArrayGetLevel", "cuMipmappedArrayGetMemoryRequirements",
		"cuMipmappedArrayGetSparseProperties", "cuMemcpyAtoA_v2", "cuMemcpyAtoD_v2", "cuMemcpyAtoH_v2", "cuMemcpyAtoHAsync_v2",
		"cuMemcpyDtoA_v2", "cuMemcpyHtoA_v2", "cuMemcpyHtoAAsync_v2", "cuTexObjectCreate", "cuTexObjectDestroy",
		"cuTexObjectGetResourceDesc", "cuTexObjectGetResourceViewDesc", "cuTexObjectGetTextureDesc", "cuSurfObjectCreate",
		"cuSurfObjectDestroy", "cuSurfObjectGetResourceDesc", "cuModuleGetTexRef", "cuModuleGetSurfRef", "cuTexRefCreate",
		"cuTexRefDestroy", "cuTexRefSetArray", "cuTexRefSetAddress_v2", "cuTexRefSetFormat", "cuTexRefSetFlags", "cuSurfRefSetArray",
		"cuMemMapArrayAsync",
		"cuArrayCreate", "cuArrayGetDescriptor", "cuArray3DCreate", "cuArray3DGetDescriptor", "cuMemcpyAtoA", "cuMemcpyAtoD",
		"cuMemcpyAtoH", "cuMemcpyAtoHAsync", "cuMemcpyDtoA", "cuMemcpyHtoA", "cuMemcpyHtoAAsync", "cuParamSetTexRef",
		"cuSurfRefGetArray", "cuTexRefGetAddress", "cuTexRefGetAddress_v2", "cuTexRefGetAddressMode", "cuTexRefGetArray",
		"cuTexRefGetBorderColor", "cuTexRefGetFilterMode", "cuTexRefGetFlags", "cuTexRefGetFormat",
		"cuTexRefGetMaxAnisotropy", "cuTexRefGetMipmapFilterMode", "cuTexRefGetMipmapLevelBias",
		"cuTexRefGetMipmapLevelClamp", "cuTexRefGetMipmappedArray", "cuTexRefSetAddress", "cuTexRefSetAddress2D",
		"cuTexRefSetAddress2D_v2", "cuTexRefSetAddress2D_v3", "cuTexRefSetAddressMode", "cuTexRefSetBorderColor",
		"cuTexRefSetFilterMode", "cuTexRefSetMaxAnisotropy", "cuTexRefSetMipmapFilterMode", "cuTexRefSetMipmapLevelBias",
		"cuTexRefSetMipmapLevelClamp", "cuTexRefSetMipmappedArray",
	},
	noProcesses: {
		"cuMemPoolExportToShareableHandle", "cuMemPoolImportFromShareableHandle", "cuMemPoolExportPointer", "cuMemPoolImportPointer",
		"cuMemExportToShareableHandle", "cuMemImportFromShareableHandle",
	},
	noExternal: {
		"cuImportExternalMemory", "cuExternalMemoryGetMappedBuffer", "cuExternalMemoryGetMappedMipmappedArray", "cuDestroyExternalMemory",
		"cuImportExternalSemaphore", "cuSignalExternalSemaphoresAsync", "cuWaitExternalSemaphoresAsync", "cuDestroyExternalSemaphore",
		"cuGraphAddExternalSemaphoresSignalNode", "cuGraphAddExternalSemaphoresWaitNode",
		"cuGraphExternalSemaphoresSignalNodeGetParams", "cuGraphExternalSemaphoresSignalNodeSetParams",
		"cuGraphExternalSemaphoresWaitNodeGetParams", "cuGraphExternalSemaphoresWaitNodeSetParams",
		"cuGraphExecExternalSemaphoresSignalNodeSetParams", "cuGraphExecExternalSemaphoresWaitNodeSetParams",
	},
	noVirtual: {
		"cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cuMemGetAccess",
		"cuMemGetAllocationGranularity", "cuMemGetAllocationPropertiesFromHandle", "cuMemRetainAllocationHandle",
		"cuMemGetHandleForAddressRange",
	},
	noGreen: {
		"cuDeviceGetDevResource", "cuCtxGetDevResource", "cuGreenCtxGetDevResource", "cuDevSmResourceSplitByCount", "cuDevResourceGenerateDesc",
		"cuGreenCtxCreate", "cuGreenCtxDestroy", "cuCtxFromGreenCtx", "cuGreenCtxRecordEvent", "cuGreenCtxWaitEvent", "cuGreenCtxStreamCreate",
		"cuStreamGetGreenCtx", "cuGreenCtxGetId", "cuStreamGetDevResource", "cuDevSmResourceSplit",
	},
	noTensorMap: {
		"cuTensorMapEncodeTiled", "cuTensorMapEncodeIm2col", "cuTensorMapEncodeIm2colWide", "cuTensorMapReplaceAddress",
		"cuTensorMapSetAllocationClass",
	},
	noClusters: {"cuOccupancyMaxPotentialClusterSize", "cuOccupancyMaxActiveClusters"},
	noMulticast: {
		"cuMulticastCreate", "cuMulticastAddDevice", "cuMulticastBindMem", "cuMulticastBindAddr", "cuMulticastUnbind",
		"cuMulticastGetGranularity", "cuMulticastBindMem_v2", "cuMulticastBindAddr_v2",
	},
	noGraphics: {
		"cuGraphicsUnregisterResource", "cuGraphicsSubResourceGetMappedArray", "cuGraphicsResourceGetMappedMipmappedArray",
		"cuGraphicsResourceGetMappedPointer_v2", "cuGraphicsResourceSetMapFlags_v2", "cuGraphicsMapResources", "cuGraphicsUnmapResources",
		"cuGraphicsResourceGetMappedPointer", "cuGraphicsResourceSetMapFlags",
	},
	noCoredump: {
		"cuCoredumpGetAttribute", "cuCoredumpGetAttributeGlobal", "cuCoredumpSetAttribute", "cuCoredumpSetAttributeGlobal",
		"cuCoredumpRegisterStartCallback", "cuCoredumpRegisterCompleteCallback", "cuCoredumpDeregisterStartCallback",
		"cuCoredumpDeregisterCompleteCallback",
	},
	noCheckpoint: {
		"cuCheckpointProcessGetRestoreThreadId", "cuCheckpointProcessGetState", "cuCheckpointProcessLock",
		"cuCheckpointProcessCheckpoint", "cuCheckpointProcessRestore", "cuCheckpointProcessUnlock",
		"cuCheckpointOperationComplete",
	},
	noFabric: {
		"cuDeviceGetCliqueCount", "cuDeviceGetCliqueInfo", "cuDeviceGetFabricClusterUuid", "cuFabricCpyBatchAsync",
		"cuLogicalEndpointAddDevice", "cuLogicalEndpointBindAddr", "cuLogicalEndpointBindMem", "cuLogicalEndpointCreate",
		"cuLogicalEndpointDestroy", "cuLogicalEndpointExport", "cuLogicalEndpointGetLimits", "cuLogicalEndpointIdRelease",
		"cuLogicalEndpointIdReserve", "cuLogicalEndpointImport", "cuLogicalEndpointQuery", "cuLogicalEndpointUnbind",
	},
	noLogs: {
		"cuLogsCurrent", "cuLogsDumpToFile", "cuLogsDumpToMemory", "cuLogsRegisterCallback", "cuLogsUnregisterCallback",
	},
	noDiscard:   {"cuMemPrefetchBatchAsync", "cuMemDiscardBatchAsync", "cuMemDiscardAndPrefetchBatchAsync"},
	noCopyHints: {"cuMemcpyWithAttributesAsync", "cuMemcpy3DWithAttributesAsync", "cuMemGetLocationInfo"},
	noAtomics:   {"cuDeviceGetHostAtomicCapabilities", "cuDeviceGetP2PAtomicCapabilities"},
	noOldLaunch: {
		"cuLaunch", "cuLaunchGrid", "cuLaunchGridAsync", "cuFuncSetBlockShape", "cuFuncSetSharedSize", "cuParamSetSize",
		"cuParamSetf", "cuParamSeti", "cuParamSetv",
	},
	noNarrow: {
		"cuDeviceTotalMem", "cuMemAlloc", "cuMemAllocHost", "cuMemAllocPitch", "cuMemFree", "cuMemGetAddressRange",
		"cuMemGetInfo", "cuMemHostGetDevicePointer", "cuMemcpy2D", "cuMemcpy2DAsync", "cuMemcpy2DUnaligned", "cuMemcpy3D",
		"cuMemcpy3DAsync", "cuMemcpyDtoD", "cuMemcpyDtoDAsync", "cuMemcpyDtoH", "cuMemcpyDtoHAsync", "cuMemcpyHtoD",
		"cuMemcpyHtoDAsync", "cuMemsetD8", "cuMemsetD16", "cuMemsetD32", "cuMemsetD2D8", "cuMemsetD2D16", "cuMemsetD2D32",
		"cuModuleGetGlobal",
	},
	noCounting:  {"cuCtxAttach", "cuCtxDetach"},
	noSeveral:   {"cuLaunchCooperativeKernelMultiDevice"},
	noAsyncNews: {"cuDeviceRegisterAsyncNotification", "cuDeviceUnregisterAsyncNotification"},
	noInterop:   {"cuStreamBeginCaptureToCig", "cuStreamEndCaptureToCig"},
	noRecapture: {"cuStreamBeginRecaptureToGraph"},
	noUnpacking: {"cuMemBatchDecompressAsync"},
}

// refusedTwins are the twins of functions that are refused.
var refusedTwins = map[string]string{
	"cuMemcpyAtoA_v2": ptds, "cuMemcpyAtoD_v2": ptds, "cuMemcpyAtoH_v2": ptds, "cuMemcpyDtoA_v2": ptds, "cuMemcpyHtoA_v2": ptds,
	"cuMemcpyAtoHAsync_v2": ptsz, "cuMemcpyHtoAAsync_v2": ptsz, "cuMemMapArrayAsync": ptsz, "cuGraphicsMapResources": ptsz,
	"cuGraphicsUnmapResources": ptsz, "cuSignalExternalSemaphoresAsync": ptsz, "cuWaitExternalSemaphoresAsync": ptsz,
	"cuStreamGetDevResource": ptsz, "cuFabricCpyBatchAsync": ptsz, "cuMemBatchDecompressAsync": ptsz,
	"cuMemPrefetchBatchAsync": ptsz, "cuMemDiscardBatchAsync": ptsz, "cuMemDiscardAndPrefetchBatchAsync": ptsz,
	"cuMemcpyWithAttributesAsync": ptsz, "cuMemcpy3DWithAttributesAsync": ptsz, "cuStreamBeginCaptureToCig": ptsz,
	"cuStreamEndCaptureToCig": ptsz, "cuStreamBeginRecaptureToGraph": ptsz,
}

// refusedVersion is the version of all functions that are refused: every program finds them, and is told why.
const refusedVersion = 2000

var refusedFunctions = func() (all []function) {
	for why, names := range refusedNames {
		for _, name := range names {
			all = append(all, function{name: name, version: refusedVersion, twin: refusedTwins[name], call: unsupported(why)})
		}
	}
	return all
}()
