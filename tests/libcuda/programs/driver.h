/* What the programs of these tests declare of the CUDA driver, and their kernels. */
#ifndef DRIVER_H
#define DRIVER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

typedef int CUresult, CUdevice;
typedef unsigned long long CUdeviceptr;
typedef void *CUcontext, *CUstream, *CUevent, *CUmodule, *CUfunction, *CUgraph, *CUgraphExec, *CUgraphNode;
typedef void (*CUhostFn)(void *);

CUresult cuInit(unsigned), cuDriverGetVersion(int *), cuGetErrorName(CUresult, const char **);
CUresult cuDeviceGetCount(int *), cuDeviceGet(CUdevice *, int), cuDeviceGetName(char *, int, CUdevice);
CUresult cuDeviceGetAttribute(int *, int, CUdevice), cuDeviceTotalMem_v2(size_t *, CUdevice);
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuDevicePrimaryCtxRelease_v2(CUdevice);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice), cuDevicePrimaryCtxGetState(CUdevice, unsigned *, int *);
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice), cuCtxDestroy_v2(CUcontext), cuCtxSetCurrent(CUcontext);
CUresult cuCtxGetCurrent(CUcontext *), cuCtxPushCurrent_v2(CUcontext), cuCtxPopCurrent_v2(CUcontext *), cuCtxSynchronize(void);
CUresult cuStreamCreate(CUstream *, unsigned), cuStreamCreateWithPriority(CUstream *, unsigned, int), cuStreamDestroy_v2(CUstream);
CUresult cuStreamSynchronize(CUstream), cuStreamQuery(CUstream), cuStreamWaitEvent(CUstream, CUevent, unsigned);
CUresult cuStreamGetPriority(CUstream, int *), cuStreamGetFlags(CUstream, unsigned *);
CUresult cuStreamAddCallback(CUstream, void (*)(CUstream, CUresult, void *), void *, unsigned), cuLaunchHostFunc(CUstream, CUhostFn, void *);
CUresult cuStreamWriteValue64_v2(CUstream, CUdeviceptr, uint64_t, unsigned), cuStreamWaitValue64_v2(CUstream, CUdeviceptr, uint64_t, unsigned);
CUresult cuStreamWriteValue32_v2(CUstream, CUdeviceptr, uint32_t, unsigned), cuStreamWaitValue32_v2(CUstream, CUdeviceptr, uint32_t, unsigned);
CUresult cuStreamAttachMemAsync(CUstream, CUdeviceptr, size_t, unsigned);
CUresult cuEventCreate(CUevent *, unsigned), cuEventDestroy_v2(CUevent), cuEventRecord(CUevent, CUstream), cuEventQuery(CUevent);
CUresult cuEventSynchronize(CUevent), cuEventElapsedTime(float *, CUevent, CUevent);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemFree_v2(CUdeviceptr), cuMemAllocManaged(CUdeviceptr *, size_t, unsigned);
CUresult cuMemAllocPitch_v2(CUdeviceptr *, size_t *, size_t, size_t, unsigned), cuMemGetInfo_v2(size_t *, size_t *);
CUresult cuMemHostAlloc(void **, size_t, unsigned), cuMemFreeHost(void *), cuMemHostRegister_v2(void *, size_t, unsigned);
CUresult cuMemHostUnregister(void *), cuMemAllocAsync(CUdeviceptr *, size_t, CUstream), cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuPointerGetAttribute(void *, int, CUdeviceptr), cuMemGetAddressRange_v2(CUdeviceptr *, size_t *, CUdeviceptr);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t), cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void *, size_t, CUstream), cuMemcpyDtoHAsync_v2(void *, CUdeviceptr, size_t, CUstream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, size_t, CUstream), cuMemcpy2D_v2(const void *), cuMemcpy3D_v2(const void *);
CUresult cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t), cuMemsetD32_v2(CUdeviceptr, unsigned, size_t);
CUresult cuMemsetD32Async(CUdeviceptr, unsigned, size_t, CUstream), cuMemsetD2D32_v2(CUdeviceptr, size_t, unsigned, size_t, size_t);
CUresult cuModuleLoadData(CUmodule *, const void *), cuModuleUnload(CUmodule), cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, CUmodule, const char *);
CUresult cuModuleLoadDataEx(CUmodule *, const void *, unsigned, int *, void **);
CUresult cuFuncGetAttribute(int *, int, CUfunction), cuOccupancyMaxActiveBlocksPerMultiprocessor(int *, CUfunction, int, size_t);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **);
CUresult cuStreamBeginCapture_v2(CUstream, int), cuStreamEndCapture(CUstream, CUgraph *), cuStreamIsCapturing(CUstream, int *);
CUresult cuStreamGetCaptureInfo_v2(CUstream, int *, uint64_t *, CUgraph *, const CUgraphNode **, size_t *);
CUresult cuGraphCreate(CUgraph *, unsigned), cuGraphDestroy(CUgraph), cuGraphGetNodes(CUgraph, CUgraphNode *, size_t *);
CUresult cuGraphAddMemsetNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const void *, CUcontext);
CUresult cuGraphAddHostNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const void *);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const void *);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *, CUgraph, unsigned long long), cuGraphLaunch(CUgraphExec, CUstream), cuGraphExecDestroy(CUgraphExec);
CUresult cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
CUresult cuLinkCreate_v2(unsigned, int *, void **, void **), cuLinkAddData_v2(void *, int, void *, size_t, const char *, unsigned, int *, void **);
CUresult cuLinkComplete(void *, void **, size_t *), cuLinkDestroy(void *), cuArrayCreate_v2(void **, const void *);
CUresult cuGetExportTable(const void **, const void *);

