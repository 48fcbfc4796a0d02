/* Streams: each has a thread that executes its operations in their order. */
#include "fakeacl.h"

#include <time.h>

static bool lost(const struct stream *stream) { return state.devices[stream->context->device].lost != 0; }
static bool over(const struct stream *stream) { return lost(stream) || stream->closed; }
static void *serve(void *argument);

aclError stream_new(struct context *context, uint32_t priority, struct stream **made) {
    size_t count = 0; /* the default stream is not counted */
    for (struct stream *s = context->streams; s != NULL; s = s->next) count++;
    if (count > state.settings.streams) return ACL_ERROR_RT_NO_STREAM_RESOURCE;
    struct stream *stream = object_new(STREAM, sizeof *stream);
    stream->context = context;
    stream->priority = priority;
    pthread_cond_init(&stream->work, NULL);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    int failed = pthread_create(&thread, &attributes, serve, stream);
    pthread_attr_destroy(&attributes);
    if (failed) {
        object_drop(&stream->object);
        return ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
    }
    stream->next = context->streams;
    context->streams = stream;
    *made = stream;
    return ACL_SUCCESS;
}

aclError any_stream(aclrtStream handle, struct stream **stream) {
    struct context *context;
    if (handle == NULL) {
        aclError code = current(&context);
        if (code != ACL_SUCCESS) return code;
        *stream = context->standard;
        return ACL_SUCCESS;
    }
    if (!is(handle, STREAM)) return ACL_ERROR_RT_INVALID_HANDLE;
    *stream = handle;
    return state.devices[(*stream)->context->device].lost;
}

aclError stream_for(aclrtStream handle, struct stream **stream) {
    struct context *context;
    aclError code = current(&context);
    if (code == ACL_SUCCESS) code = any_stream(handle, stream);
    if (code != ACL_SUCCESS) return code;
    return (*stream)->context == context ? ACL_SUCCESS : ACL_ERROR_RT_STREAM_CONTEXT;
}

API aclrtCreateStreamWithConfig(aclrtStream *handle, uint32_t priority, uint32_t flags) {
    BEGIN(aclrtCreateStreamWithConfig);
    (void)flags;
    struct context *context;
    struct stream *stream;
    CHECK(handle != NULL, ACL_ERROR_INVALID_PARAM);
    TRY(current(&context));
    TRY(stream_new(context, priority > 7 ? 7 : priority, &stream));
    *handle = stream;
    END(ACL_SUCCESS);
}

/* Takes a stream out of the list of its context; its thread ends. */
static void stream_end(struct stream *stream) {
    for (struct stream **s = &stream->context->streams; *s != NULL; s = &(*s)->next) {
        if (*s == stream) {
            *s = stream->next;
            break;
        }
    }
    stream->closed = true;
    object_drop(&stream->object);
    pthread_cond_signal(&stream->work);
    tell_change();
}

/* It waits for the work, as documented. */
API aclrtDestroyStream(aclrtStream handle) {
    BEGIN(aclrtDestroyStream);
    struct stream *stream;
    CHECK(handle != NULL, ACL_ERROR_INVALID_PARAM);
    TRY(stream_for(handle, &stream));
    CHECK(stream != stream->context->standard, ACL_ERROR_RT_PARAM_INVALID);
    wait_point(stream, stream->enqueued);
    stream_end(stream);
    END(ACL_SUCCESS);
}

void streams_drop(struct context *context) {
    wait_idle(context);
    while (context->streams != NULL) stream_end(context->streams);
}

API aclrtStreamQuery(aclrtStream handle, aclrtStreamStatus *status) {
    BEGIN(aclrtStreamQuery);
    struct stream *stream;
    CHECK(status != NULL, ACL_ERROR_INVALID_PARAM);
    TRY(any_stream(handle, &stream));
    *status = stream->completed == stream->enqueued ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    END(ACL_SUCCESS);
}

API aclrtSynchronizeStream(aclrtStream handle) {
    BEGIN(aclrtSynchronizeStream);
    struct stream *stream;
    TRY(any_stream(handle, &stream));
    wait_point(stream, stream->enqueued);
    aclError code = lost(stream) ? state.devices[stream->context->device].lost : stream->failure;
    stream->failure = ACL_SUCCESS;
    END(code);
}

