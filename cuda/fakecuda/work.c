/* Streams as queues: each has a thread, which executes one operation at a time. */
#include "graph.h"

static void *serve(void *argument);

int start_thread(void *(*body)(void *), void *argument, size_t stack) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (stack > 0)
        pthread_attr_setstacksize(&attributes, stack);
    int failed = pthread_create(&thread, &attributes, body, argument);
    pthread_attr_destroy(&attributes);
    return failed;
}

struct stream *stream_new(struct context *context, unsigned flags, int priority, bool blocking) {
    struct stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return NULL;
    stream->refs = 1;
    stream->id = ++state.next_id;
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    stream->blocking = blocking;
    pthread_cond_init(&stream->work, NULL);
    pthread_cond_init(&stream->done, NULL);
    context->refs++;
    stream->next = context->streams;
    if (stream->next != NULL)
        stream->next->previous = stream;
    context->streams = stream;
    return stream;
}

void stream_ref(struct stream *stream) {
    stream->refs++;
}

void stream_unref(struct stream *stream) {
    if (--stream->refs > 0)
        return;
    struct context *context = stream->context;
    pthread_cond_destroy(&stream->work);
    pthread_cond_destroy(&stream->done);
    free(stream->tips);
    free(stream->tip_handles);
    free(stream);
    context_unref(context);
}

static void unlink_stream(struct stream *stream) {
    struct context *context = stream->context;
    if (stream->previous != NULL)
        stream->previous->next = stream->next;
    else
        context->streams = stream->next;
    if (stream->next != NULL)
        stream->next->previous = stream->previous;
    stream->next = stream->previous = NULL;
    stream_unref(stream);
}

/* Pending work still runs; afterwards the stream's thread removes it from the list. */
void stream_close(struct stream *stream) {
    if (stream->handle != 0)
        table_drop(&state.streams, stream->handle);
    stream->closed = true;
    if (stream->started)
        pthread_cond_broadcast(&stream->work);
    else
        unlink_stream(stream);
}

/* ---- Operations ---- */

struct operation *operation_new(enum operation_kind kind) {
    struct operation *operation = calloc(1, sizeof *operation);
    if (operation != NULL)
        operation->kind = kind;
    return operation;
}

/* Makes an operation start only after a place of another stream is reached. */
void operation_after(struct operation *operation, struct stream *stream, uint64_t seq) {
    if (stream->completed >= seq)
        return;
    if (operation->after_count == operation->after_room) {
        operation->after_room = operation->after_room ? 2 * operation->after_room : 4;
        operation->after = realloc(operation->after, operation->after_room * sizeof *operation->after);
        if (operation->after == NULL)
            abort();
    }
    stream_ref(stream);
    operation->after[operation->after_count++] = (struct point){stream, seq};
}

void operation_free(struct operation *operation) {
    queue_leave(operation);
    for (size_t i = 0; i < operation->after_count; i++)
        stream_unref(operation->after[i].stream);
    free(operation->after);
    switch (operation->kind) {
    case RECORD:
        event_unref(operation->event);
        break;
    case COPY:
        free(operation->copy.staged);
        break;
    case MEMORY_OPS:
        free(operation->memory.ops);
        break;
    case GRAPH:
        if (operation->graph.child != 0)
            graph_drop(operation->graph.child);
        program_unref(operation->graph.program);
        break;
    case CONDITIONAL:
        conditional_free(operation->conditional);
        break;
    default:
        break;
    }
    free(operation);
}

void drop_operations(struct stream *stream) {
    struct operation *operation = stream->head;
    stream->head = stream->tail = NULL;
    while (operation != NULL) {
        struct operation *next = operation->next;
        operation_free(operation);
        operation = next;
    }
}

/* Work of the legacy stream and of blocking streams is ordered by the calls. */
static void keep_legacy_order(struct stream *stream, struct operation *operation) {
    struct context *context = stream->context;
    if (stream->blocking)
        operation_after(operation, context->legacy, context->legacy->enqueued);
    if (stream != context->legacy)
        return;
    for (struct stream *s = context->streams; s != NULL; s = s->next)
        if (s->blocking)
            operation_after(operation, s, s->enqueued);
}

/* Whether an operation enqueued now could run at once. */
bool stream_idle(const struct stream *stream) {
    const struct context *context = stream->context;
    if (stream->completed < stream->enqueued)
        return false;
    if (stream->blocking)
        return context->legacy->completed >= context->legacy->enqueued;
    if (stream == context->legacy)
        for (const struct stream *s = context->streams; s != NULL; s = s->next)
            if (s->blocking && s->completed < s->enqueued)
                return false;
    return true;
}

/* What a query of a stream says. */
bool stream_done(const struct stream *stream) {
    bool done = stream->completed >= stream->counted;
    if (stream == stream->context->legacy)
        for (const struct stream *s = stream->context->streams; s != NULL; s = s->next)
            done = done && (!s->blocking || s->completed >= s->counted);
    return done;
}

/* A record that only the order with the legacy stream holds up, or what the whole context waits for, is pending as an
 * event and no work of its stream: drivers answer so. */
static bool is_unseen(const struct stream *stream, const struct operation *operation) {
    if (operation->kind != RECORD || stream->completed < stream->counted)
        return false;
    const struct stream *legacy = stream->context->legacy;
    return stream->completed < stream->enqueued || (stream->blocking && legacy->completed < legacy->enqueued);
}

