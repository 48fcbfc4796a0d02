package libcuda

// What a device without the hardware does not have: each call fails by name, and says why.

const (
	noTextures   = "kernels here have no textures, surfaces and arrays; use linear memory"
	noProcesses  = "memory and events are not shared between processes; let one process use them"
	noExternal   = "there is no other device whose memory or semaphores could be imported"
	noVirtual    = "addresses are not mapped piece by piece; use cuMemAlloc or cuMemAllocAsync"
	noGreen      = "a device here has no parts that could be reserved; use its primary context"
	noTensorMap  = "tensor maps need a device of capability 9.0, and this one has 8.0"
	noClusters   = "clusters of blocks need a device of capability 9.0, and this one has 8.0"
	noMulticast  = "multicast memory needs NVLink"
	noGraphics   = "there is no graphics library beside the device"
	noCoredump   = "there are no dumps of a device's state; the text of a fault names the kernel and the line"
	noCheckpoint = "processes are not checkpointed"
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
	},
	noProcesses: {
		"cuIpcGetEventHandle", "cuIpcOpenEventHandle", "cuIpcGetMemHandle", "cuIpcOpenMemHandle_v2", "cuIpcCloseMemHandle",
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
		"cuStreamGetGreenCtx", "cuGreenCtxGetId", "cuStreamGetDevResource",
	},
	noTensorMap: {"cuTensorMapEncodeTiled", "cuTensorMapEncodeIm2col", "cuTensorMapEncodeIm2colWide", "cuTensorMapReplaceAddress"},
	noClusters:  {"cuOccupancyMaxPotentialClusterSize", "cuOccupancyMaxActiveClusters"},
	noMulticast: {
		"cuMulticastCreate", "cuMulticastAddDevice", "cuMulticastBindMem", "cuMulticastBindAddr", "cuMulticastUnbind",
		"cuMulticastGetGranularity",
	},
	noGraphics: {
		"cuGraphicsUnregisterResource", "cuGraphicsSubResourceGetMappedArray", "cuGraphicsResourceGetMappedMipmappedArray",
		"cuGraphicsResourceGetMappedPointer_v2", "cuGraphicsResourceSetMapFlags_v2", "cuGraphicsMapResources", "cuGraphicsUnmapResources",
	},
	noCoredump: {
		"cuCoredumpGetAttribute", "cuCoredumpGetAttributeGlobal", "cuCoredumpSetAttribute", "cuCoredumpSetAttributeGlobal",
	},
	noCheckpoint: {
		"cuCheckpointProcessGetRestoreThreadId", "cuCheckpointProcessGetState", "cuCheckpointProcessLock",
		"cuCheckpointProcessCheckpoint", "cuCheckpointProcessRestore", "cuCheckpointProcessUnlock",
	},
}

var refusedFunctions = func() (all []function) {
	for why, names := range refusedNames {
		for _, name := range names {
			all = append(all, function{name: name, version: 2000, call: unsupported(why)})
		}
	}
	return all
}()
