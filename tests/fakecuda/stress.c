/* Many threads use the look-alike driver at once, for the sanitizers:
 *
 *   cc -std=gnu11 -g -O1 -fsanitize=thread -pthread -o stress tests/fakecuda/stress.c cuda/fakecuda/[a-z]*.c
 *
 * and the same with -fsanitize=address,undefined. No test runs it. It ends with
 * 0 and one line; a device is lost in the middle of every second round. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint64_t u64;

int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(u64 *, int);
int cuDevicePrimaryCtxRelease_v2(int);
int cuCtxSetCurrent(u64);
int cuCtxSynchronize(void);
int cuStreamCreate(u64 *, unsigned);
int cuStreamDestroy_v2(u64);
int cuStreamQuery(u64);
int cuStreamSynchronize(u64);
int cuStreamWaitEvent(u64, u64, unsigned);
int cuStreamWaitValue32_v2(u64, u64, uint32_t, unsigned);
int cuStreamWriteValue32_v2(u64, u64, uint32_t, unsigned);
int cuEventCreate(u64 *, unsigned);
int cuEventRecord(u64, u64);
int cuEventQuery(u64);
int cuEventDestroy_v2(u64);
int cuEventElapsedTime(float *, u64, u64);
int cuLaunchHostFunc(u64, void (*)(void *), void *);
int cuMemAlloc_v2(u64 *, size_t);
int cuMemFree_v2(u64);
int cuMemHostAlloc(void **, size_t, unsigned);
int cuMemFreeHost(void *);
int cuMemAllocAsync(u64 *, size_t, u64);
int cuMemFreeAsync(u64, u64);
int cuMemcpyHtoDAsync_v2(u64, const void *, size_t, u64);
int cuMemcpyDtoHAsync_v2(void *, u64, size_t, u64);
int cuMemsetD8Async(u64, unsigned char, size_t, u64);
int cuModuleLoadData(u64 *, const void *);
int cuModuleUnload(u64);
int cuModuleGetFunction(u64 *, u64, const char *);
int cuLaunchKernel(u64, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, u64, void **,
    void **);
int fakecuda_control(const char *);
unsigned long long fakecuda_count(const char *);

#define THREADS 6
#define ROUNDS 8
#define STEPS 2000

static u64 contexts[2], shared_streams[4], shared_event;
static const char program[] = ".version 6.0\n.target sm_50\n"
                              ".visible .entry fill_u32(.param .u64 a, .param .u32 b, "
                              ".param .u32 c) { ret; }\n";
static int ran, breaks;

static void host_function(void *data) {
    (void)data;
    cuEventQuery(shared_event); /* refused */
    __atomic_fetch_add(&ran, 1, __ATOMIC_RELAXED);
}

static void launch(u64 stream, u64 memory) {
    u64 module, function;
    uint32_t value = 3, count = 16;
    void *arguments[] = {&memory, &value, &count};
    if (cuModuleLoadData(&module, program) != 0)
        return;
    cuModuleGetFunction(&function, module, "fill_u32");
    cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL);
    cuModuleUnload(module);
}

static void step(unsigned *seed, u64 memory, void *pinned) {
    /* Each thread has a part of its memory for each stream, so that it makes no race itself. */
    unsigned part = (unsigned)rand_r(seed) % 6;
    u64 stream = part < 4 ? shared_streams[part] : part - 3, other = rand_r(seed) % 3, made = 0, event = 0;
    char pageable[128] = {0};
    float elapsed;
    memory += 128 * part;
    switch (rand_r(seed) % 10) {
    case 0:
        cuEventCreate(&event, 0);
        cuEventRecord(event, stream);
        cuStreamWaitEvent(other, event, 0);
        cuEventElapsedTime(&elapsed, event, event);
        cuEventDestroy_v2(event);
        break;
    case 1:
        cuEventRecord(shared_event, stream);
        cuStreamWaitEvent(shared_streams[rand_r(seed) % 4], shared_event, 0);
        cuEventQuery(shared_event);
        break;
    case 2:
        cuLaunchHostFunc(stream, host_function, NULL);
        break;
    case 3:
        cuStreamCreate(&made, (unsigned)rand_r(seed) % 2);
        cuLaunchHostFunc(made, host_function, NULL);
        cuStreamDestroy_v2(made);
        break;
    case 4:
        cuMemcpyHtoDAsync_v2(memory, pageable, sizeof pageable, stream);
        cuMemcpyDtoHAsync_v2(pageable, memory, sizeof pageable, stream);
        break;
    case 5:
        cuMemAllocAsync(&made, 256, stream);
        cuMemsetD8Async(made, 1, 256, stream);
        cuMemFreeAsync(made, stream);
        break;
    case 6:
        cuStreamWriteValue32_v2(stream, (u64)(uintptr_t)pinned, 1, 0);
        cuStreamWaitValue32_v2(stream, (u64)(uintptr_t)pinned, 1, 0);
        break;
    case 7:
        launch(stream, memory);
        break;
    case 8:
        cuStreamQuery(other);
        cuStreamSynchronize(stream);
        break;
    case 9:
        if (rand_r(seed) % 8 == 0 && cuMemAlloc_v2(&made, 4096) == 0)
            cuMemFree_v2(made);
        break;
    }
}

static void *work(void *argument) {
    unsigned seed = (unsigned)(uintptr_t)argument;
    u64 memory = 0;
    void *pinned = NULL;
    cuCtxSetCurrent(contexts[0]);
    cuMemAlloc_v2(&memory, 1024);
    cuMemHostAlloc(&pinned, 64, 0);
    for (int i = 0; i < STEPS; i++) {
        step(&seed, memory, pinned);
        if (breaks && argument == (void *)1 && i == STEPS / 2)
            fakecuda_control("poison 0 700");
    }
    cuMemFreeHost(pinned);
    return NULL;
}

int main(void) {
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        breaks = round % 2;
        if (cuInit(0) != 0)
            return 1;
        for (int i = 1; i >= 0; i--) {
            cuDevicePrimaryCtxRetain(&contexts[i], i);
            cuCtxSetCurrent(contexts[i]);
        }
        for (int i = 0; i < 4; i++)
            cuStreamCreate(&shared_streams[i], (unsigned)i % 2);
        cuEventCreate(&shared_event, 0);
        for (uintptr_t i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, work, (void *)(i + 1 + 100 * (uintptr_t)round * (i > 0)));
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        int code = cuCtxSynchronize();
        if (code != (breaks ? 700 : 0))
            return 2;
        if (round % 4 < 2)
            cuDevicePrimaryCtxRelease_v2(0);
        if (fakecuda_control("reset") != 0 || fakecuda_count("live.memory") != 0)
            return 3;
    }
    printf("%d host functions ran\n", __atomic_load_n(&ran, __ATOMIC_RELAXED));
    return 0;
}
