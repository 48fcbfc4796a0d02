/* Where work waits and runs: the hardware queues of contexts, and their streams, each with a thread that executes one
 * operation at a time. */
#include "work.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

struct table contexts = {.kind = CONTEXTS, .name = "context"}, streams = {.kind = STREAMS, .name = "stream"};
struct device devices[MAX_DEVICES];
int device_count;
uint64_t moves;
static uint64_t looks; /* in vain, of streams that wait in a hardware queue */
static bool optional;  /* what is enqueued now is */

static void *serve(void *argument);

CUresult check_device(CUdevice device) {
    return device < 0 || device >= device_count ? INVALID_DEVICE : SUCCESS;
}

/* For reset. */
void work_reset(void) {
    looks = 0;
    optional = false;
    device_count = 0;
    table_clear(&contexts);
    table_clear(&streams);
}

uint64_t looks_in_vain(void) {
    return looks;
}

/* ---- The hardware queues that streams share, and which stream waits in one behind which. ---- */

/* Operations leave a queue in the order in which they were enqueued. One leaves when it
 * starts, if it is a kernel or a copy; a wait, a write and a record when it is done. So
 * what cannot start yet holds up all that is behind it, whatever stream that is of. */
struct hardware_queue {
    struct operation *first, *last;
    pthread_cond_t moved;
};

enum { LEVELS = LEAST_PRIORITY - GREATEST_PRIORITY + 1 };

/* How often, and how many nanoseconds apart, a stream that waits behind another one looks whether
 * anything goes on on a device, before it is moved out of its queue. */
enum { LOOKS = 25, LOOK_EVERY = 20000000 };

static void queues_new(struct context *context) {
    size_t most = (size_t)state.settings.connections;
    if (most == 0)
        return;
    context->queue_count = most * LEVELS;
    context->queues = calloc(context->queue_count, sizeof *context->queues);
    if (context->queues == NULL)
        abort();
    for (size_t i = 0; i < context->queue_count; i++)
        pthread_cond_init(&context->queues[i].moved, NULL);
}

static void queues_free(struct context *context) {
    for (size_t i = 0; i < context->queue_count; i++)
        pthread_cond_destroy(&context->queues[i].moved);
    free(context->queues);
}

static void queues_wake(struct context *context) {
    for (size_t i = 0; i < context->queue_count; i++)
        pthread_cond_broadcast(&context->queues[i].moved);
    pthread_cond_broadcast(&context->unlocked);
}

/* The streams of a level are dealt out in turn, as they are made. */
void stream_deal(struct stream *stream) {
    struct context *context = stream->context;
    size_t most = context->queue_count / LEVELS, level = 0;
    if (most == 0)
        return;
    if (state.settings.priority_queues)
        level = (size_t)(stream->priority - GREATEST_PRIORITY);
    stream->queue = stream->dealt = &context->queues[level * most + context->dealt[level]++ % most];
}

static void queue_enter(struct stream *stream, struct operation *operation) {
    struct hardware_queue *queue = stream->queue;
    operation->stream = stream;
    operation->queue = queue;
    if (queue == NULL)
        return;
    operation->ahead = queue->last;
    if (queue->last != NULL)
        queue->last->behind = operation;
    else
        queue->first = operation;
    queue->last = operation;
}

static void queue_leave(struct operation *operation) {
    struct hardware_queue *queue = operation->queue;
    if (queue == NULL)
        return;
    if (operation->ahead != NULL)
        operation->ahead->behind = operation->behind;
    else
        queue->first = operation->behind;
    if (operation->behind != NULL)
        operation->behind->ahead = operation->ahead;
    else
        queue->last = operation->ahead;
    operation->queue = NULL;
    operation->ahead = operation->behind = NULL;
    pthread_cond_broadcast(&queue->moved);
}

/* ---- Streams that are moved apart ---- */

/* The stream whose operation another one waits behind, or NULL. */
static const struct stream *in_front_of(const struct stream *stream) {
    const struct operation *operation = stream->current;
    if (operation == NULL || operation->queue == NULL || operation->queue->first == operation)
        return NULL;
    return operation->queue->first->stream;
}

/* The stream that another one waits for, in its queue or because of an event; NULL if it waits for none. */
static const struct stream *next_of(const struct stream *stream) {
    const struct stream *front = in_front_of(stream);
    const struct point *point = stream->waits_for;
    if (front != NULL || point == NULL || point->stream->completed >= point->seq)
        return front;
    return point->stream;
}

