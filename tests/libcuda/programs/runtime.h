/* What the programs of these tests declare of CUDA's runtime, and how nvcc's stubs call it. */
#ifndef RUNTIME_H
#define RUNTIME_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

typedef int cudaError_t;
typedef void *cudaStream_t, *cudaEvent_t, *cudaGraph_t, *cudaGraphExec_t;
typedef struct dim3 {
    unsigned x, y, z;
} dim3;
enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2, BY_ADDRESS = 4 };

void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **), __cudaUnregisterFatBinary(void **);
void __cudaRegisterFunction(void **, const void *, char *, const char *, int, void *, void *, dim3 *, dim3 *, int *);
void __cudaRegisterVar(void **, const void *, char *, const char *, int, size_t, int, int);
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, cudaStream_t);
cudaError_t __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void *), __cudaGetKernel(void **, const void *);
cudaError_t __cudaLaunchKernel(void *, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t cudaGetLastError(void), cudaPeekAtLastError(void), cudaDeviceSynchronize(void), cudaDeviceReset(void);
const char *cudaGetErrorName(cudaError_t), *cudaGetErrorString(cudaError_t);
cudaError_t cudaGetDeviceCount(int *), cudaGetDevice(int *), cudaSetDevice(int), cudaDeviceGetAttribute(int *, int, int);
cudaError_t cudaGetDeviceProperties(void *, int), cudaGetDeviceProperties_v2(void *, int);
cudaError_t cudaMalloc(void **, size_t), cudaFree(void *), cudaMallocAsync(void **, size_t, cudaStream_t);
cudaError_t cudaFreeAsync(void *, cudaStream_t), cudaHostAlloc(void **, size_t, unsigned), cudaFreeHost(void *);
cudaError_t cudaMemcpy(void *, const void *, size_t, int), cudaMemcpyAsync(void *, const void *, size_t, int, cudaStream_t);
cudaError_t cudaMemcpy2D(void *, size_t, const void *, size_t, size_t, size_t, int), cudaMemset(void *, int, size_t);
cudaError_t cudaMemsetAsync(void *, int, size_t, cudaStream_t), cudaPointerGetAttributes(void *, const void *);
cudaError_t cudaMemcpyToSymbol(const void *, const void *, size_t, size_t, int);
cudaError_t cudaMemcpyFromSymbol(void *, const void *, size_t, size_t, int);
cudaError_t cudaGetSymbolAddress(void **, const void *), cudaGetSymbolSize(size_t *, const void *);
cudaError_t cudaStreamCreate(cudaStream_t *), cudaStreamCreateWithFlags(cudaStream_t *, unsigned);
cudaError_t cudaStreamDestroy(cudaStream_t), cudaStreamQuery(cudaStream_t), cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned), cudaLaunchHostFunc(cudaStream_t, void (*)(void *), void *);
cudaError_t cudaStreamBeginCapture(cudaStream_t, int), cudaStreamEndCapture(cudaStream_t, cudaGraph_t *);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *, cudaGraph_t, uint64_t), cudaGraphLaunch(cudaGraphExec_t, cudaStream_t);
cudaError_t cudaEventCreate(cudaEvent_t *), cudaEventDestroy(cudaEvent_t), cudaEventRecord(cudaEvent_t, cudaStream_t);
cudaError_t cudaEventQuery(cudaEvent_t), cudaEventSynchronize(cudaEvent_t), cudaEventElapsedTime(float *, cudaEvent_t, cudaEvent_t);
typedef struct {
    char reserved[64];
} cudaIpcMemHandle_t, cudaIpcEventHandle_t;
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *, void *), cudaIpcOpenMemHandle(void **, cudaIpcMemHandle_t, unsigned);
cudaError_t cudaIpcCloseMemHandle(void *), cudaIpcGetEventHandle(cudaIpcEventHandle_t *, cudaEvent_t);
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *, cudaIpcEventHandle_t), cudaEventCreateWithFlags(cudaEvent_t *, unsigned);
cudaError_t cudaFuncGetAttributes(void *, const void *), cudaFuncSetAttribute(const void *, int, int);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *, const void *, int, size_t);
cudaError_t cudaMallocArray(void);

