#include "dispatch.h"

#include <stdatomic.h>
#include <stddef.h>

#include "calls.h"
#include "collected.h"
#include "sites.h"

/* Calls, records, waits and fills that are added to captures without entering Go; package hal has the same layout, see
 * capturecalls.go. Python's lock guards all of it but the word, which Go closes at any time. */
enum { MOST = 1 << 12 };
#define OPEN (UINT64_C(1) << 63)
#define FILLS (UINT64_C(1) << 62)
#define COUNT (FILLS - 1)

typedef struct {
    uint64_t token; /* of a record its number, also of a wait for it; of a fill its address, then its elements */
    uint32_t site;  /* of a fill its site, then its value */
    uint32_t lane;  /* with LINKED: the call is released with the one before it; of a fill secondly BLOCK and above */
} captured;

/* So many calls are linked, so that the thread that releases them does not ask Go about each. More
 * would keep Python's lock too long: finalizers may be called. */
enum { LINKS = 64 };
#define LINKED (UINT32_C(1) << 31)
#define RECORD (UINT32_C(1) << 30)
#define WAIT (UINT32_C(1) << 29)
#define FILL (UINT32_C(1) << 28) /* two in a row */
enum { FILL_CALLS = 2, BLOCK_BITS = 24 };

static struct {
    _Atomic uint64_t word; /* how many there are, with OPEN while more are taken, and with FILLS while fills are, too */
    uint64_t capture;      /* its number; Go sets it with the word */
    captured calls[MOST];
} list;

/* The streams of one capture whose calls the list takes, with the numbers that Go has for them. */
enum { STREAMS = 8 };
static struct {
    int64_t stream;
    uint32_t lane;
} streams[STREAMS];
static uint32_t stream_count, latest, replaced; /* the one found last, and the one that had to go last */
static uint64_t records;                        /* how many there were so far, in all captures */

/* The memory that fills of the capture lie in, by the addresses that they begin at, with the numbers that Go has for the
 * blocks. Go takes FILLS away as it frees any memory, and has all of them forgotten before it gives FILLS back: none of
 * them is freed while it is there. */
enum { ADDRESSES = 1 << HALSTREAM_ADDRESS_BITS };
static struct {
    uint64_t start, size, generation;
    uint32_t block;
} blocks[ADDRESSES];
static uint64_t generation = 1; /* of those that are not forgotten */

/* The call that was added last and how many are linked up to it, 0: the next one begins anew. */
static hs_call *last;
static uint32_t links;

void *halstream_capture_list(void) { return &list; }

/* Finds a stream, and reports whether calls of it are taken. */
static int find(int64_t stream)
{
    if (latest < stream_count && streams[latest].stream == stream) return 1;
    for (latest = 0; latest < stream_count && streams[latest].stream != stream;) latest++;
    return latest < stream_count;
}

/* Reports whether Go has to be told that a stream was collected, with which its capture ends. */
static int stream_was_dropped(void) { return __atomic_load_n(&halstream_noted, __ATOMIC_ACQUIRE) != 0; }

void halstream_capture_takes(int64_t stream, uint32_t lane, int fresh)
{
    if (fresh) stream_count = links = 0; /* what was added before belongs to another graph */
    if (find(stream)) return; /* the list was full */
    latest = stream_count < STREAMS ? stream_count++ : (replaced = (replaced + 1) % STREAMS);
    streams[latest].stream = stream;
    streams[latest].lane = lane;
}

int halstream_capture_add(int64_t stream, hs_call *c)
{
    /* First: a frame that is made may collect garbage, and finalizers may make calls. */
    uint32_t site = halstream_line();
    if (site == 0 || !find(stream)) return 0;
    if (stream_was_dropped()) return 0; /* Go ends the capture */
    uint64_t n = atomic_load_explicit(&list.word, memory_order_relaxed);
    if (n < OPEN || (n & COUNT) == MOST) return 0;
    uint32_t linked = links > 0 && links < LINKS ? LINKED : 0;
    list.calls[n & COUNT] = (captured){(uint64_t)c->token, site, streams[latest].lane | linked};
    if (!atomic_compare_exchange_strong(&list.word, &n, n + 1)) return 0;
    halstream_call_keep(c);
    if (linked) last->linked = c;
    links = linked ? links + 1 : 1;
    last = c;
    return 1;
}

uint64_t halstream_capture_number(void) { return ++records; }

/* Adds a record or a wait; 0 if Go has to be asked. */
static int add_entry(int64_t stream, uint64_t number, uint32_t kind)
{
    if (!find(stream) || stream_was_dropped()) return 0;
    uint64_t n = atomic_load_explicit(&list.word, memory_order_relaxed);
    if (n < OPEN || (n & COUNT) == MOST) return 0;
    list.calls[n & COUNT] = (captured){number, 0, streams[latest].lane | kind};
    return atomic_compare_exchange_strong(&list.word, &n, n + 1);
}

int halstream_capture_record(int64_t stream)
{
    if (!add_entry(stream, records + 1, RECORD)) return 0;
    halstream_recorded = (halstream_place){NULL, halstream_capture_number(), list.capture};
    return 1;
}

int halstream_capture_wait(int64_t stream, uint64_t capture, uint64_t number)
{
    return capture == list.capture && add_entry(stream, number, WAIT);
}

void halstream_capture_fills(uint64_t dst, uint64_t start, uint64_t size, uint32_t block, int fresh)
{
    if (fresh) generation++;
    uint32_t at = halstream_address_place(dst);
    blocks[at].start = start;
    blocks[at].size = size;
    blocks[at].block = block;
    blocks[at].generation = generation;
}

int64_t halstream_capture_fill(int64_t stream, uint64_t dst, uint32_t value, uint32_t size, uint64_t count)
{
    uint64_t n = atomic_load_explicit(&list.word, memory_order_relaxed);
    if (n < (OPEN | FILLS)) return 0; /* as nearly always */
    uint32_t site = halstream_line(); /* before all else, as in halstream_capture_add */
    n = atomic_load_explicit(&list.word, memory_order_relaxed);
    if (site == 0 || n < (OPEN | FILLS) || (n & COUNT) + FILL_CALLS > MOST || !find(stream) || stream_was_dropped()) return 0;
    uint32_t at = halstream_address_place(dst);
    uint64_t before = dst - blocks[at].start, left = blocks[at].size - before;
    if (blocks[at].generation != generation || before >= blocks[at].size) return 0;
    if ((size != 1 && size != 2 && size != 4) || dst % size != 0 || count == 0 || count > left / size) return 0;
    uint32_t lane = streams[latest].lane, block = blocks[at].block;
    list.calls[n & COUNT] = (captured){dst, site, lane | FILL};
    list.calls[(n & COUNT) + 1] = (captured){count, value, block | size << BLOCK_BITS | FILL};
    return atomic_compare_exchange_strong(&list.word, &n, n + FILL_CALLS) ? (int64_t)list.capture : 0;
}
