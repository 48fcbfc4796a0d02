/* Two kernels on two streams add to the same numbers; with "wait" the second comes behind the first. */
#include "driver.h"

int main(int argc, char **argv)
{
    (void)argv;
    CUstream first, second;
    CUevent done;
    CUdeviceptr numbers;
    uint32_t found[256];
    begin();
    CUfunction f = kernel("add");
    OK(cuStreamCreate(&first, 1));
    OK(cuStreamCreate(&second, 1));
    OK(cuEventCreate(&done, 2));
    OK(cuMemAlloc_v2(&numbers, sizeof found));
    OK(cuMemsetD32Async(numbers, 1, 256, first));
    OK(add(f, numbers, 256, 2, first));
    OK(cuEventRecord(done, first));
    if (argc > 1) OK(cuStreamWaitEvent(second, done, 0));
    OK(add(f, numbers, 256, 3, second));
    OK(cuStreamSynchronize(first));
    OK(cuStreamSynchronize(second));
    OK(cuMemcpyDtoH_v2(found, numbers, sizeof found));
    printf("%u\n", found[0]);
    return 0;
}
