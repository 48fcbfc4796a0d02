/* Two kernels on two streams of CUDA's runtime; with an argument the second stream waits for the first. */
#include "runtime.h"

int main(int count, char **words)
{
    cudaStream_t first, second;
    cudaEvent_t event;
    void *numbers;
    uint32_t number;
    (void)words;
    OK(cudaMalloc(&numbers, 1024));
    OK(cudaMemset(numbers, 1, 1024));
    OK(cudaDeviceSynchronize());
    OK(cudaStreamCreateWithFlags(&first, 1));
    OK(cudaStreamCreateWithFlags(&second, 1));
    OK(cudaEventCreate(&event));
    ADD(2, 128, 0, first, numbers, 256, 2);
    if (count > 1) {
        OK(cudaEventRecord(event, first));
        OK(cudaStreamWaitEvent(second, event, 0));
    }
    ADD(2, 128, 0, second, numbers, 256, 3);
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(&number, numbers, 4, DEVICE_TO_HOST));
    printf("%u\n", number - 0x01010101);
    return 0;
}
