/* The host waits for a stream that waits for a value which nobody writes. */
#include "driver.h"

int main(void)
{
    CUstream s;
    CUdeviceptr p;
    begin();
    OK(cuStreamCreate(&s, 1));
    OK(cuMemAlloc_v2(&p, 8));
    OK(cuStreamWriteValue64_v2(s, p, 1, 0));
    OK(cuStreamWaitValue64_v2(s, p, 5, 1));
    FAILS(702, cuStreamSynchronize(s));
    return 0;
}
