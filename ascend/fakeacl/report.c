/* Functions of the host: a stream hands them to the thread that is subscribed, which runs them when
 * it asks for reports. */
#include "fakeacl.h"

#include <errno.h>
#include <time.h>

pthread_cond_t *condition_of(uint64_t thread) { return &state.reported[(thread >> 12) % REPORT_CONDITIONS]; }

/* In stream order, on the thread of the stream, with the lock held. */
void report(struct stream *stream, struct operation *operation) {
    struct report *r = operation->report;
    bool block = r->block;
    r->reporter = stream->reporter;
    r->next = NULL;
    *state.last_report = r;
    state.last_report = &r->next;
    pthread_cond_broadcast(condition_of(r->reporter));
    while (block && !r->done && !stream->closed && state.devices[stream->context->device].lost == 0)
        wait_for_change();
    if (block && r->done) free(r); /* one of a lost device may still run */
}

/* The device whose streams a thread is subscribed for; -1 if there is none. */
static int device_of(uint64_t thread) {
    for (int i = 0; i < state.device_count; i++)
        for (struct stream *s = state.devices[i].primary ? state.devices[i].primary->streams : NULL; s != NULL; s = s->next)
            if (s->reporter == thread) return i;
    return -1;
}

API aclrtSubscribeReport(uint64_t thread, aclrtStream handle) {
    BEGIN(aclrtSubscribeReport);
    struct stream *stream;
    TRY(any_stream(handle, &stream));
    CHECK(stream->reporter == 0, ACL_ERROR_RT_STREAM_SUBSCRIBE);
    int served = device_of(thread);
    CHECK(served < 0 || served == stream->context->device, ACL_ERROR_RT_THREAD_SUBSCRIBE);
    stream->reporter = thread;
    END(ACL_SUCCESS);
}

API aclrtUnSubscribeReport(uint64_t thread, aclrtStream handle) {
    BEGIN(aclrtUnSubscribeReport);
    struct stream *stream;
    TRY(any_stream(handle, &stream));
    CHECK(stream->reporter != 0, ACL_ERROR_RT_STREAM_SUBSCRIBE);
    CHECK(stream->reporter == thread, ACL_ERROR_RT_THREAD_SUBSCRIBE);
    stream->reporter = 0;
    pthread_cond_broadcast(condition_of(thread));
    END(ACL_SUCCESS);
}

API aclrtLaunchCallback(aclrtCallback function, void *data, aclrtCallbackBlockType type, aclrtStream handle) {
    BEGIN(aclrtLaunchCallback);
    struct stream *stream;
    CHECK(function != NULL, ACL_ERROR_INVALID_PARAM);
    CHECK(type == ACL_CALLBACK_BLOCK || type == ACL_CALLBACK_NO_BLOCK, ACL_ERROR_INVALID_PARAM);
    CHECK(type == ACL_CALLBACK_BLOCK || state.settings.no_block, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    TRY(stream_for(handle, &stream));
    CHECK(stream->reporter != 0, ACL_ERROR_RT_STREAM_NO_CB_REG);
    struct report *r = calloc(1, sizeof *r);
    if (r == NULL) abort();
    r->function = function;
    r->data = data;
    r->block = type == ACL_CALLBACK_BLOCK;
    struct operation *operation = operation_new(CALLBACK);
    operation->report = r;
    aclError code = submit(stream, operation);
    if (code != ACL_SUCCESS) free(r);
    END(code);
}

static struct report *take(uint64_t thread) {
    for (struct report **r = &state.reports; *r != NULL; r = &(*r)->next) {
        if ((*r)->reporter != thread) continue;
        struct report *found = *r;
        *r = found->next;
        if (state.last_report == &found->next) state.last_report = r;
        return found;
    }
    return NULL;
}

static void run(struct report *r) {
    bool block = r->block; /* afterwards the stream's thread frees it */
    pthread_mutex_unlock(&state.lock);
    this_thread()->reporting = true;
    r->function(r->data);
    this_thread()->reporting = false;
    pthread_mutex_lock(&state.lock);
    r->done = true;
    if (!block) free(r);
    tell_change();
}

API aclrtProcessReport(int32_t ms) {
    BEGIN(aclrtProcessReport);
    uint64_t thread = (uint64_t)pthread_self();
    CHECK(ms == -1 || ms > 0, ACL_ERROR_INVALID_PARAM);
    CHECK(device_of(thread) >= 0, ACL_ERROR_RT_THREAD_SUBSCRIBE);
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += ms / 1000;
    limit.tv_nsec += ms % 1000 * 1000000;
    if (limit.tv_nsec >= 1000000000) limit.tv_sec++, limit.tv_nsec -= 1000000000;
    struct report *r;
    while ((r = take(thread)) == NULL) {
        CHECK(device_of(thread) >= 0, ACL_ERROR_RT_THREAD_SUBSCRIBE);
        if (ms == -1) pthread_cond_wait(condition_of(thread), &state.lock);
        else if (pthread_cond_timedwait(condition_of(thread), &state.lock, &limit) == ETIMEDOUT)
            END(ACL_ERROR_RT_REPORT_TIMEOUT);
    }
    run(r);
    END(ACL_SUCCESS);
}
