/* A look-alike of the CUDA driver library for tests, with no device behind it.
 *
 * It keeps the contract of the driver API and is never friendlier: device
 * memory cannot be touched by the host, handles of closed objects come back for
 * new ones, work runs late, and errors of a device stay. What a GPU may do in
 * several ways, it does in the way that is harder for the caller.
 *
 * One lock guards everything. It is never held while a host function or a
 * kernel runs, nor while bytes are copied. Functions whose comment says so
 * expect it held; they may let go of it while they wait. */
#ifndef FAKECUDA_H
#define FAKECUDA_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef uint64_t CUcontext, CUstream, CUevent, CUmodule, CUfunction, CUmemoryPool; /* streams: 0, 1, 2 in no table */

#define API __attribute__((visibility("default"))) CUresult
#define CONTROL __attribute__((visibility("default")))

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    DEINITIALIZED = 4,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    PEER_ACCESS_UNSUPPORTED = 217,
    INVALID_PTX = 218,
    UNSUPPORTED_PTX_VERSION = 222,
    OPERATING_SYSTEM = 304,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    PEER_ACCESS_ALREADY_ENABLED = 704,
    CONTEXT_IS_DESTROYED = 709,
    HOST_MEMORY_ALREADY_REGISTERED = 712,
    HOST_MEMORY_NOT_REGISTERED = 713,
    MISALIGNED_ADDRESS = 716,
    COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    NOT_PERMITTED = 800,
    NOT_SUPPORTED = 801,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_MERGE = 902, CAPTURE_UNMATCHED = 903, CAPTURE_UNJOINED = 904, CAPTURE_ISOLATION = 905,
    CAPTURE_IMPLICIT = 906, CAPTURED_EVENT = 907, CAPTURE_WRONG_THREAD = 908,
    EXEC_UPDATE_FAILURE = 910, INVALID_CLUSTER_SIZE = 912,
    UNKNOWN = 999,
};

/* The objects that calls name by a handle, with the first byte of their handles. */
enum {
    CONTEXTS = 0x51,
    STREAMS,
    EVENTS,
    MODULES,
    FUNCTIONS,
    POOLS,
    LIBRARIES,
    KERNELS,
    GRAPHS,
    EXECUTABLES,
    NODES,
    CONDITIONS,
    USER_OBJECTS,
};

#define STREAM_LEGACY 1
#define STREAM_PER_THREAD 2

#endif
