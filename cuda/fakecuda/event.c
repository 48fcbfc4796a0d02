/* Events: a place in a stream, and the time when it was reached. */
#include "event.h"
#include "memory.h"

#define BLOCKING_SYNC 1u
#define DISABLE_TIMING 2u
#define INTERPROCESS 4u

struct table events = {.kind = EVENTS, .name = "event"};

void event_unref(struct event *event) {
    if (--event->refs > 0)
        return;
    if (event->on != NULL)
        stream_unref(event->on);
    free(event->tips);
    free(event);
}

static void forget_place(struct event *event) {
    if (event->on != NULL)
        stream_unref(event->on);
    event->on = NULL;
}

static void stamp(struct event *event) {
    if (!(event->flags & DISABLE_TIMING))
        event->nanoseconds = now();
}

/* Called when a stream reaches a record, unless a later record has replaced it. */
static void record_reached(struct stream *stream, struct operation *operation) {
    struct event *event = operation->event;
    if (event->on != stream || event->seq != operation->seq)
        return;
    stamp(event);
    forget_place(event);
}

static void record_drop(struct operation *operation) {
    event_unref(operation->event);
}

const struct kind record_kind = {.node = 5, .reached = record_reached, .drop = record_drop};

/* Calls on events of a poisoned context fail with its code. */
static CUresult find_event(CUevent handle, struct event **event) {
    *event = table_find(&events, handle);
    return *event == NULL ? INVALID_HANDLE : atomic_load(&(*event)->context->error);
}

API cuEventCreate(CUevent *handle, unsigned int flags) {
    BEGIN(cuEventCreate, 0);
    struct context *context;
    TRY(current_context(&context));
    if (handle == NULL || flags > (BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS))
        return end(INVALID_VALUE);
    if (flags & INTERPROCESS && !(flags & DISABLE_TIMING))
        return end(INVALID_VALUE);
    struct event *event = calloc(1, sizeof *event);
    if (event == NULL)
        return end(OUT_OF_MEMORY);
    event->context = context;
    event->flags = flags;
    event->refs = 1;
    *handle = event->handle = table_put(&events, event);
    return end(SUCCESS);
}

API cuEventDestroy_v2(CUevent handle) {
    BEGIN(cuEventDestroy_v2, handle);
    struct event *event;
    TRY(find_event(handle, &event));
    table_drop(&events, handle);
    event_unref(event);
    return end(SUCCESS);
}

/* ---- Captures ---- */

/* Fails a question about an event that was recorded last in a capture; during the capture it makes that invalid. */
static CUresult capture_asked(const struct event *event) {
    if (event->capture == NULL)
        return event->stale ? INVALID_VALUE : SUCCESS;
    event->capture->invalid = true;
    return CAPTURED_EVENT;
}

/* A wait of a capturing stream, or for a captured event: the stream joins the capture, and
 * its next node waits for the nodes before the record, too. */
static CUresult capture_join(struct stream *stream, const struct event *event) {
    struct capture *capture = stream->capture;
    if (event->capture == NULL || (capture != NULL && capture != event->capture)) {
        capture->invalid = true;
        if (event->capture != NULL)
            event->capture->invalid = true;
        return event->capture == NULL ? CAPTURE_ISOLATION : CAPTURE_MERGE;
    }
    if (event->capture->invalid)
        return capture == NULL ? INVALID_VALUE : CAPTURE_INVALIDATED;
    if (capture == NULL)
        stream->tip_count = 0;
    stream->capture = event->capture;
    for (size_t i = 0; i < event->tip_count; i++) {
        bool known = false;
        for (size_t k = 0; k < stream->tip_count; k++)
            known = known || stream->tips[k] == event->tips[i];
        if (known)
            continue;
        stream->tips = realloc(stream->tips, (stream->tip_count + 1) * sizeof *stream->tips);
        if (stream->tips == NULL)
            abort();
        stream->tips[stream->tip_count++] = event->tips[i];
    }
    return SUCCESS;
}

/* ---- Records and waits ---- */

static void set_recorded(struct event *event, struct capture *capture) {
    event->recorded = true;
    event->stale = false;
    event->capture = capture;
}

/* Enqueues a record; on an idle stream it is done at once. */
static CUresult record(struct event *event, struct stream *stream, struct operation *operation) {
    if (operation == NULL && stream->queue == NULL && stream->capture == NULL && stream_idle(stream)) {
        moves++;
        stamp(event);
        forget_place(event);
        set_recorded(event, NULL);
        return SUCCESS;
    }
    if (operation == NULL && (operation = operation_new(&record_kind)) == NULL)
        return OUT_OF_MEMORY;
    operation->event = event;
    operation->unseen = held_up_by_order(stream);
    event->refs++;
    struct capture *capture = stream->capture;
    CUresult code = submit(stream, operation, false);
    if (code != SUCCESS)
        return code;
    set_recorded(event, capture);
    if (capture == NULL) {
        forget_place(event);
        stream_ref(stream);
        event->on = stream;
        event->seq = stream->enqueued;
    }
    return SUCCESS;
}

