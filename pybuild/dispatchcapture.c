#include "dispatch.h"

#include <stddef.h>

#include "sites.h"

/* Calls that are added to captures without entering Go; package hal has the same layout, see
 * capturecalls.go. Python's lock guards all of it but the word, which Go closes at any time. */
enum { MOST = 1 << 10 };
#define OPEN (UINT64_C(1) << 63)

typedef struct {
    uint64_t token;
    uint32_t site;
    uint32_t lane;
} captured;

static struct {
    _Atomic uint64_t word; /* how many calls there are, with OPEN while more are taken */
    captured calls[MOST];
} list;

/* The streams whose calls the list takes, with the numbers that Go has for them. */
enum { STREAMS = 8 };
static struct {
    int64_t stream;
    uint32_t lane;
} streams[STREAMS];
static uint32_t stream_count, latest;

void *halstream_capture_list(void) { return &list; }

void halstream_capture_takes(int64_t stream, uint32_t lane, int fresh)
{
    if (fresh) stream_count = 0;
    latest = stream_count < STREAMS ? stream_count++ : (latest + 1) % STREAMS;
    streams[latest].stream = stream;
    streams[latest].lane = lane;
}

int halstream_capture_add(int64_t stream, hs_call *c)
{
    /* First: a frame that is made may collect garbage, and finalizers may make calls. */
    uint32_t site = halstream_line_of(c->at.code, c->at.instruction);
    if (site == 0) return 0;
    if (latest >= stream_count || streams[latest].stream != stream) {
        for (latest = 0; latest < stream_count && streams[latest].stream != stream;) latest++;
        if (latest == stream_count) {
            latest = 0;
            return 0;
        }
    }
    uint64_t n = atomic_load_explicit(&list.word, memory_order_relaxed);
    if (n < OPEN || n == (OPEN | MOST)) return 0;
    hs_burst *b = halstream_burst_new(c, &c->next, BURST_SEALED | 1);
    if (b == NULL) return 0;
    list.calls[n & ~OPEN] = (captured){(uint64_t)b->token, site, streams[latest].lane};
    if (!atomic_compare_exchange_strong(&list.word, &n, n + 1)) {
        b->first = NULL; /* the call stays its caller's */
        halstream_burst_free(b);
        return 0;
    }
    halstream_burst_keep(b->token);
    return 1;
}
