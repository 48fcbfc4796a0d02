/* The functions of halstream.h: what can be answered from the words that the core
 * shares is answered here, everything else enters Go (api*.go). */
#include "apicall.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "sites.h"
#include "unstable.h"

/* CPython's function, by name as in caller.go. */
extern void *PyGILState_GetThisThreadState(void) __attribute__((weak));

enum { LISTENED = 1 }; /* a bit of *halstream_slow, see package status */

halstream_known *halstream_known_chunks[KNOWN_CHUNKS];
halstream_status halstream_idle_words;
uint64_t halstream_generation;

_Thread_local halstream_kept *halstream_mine;
static pthread_key_t key;

static void thread_ends(void *kept)
{
    halstream_mine = NULL;
    free(kept);
}

__attribute__((constructor)) static void prepare(void) { pthread_key_create(&key, thread_ends); }

halstream_kept *halstream_keep_for_thread(void)
{
    halstream_mine = calloc(1, sizeof *halstream_mine);
    if (halstream_mine != NULL) pthread_setspecific(key, halstream_mine);
    return halstream_mine;
}

void halstream_set_error(const char *text, size_t size)
{
    halstream_kept *kept = halstream_kept_here();
    if (kept == NULL) return;
    if (size >= sizeof kept->error) size = sizeof kept->error - 1;
    memcpy(kept->error, text, size);
    kept->error[size] = 0;
}

int api_refuse(int code, const char *text)
{
    halstream_set_error(text, strlen(text));
    return code;
}

static const char *api_error_text(void) { return halstream_mine ? halstream_mine->error : ""; }

/* Until 3.11 the current thread state is that of whoever holds the lock. */
static int holds_lock(void)
{
    if (halstream_self.released || !PyGILState_GetThisThreadState) return 0;
    void *current = halstream_unstable.thread_state ? halstream_unstable.thread_state() : NULL;
    return current != NULL && current == PyGILState_GetThisThreadState();
}

int api_unusable(void)
{
    if (__builtin_expect(halstream_forked, 0))
        return api_refuse(HALSTREAM_FORKED, "this process was forked after halstream was loaded, and the runtime's threads "
                                        "stayed in the parent; start processes with the 'spawn' method instead");
    if (__builtin_expect(halstream_is_over(), 0))
        return api_refuse(HALSTREAM_SHUT_DOWN, "the interpreter is ending and the runtime has shut down");
    return 0;
}

int64_t api_enter(void)
{
    int holds = holds_lock();
    if (holds) {
        halstream_caller = &halstream_self;
        halstream_self.direct = 1;
    } else {
        halstream_self.released++;
        halstream_self.unlocked++;
    }
    return (int64_t)halstream_self.slot << WHO_SHIFT | holds;
}

int api_leave(int64_t who, int code)
{
    if (who & WHO_HOLDS) {
        halstream_self.direct = 0;
    } else {
        halstream_self.released--;
        halstream_self.unlocked--;
    }
    return code;
}

int api_in_function(void)
{
    return api_refuse(HALSTREAM_IN_HOST_FUNCTION, "a function that runs on a stream may not call the runtime (the vendors "
                                              "forbid it: it would wait for itself); return first");
}


/* -- what needs no Go -- */

static inline halstream_known *known(halstream_id id)
{
    uint32_t slot = (uint32_t)(id >> 4) & ((1u << 24) - 1);
    halstream_known *chunk = __atomic_load_n(&halstream_known_chunks[slot >> KNOWN_CHUNK_BITS], __ATOMIC_ACQUIRE);
    if (chunk == NULL) return NULL;
    halstream_known *k = &chunk[slot & ((1u << KNOWN_CHUNK_BITS) - 1)];
    return __atomic_load_n(&k->id, __ATOMIC_ACQUIRE) == id && id != 0 ? k : NULL;
}

/* No listener, no schedule and no function of a stream is to be considered. */
static inline int fast(void)
{
    return __atomic_load_n(halstream_slow, __ATOMIC_ACQUIRE) == 0 && !halstream_self.inside && !halstream_self.native;
}

static inline int special(const halstream_status *w) { return __atomic_load_n(&w->special, __ATOMIC_ACQUIRE) != 0; }

