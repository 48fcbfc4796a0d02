/* A table from handles to what C knows. Its memory is never given back, so a reader needs no lock. */
#include "known.h"

#include <stdlib.h>

#include "thread.h"

/* As Go builds handles: the place in the table is in the bits from PLACE on, below TURN. */
enum { PLACE = 4, TURN = 28, CHUNK_BITS = 10, CHUNKS = 1 << 12 };

/* Bits of the words of a stream, as in package status: an error waits to be reported, the stream is closed, and
 * its calls need a context. */
enum { FAILED = 1, CLOSED = 2, BOUND = 4 };

enum { SPIN_NS = 20000 }; /* for how long a thread looks for the end of functions before it sleeps */

static lookalike_known *chunks[CHUNKS];
const uint32_t *lookalike_word;

static lookalike_known *entry(uint64_t handle, int makes)
{
    uint64_t place = handle >> PLACE & ((1u << (TURN - PLACE)) - 1);
    if (place >> CHUNK_BITS >= CHUNKS) return NULL;
    lookalike_known **at = &chunks[place >> CHUNK_BITS], *chunk = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    if (chunk == NULL) {
        lookalike_known *made = makes ? calloc(1 << CHUNK_BITS, sizeof *made) : NULL;
        if (made == NULL) return NULL;
        if (__atomic_compare_exchange_n(at, &chunk, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) chunk = made;
        else free(made);
    }
    return &chunk[place & ((1 << CHUNK_BITS) - 1)];
}

lookalike_known *lookalike_entry(uint64_t handle) { return entry(handle, 1); }

/* Copies what is known of a handle of one kind; 0 where nothing is. */
static int look(uint64_t handle, int of_event, lookalike_known *seen)
{
    const lookalike_known *k = entry(handle, 0);
    if (k == NULL) return 0;
    uint64_t version = __atomic_load_n(&k->version, __ATOMIC_ACQUIRE);
    seen->words = __atomic_load_n(&k->words, __ATOMIC_RELAXED);
    seen->place = __atomic_load_n(&k->place, __ATOMIC_RELAXED);
    seen->context = __atomic_load_n(&k->context, __ATOMIC_RELAXED);
    seen->queue = __atomic_load_n(&k->queue, __ATOMIC_RELAXED);
    seen->ordinal = __atomic_load_n(&k->ordinal, __ATOMIC_RELAXED);
    int same = __atomic_load_n(&k->handle, __ATOMIC_RELAXED) == handle;
    same = same && __atomic_load_n(&k->of_event, __ATOMIC_RELAXED) == of_event && seen->words != NULL;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return same && version % 2 == 0 && __atomic_load_n(&k->version, __ATOMIC_RELAXED) == version;
}

/* The same where C may answer a call, else 0. */
static int see(uint64_t handle, int of_event, lookalike_known *seen)
{
    const uint32_t *word = __atomic_load_n(&lookalike_word, __ATOMIC_ACQUIRE);
    if (word == NULL || __atomic_load_n(word, __ATOMIC_ACQUIRE) != 0 || lookalike_forked || lookalike_self.inside)
        return 0;
    return look(handle, of_event, seen);
}

static uint32_t special(const halstream_status *words) { return __atomic_load_n(&words->special, __ATOMIC_ACQUIRE); }

/* An error is noted before the work that has failed counts as done, so it is looked at afterwards. */
static int plain(const halstream_status *words) { return (special(words) & (FAILED | CLOSED)) == 0; }

/* Whether the words of a stream are still its own: when it has ended they go to another one. */
static int owns(const lookalike_known *stream)
{
    return plain(stream->words) && __atomic_load_n(&stream->words->id, __ATOMIC_ACQUIRE) == stream->place;
}

/* Whether functions are added to the last operation of a stream without being enqueued. */
static int grows(const halstream_status *words) { return __atomic_load_n(&words->growing, __ATOMIC_ACQUIRE) != 0; }

/* 1 if nothing is pending, 0 if only functions are that can grow in number, -1 for anything else. */
static int pending(const lookalike_known *stream)
{
    const halstream_status *w = stream->words;
    int growing = grows(w);
    uint64_t done = __atomic_load_n(&w->completed, __ATOMIC_ACQUIRE);
    uint64_t left = __atomic_load_n(&w->submitted, __ATOMIC_ACQUIRE) - done;
    if (left == 0) return 1;
    if (left != 1 || !growing || stream->queue == NULL) return -1;
    return lookalike_functions_ended(stream->queue);
}

int lookalike_stream_idle(uint64_t handle)
{
    lookalike_known stream;
    if (!see(handle, 0, &stream)) return -1;
    int idle = pending(&stream) == 1;
    return owns(&stream) ? idle : -1;
}

int lookalike_functions_done(uint64_t handle)
{
    lookalike_known stream;
    return look(handle, 0, &stream) && owns(&stream) && pending(&stream) == 1;
}

int lookalike_stream_finished(uint64_t handle)
{
    lookalike_known stream;
    int64_t began = 0;
    while (see(handle, 0, &stream) && owns(&stream)) {
        for (int i = 0; i < 64; i++) {
            int state = pending(&stream);
            if (state < 0) return 0;
            if (state) return owns(&stream);
            lookalike_pause();
        }
        if (began == 0) began = lookalike_now();
        if (lookalike_now() - began > SPIN_NS) return 0;
    }
    return 0;
}

int lookalike_event_done(uint64_t handle)
{
    lookalike_known event;
    if (!see(handle, 1, &event)) return -1;
    int done = __atomic_load_n(&event.words->completed, __ATOMIC_ACQUIRE) >= event.place;
    return plain(event.words) ? done : -1;
}

/* Looks at a stream on which the calling thread may enqueue; 0 where Go has to tell. */
static int open_to_caller(uint64_t handle, lookalike_known *stream)
{
    return see(handle, 0, stream) && stream->context == lookalike_self.context && owns(stream) &&
           (special(stream->words) & ~(uint32_t)BOUND) == 0;
}

int lookalike_wait_event(uint64_t stream, uint64_t event)
{
    lookalike_known at, awaited;
    return open_to_caller(stream, &at) && see(event, 1, &awaited) && awaited.ordinal >= 0 &&
           lookalike_event_done(event) == 1;
}

int lookalike_record(uint64_t event, uint64_t stream)
{
    lookalike_known at;
    if (!open_to_caller(stream, &at)) return 0;
    const halstream_status *words = at.words;
    /* Neither functions that are added to the last operation, nor work of the legacy stream, move the place. */
    if (grows(words) || (words->order != NULL && __atomic_load_n(words->order, __ATOMIC_ACQUIRE) != 0)) return 0;
    lookalike_known *k = entry(event, 0);
    if (k == NULL) return 0;
    uint64_t version = __atomic_load_n(&k->version, __ATOMIC_RELAXED);
    if (version % 2 || !__atomic_compare_exchange_n(&k->version, &version, version + 1, 0, __ATOMIC_ACQ_REL,
                                                    __ATOMIC_RELAXED))
        return 0; /* another thread records it, too */
    int ours = k->handle == event && k->of_event && k->ordinal == words->ordinal;
    uint64_t place = __atomic_load_n(&words->submitted, __ATOMIC_ACQUIRE);
    /* If another thread has launched a function meanwhile, the place would take in what is added to it later. */
    ours = ours && !grows(words);
    if (ours) {
        __atomic_store_n(&k->words, words, __ATOMIC_RELAXED);
        __atomic_store_n(&k->place, place, __ATOMIC_RELAXED);
        __atomic_store_n(&k->ahead, stream, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&k->version, version + 2, __ATOMIC_RELEASE);
    return ours;
}

int lookalike_add(uint64_t stream, uintptr_t function, uintptr_t argument, int reports)
{
    lookalike_known at;
    return function != 0 && open_to_caller(stream, &at) && at.queue != NULL && grows(at.words) &&
           lookalike_queue_add(at.queue, stream, function, argument, reports);
}
