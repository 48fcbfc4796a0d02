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
	34:                  {"CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
	46:                  {"CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
	noDevice:            {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	invalidDevice:       {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	102:                 {"CUDA_ERROR_DEVICE_NOT_LICENSED", "device doesn't have valid Grid license"},
	invalidImage:        {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
	invalidContext:      {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	noBinary:            {"CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
	unsupportedLimit:    {"CUDA_ERROR_UNSUPPORTED_LIMIT", "limit is not supported on this architecture"},
	216:                 {"CUDA_ERROR_CONTEXT_ALREADY_IN_USE", "exclusive-thread device already in use by a different thread"},
	peerUnsupported:     {"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported between these two devices"},
	invalidPTX:          {"CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
	221:                 {"CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "PTX JIT compiler library not found"},
	222:                 {"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
	300:                 {"CUDA_ERROR_INVALID_SOURCE", "device kernel image is invalid"},
	fileNotFound:        {"CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
	302:                 {"CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "shared object symbol not found"},
	303:                 {"CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "shared object initialization failed"},
	operatingSystem:     {"CUDA_ERROR_OPERATING_SYSTEM", "OS call failed or operation not supported on this OS"},
	invalidHandle:       {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	illegalState:        {"CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
	notFound:            {"CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	notReady:            {"CUDA_ERROR_NOT_READY", "device not ready"},
	illegalAddress:      {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	outOfResources:      {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
	launchTimeout:       {"CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
	peerEnabled:         {"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
	peerNotEnabled:      {"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
	primaryActive:       {"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "cannot set while device is active in this process"},
	contextDestroyed:    {"CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
	assertFailed:        {"CUDA_ERROR_ASSERT", "device-side assert triggered"},
	alreadyRegistered:   {"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped"},
	notRegistered:       {"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region"},
	714:                 {"CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error"},
	715:                 {"CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"},
	misaligned:          {"CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
	717:                 {"CUDA_ERROR_INVALID_ADDRESS_SPACE", "operation not supported on global/shared address space"},
	718:                 {"CUDA_ERROR_INVALID_PC", "invalid program counter"},
	launchFailed:        {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
	cooperativeTooLarge: {"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
	notPermitted:        {"CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
	notSupported:        {"CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
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
