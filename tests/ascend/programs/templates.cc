// Two streams fill the same memory, and nothing orders that. The place of the calls is in a template, a function that
// several units may have.
#include "check.h"

#include <thread>
#include <vector>

enum { SIZE = 4096 };

template <typename Value> struct Filler {
    void *memory;
    std::vector<aclrtStream> streams;
    __attribute__((noinline)) void run(Value value) const
    {
        for (aclrtStream stream : streams)
            OK(aclrtMemsetAsync(memory, SIZE, value, SIZE, stream)); // the unordered call
    }
};

int main()
{
    Filler<char> filler{nullptr, std::vector<aclrtStream>(2)};
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&filler.memory, SIZE, ACL_MEM_MALLOC_HUGE_FIRST));
    for (aclrtStream &stream : filler.streams) OK(aclrtCreateStream(&stream));
    filler.run(1);
    std::thread([] {}).join();
    OK(aclrtSynchronizeDevice());
    OK(aclrtResetDevice(0));
    return done();
}
