/* A kernel goes too far: the context is lost, until its reset. */
#include "driver.h"

int main(void)
{
    CUdeviceptr p, other;
    CUstream s;
    begin();
    CUfunction f = kernel("add");
    OK(cuStreamCreate(&s, 1));
    OK(cuMemAlloc_v2(&p, 400));
    OK(add(f, p, 1000, 1, s));
    FAILS(700, cuStreamSynchronize(s));
    FAILS(700, cuMemAlloc_v2(&other, 4));
    FAILS(700, add(f, p, 100, 1, s));
    FAILS(700, cuCtxSynchronize());
    OK(cuDevicePrimaryCtxReset_v2(0));
    f = kernel("add");
    OK(cuMemAlloc_v2(&p, 400));
    OK(add(f, p, 100, 1, NULL));
    OK(cuCtxSynchronize());
    puts("done");
    return 0;
}