static inline void expect(cudaError_t code, cudaError_t wanted, const char *call, int line)
{
    if (code == wanted) return;
    fprintf(stderr, "line %d: %s is %s (%d), not %d\n", line, call, cudaGetErrorName(code), code, wanted);
    exit(1);
}

/* add(p, n, more) adds a number to each of n numbers, wrong() writes to address 8, and marker is a variable. */
static const char text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 marker = 7;\n"
    ".visible .entry add(.param .u64 p, .param .u32 n, .param .u32 more) {\n"
    "  .reg .pred %p<2>; .reg .b32 %r<7>; .reg .b64 %rd<4>;\n"
    "  ld.param.u64 %rd1,[p]; ld.param.u32 %r1,[n]; ld.param.u32 %r6,[more];\n"
    "  mov.u32 %r2,%ctaid.x; mov.u32 %r3,%ntid.x; mov.u32 %r4,%tid.x; mad.lo.s32 %r5,%r2,%r3,%r4;\n"
    "  setp.ge.u32 %p1,%r5,%r1; @%p1 bra DONE;\n"
    "  cvta.to.global.u64 %rd1,%rd1; mul.wide.u32 %rd2,%r5,4; add.u64 %rd3,%rd1,%rd2;\n"
    "  ld.global.u32 %r2,[%rd3]; add.u32 %r2,%r2,%r6; st.global.u32 [%rd3],%r2;\n"
    "DONE: ret;\n}\n"
    ".visible .entry wrong() {\n  .reg .b64 %rd<2>;\n  mov.u64 %rd1,8; st.global.u32 [%rd1],1; ret;\n}\n";

/* A fat binary as nvcc writes it: a header, an entry's header, the PTX. */
struct fat_binary {
    uint32_t magic;
    uint16_t version, header;
    uint64_t size;
    struct {
        uint16_t kind, unknown;
        uint32_t header;
        uint64_t size;
        uint32_t compressed, flags_size;
        uint16_t minor, major;
        uint32_t capability, name[2];
        uint64_t flags, zero, plain;
    } entry;
    char text[sizeof text];
};
struct fat_wrapper {
    uint32_t magic, version;
    const void *data;
    void *file;
};

/* The addresses that stand for a kernel and a variable on the host: nvcc's are a function's and a variable's. */
static char add_stub, wrong_stub, unknown_stub, marker;
static void *add_kernel;
static void **program;

/* What the constructor that nvcc writes does. */
__attribute__((constructor)) static void enlist(void)
{
    static struct fat_binary binary = {0xba55ed50, 1, 16, sizeof binary - 16, {1, 0x101, sizeof binary.entry, sizeof text,
                                       0, 64, 0, 7, 70, {0, 0}, 0, 0, 0}, ""};
    static struct fat_wrapper wrapper = {0x466243b1, 1, &binary, NULL};
    memcpy(binary.text, text, sizeof text);
    program = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(program, &add_stub, "add", "add", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(program, &wrong_stub, "wrong", "wrong", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(program, &unknown_stub, "unknown", "unknown", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(program, &marker, "marker", "marker", 0, 4, 0, 0);
    __cudaRegisterFatBinaryEnd(program);
}

/* What nvcc makes of add<<<blocks, threads, shared, stream>>>(p, n, more): the pushed configuration, and a call of the
 * stub, which launches. A macro, with the lines of the program. */
#define ADD(blocks, threads, shared, stream, p, n, more)                                                               \
    (__cudaPushCallConfiguration((dim3){blocks, 1, 1}, (dim3){threads, 1, 1}, shared, stream)                          \
         ? (void)0                                                                                                     \
         : launch_add((void *[]){&(void *){p}, &(unsigned){n}, &(unsigned){more}}))

static inline __attribute__((always_inline)) void launch_add(void **arguments)
{
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    if (add_kernel == NULL) (void)__cudaGetKernel(&add_kernel, &add_stub);
    if (__cudaPopCallConfiguration(&grid, &block, &shared, &stream)) return;
    (void)__cudaLaunchKernel(add_kernel, grid, block, arguments, shared, stream);
}

#endif
