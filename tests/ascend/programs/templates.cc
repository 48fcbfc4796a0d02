// Two streams fill the same memory, and nothing orders that. The place of the calls is in a method of a template, in a
// section before that of main, which the table of lines has first.
#include "check.h"

#include <thread>
#include <vector>

enum { SIZE = 4096 };

template <typename Value> struct Filler {
    void *memory;
    std::vector<aclrtStream> streams;
    void run(Value value) const;
};

template <> void Filler<char>::run(char value) const;

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

template <> __attribute__((noinline, section(".text.unlikely"))) void Filler<char>::run(char value) const
{
    for (aclrtStream stream : streams)
        OK(aclrtMemsetAsync(memory, SIZE, value, SIZE, stream)); // the unordered call
}
