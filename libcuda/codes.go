package libcuda

import (
	"errors"
	"fmt"

	"halstream/hal"
	"halstream/hal/driver"
)

// Numbers of the driver's errors.
const (
	success             = 0
	invalidValue        = 1
	outOfMemory         = 2
	notInitialized      = 3
	noDevice            = 100
	invalidDevice       = 101
	invalidImage        = 200
	invalidContext      = 201
	noBinary            = 209
	unsupportedLimit    = 215
	peerUnsupported     = 217
	invalidPTX          = 218
	unsupportedAffinity = 224
	fileNotFound        = 301
	operatingSystem     = 304
	invalidHandle       = 400
	illegalState        = 401
	notFound            = 500
	notReady            = 600
	illegalAddress      = 700
	outOfResources      = 701
	launchTimeout       = 702
	peerEnabled         = 704
	peerNotEnabled      = 705
	primaryActive       = 708
	contextDestroyed    = 709
	assertFailed        = 710
	alreadyRegistered   = 712
	notRegistered       = 713
	misaligned          = 716
	launchFailed        = 719
	cooperativeTooLarge = 720
	notPermitted        = 800
	notSupported        = 801
	captureUnsupported  = 900
	captureImplicit     = 906
	capturedEvent       = 907
	graphUpdateFailed   = 910
	invalidClusterSize  = 912
	unknownError        = 999
)