/* Blocks while the launch queue of the stream is full. */
CUresult make_room(struct stream *stream) {
    struct context *context = stream->context;
    CUresult code = atomic_load(&context->error);
    if (state.settings.queue == 0 || code != SUCCESS)
        return code;
    stream_ref(stream);
    stream->host_waiters++;
    while (state.settings.queue > 0 && stream->enqueued - stream->completed >= state.settings.queue &&
           atomic_load(&context->error) == SUCCESS)
        pthread_cond_wait(&stream->done, &state.lock);
    stream->host_waiters--;
    code = atomic_load(&context->error);
    if (code == SUCCESS && stream->closed)
        code = INVALID_HANDLE;
    stream_unref(stream);
    return code;
}

/* Enqueues an operation and takes ownership of it. With wait it returns when the
 * operation is done. */
CUresult submit(struct stream *stream, struct operation *operation, bool wait) {
    if (stream->capture != NULL)
        return capture_take(stream, operation);
    if (!stream->started) {
        if (start_thread(serve, stream, 512 << 10) != 0) {
            operation_free(operation);
            return UNKNOWN;
        }
        stream->started = true;
    }
    bool unseen = operation->unseen || is_unseen(stream, operation);
    keep_legacy_order(stream, operation);
    operation->seq = ++stream->enqueued;
    if (!unseen)
        stream->counted = operation->seq;
    state.moves++;
    operation->of_memory = operation->of_memory || operation->kind == FREE;
    operation->optional = state.optional;
    queue_enter(stream, operation);
    if (stream->tail != NULL)
        stream->tail->next = operation;
    else
        stream->head = operation;
    stream->tail = operation;
    pthread_cond_signal(&stream->work);
    return wait ? wait_point(stream, operation->seq) : SUCCESS;
}

CUresult wait_point(struct stream *stream, uint64_t seq) {
    stream_ref(stream);
    stream->host_waiters++;
    while (stream->completed < seq && atomic_load(&stream->context->error) == SUCCESS)
        pthread_cond_wait(&stream->done, &state.lock);
    stream->host_waiters--;
    CUresult code = atomic_load(&stream->context->error);
    stream_unref(stream);
    return code;
}

/* Waits for the work that is enqueued on the streams of a context now. */
CUresult wait_streams(struct context *context, bool only_blocking) {
    struct operation all = {0};
    for (struct stream *s = context->streams; s != NULL; s = s->next)
        if (s->blocking || s == context->legacy || !only_blocking)
            operation_after(&all, s, s->enqueued);
    CUresult code = atomic_load(&context->error);
    for (size_t i = 0; i < all.after_count; i++) {
        if (code == SUCCESS)
            code = wait_point(all.after[i].stream, all.after[i].seq);
        stream_unref(all.after[i].stream);
    }
    free(all.after);
    return code;
}

/* ---- The thread of a stream ---- */

static bool lost(const struct stream *stream) {
    return atomic_load(&stream->context->error) != SUCCESS;
}

static void wait_for(struct stream *stream, const struct point *point) {
    stream->waits_for = point;
    while (point->stream->completed < point->seq && !lost(stream)) {
        bool listed = false;
        for (struct stream *s = point->stream->waiters; s != NULL; s = s->next_waiter)
            listed = listed || s == stream;
        if (!listed) {
            stream->next_waiter = point->stream->waiters;
            point->stream->waiters = stream;
        }
        pthread_cond_wait(&stream->work, &state.lock);
    }
    for (struct stream **s = &point->stream->waiters; *s != NULL; s = &(*s)->next_waiter) {
        if (*s == stream) {
            *s = stream->next_waiter;
            break;
        }
    }
    stream->next_waiter = NULL;
    stream->waits_for = NULL;
}

static void reached(struct stream *stream, struct operation *operation) {
    stream->completed = operation->seq;
    state.moves++;
    if (operation->kind == RECORD)
        event_reached(stream, operation);
    for (struct stream *s = stream->waiters; s != NULL; s = s->next_waiter)
        pthread_cond_signal(&s->work);
    if (stream->host_waiters > 0)
        pthread_cond_broadcast(&stream->done);
}

static void step(struct stream *stream) {
    struct operation *operation = stream->head;
    stream->head = operation->next;
    if (stream->head == NULL)
        stream->tail = NULL;
    stream->current = operation;
    queue_wait(stream, operation);
    for (size_t i = 0; i < operation->after_count; i++)
        wait_for(stream, &operation->after[i]);
    if (operation->kind == COPY || operation->kind == FILL || operation->kind == KERNEL)
        queue_leave(operation);
    if (!lost(stream)) {
        stream->touching = operation->kind != HOST_FUNCTION;
        if (operation->kind == HOST_FUNCTION)
            wait_begins(stream);
        pthread_mutex_unlock(&state.lock);
        begin_executing();
        CUresult code = execute(stream, operation);
        end_executing();
        pthread_mutex_lock(&state.lock);
        stream->touching = false;
        if (operation->kind == HOST_FUNCTION)
            wait_ends(stream);
        if (code != SUCCESS)
            poison(stream->context, code);
        if (!lost(stream))
            reached(stream, operation);
        else
            pthread_cond_broadcast(&stream->done);
    }
    stream->current = NULL;
    operation_free(operation); /* it leaves its hardware queue */
}

/* The list of the context owns the stream until its thread removes it. */
static void *serve(void *argument) {
    struct stream *stream = argument;
    pthread_mutex_lock(&state.lock);
    for (;;) {
        if (stream->head != NULL)
            step(stream);
        else if (stream->closed)
            break;
        else
            pthread_cond_wait(&stream->work, &state.lock);
    }
    unlink_stream(stream);
    pthread_mutex_unlock(&state.lock);
    return NULL;
}
