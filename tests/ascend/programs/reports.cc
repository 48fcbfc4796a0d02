// As programs on AscendCL are usually built: owners of what was made, a thread that takes reports, copies by run mode.
#include <acl/acl.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>

namespace {

void check(aclError code, const char *call)
{
    if (code == ACL_SUCCESS) return;
    const char *text = aclGetRecentErrMsg();
    throw std::runtime_error(std::string(call) + ": " + std::to_string(code) + "\n" + (text ? text : ""));
}
#define CHECK(call) check(call, #call)

class Process {
public:
    explicit Process(const char *settings) { CHECK(aclInit(settings)); }
    ~Process() { aclFinalize(); }
};

class Device {
public:
    explicit Device(int32_t number) : number(number)
    {
        CHECK(aclrtSetDevice(number));
        CHECK(aclrtCreateContext(&context, number));
        CHECK(aclrtGetRunMode(&mode));
    }
    ~Device()
    {
        aclrtDestroyContext(context);
        aclrtResetDevice(number);
    }
    aclrtContext context = nullptr;
    aclrtRunMode mode = ACL_DEVICE;

private:
    int32_t number;
};

using Memory = std::unique_ptr<void, std::function<void(void *)>>;

Memory device_memory(size_t size)
{
    void *made = nullptr;
    CHECK(aclrtMalloc(&made, size, ACL_MEM_MALLOC_HUGE_FIRST));
    return Memory(made, [](void *p) { aclrtFree(p); });
}

Memory host_memory(size_t size)
{
    void *made = nullptr;
    CHECK(aclrtMallocHost(&made, size));
    return Memory(made, [](void *p) { aclrtFreeHost(p); });
}

// A stream whose callbacks run on a thread of its own.
class Reported {
public:
    explicit Reported(aclrtContext context)
    {
        CHECK(aclrtCreateStream(&stream));
        thread = std::thread([this, context] {
            CHECK(aclrtSetCurrentContext(context));
            while (running) (void)aclrtProcessReport(100);
        });
        CHECK(aclrtSubscribeReport(static_cast<uint64_t>(thread.native_handle()), stream));
    }
    ~Reported()
    {
        aclrtUnSubscribeReport(static_cast<uint64_t>(thread.native_handle()), stream);
        running = false;
        thread.join();
        aclrtDestroyStream(stream);
    }
    aclrtStream stream = nullptr;

private:
    std::atomic<bool> running{true};
    std::thread thread;
};

struct Batch {
    const int *values;
    size_t count;
    std::atomic<int> *batches;
    long sum;
    pthread_t by;
};

void finish(void *pointer)
{
    auto *batch = static_cast<Batch *>(pointer);
    batch->sum = std::accumulate(batch->values, batch->values + batch->count, 0L);
    batch->by = pthread_self();
    ++*batch->batches;
}

} // namespace

int main()
{
    Process process(nullptr);
    uint32_t devices = 0;
    CHECK(aclrtGetDeviceCount(&devices));
    if (devices == 0 || aclrtGetSocName() == nullptr) return 2;
    Device device(0);
    size_t before = 0, after = 0, total = 0;
    CHECK(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
    {
        const size_t count = 1000, size = count * sizeof(int), batches = 8;
        const bool on_host = device.mode == ACL_HOST;
        Reported reported(device.context);
        aclrtEvent begin, end;
        CHECK(aclrtCreateEventExWithFlag(&begin, ACL_EVENT_TIME_LINE | ACL_EVENT_SYNC));
        CHECK(aclrtCreateEventExWithFlag(&end, ACL_EVENT_TIME_LINE | ACL_EVENT_SYNC));
        std::vector<Memory> in, out, there;
        std::vector<Batch> all(batches);
        std::atomic<int> ended{0};
        CHECK(aclrtRecordEvent(begin, reported.stream));
        for (size_t i = 0; i < batches; i++) {
            in.push_back(host_memory(size));
            out.push_back(host_memory(size));
            there.push_back(device_memory(size));
            int *values = static_cast<int *>(in[i].get());
            std::iota(values, values + count, static_cast<int>(i));
            CHECK(aclrtMemcpyAsync(there[i].get(), size, values, size,
                                   on_host ? ACL_MEMCPY_HOST_TO_DEVICE : ACL_MEMCPY_DEVICE_TO_DEVICE, reported.stream));
            CHECK(aclrtMemcpyAsync(out[i].get(), size, there[i].get(), size,
                                   on_host ? ACL_MEMCPY_DEVICE_TO_HOST : ACL_MEMCPY_DEVICE_TO_DEVICE, reported.stream));
            all[i] = Batch{static_cast<int *>(out[i].get()), count, &ended, 0, pthread_self()};
            CHECK(aclrtLaunchCallback(finish, &all[i], i % 2 ? ACL_CALLBACK_BLOCK : ACL_CALLBACK_NO_BLOCK, reported.stream));
        }
        CHECK(aclrtRecordEvent(end, reported.stream));
        CHECK(aclrtSynchronizeStreamWithTimeout(reported.stream, 20000));
        while (ended < static_cast<int>(batches)) std::this_thread::yield(); // one that does not block may end later
        float ms = -1;
        CHECK(aclrtEventElapsedTime(&ms, begin, end));
        for (size_t i = 0; i < batches; i++) {
            const long wanted = static_cast<long>(count) * (count - 1) / 2 + static_cast<long>(i * count);
            if (all[i].sum != wanted || pthread_equal(all[i].by, pthread_self()) || ms < 0) return 3;
        }
        CHECK(aclrtDestroyEvent(begin));
        CHECK(aclrtDestroyEvent(end));
    }
    CHECK(aclrtSynchronizeDevice());
    CHECK(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total));
    if (after != before || total < after) return 4;
    std::puts("done");
    return 0;
}
