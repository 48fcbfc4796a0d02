/* Events of the two modes; see section 3 of the vendor's notes on synchronization. */
#include "fakeacl.h"

#include <time.h>

enum { SYNC = 1, PROGRESS = 2, INTERNAL = 4, TIME_LINE = 8, ORDINARY = SYNC | PROGRESS | INTERNAL | TIME_LINE };

uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void event_unref(struct event *event) { event->refs--; }

static aclError event_for(aclrtEvent handle, struct event **event) {
    if (handle == NULL) return ACL_ERROR_INVALID_PARAM;
    if (!is(handle, EVENT)) return ACL_ERROR_RT_INVALID_HANDLE;
    *event = handle;
    return state.devices[(*event)->context->device].lost;
}

static aclError make(aclrtEvent *handle, uint32_t flags, enum event_mode mode) {
    struct context *context;
    if (handle == NULL) return ACL_ERROR_INVALID_PARAM;
    aclError code = current(&context);
    if (code != ACL_SUCCESS) return code;
    if (flags == 0 || flags & ~(uint32_t)ORDINARY) return ACL_ERROR_RT_PARAM_INVALID;
    struct event *event = object_new(EVENT, sizeof *event);
    event->context = context;
    event->mode = mode;
    event->flags = flags;
    event->refs = 1;
    *handle = event;
    return ACL_SUCCESS;
}

API aclrtCreateEventExWithFlag(aclrtEvent *handle, uint32_t flags) {
    BEGIN(aclrtCreateEventExWithFlag);
    END(make(handle, flags, EX));
}

API aclrtCreateEventWithFlag(aclrtEvent *handle, uint32_t flags) {
    BEGIN(aclrtCreateEventWithFlag);
    END(make(handle, flags, OLD));
}

API aclrtDestroyEvent(aclrtEvent handle) {
    BEGIN(aclrtDestroyEvent);
    struct event *event;
    TRY(event_for(handle, &event));
    object_drop(&event->object);
    END(ACL_SUCCESS);
}

static aclError enqueue(struct event *event, struct stream *stream, enum operation_kind kind, struct point after) {
    struct operation *operation = operation_new(kind);
    operation->event = event;
    operation->after = after;
    event->refs++;
    return submit(stream, operation);
}

API aclrtRecordEvent(aclrtEvent handle, aclrtStream stream_handle) {
    BEGIN(aclrtRecordEvent);
    struct event *event;
    struct stream *stream;
    TRY(event_for(handle, &event));
    TRY(stream_for(stream_handle, &stream));
    CHECK(event->context == stream->context, ACL_ERROR_RT_PARAM_INVALID);
    /* The place is that of the operation, which submit gives out after it has waited for room. */
    TRY(enqueue(event, stream, RECORD, (struct point){0}));
    event->recorded = true;
    event->at = (struct point){stream, stream->enqueued};
    END(ACL_SUCCESS);
}

API aclrtStreamWaitEvent(aclrtStream stream_handle, aclrtEvent handle) {
    BEGIN(aclrtStreamWaitEvent);
    struct event *event;
    struct stream *stream;
    TRY(event_for(handle, &event));
    TRY(stream_for(stream_handle, &stream));
    CHECK(event->flags & (SYNC | INTERNAL), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    if (event->mode == OLD) END(enqueue(event, stream, WAIT_SET, (struct point){0}));
    CHECK(event->recorded, ACL_SUCCESS);
    END(enqueue(event, stream, WAIT, event->at));
}

API aclrtResetEvent(aclrtEvent handle, aclrtStream stream_handle) {
    BEGIN(aclrtResetEvent);
    struct event *event;
    struct stream *stream;
    TRY(event_for(handle, &event));
    TRY(stream_for(stream_handle, &stream));
    CHECK(event->mode == OLD && event->flags & SYNC, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    END(enqueue(event, stream, RESET, (struct point){0}));
}

static bool done(const struct event *event) {
    return event->mode == OLD ? event->set : !event->recorded || event->at.stream->completed >= event->at.seq;
}

API aclrtQueryEventStatus(aclrtEvent handle, aclrtEventRecordedStatus *status) {
    BEGIN(aclrtQueryEventStatus);
    struct event *event;
    CHECK(status != NULL, ACL_ERROR_INVALID_PARAM);
    TRY(event_for(handle, &event));
    *status = done(event) ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    END(ACL_SUCCESS);
}

static aclError timed(const struct event *event) {
    if (!event->recorded) return ACL_ERROR_RT_INTERNAL_ERROR;
    return event->flags & TIME_LINE && done(event) ? ACL_SUCCESS : ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID;
}

API aclrtEventElapsedTime(float *ms, aclrtEvent start_handle, aclrtEvent stop_handle) {
    BEGIN(aclrtEventElapsedTime);
    struct event *start, *stop;
    CHECK(ms != NULL, ACL_ERROR_INVALID_PARAM);
    TRY(event_for(start_handle, &start));
    TRY(event_for(stop_handle, &stop));
    TRY(timed(start));
    TRY(timed(stop));
    CHECK(start->context->device == stop->context->device, ACL_ERROR_RT_PARAM_INVALID);
    *ms = (float)((double)((int64_t)(stop->nanoseconds - start->nanoseconds)) / 1e6);
    END(ACL_SUCCESS);
}

API aclrtEventGetTimestamp(aclrtEvent handle, uint64_t *us) {
    BEGIN(aclrtEventGetTimestamp);
    struct event *event;
    CHECK(us != NULL, ACL_ERROR_INVALID_PARAM);
    TRY(event_for(handle, &event));
    TRY(timed(event));
    *us = event->nanoseconds / 1000;
    END(ACL_SUCCESS);
}