/* Whether nothing goes on on any device: each stream that has work waits. */
static bool all_wait(void) {
    for (size_t i = 0; i < contexts.count; i++) {
        const struct context *context = contexts.items[i];
        if (context == NULL || atomic_load(&context->error) != SUCCESS)
            continue;
        for (const struct stream *s = context->streams; s != NULL; s = s->next)
            if (s->completed < s->enqueued && s->host_waits == 0 && next_of(s) == NULL)
                return false;
    }
    return true;
}

/* The stream at the end of a chain of streams of which each waits for the next, if the host holds it. */
static const struct stream *holder_of(const struct stream *stream) {
    enum { LONGEST = 10000 };
    for (int i = 0; stream != NULL && i < LONGEST; i++) {
        if (stream->host_waits > 0)
            return stream;
        stream = next_of(stream);
    }
    return NULL;
}

/* Adds a line about a stream to a file. It is one write, as other processes may write there, too. */
static void report(const struct stream *stream, const struct stream *held) {
    const struct context *context = stream->context;
    const struct stream *front = in_front_of(stream);
    size_t most = context->queue_count / LEVELS, number = (size_t)(stream->current->queue - context->queues) % most;
    char between[64] = "";
    if (front != held)
        snprintf(between, sizeof between, "stream %llu, which waits for ", (unsigned long long)front->id);
    FILE *file = fopen(state.settings.apart, "ae");
    if (file == NULL)
        return;
    fprintf(file, "stream %llu waits behind %sheld stream %llu%s in hardware queue %zu of %zu (device %d, priority %d)\n",
            (unsigned long long)stream->id, between, (unsigned long long)held->id, front != held ? "," : "", number + 1, most,
            context->device, stream->priority);
    fclose(file);
}

/* Gives a stream a queue of its own. */
static void move_apart(struct stream *stream) {
    struct hardware_queue *queue = stream->queue;
    stream->queue = NULL;
    moves++;
    for (struct operation *o = queue == NULL ? NULL : queue->first, *behind; o != NULL; o = behind) {
        behind = o->behind;
        if (o->stream == stream)
            queue_leave(o);
    }
}

/* Puts the streams that were moved apart back into their queues, for all that they are given from now on. */
static void share(void) {
    for (size_t i = 0; i < contexts.count; i++) {
        const struct context *context = contexts.items[i];
        for (struct stream *s = context == NULL ? NULL : context->streams; s != NULL; s = s->next)
            s->queue = s->dealt;
    }
}

/* "share", and "optional 0" or "optional 1": see docs/backends.md. */
int control_queues(const char *command, const char *value) {
    if (strcmp(command, "share") == 0)
        share();
    else if (strcmp(command, "optional") == 0 && value != NULL)
        optional = strcmp(value, "0") != 0;
    else
        return -1;
    return 0;
}

static void wait_a_look(struct hardware_queue *queue, bool *in_vain) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += LOOK_EVERY;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    *in_vain = pthread_cond_timedwait(&queue->moved, &state.lock, &at) == ETIMEDOUT;
    looks += *in_vain;
}

/* Whether a stream has other work than to allocate and free memory, and what a test does not wait for any more. A
 * runtime that waits for memory while a program holds a stream is at fault, which moving it apart would hide. */
static bool has_work(const struct stream *stream) {
    for (const struct operation *o = stream->current; o != NULL; o = o == stream->current ? stream->head : o->next)
        if (!o->of_memory && (!o->optional || optional))
            return true;
    return false;
}

/* Nothing goes on any more: moves apart each stream that waits behind another one and for a stream that the host
 * holds. All at once, so that a test with many such streams gets to its end as soon as one with few. */
static void move_all_apart(void) {
    for (size_t i = 0; i < contexts.count; i++) {
        const struct context *context = contexts.items[i];
        /* All are named before the first one leaves, and others come to the front. */
        for (int named = 0; named < 2; named++)
            for (struct stream *s = context == NULL ? NULL : context->streams; s != NULL; s = s->next) {
                if (!named)
                    s->moves_apart = in_front_of(s) != NULL && has_work(s) && holder_of(s) != NULL;
                if (s->moves_apart && !named)
                    report(s, holder_of(s));
                else if (s->moves_apart)
                    move_apart(s);
            }
    }
}

/* Waits until all that was enqueued before has left. With FAKECUDA_APART the stream is moved apart, and named
 * in that file, when nothing goes on any more and the host holds the stream that it waits for in the end. */
