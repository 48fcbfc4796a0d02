/* A stream copies what another one fills; with "wait" it comes behind that. */
#include "driver.h"

int main(int argc, char **argv)
{
    (void)argv;
    CUstream fills, copies;
    CUevent filled;
    CUdeviceptr from, to;
    uint32_t found;
    begin();
    OK(cuStreamCreate(&fills, 1));
    OK(cuStreamCreate(&copies, 1));
    OK(cuEventCreate(&filled, 2));
    OK(cuMemAlloc_v2(&from, 4));
    OK(cuMemAlloc_v2(&to, 4));
    OK(cuMemsetD32_v2(from, 0, 1));
    OK(cuCtxSynchronize());
    OK(cuMemsetD32Async(from, 7, 1, fills));
    OK(cuEventRecord(filled, fills));
    if (argc > 1) OK(cuStreamWaitEvent(copies, filled, 0));
    OK(cuMemcpyDtoDAsync_v2(to, from, 4, copies));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH_v2(&found, to, 4));
    return found == 7 ? 0 : 3;
}