API cuEventRecord(CUevent handle, CUstream stream_handle) {
    BEGIN(cuEventRecord, stream_handle > STREAM_PER_THREAD ? stream_handle : 0);
    struct stream *stream;
    struct event *event;
    TRY(find_stream(stream_handle, &stream));
    TRY(make_room(stream));
    TRY(find_event(handle, &event));
    if (event->context != stream->context)
        return end(INVALID_HANDLE);
    return end(record(event, stream, NULL));
}

API cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned int flags) {
    BEGIN(cuStreamWaitEvent, stream_handle > STREAM_PER_THREAD ? stream_handle : 0);
    struct stream *stream;
    struct event *event;
    TRY(find_stream(stream_handle, &stream));
    TRY(make_room(stream));
    TRY(find_event(handle, &event));
    if (flags != 0)
        return end(INVALID_VALUE);
    if (event->stale && stream->capture == NULL)
        return end(INVALID_VALUE);
    if (event->capture != NULL || (stream->capture != NULL && event->recorded))
        return end(capture_join(stream, event));
    /* On the legacy stream a wait for a completed event still keeps the order with blocking streams. */
    if (event->on == NULL && (!event->recorded || stream != stream->context->legacy))
        return end(SUCCESS);
    struct operation *wait = operation_new(&wait_kind);
    if (wait == NULL)
        return end(OUT_OF_MEMORY);
    if (event->on != NULL)
        operation_after(wait, event->on, event->seq);
    return end(submit(stream, wait, false));
}

API cuEventQuery(CUevent handle) {
    BEGIN(cuEventQuery, handle);
    struct event *event;
    TRY(find_event(handle, &event));
    TRY(capture_asked(event));
    return end(event->on == NULL ? SUCCESS : NOT_READY);
}

API cuEventSynchronize(CUevent handle) {
    BEGIN(cuEventSynchronize, handle);
    struct event *event;
    TRY(find_event(handle, &event));
    TRY(capture_asked(event));
    int device = event->context->device;
    if (event->on != NULL)
        TRY(wait_point(event->on, event->seq));
    pools_synchronized(device);
    return end(SUCCESS);
}

static CUresult elapsed(float *milliseconds, CUevent start_handle, CUevent end_handle) {
    struct event *start, *stop;
    CUresult code = find_event(start_handle, &start);
    if (code == SUCCESS)
        code = find_event(end_handle, &stop);
    if (code != SUCCESS)
        return code;
    if (milliseconds == NULL)
        return INVALID_VALUE;
    /* Unlike a query, the question leaves a capture valid. */
    if (start->capture != NULL || stop->capture != NULL)
        return CAPTURED_EVENT;
    if (start->stale || stop->stale)
        return INVALID_VALUE;
    if (!start->recorded || !stop->recorded || (start->flags | stop->flags) & DISABLE_TIMING ||
        start->context != stop->context)
        return INVALID_HANDLE;
    if (start->on != NULL || stop->on != NULL)
        return NOT_READY;
    /* The clock of a device ticks about every half microsecond. */
    *milliseconds = (float)((int64_t)(stop->nanoseconds / 512 - start->nanoseconds / 512) * 512 / 1e6);
    return SUCCESS;
}

API cuEventElapsedTime(float *milliseconds, CUevent start, CUevent stop) {
    BEGIN(cuEventElapsedTime, start);
    return end(elapsed(milliseconds, start, stop));
}

API cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent stop) {
    BEGIN(cuEventElapsedTime_v2, start);
    return end(elapsed(milliseconds, start, stop));
}

/* Makes an event stand for all work enqueued in a context. */
API cuCtxRecordEvent(CUcontext context_handle, CUevent handle) {
    BEGIN(cuCtxRecordEvent, context_handle);
    struct context *context;
    struct event *event;
    TRY(healthy_context(context_handle, &context));
    TRY(find_event(handle, &event));
    if (event->context != context)
        return end(INVALID_HANDLE);
    if (capture_conflicts(context, false))
        return end(CAPTURE_UNSUPPORTED);
    struct operation *operation = operation_new(&record_kind);
    if (operation == NULL)
        return end(OUT_OF_MEMORY);
    for (struct stream *s = context->streams; s != NULL; s = s->next)
        if (s != context->fence)
            operation_after(operation, s, s->enqueued);
    return end(record(event, context->fence, operation));
}

/* Makes all later work of a context wait, including that of streams created later. A stream that has none is idle. */
API cuCtxWaitEvent(CUcontext context_handle, CUevent handle) {
    BEGIN(cuCtxWaitEvent, context_handle);
    struct context *context;
    struct event *event;
    TRY(healthy_context(context_handle, &context));
    TRY(find_event(handle, &event));
    if (event->on == NULL)
        return end(SUCCESS);
    if (capture_conflicts(context, false))
        return end(CAPTURE_UNSUPPORTED);
    struct operation *wait = operation_new(&wait_kind);
    if (wait == NULL)
        return end(OUT_OF_MEMORY);
    operation_after(wait, event->on, event->seq);
    TRY(submit(context->gate, wait, false));
    for (struct stream *s = context->streams; s != NULL; s = s->next) {
        if (s == context->gate || s == context->fence || s->closed)
            continue;
        wait = operation_new(&wait_kind);
        if (wait == NULL)
            return end(OUT_OF_MEMORY);
        operation_after(wait, context->gate, context->gate->enqueued);
        wait->unseen = true;
        TRY(submit(s, wait, false));
    }
    return end(SUCCESS);
}