static void queue_wait(struct stream *stream, const struct operation *operation) {
    uint64_t seen = moves;
    int looks = 0;
    while (in_front_of(stream) != NULL && atomic_load(&stream->context->error) == SUCCESS) {
        if (state.settings.apart == NULL) {
            pthread_cond_wait(&operation->queue->moved, &state.lock);
            continue;
        }
        bool in_vain;
        wait_a_look(operation->queue, &in_vain);
        if (moves != seen || !all_wait()) {
            seen = moves;
            looks = 0;
        } else if (in_vain && ++looks >= LOOKS && in_front_of(stream) != NULL)
            move_all_apart();
    }
}

/* A stream begins or ends to wait for the host. */
void wait_begins(struct stream *stream) {
    stream->host_waits++;
    moves++;
}

void wait_ends(struct stream *stream) {
    stream->host_waits--;
    moves++;
}

/* ---- Streams ---- */

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
        table_drop(&streams, stream->handle);
    stream->closed = true;
    if (stream->started)
        pthread_cond_broadcast(&stream->work);
    else
        unlink_stream(stream);
}

/* ---- Operations ---- */

const struct kind wait_kind = {.node = 5};

struct operation *operation_new(const struct kind *kind) {
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
    if (operation->kind->drop != NULL)
        operation->kind->drop(operation);
    free(operation);
}

