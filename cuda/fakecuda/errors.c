/* Names of codes, and functions by name. */
#include "fakecuda.h"

static const struct { int code; const char *name, *text; } codes[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "device is busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no device is there"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is for this device"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error"},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "uncorrectable NVLink error"},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "PTX JIT compiler library not found"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX is too new for the driver"},
    {226, "CUDA_ERROR_CONTAINED", "an error that the device has contained"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", "a call of the operating system failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "the object is in another state"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch took too long"},
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access is not enabled"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "the context is destroyed"},
    {710, "CUDA_ERROR_ASSERT", "an assertion on the device failed"},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "host memory is already registered"},
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "host memory is not registered"},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "wrong address space"},
    {718, "CUDA_ERROR_INVALID_PC", "invalid program counter"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in a cooperative launch"},
    {721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", "tensor memory not given back"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "driver and library do not match"},
    {810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", "the MPS client was ended"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not permitted while a stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "an earlier error has made the capture invalid"},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "the wait would make one capture of two"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "the capture did not begin on this stream"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "work of another stream was not joined to the origin"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "the event was recorded outside the capture"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "the call depends on a capturing stream by the legacy stream"},
    {907, "CUDA_ERROR_CAPTURED_EVENT", "the event was last recorded in a capture"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "another thread began the capture"},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph differs in more than what its nodes do"},
    {911, "CUDA_ERROR_EXTERNAL_DEVICE", "an external device failed"},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "clusters of so many blocks are not supported"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static CUresult text_of(CUresult code, bool name, const char **text) {
    if (text == NULL)
        return INVALID_VALUE;
    *text = NULL;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code)
            *text = name ? codes[i].name : codes[i].text;
    return *text == NULL ? INVALID_VALUE : SUCCESS;
}

API cuGetErrorName(CUresult code, const char **name) {
    BEGIN(cuGetErrorName, 0);
    return end(text_of(code, true, name));
}

API cuGetErrorString(CUresult code, const char **text) {
    BEGIN(cuGetErrorString, 0);
    return end(text_of(code, false, text));
}