/* The words of an open stream with nothing special about it, NULL if it is none. */
static inline const halstream_status *plain_stream(halstream_id stream)
{
    halstream_known *k = known(stream);
    if (k == NULL) return NULL;
    const halstream_status *w = __atomic_load_n(&k->words, __ATOMIC_ACQUIRE);
    if (w == NULL || __atomic_load_n(&w->id, __ATOMIC_ACQUIRE) != (uint64_t)stream || special(w)) return NULL;
    return w;
}

static inline int idle(const halstream_status *w)
{
    uint64_t done = __atomic_load_n(&w->completed, __ATOMIC_ACQUIRE);
    return done == __atomic_load_n(&w->submitted, __ATOMIC_ACQUIRE);
}

/* A record that is made now stands for the operations that were enqueued so far, and for nothing
 * else: the legacy default stream does not come first, and no function is added to the last one. */
static inline int record_is_plain(const halstream_status *w)
{
    return __atomic_load_n(&w->growing, __ATOMIC_ACQUIRE) == 0 &&
           (w->order == NULL || __atomic_load_n(w->order, __ATOMIC_ACQUIRE) == 0);
}

/* 1 if the latest record of an event is known to be done, 0 if it is known not to be, -1 if only the
 * core can tell. */
static inline int event_done(halstream_id event)
{
    halstream_known *k = known(event);
    if (k == NULL) return -1;
    const halstream_status *w = __atomic_load_n(&k->words, __ATOMIC_ACQUIRE);
    if (w == NULL) return -1;
    uint64_t place = __atomic_load_n(&k->place, __ATOMIC_ACQUIRE);
    int done = __atomic_load_n(&w->completed, __ATOMIC_ACQUIRE) >= place;
    if (__atomic_load_n(&k->words, __ATOMIC_ACQUIRE) != w || __atomic_load_n(&k->id, __ATOMIC_ACQUIRE) != event) return -1;
    return done;
}