static void drop_operations(struct stream *stream) {
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

/* Whether only the order with the legacy stream, or what the whole context waits for, holds up what is enqueued now. A
 * record is then pending as an event and no work of its stream: drivers answer so. */
bool held_up_by_order(const struct stream *stream) {
    if (stream->completed < stream->counted)
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
        return stream->capture->recorder->take(stream, operation);
    if (!stream->started) {
        if (start_thread(serve, stream, 512 << 10) != 0) {
            operation_free(operation);
            return UNKNOWN;
        }
        stream->started = true;
    }
    keep_legacy_order(stream, operation);
    operation->seq = ++stream->enqueued;
    if (!operation->unseen)
        stream->counted = operation->seq;
    moves++;
    operation->optional = optional;
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

static atomic_int executing;

bool anything_executes(void) {
    return atomic_load(&executing) > 0;
}

static void begin_executing(void) {
    atomic_fetch_add(&executing, 1);
    while (atomic_load(&ended)) {
        atomic_fetch_sub(&executing, 1);
        for (;;)
            nanosleep(&(struct timespec){3600, 0}, NULL); /* the process ends */
    }
}

static void end_executing(void) {
    atomic_fetch_sub(&executing, 1);
}

CUresult execute(struct stream *stream, struct operation *operation) {
    return operation->kind->run == NULL ? SUCCESS : operation->kind->run(stream, operation);
}

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
    moves++;
    if (operation->kind->reached != NULL)
        operation->kind->reached(stream, operation);
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
    if (operation->kind->leaves_early)
        queue_leave(operation);
    if (!lost(stream)) {
        stream->touching = !operation->kind->of_host;
        if (operation->kind->of_host)
            wait_begins(stream);
        pthread_mutex_unlock(&state.lock);
        begin_executing();
        CUresult code = execute(stream, operation);
        end_executing();
        pthread_mutex_lock(&state.lock);
        stream->touching = false;
        if (operation->kind->of_host)
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


/* ---- Contexts ---- */

/* Returns the context on top of this thread's stack; fails with 201 without one, and
 * with the code of a poisoned one. */
CUresult current_context(struct context **context) {
    if (this_thread()->depth == 0)
        return INVALID_CONTEXT;
    return healthy_context(this_thread()->stack[this_thread()->depth - 1], context);
}

CUresult healthy_context(CUcontext handle, struct context **context) {
    *context = table_get(&contexts, handle);
    return *context == NULL ? INVALID_CONTEXT : atomic_load(&(*context)->error);
}

void wake_all(struct context *context) {
    for (struct stream *s = context->streams; s != NULL; s = s->next) {
        pthread_cond_broadcast(&s->work);
        pthread_cond_broadcast(&s->done);
    }
    pthread_cond_broadcast(&context->job_added);
    queues_wake(context);
}

/* Only the first code has an effect. Pending work is dropped; streams of other contexts
 * that wait for it block for ever, since its place is never reached. */
void poison(struct context *context, CUresult code) {
    if (atomic_load(&context->error) != SUCCESS)
        return;
    atomic_store(&context->error, code);
    if (code != CONTEXT_IS_DESTROYED)
        devices[context->device].error = code;
    for (struct stream *s = context->streams; s != NULL; s = s->next)
        drop_operations(s);
    wake_all(context);
}

CUresult synchronize_context(struct context *context) {
    return wait_streams(context, false);
}

struct context *context_new(int device) {
    struct context *context = calloc(1, sizeof *context);
    if (context == NULL)
        return NULL;
    context->refs = 1;
    context->device = device;
    context->id = ++state.next_id;
    atomic_store(&context->error, devices[device].error);
    pthread_cond_init(&context->job_added, NULL);
    pthread_cond_init(&context->unlocked, NULL);
    queues_new(context);
    context->handle = table_put(&contexts, context);
    context->legacy = stream_new(context, 0, LEAST_PRIORITY, false);
    stream_deal(context->legacy);
    /* Two internal streams: for events recorded on the whole context, and for events
     * that the whole context waits for. They are in no hardware queue. */
    context->fence = stream_new(context, 1, LEAST_PRIORITY, false);
    context->gate = stream_new(context, 1, LEAST_PRIORITY, false);
    return context;
}

void context_unref(struct context *context) {
    if (--context->refs > 0)
        return;
    pthread_cond_destroy(&context->job_added);
    pthread_cond_destroy(&context->unlocked);
    queues_free(context);
    free(context);
}

/* ---- Which stream a call means ---- */

/* Makes the captures of a context invalid; returns whether there is one. */
bool capture_conflicts(const struct context *context, bool only_blocking) {
    bool any = false;
    for (struct stream *s = context->streams; s != NULL; s = s->next) {
        if (s->capture == NULL || (only_blocking && !s->blocking))
            continue;
        s->capture->invalid = true;
        any = true;
    }
    return any;
}

static pthread_key_t own_streams;
static pthread_once_t own_streams_once = PTHREAD_ONCE_INIT;

/* Closes the default streams of a thread that ends. */
static void thread_ends(void *value) {
    struct thread *thread = value;
    if (atomic_load(&ended))
        return;
    pthread_mutex_lock(&state.lock);
    for (int i = 0; i < MAX_DEVICES; i++) {
        struct stream *stream = thread->own[i];
        thread->own[i] = NULL;
        /* A reset has freed the streams of the generation before. */
        if (stream == NULL || thread->generation != state.resets)
            continue;
        if (!stream->closed)
            stream_close(stream);
        stream_unref(stream);
    }
    pthread_mutex_unlock(&state.lock);
}

static void make_key(void) {
    pthread_key_create(&own_streams, thread_ends);
}

/* The default stream of this thread in its current context. */
static CUresult own_stream(struct context *context, struct stream **found) {
    struct thread *thread = this_thread();
    struct stream *stream = thread->own[context->device];
    if (stream != NULL && stream->context != context) {
        stream_unref(stream);
        stream = NULL;
    }
    if (stream == NULL) {
        pthread_once(&own_streams_once, make_key);
        pthread_setspecific(own_streams, thread);
        stream = stream_new(context, 0, LEAST_PRIORITY, true);
        if (stream == NULL)
            return OUT_OF_MEMORY;
        stream_deal(stream);
        stream_ref(stream);
    }
    thread->own[context->device] = stream;
    *found = stream;
    return SUCCESS;
}

/* Finds a stream by its handle, or by a predefined handle in the current context. Fails
 * with the code of a poisoned context. */
CUresult find_stream(CUstream handle, struct stream **stream) {
    struct context *context;
    CUresult code;
    if (handle <= STREAM_PER_THREAD) {
        if ((code = current_context(&context)) != SUCCESS)
            return code;
        if (handle == STREAM_PER_THREAD)
            return own_stream(context, stream);
        *stream = context->legacy;
        /* Work there would wait for the blocking streams, one of which captures. */
        return capture_conflicts(context, true) ? CAPTURE_IMPLICIT : SUCCESS;
    }
    *stream = table_find(&streams, handle);
    return *stream == NULL ? INVALID_HANDLE : atomic_load(&(*stream)->context->error);
}

/* ---- Captures ---- */

void set_tips(size_t **tips, size_t *count, const size_t *from, size_t from_count) {
    size_t *copy = calloc(from_count + 1, sizeof *copy);
    if (copy == NULL)
        abort();
    if (from_count > 0)
        memcpy(copy, from, from_count * sizeof *copy);
    free(*tips);
    *tips = copy;
    *count = from_count;
}
