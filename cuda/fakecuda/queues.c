/* The hardware queues that streams share, and which stream waits in one behind which. */
#include "fakecuda.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

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

void queues_new(struct context *context) {
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

void queues_free(struct context *context) {
    for (size_t i = 0; i < context->queue_count; i++)
        pthread_cond_destroy(&context->queues[i].moved);
    free(context->queues);
}

void queues_wake(struct context *context) {
    for (size_t i = 0; i < context->queue_count; i++)
        pthread_cond_broadcast(&context->queues[i].moved);
    pthread_cond_broadcast(&context->unlocked);
}

/* The streams of a level are dealt out in turn, as they are made. */
void queue_deal(struct stream *stream) {
    struct context *context = stream->context;
    size_t most = context->queue_count / LEVELS, level = 0;
    if (most == 0)
        return;
    if (state.settings.priority_queues)
        level = (size_t)(stream->priority - GREATEST_PRIORITY);
    stream->queue = stream->dealt = &context->queues[level * most + context->dealt[level]++ % most];
}

void queue_enter(struct stream *stream, struct operation *operation) {
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

void queue_leave(struct operation *operation) {
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
    for (size_t i = 0; i < state.contexts.count; i++) {
        const struct context *context = state.contexts.items[i];
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
    state.moves++;
    for (struct operation *o = queue == NULL ? NULL : queue->first, *behind; o != NULL; o = behind) {
        behind = o->behind;
        if (o->stream == stream)
            queue_leave(o);
    }
}

/* Puts the streams that were moved apart back into their queues, for all that they are given from now on. */
static void share(void) {
    for (size_t i = 0; i < state.contexts.count; i++) {
        const struct context *context = state.contexts.items[i];
        for (struct stream *s = context == NULL ? NULL : context->streams; s != NULL; s = s->next)
            s->queue = s->dealt;
    }
}

/* "share", and "optional 0" or "optional 1": see docs/backends.md. */
int control_queues(const char *command, const char *value) {
    if (strcmp(command, "share") == 0)
        share();
    else if (strcmp(command, "optional") == 0 && value != NULL)
        state.optional = strcmp(value, "0") != 0;
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
    state.looks += *in_vain;
}

/* Whether a stream has other work than to allocate and free memory, and what a test does not wait for any more. A
 * runtime that waits for memory while a program holds a stream is at fault, which moving it apart would hide. */
static bool has_work(const struct stream *stream) {
    for (const struct operation *o = stream->current; o != NULL; o = o == stream->current ? stream->head : o->next)
        if (!o->of_memory && (!o->optional || state.optional))
            return true;
    return false;
}

/* Nothing goes on any more: moves apart each stream that waits behind another one and for a stream that the host
 * holds. All at once, so that a test with many such streams gets to its end as soon as one with few. */
static void move_all_apart(void) {
    for (size_t i = 0; i < state.contexts.count; i++) {
        const struct context *context = state.contexts.items[i];
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
void queue_wait(struct stream *stream, const struct operation *operation) {
    uint64_t seen = state.moves;
    int looks = 0;
    while (in_front_of(stream) != NULL && atomic_load(&stream->context->error) == SUCCESS) {
        if (state.settings.apart == NULL) {
            pthread_cond_wait(&operation->queue->moved, &state.lock);
            continue;
        }
        bool in_vain;
        wait_a_look(operation->queue, &in_vain);
        if (state.moves != seen || !all_wait()) {
            seen = state.moves;
            looks = 0;
        } else if (in_vain && ++looks >= LOOKS && in_front_of(stream) != NULL)
            move_all_apart();
    }
}

/* A stream begins or ends to wait for the host. */
void wait_begins(struct stream *stream) {
    stream->host_waits++;
    state.moves++;
}

void wait_ends(struct stream *stream) {
    stream->host_waits--;
    state.moves++;
}