static int api_event_record(halstream_id event, halstream_id stream)
{
    if (fast()) {
        const halstream_status *w = plain_stream(stream);
        halstream_known *k = known(event);
        uint32_t unlocked = 0;
        if (w != NULL && k != NULL && k->plain && k->ordinal == w->ordinal && record_is_plain(w) &&
            __atomic_compare_exchange_n(&k->lock, &unlocked, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            int open = __atomic_load_n(&k->id, __ATOMIC_ACQUIRE) == event; /* or the slot has another event now */
            uint64_t place = __atomic_load_n(&w->submitted, __ATOMIC_ACQUIRE);
            open = open && record_is_plain(w); /* or another thread has enqueued a function that others are added to */
            if (open) {
                __atomic_store_n(&k->words, NULL, __ATOMIC_RELEASE);
                __atomic_store_n(&k->place, place, __ATOMIC_RELEASE);
                __atomic_store_n(&k->stream, stream, __ATOMIC_RELEASE);
                __atomic_store_n(&k->ahead, 1, __ATOMIC_RELEASE);
                __atomic_store_n(&k->words, w, __ATOMIC_RELEASE);
            }
            __atomic_store_n(&k->lock, 0, __ATOMIC_RELEASE);
            if (open) return HALSTREAM_OK;
        }
    }
    ENTER_GO(halstreamEventRecord(who, event, stream));
}

static int api_stream_wait_event(halstream_id stream, halstream_id event)
{
    if (fast() && event_done(event) == 1 && plain_stream(stream) != NULL) return HALSTREAM_OK;
    ENTER_GO(halstreamStreamWaitEvent(who, stream, event));
}

static int api_stream_wait_stream(halstream_id stream, halstream_id other)
{
    if (fast() && plain_stream(stream) != NULL) {
        const halstream_status *o = plain_stream(other);
        if (o != NULL && (stream == other || idle(o))) return HALSTREAM_OK;
    }
    ENTER_GO(halstreamStreamWaitStream(who, stream, other));
}

static int api_stream_query(halstream_id stream, int *done)
{
    NEED(done);
    if (fast()) {
        const halstream_status *w = plain_stream(stream);
        if (w != NULL) {
            int is_idle = idle(w);
            if (!special(w)) {
                *done = is_idle;
                return HALSTREAM_OK;
            }
        }
    }
    ENTER_GO(halstreamStreamQuery(who, stream, done));
}

static int api_stream_synchronize(halstream_id stream, int64_t timeout_ns)
{
    if (fast()) {
        const halstream_status *w = plain_stream(stream);
        if (w != NULL && idle(w) && !special(w)) return HALSTREAM_OK;
    }
    ENTER_GO(halstreamStreamSynchronize(who, stream, timeout_ns));
}

static int api_event_query(halstream_id event, int *done)
{
    NEED(done);
    if (fast()) {
        int known_done = event_done(event);
        if (known_done >= 0) {
            *done = known_done;
            return HALSTREAM_OK;
        }
    }
    ENTER_GO(halstreamEventQuery(who, event, done));
}

static uint64_t api_generation(void) { return __atomic_load_n(&halstream_generation, __ATOMIC_ACQUIRE); }

static uint32_t api_site_here(void)
{
    if (halstream_forked || halstream_is_over() || !holds_lock()) return 0;
    halstream_caller = &halstream_self;
    if (halstream_self.slot == 0) halstreamRegister(WHO_HOLDS);
    return halstream_site_of(0); /* the innermost frame may be the program's */
}

static int api_listening(void)
{
    if (halstream_forked || halstream_is_over()) return 0;
    /* A capture keeps the places of calls as well. */
    return (__atomic_load_n(halstream_slow, __ATOMIC_ACQUIRE) & LISTENED) != 0 ||
           __atomic_load_n(&halstream_lines, __ATOMIC_RELAXED) != 0;
}

/* Operators ask before each call: without a capture Go is not entered. */
static int api_capture_of(halstream_id stream, uint64_t *capture)
{
    if (!capture || halstream_forked || halstream_is_over() || halstream_self.native ||
        __atomic_load_n(halstream_slow, __ATOMIC_ACQUIRE) & HALSTREAM_CAPTURED)
        return api_stream_capture(stream, capture);
    *capture = 0;
    return HALSTREAM_OK;
}

static const halstream_api api = {
    .size = sizeof(halstream_api),
    .version = HALSTREAM_API_VERSION,
    .error_text = api_error_text,
    .device_count = api_device_count,
    .device_name = api_device_name,
    .device_memory = api_device_memory,
    .device_synchronize = api_device_synchronize,
    .device_now = api_device_now,
    .generation = api_generation,
    .stream_new = api_stream_new,
    .stream_default = api_stream_default,
    .stream_close = api_stream_close,
    .stream_device = api_stream_device,
    .stream_priority = api_stream_priority,
    .stream_query = api_stream_query,
    .stream_synchronize = api_stream_synchronize,
    .stream_wait_event = api_stream_wait_event,
    .stream_wait_stream = api_stream_wait_stream,
    .stream_handle = api_stream_handle,
    .event_new = api_event_new,
    .event_close = api_event_close,
    .event_record = api_event_record,
    .event_record_new = api_event_record_new,
    .event_query = api_event_query,
    .event_synchronize = api_event_synchronize,
    .event_elapsed = api_event_elapsed,
    .enqueue = api_enqueue,
    .copy = api_copy,
    .copy_rows = api_copy_rows,
    .fill = api_fill,
    .nop = api_nop,
    .delay = api_delay,
    .gate_new = api_gate_new,
    .gate_open = api_gate_open,
    .block_new = api_block_new,
    .block_new_host = api_block_new_host,
    .block_record_stream = api_block_record_stream,
    .block_free = api_block_free,
    .memory_stats = api_memory_stats,
    .memory_reset_peaks = api_memory_reset_peaks,
    .memory_empty_cache = api_memory_empty_cache,
    .memory_kind = api_memory_kind,
    .host_access = api_host_access,
    .site_here = api_site_here,
    .site_new = halstream_given_site,
    .listening = api_listening,
    .block_new_in_order = api_block_new_in_order,
    .stream_drain = api_stream_drain,
    .stream_capture = api_capture_of,
};

__attribute__((visibility("default"))) const halstream_api *halstream_get_api(uint32_t version)
{
    return version >= 1 && version <= HALSTREAM_API_VERSION ? &api : NULL;
}
