/* A table from handles to what C knows. Its memory is never given back, so a reader needs no lock. */
#include "known.h"

#include <stdlib.h>

#include "thread.h"

/* As Go builds handles: the place in the table is in the bits from PLACE on, below TURN. */
enum { PLACE = 4, TURN = 28, CHUNK_BITS = 10, CHUNKS = 1 << 12 };

/* Bits of the words of a stream, as in package status: an error waits to be reported, and the stream is closed. */
enum { FAILED = 1, CLOSED = 2 };

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

/* The words for a handle of one kind, and the place; NULL where Go has to tell. */
static const halstream_status *find(uint64_t handle, int of_event, uint64_t *place)
{
    const uint32_t *word = __atomic_load_n(&lookalike_word, __ATOMIC_ACQUIRE);
    if (word == NULL || __atomic_load_n(word, __ATOMIC_ACQUIRE) != 0 || lookalike_forked || lookalike_self.inside)
        return NULL;
    const lookalike_known *k = entry(handle, 0);
    if (k == NULL) return NULL;
    uint64_t version = __atomic_load_n(&k->version, __ATOMIC_ACQUIRE);
    const halstream_status *words = __atomic_load_n(&k->words, __ATOMIC_RELAXED);
    *place = __atomic_load_n(&k->place, __ATOMIC_RELAXED);
    int same = __atomic_load_n(&k->handle, __ATOMIC_RELAXED) == handle;
    same = same && __atomic_load_n(&k->of_event, __ATOMIC_RELAXED) == of_event;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return same && version % 2 == 0 && __atomic_load_n(&k->version, __ATOMIC_RELAXED) == version ? words : NULL;
}

/* An error is noted before the work that has failed counts as done, so it is looked at afterwards. */
static int plain(const halstream_status *words)
{
    return (__atomic_load_n(&words->special, __ATOMIC_ACQUIRE) & (FAILED | CLOSED)) == 0;
}

int lookalike_stream_idle(uint64_t handle)
{
    uint64_t id;
    const halstream_status *words = find(handle, 0, &id);
    if (words == NULL) return -1;
    uint64_t done = __atomic_load_n(&words->completed, __ATOMIC_ACQUIRE);
    int idle = done == __atomic_load_n(&words->submitted, __ATOMIC_ACQUIRE);
    /* The words of a stream that ended go to another one. */
    return plain(words) && __atomic_load_n(&words->id, __ATOMIC_ACQUIRE) == id ? idle : -1;
}

int lookalike_event_done(uint64_t handle)
{
    uint64_t place;
    const halstream_status *words = find(handle, 1, &place);
    if (words == NULL) return -1;
    int done = __atomic_load_n(&words->completed, __ATOMIC_ACQUIRE) >= place;
    return plain(words) ? done : -1;
}
