/* Waits for a notify go on while another thread's waits for it are refused. */
#include "check.h"

#include <pthread.h>

enum { ROUNDS = 3000 };

static aclrtContext other;
static aclrtNotify notify;
static aclrtStream stream;
static int over;

static void *refused(void *unused)
{
    OK(aclrtSetCurrentContext(other)); /* the stream is none of this one */
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
        RETURNS(ACL_ERROR_RT_STREAM_CONTEXT, aclrtWaitAndResetNotify(notify, stream, 0));
    return unused;
}

int main(void)
{
    aclrtContext own;
    aclrtStream records;
    pthread_t thread;
    OK(aclrtSetDevice(0));
    OK(aclrtGetCurrentContext(&own));
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateStream(&records));
    OK(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT));
    OK(aclrtCreateContext(&other, 0));
    OK(aclrtSetCurrentContext(own));
    CHECK(pthread_create(&thread, NULL, refused, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        OK(aclrtRecordNotify(notify, records));
        OK(aclrtWaitAndResetNotify(notify, stream, 0));
        OK(aclrtSynchronizeStreamWithTimeout(stream, 20000));
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    OK(aclrtDestroyNotify(notify));
    OK(aclrtDestroyContext(other));
    OK(aclrtResetDevice(0));
    return done();
}