struct operation *operation_new(enum operation_kind kind) {
    struct operation *operation = calloc(1, sizeof *operation);
    if (operation == NULL) abort();
    operation->kind = kind;
    return operation;
}

/* Enqueues an operation, when there is room. */
aclError submit(struct stream *stream, struct operation *operation) {
    while (state.settings.queue > 0 && stream->enqueued - stream->completed >= state.settings.queue && !lost(stream) &&
           !stream->closed)
        wait_for_change();
    aclError code = stream->closed ? ACL_ERROR_RT_INVALID_HANDLE : state.devices[stream->context->device].lost;
    if (code != ACL_SUCCESS) {
        free(operation);
        return code;
    }
    operation->seq = ++stream->enqueued;
    *(stream->tail != NULL ? &stream->tail->next : &stream->head) = operation;
    stream->tail = operation;
    pthread_cond_signal(&stream->work);
    return ACL_SUCCESS;
}

void wait_point(struct stream *stream, uint64_t seq) {
    while (stream->completed < seq && !lost(stream)) wait_for_change();
}

void wait_idle(struct context *context) {
    for (bool again = true; again;) {
        again = false;
        for (struct stream *s = context->streams; s != NULL && !again; s = s->next) {
            if (s->completed < s->enqueued && !lost(s)) {
                wait_point(s, s->enqueued);
                again = true; /* the list may have changed */
            }
        }
    }
}

static bool met(uint64_t found, uint64_t value, uint32_t how) {
    switch (how) {
    case ACL_STREAM_WAIT_VALUE_GEQ: return (int64_t)(found - value) >= 0;
    case ACL_STREAM_WAIT_VALUE_EQ: return found == value;
    case ACL_STREAM_WAIT_VALUE_AND: return (found & value) != 0;
    }
    return ~(found | value) != 0;
}

static void copy_rows(const struct copy *c) {
    for (size_t row = 0; row < c->height; row++)
        memcpy(c->to + row * c->to_pitch, c->from + row * c->from_pitch, c->width);
}

/* Waits for what an operation needs and does it; the lock is held, and let go meanwhile. */
static void execute(struct stream *stream, struct operation *o) {
    struct event *event = o->event;
    switch (o->kind) {
    case RECORD:
        event->set = true;
        if (event->at.stream == stream && event->at.seq == o->seq) event->nanoseconds = now();
        break;
    case WAIT:
        while (o->after.stream->completed < o->after.seq && !lost(o->after.stream) && !over(stream))
            wait_for_change();
        break;
    case WAIT_SET:
        while (!event->set && !over(stream)) wait_for_change();
        break;
    case RESET:
        event->set = event->recorded = false;
        break;
    case COPY:
    case FILL:
        atomic_fetch_add(&state.touching, 1);
        pthread_mutex_unlock(&state.lock);
        if (o->kind == COPY) copy_rows(&o->copy);
        else memset(o->fill.to, o->fill.value, o->fill.size);
        pthread_mutex_lock(&state.lock);
        atomic_fetch_sub(&state.touching, 1);
        break;
    case CALLBACK:
        report(stream, o);
        break;
    case VALUE_WRITE:
        atomic_store(o->value.word, o->value.value);
        break;
    case VALUE_WAIT:
        while (!met(atomic_load(o->value.word), o->value.value, o->value.how) && !over(stream)) {
            pthread_mutex_unlock(&state.lock);
            struct timespec pause = {0, 20000}; /* the host may write the word, too */
            nanosleep(&pause, NULL);
            pthread_mutex_lock(&state.lock);
        }
        break;
    }
}

static void *serve(void *argument) {
    struct stream *stream = argument;
    pthread_mutex_lock(&state.lock);
    while (!stream->closed) {
        struct operation *o = stream->head;
        if (o == NULL || lost(stream)) {
            pthread_cond_wait(&stream->work, &state.lock);
            continue;
        }
        execute(stream, o);
        if (over(stream)) continue; /* it is never done */
        stream->head = o->next;
        if (stream->head == NULL) stream->tail = NULL;
        stream->completed = o->seq;
        if (o->event != NULL) event_unref(o->event);
        free(o);
        tell_change();
    }
    pthread_mutex_unlock(&state.lock);
    return NULL;
}