static inline void expect(CUresult code, CUresult wanted, const char *call, int line)
{
    const char *name = "?";
    if (code == wanted) return;
    cuGetErrorName(code, &name);
    fprintf(stderr, "line %d: %s is %s (%d), not %d\n", line, call, name, code, wanted);
    exit(1);
}

static inline CUcontext begin(void)
{
    CUcontext context;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    return context;
}

/* add(p, n, more): adds a number to each of n numbers. */
static const char kernels[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 marker = 7;\n.visible .const .align 4 .b8 table[12];\n"
    ".visible .entry add(.param .u64 p, .param .u32 n, .param .u32 more) {\n"
    "  .reg .pred %p<2>; .reg .b32 %r<7>; .reg .b64 %rd<4>;\n"
    "  ld.param.u64 %rd1,[p]; ld.param.u32 %r1,[n]; ld.param.u32 %r6,[more];\n"
    "  mov.u32 %r2,%ctaid.x; mov.u32 %r3,%ntid.x; mov.u32 %r4,%tid.x; mad.lo.s32 %r5,%r2,%r3,%r4;\n"
    "  setp.ge.u32 %p1,%r5,%r1; @%p1 bra DONE;\n"
    "  cvta.to.global.u64 %rd1,%rd1; mul.wide.u32 %rd2,%r5,4; add.u64 %rd3,%rd1,%rd2;\n"
    "  ld.global.u32 %r2,[%rd3]; add.u32 %r2,%r2,%r6; st.global.u32 [%rd3],%r2;\n"
    "DONE: ret;\n}\n";

static inline CUfunction kernel(const char *name)
{
    CUmodule module;
    CUfunction function;
    OK(cuModuleLoadData(&module, kernels));
    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

/* A launch for n numbers, with the lines of the program: a macro. */
#define add(f, p, n, more, stream)                                                                                     \
    cuLaunchKernel(f, ((n) + 127) / 128, 1, 1, 128, 1, 1, 0, stream,                                                   \
                   (void *[]){&(CUdeviceptr){p}, &(uint32_t){n}, &(uint32_t){more}}, NULL)

#endif
