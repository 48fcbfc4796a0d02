#include "calls.h"
#include "dispatch.h"

#include <stdlib.h>
#include <string.h>

/* A stream's place in the table of bursts that grow, by the slot of its id. */
typedef struct {
    int64_t stream;
    hs_burst *growing;
} lane;

/* The bits of an id, see ids.go. */
enum { ID_LOW = 4, ID_SLOT = 24 };

static lane *lanes;
static uint32_t lane_room;

/* Slot 0 stays empty: 0 is no token. */
static hs_burst **bursts;
static uint32_t burst_count = 1, burst_room;
/* They are allocated together: none is given back, and a capture takes one for each call. */
enum { TOGETHER = 64 };
static hs_burst *together;
static uint32_t together_left;
static uint32_t *unused;
static uint32_t unused_count;

/* Calls with few arguments are kept for the next ones. */
enum { FEW = 2, KEPT = 4096 };
static hs_call *spare;
static uint32_t spare_count;

int64_t halstream_calls_pending, halstream_calls_kept;

hs_call *halstream_call_new(object *function, object *const *values, intptr_t n, object *names, int checked)
{
    hs_call *c = NULL;
    if (n <= FEW && spare != NULL) {
        c = spare;
        spare = c->next;
        spare_count--;
    } else {
        c = malloc(sizeof *c + (size_t)(1 + (n < FEW ? FEW : n)) * sizeof(object *));
        if (c == NULL) return NULL;
    }
    c->next = NULL;
    c->function = function;
    c->names = names;
    c->count = (uint32_t)n;
    c->checked = (uint32_t)checked;
    c->at = function != NULL ? halstream_callplace() : (callplace){NULL, 0};
    if (function != NULL) Py_IncRef(function);
    if (names != NULL) Py_IncRef(names);
    c->values[0] = NULL;
    for (intptr_t i = 0; i < n; i++) {
        Py_IncRef(values[i]);
        c->values[i + 1] = values[i];
    }
    halstream_calls_pending++;
    return c;
}

/* Lets go of what a call refers to. The finalizers that this runs may make calls. */
void halstream_call_free(hs_call *c)
{
    halstream_calls_pending--;
    if (c->function != NULL) Py_DecRef(c->function);
    if (c->names != NULL) Py_DecRef(c->names);
    if (c->at.code != NULL) Py_DecRef(c->at.code);
    for (uint32_t i = 1; i <= c->count; i++) Py_DecRef(c->values[i]);
    if (c->count <= FEW && spare_count < KEPT) {
        c->next = spare;
        spare = c;
        spare_count++;
    } else {
        free(c);
    }
}

void halstream_calls_free(hs_call *c)
{
    while (c != NULL) { /* finalizers may make calls and bursts */
        hs_call *next = c->next;
        halstream_call_free(c);
        c = next;
    }
}

static int more_bursts(void)
{
    uint32_t room = burst_room ? burst_room * 2 : 64;
    hs_burst **list = realloc(bursts, room * sizeof *list);
    if (list == NULL) return 0;
    bursts = list;
    uint32_t *free_list = realloc(unused, room * sizeof *free_list);
    if (free_list == NULL) return 0;
    unused = free_list;
    burst_room = room;
    return 1;
}

hs_burst *halstream_burst_new(hs_call *first, hs_call **end, uint64_t count)
{
    hs_burst *b;
    if (unused_count > 0) {
        b = bursts[unused[--unused_count]];
    } else {
        if (burst_count >= burst_room && !more_bursts()) return NULL;
        if (together_left == 0) {
            together = malloc(TOGETHER * sizeof *together);
            if (together == NULL) return NULL;
            together_left = TOGETHER;
        }
        b = together++;
        together_left--;
        b->generation = 0;
        b->token = burst_count;
        bursts[burst_count++] = b;
    }
    uint32_t slot = (uint32_t)b->token;
    /* Even: the numbers of exceptions are odd. */
    b->token = (int64_t)b->generation << 33 | (int64_t)slot << 1;
    atomic_store_explicit(&b->word, count, memory_order_relaxed);
    b->first = first;
    b->end = end;
    b->lane = 0;
    b->kept = 0;
    return b;
}

static uint32_t slot_of(int64_t token) { return (uint32_t)(token >> 1); }

hs_burst *halstream_burst_find(int64_t token)
{
    uint32_t slot = slot_of(token);
    if (token & 1 || slot == 0 || slot >= burst_count || bursts[slot]->token != token) return NULL;
    return bursts[slot];
}

void halstream_burst_keep(hs_burst *b)
{
    if (b == NULL || b->kept) return;
    b->kept = 1;
    halstream_calls_kept++;
}

void halstream_burst_empty(hs_burst *b)
{
    hs_call *c = b->first;
    b->first = NULL;
    b->end = &b->first;
    halstream_calls_free(c);
}

void halstream_burst_free(hs_burst *b)
{
    if (b->lane < lane_room && lanes[b->lane].growing == b) lanes[b->lane].growing = NULL;
    if (b->kept) halstream_calls_kept--;
    b->kept = 0;
    halstream_burst_empty(b);
    uint32_t slot = slot_of(b->token);
    b->token = slot; /* found by nobody */
    b->generation = (b->generation + 1) & 0xffffff;
    unused[unused_count++] = slot;
}

/* Tokens of bursts that are to be freed. */
static struct {
    uint64_t *tokens;
    size_t count, room;
} released;

void halstream_bursts_release(const uint64_t *tokens, size_t count)
{
    if (released.count + count > released.room) {
        size_t room = 2 * (released.count + count);
        uint64_t *more = realloc(released.tokens, room * sizeof *more);
        if (more == NULL) return; /* they stay kept */
        released.tokens = more;
        released.room = room;
    }
    memcpy(released.tokens + released.count, tokens, count * sizeof *tokens);
    released.count += count;
}

void halstream_bursts_released(void)
{
    while (released.count > 0) { /* finalizers may release more, and free these */
        hs_burst *b = halstream_burst_find((int64_t)released.tokens[--released.count]);
        if (b != NULL) halstream_burst_free(b);
    }
}

static uint32_t lane_of(int64_t stream) { return (uint32_t)(stream >> ID_LOW) & ((1u << ID_SLOT) - 1); }

int halstream_burst_add(int64_t stream, hs_call *first, hs_call **end, uint64_t count)
{
    uint32_t at = lane_of(stream);
    if (at >= lane_room || lanes[at].stream != stream) return 0;
    hs_burst *b = lanes[at].growing;
    if (b == NULL) return 0;
    uint64_t w = atomic_load_explicit(&b->word, memory_order_relaxed);
    do {
        if (w & BURST_SEALED || (w & BURST_MOST) + count > BURST_MOST) {
            lanes[at].growing = NULL;
            return 0;
        }
    } while (!atomic_compare_exchange_weak(&b->word, &w, w + count));
    *b->end = first;
    b->end = end;
    return 1;
}

void halstream_burst_grows(int64_t stream, hs_burst *b)
{
    uint32_t at = lane_of(stream);
    if (at >= lane_room) {
        uint32_t room = lane_room ? lane_room : 64;
        while (room <= at) room *= 2;
        lane *list = realloc(lanes, room * sizeof *list);
        if (list == NULL) return; /* the burst does not grow then */
        memset(list + lane_room, 0, (room - lane_room) * sizeof *list);
        lanes = list;
        lane_room = room;
    }
    lanes[at].stream = stream;
    lanes[at].growing = b;
    b->lane = at;
}