// errorTexts are the names of the errors and what they mean. Source: CUDA driver API, CUresult.
var errorTexts = map[int][2]string{
	success:             {"CUDA_SUCCESS", "no error"},
	invalidValue:        {"CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	outOfMemory:         {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	notInitialized:      {"CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	4:                   {"CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
	5:                   {"CUDA_ERROR_PROFILER_DISABLED", "profiler disabled while using external profiling tool"},
	6:                   {"CUDA_ERROR_PROFILER_NOT_INITIALIZED", "profiler not initialized"},
	7:                   {"CUDA_ERROR_PROFILER_ALREADY_STARTED", "profiler already started"},
	8:                   {"CUDA_ERROR_PROFILER_ALREADY_STOPPED", "profiler already stopped"},
	34:                  {"CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
	36:                  {"CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "API call is not supported in the installed CUDA driver"},
	46:                  {"CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
	47:                  {"CUDA_ERROR_MULTICAST_RESOURCE_FULL", "out of resources for multicast memory"},
	noDevice:            {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	invalidDevice:       {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	102:                 {"CUDA_ERROR_DEVICE_NOT_LICENSED", "device doesn't have valid Grid license"},
	invalidImage:        {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
	invalidContext:      {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	202:                 {"CUDA_ERROR_CONTEXT_ALREADY_CURRENT", "context already current"},
	205:                 {"CUDA_ERROR_MAP_FAILED", "mapping of buffer object failed"},
	206:                 {"CUDA_ERROR_UNMAP_FAILED", "unmapping of buffer object failed"},
	207:                 {"CUDA_ERROR_ARRAY_IS_MAPPED", "array is mapped"},
	208:                 {"CUDA_ERROR_ALREADY_MAPPED", "resource already mapped"},
	noBinary:            {"CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
	210:                 {"CUDA_ERROR_ALREADY_ACQUIRED", "resource already acquired"},
	211:                 {"CUDA_ERROR_NOT_MAPPED", "resource not mapped"},
	212:                 {"CUDA_ERROR_NOT_MAPPED_AS_ARRAY", "resource not mapped as array"},
	213:                 {"CUDA_ERROR_NOT_MAPPED_AS_POINTER", "resource not mapped as pointer"},
	214:                 {"CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
	unsupportedLimit:    {"CUDA_ERROR_UNSUPPORTED_LIMIT", "limit is not supported on this architecture"},
	216:                 {"CUDA_ERROR_CONTEXT_ALREADY_IN_USE", "exclusive-thread device already in use by a different thread"},
	peerUnsupported:     {"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported between these two devices"},
	invalidPTX:          {"CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
	219:                 {"CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", "invalid OpenGL or DirectX context"},
	220:                 {"CUDA_ERROR_NVLINK_UNCORRECTABLE", "uncorrectable NVLink error detected during the execution"},
	221:                 {"CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "PTX JIT compiler library not found"},
	222:                 {"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
	223:                 {"CUDA_ERROR_JIT_COMPILATION_DISABLED", "PTX JIT compilation was disabled"},
	unsupportedAffinity: {"CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", "the provided execution affinity is not supported"},
	225:                 {"CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC", "the provided PTX contains unsupported call to cudaDeviceSynchronize"},
	226:                 {"CUDA_ERROR_CONTAINED", "an error was contained; the process must be ended"},
	227:                 {"CUDA_ERROR_INSUFFICIENT_LOADER_VERSION", "the loader of programs is of a version that is too old"},
	300:                 {"CUDA_ERROR_INVALID_SOURCE", "device kernel image is invalid"},
	fileNotFound:        {"CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
	302:                 {"CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "shared object symbol not found"},
	303:                 {"CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "shared object initialization failed"},
	operatingSystem:     {"CUDA_ERROR_OPERATING_SYSTEM", "OS call failed or operation not supported on this OS"},
	invalidHandle:       {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	illegalState:        {"CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
	402:                 {"CUDA_ERROR_LOSSY_QUERY", "attempted introspection would be semantically lossy"},
	notFound:            {"CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	notReady:            {"CUDA_ERROR_NOT_READY", "device not ready"},
	illegalAddress:      {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	outOfResources:      {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
	launchTimeout:       {"CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
	703:                 {"CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", "launch uses incompatible texturing mode"},
	peerEnabled:         {"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
	peerNotEnabled:      {"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
	primaryActive:       {"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "cannot set while device is active in this process"},
	contextDestroyed:    {"CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
	assertFailed:        {"CUDA_ERROR_ASSERT", "device-side assert triggered"},
	711:                 {"CUDA_ERROR_TOO_MANY_PEERS", "peer mapping resources exhausted"},
	alreadyRegistered:   {"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped"},
	notRegistered:       {"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region"},
	714:                 {"CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error"},
	715:                 {"CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"},
	misaligned:          {"CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
	717:                 {"CUDA_ERROR_INVALID_ADDRESS_SPACE", "operation not supported on global/shared address space"},
	718:                 {"CUDA_ERROR_INVALID_PC", "invalid program counter"},
	launchFailed:        {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
	cooperativeTooLarge: {"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
	721:                 {"CUDA_ERROR_TENSOR_MEMORY_LEAK", "tensor memory not completely freed"},
	notPermitted:        {"CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
	notSupported:        {"CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	802:                 {"CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
	803:                 {"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
	804:                 {"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "forward compatibility was attempted on non supported HW"},
	805:                 {"CUDA_ERROR_MPS_CONNECTION_FAILED", "MPS client failed to connect to the MPS control daemon or the MPS server"},
	806:                 {"CUDA_ERROR_MPS_RPC_FAILURE", "the remote procedural call between the MPS server and the MPS client failed"},
	807:                 {"CUDA_ERROR_MPS_SERVER_NOT_READY", "MPS server is not ready to accept new MPS client requests"},
	808:                 {"CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", "the hardware resources required to create MPS client have been exhausted"},
	809:                 {"CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", "the hardware resources required to support device connections have been exhausted"},
	810:                 {"CUDA_ERROR_MPS_CLIENT_TERMINATED", "the MPS client has been terminated by the server"},
	811:                 {"CUDA_ERROR_CDP_NOT_SUPPORTED", "the program uses dynamic parallelism, which the configuration does not support"},
	812:                 {"CUDA_ERROR_CDP_VERSION_MISMATCH", "the program uses incompatible versions of dynamic parallelism"},
	captureUnsupported:  {"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
	901:                 {"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
	902:                 {"CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would result in a merge of separate capture sequences"},
	903:                 {"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream as it began"},
	904:                 {"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
	905:                 {"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"},
	captureImplicit:     {"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "operation would make the legacy stream depend on a capturing blocking stream"},
	capturedEvent:       {"CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"},
	908:                 {"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "attempt to terminate a thread-local capture sequence from another thread"},
	909:                 {"CUDA_ERROR_TIMEOUT", "wait operation timed out"},
	graphUpdateFailed:   {"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update"},
	911:                 {"CUDA_ERROR_EXTERNAL_DEVICE", "an async error has occurred in external entity outside of CUDA"},
	invalidClusterSize:  {"CUDA_ERROR_INVALID_CLUSTER_SIZE", "a kernel launch error has occurred due to cluster misconfiguration"},
	913:                 {"CUDA_ERROR_FUNCTION_NOT_LOADED", "the function handle is not loaded"},
	914:                 {"CUDA_ERROR_INVALID_RESOURCE_TYPE", "the resource type is not valid for the operation"},
	915:                 {"CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", "the resource configuration is not valid"},
	916:                 {"CUDA_ERROR_KEY_ROTATION", "a sequence of keys is being rotated"},
	917:                 {"CUDA_ERROR_STREAM_DETACHED", "the stream is detached"},
	918:                 {"CUDA_ERROR_GRAPH_RECAPTURE_FAILURE", "the graph could not be captured again"},
	919:                 {"CUDA_ERROR_FABRIC_NOT_READY", "the fabric is not ready"},
	unknownError:        {"CUDA_ERROR_UNKNOWN", "unknown error"},
}

func errorName(code int) string { return errorTexts[code][0] }

// refusal is an error with a code of its own.
type refusal struct {
	code int
	text string
	// quiet says that programs go on well without what they asked for, so that no line is written about it.
	quiet bool
}

func (r *refusal) Error() string { return r.text }

func refuse(code int, format string, args ...any) error {
	return &refusal{code: code, text: fmt.Sprintf(format, args...)}
}

// codesByKind are the codes of errors of the core that have no number of CUDA's.
var codesByKind = map[driver.Kind]int{
	driver.NotReady: notReady, driver.InvalidHandle: invalidHandle, driver.Closed: invalidHandle, driver.InvalidValue: invalidValue,
	driver.InvalidDevice: invalidDevice, driver.WrongDevice: invalidHandle, driver.WrongContext: invalidContext,
	driver.NoContext: invalidContext, driver.TimingDisabled: invalidHandle, driver.Unrecorded: invalidHandle,
	driver.Capture: captureUnsupported, driver.NotSupported: notSupported, driver.OutOfMemory: outOfMemory,
	driver.DeviceLost: launchFailed, driver.BackendAbsent: noDevice, driver.HostFunction: launchFailed,
	driver.InHostFunction: notPermitted, driver.Forked: notInitialized, driver.Timeout: launchTimeout, driver.Aborted: launchFailed,
}

func codeOf(err error) int {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.code
	}
	e, ok := errors.AsType[*hal.Error](err)
	if !ok {
		return unknownError
	}
	if e.Code != 0 && errorTexts[e.Code][0] != "" {
		return e.Code
	}
	if code, ok := codesByKind[e.Kind]; ok {
		return code
	}
	return unknownError
}
