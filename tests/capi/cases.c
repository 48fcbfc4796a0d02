/* Cases for the functions of halstream.h, as an extension module of their own: each is
 * run on a thread that holds Python's lock, on one that has released it, and on one
 * that Python has never seen. A case returns NULL, or the text of what is wrong. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <halstream.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const halstream_api *api;

static const int64_t LIMIT = 20000000000; /* a wait that takes longer never ends */

static const char *wrong(const char *format, ...)
{
    static _Thread_local char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) return wrong("line %d: %s", __LINE__, #condition);                                           \
    } while (0)
/* Checks the code of a call, and that an error has a text. */
#define CODE(want, call)                                                                                               \
    do {                                                                                                               \
        int code_ = (call);                                                                                            \
        if (code_ != (want))                                                                                           \
            return wrong("line %d: %s is %d, not %s: %s", __LINE__, #call, code_, #want, api->error_text());           \
        if (code_ != HALSTREAM_OK && api->error_text()[0] == 0) return wrong("line %d: no text", __LINE__);            \
    } while (0)
#define OK(call) CODE(HALSTREAM_OK, call)
#define TEXT(part)                                                                                                     \
    do {                                                                                                               \
        if (strstr(api->error_text(), part) == NULL)                                                                   \
            return wrong("line %d: '%s' is not in '%s'", __LINE__, part, api->error_text());                           \
    } while (0)

/* What functions on streams did: a number that the order changes, and counts. */
typedef struct {
    atomic_int value, runs, releases;
    halstream_id close; /* closed by the release */
    int code;           /* that a call inside a function returned */
} record;

static int add(void *argument, char *text, size_t room)
{
    (void)text;
    (void)room;
    atomic_fetch_add(&((record *)argument)->value, 1);
    atomic_fetch_add(&((record *)argument)->runs, 1);
    return 0;
}

static int twice(void *argument, char *text, size_t room)
{
    record *r = argument;
    atomic_store(&r->value, 2 * atomic_load(&r->value));
    (void)text;
    (void)room;
    return 0;
}

static int fail(void *argument, char *text, size_t room)
{
    atomic_fetch_add(&((record *)argument)->runs, 1);
    snprintf(text, room, "the shape is wrong");
    return 9;
}

static int call_inside(void *argument, char *text, size_t room)
{
    halstream_id stream;
    ((record *)argument)->code = api->stream_new(0, 0, 0, &stream);
    (void)text;
    (void)room;
    return 0;
}

static void release(void *argument) { atomic_fetch_add(&((record *)argument)->releases, 1); }

static void release_and_close(void *argument)
{
    record *r = argument;
    r->code = api->block_free(r->close);
    atomic_fetch_add(&r->releases, 1);
}

static halstream_operation operation(int (*run)(void *, char *, size_t), record *r)
{
    return (halstream_operation){.size = sizeof(halstream_operation), .name = "test::op", .run = run, .argument = r};
}

static const char *new_stream(halstream_id *stream)
{
    OK(api->stream_new(0, 0, HALSTREAM_STREAM_NON_BLOCKING, stream));
    return NULL;
}

#define STREAM(name)                                                                                                   \
    halstream_id name;                                                                                                 \
    do {                                                                                                               \
        const char *problem_ = new_stream(&name);                                                                      \
        if (problem_) return problem_;                                                                                 \
    } while (0)

static const char *S1_functions_run_in_order(void)
{
    STREAM(s);
    record r = {0};
    halstream_operation one = operation(add, &r), two = operation(twice, &r);
    for (int i = 0; i < 10; i++) {
        OK(api->enqueue(s, &one));
        OK(api->enqueue(s, &two));
    }
    OK(api->stream_synchronize(s, LIMIT));
    CHECK(atomic_load(&r.value) == 2046);
    OK(api->stream_close(s));
    return NULL;
}

static const char *E2_streams_wait_for_events_and_streams(void)
{
    STREAM(s);
    STREAM(t);
    halstream_id gate, event;
    int done = 1;
    record r = {0};
    halstream_operation o = operation(add, &r);
    OK(api->gate_new(s, &gate));
    OK(api->event_record_new(s, 0, &event));
    OK(api->stream_wait_event(t, event));
    OK(api->enqueue(t, &o));
    OK(api->event_query(event, &done));
    CHECK(done == 0);
    OK(api->stream_query(t, &done));
    CHECK(done == 0);
    CODE(HALSTREAM_TIMEOUT, api->event_synchronize(event, 1000000));
    CODE(HALSTREAM_TIMEOUT, api->stream_synchronize(t, 0));
    CHECK(atomic_load(&r.runs) == 0);
    OK(api->gate_open(gate));
    OK(api->gate_open(gate));
    OK(api->event_synchronize(event, LIMIT));
    OK(api->stream_synchronize(t, LIMIT));
    CHECK(atomic_load(&r.runs) == 1);
    OK(api->stream_query(t, &done));
    CHECK(done == 1);
    OK(api->gate_new(s, &gate));
    OK(api->stream_wait_stream(t, s));
    OK(api->enqueue(t, &o));
    CODE(HALSTREAM_TIMEOUT, api->stream_synchronize(t, 1000000));
    OK(api->gate_open(gate));
    OK(api->stream_synchronize(t, LIMIT));
    OK(api->event_close(event));
    OK(api->stream_close(s));
    OK(api->stream_close(t));
    return NULL;
}

/* The first record is made without the core, the second one by it, and so on. */
static const char *E4_records_with_and_without_the_core(void)
{
    STREAM(s);
    STREAM(t);
    halstream_id event, gate;
    int done = 0;
    OK(api->event_new(0, 0, &event));
    OK(api->event_query(event, &done));
    CHECK(done == 1);
    for (int round = 0; round < 3; round++) {
        OK(api->event_record(event, s));
        OK(api->event_record(event, s));
        OK(api->stream_wait_event(t, event));
        OK(api->event_query(event, &done));
        CHECK(done == 1);
        OK(api->event_synchronize(event, LIMIT));
        OK(api->gate_new(s, &gate));
        OK(api->event_record(event, s));
        OK(api->event_query(event, &done));
        CHECK(done == 0);
        OK(api->stream_wait_event(t, event));
        OK(api->stream_query(t, &done));
        CHECK(done == 0);
        OK(api->event_record(event, t));
        OK(api->gate_open(gate));
        OK(api->event_synchronize(event, LIMIT));
        OK(api->stream_synchronize(t, LIMIT));
        OK(api->stream_synchronize(s, LIMIT));
        /* On an idle stream again, while the core has a record on t. */
        OK(api->gate_new(t, &gate));
        OK(api->event_record(event, t));
        OK(api->event_record(event, s));
        OK(api->event_query(event, &done));
        CHECK(done == 1);
        OK(api->event_synchronize(event, LIMIT));
        OK(api->gate_open(gate));
        OK(api->stream_synchronize(t, LIMIT));
    }
    OK(api->event_close(event));
    CODE(HALSTREAM_CLOSED, api->event_record(event, s));
    CODE(HALSTREAM_CLOSED, api->stream_wait_event(s, event));
    CODE(HALSTREAM_CLOSED, api->event_query(event, &done));
    OK(api->stream_close(s));
    CODE(HALSTREAM_CLOSED, api->stream_query(s, &done));
    CODE(HALSTREAM_CLOSED, api->stream_synchronize(s, -1));
    OK(api->stream_close(t));
    return NULL;
}

static const char *E5_elapsed_time(void)
{
    STREAM(s);
    halstream_id start, end, plain;
    double ms = -1;
    OK(api->event_new(-1, HALSTREAM_EVENT_TIMING, &start));
    OK(api->event_record(start, s));
    OK(api->delay(s, 2000000));
    OK(api->event_record_new(s, HALSTREAM_EVENT_TIMING, &end));
    OK(api->stream_synchronize(s, LIMIT));
    OK(api->event_elapsed(start, end, &ms));
    CHECK(ms >= 1.9 && ms < 10000);
    OK(api->event_record_new(s, 0, &plain));
    CODE(HALSTREAM_TIMING_DISABLED, api->event_elapsed(start, plain, &ms));
    halstream_id events[] = {start, end, plain};
    for (int i = 0; i < 3; i++) OK(api->event_close(events[i]));
    OK(api->stream_close(s));
    return NULL;
}

static const char *C2_a_function_that_fails(void)
{
    STREAM(s);
    record r = {0};
    halstream_operation bad = operation(fail, &r), good = operation(add, &r);
    OK(api->enqueue(s, &bad));
    OK(api->enqueue(s, &good));
    CODE(HALSTREAM_FUNCTION_FAILED, api->stream_synchronize(s, LIMIT));
    CHECK(strcmp(api->error_text(), "test::op: the shape is wrong") == 0);
    CHECK(atomic_load(&r.runs) == 2);
    OK(api->stream_synchronize(s, LIMIT));
    OK(api->device_synchronize(0, LIMIT));
    halstream_id event;
    OK(api->enqueue(s, &bad));
    OK(api->event_record_new(s, 0, &event));
    CODE(HALSTREAM_FUNCTION_FAILED, api->event_synchronize(event, LIMIT));
    TEXT("the shape is wrong");
    OK(api->event_synchronize(event, LIMIT));
    OK(api->stream_synchronize(s, LIMIT));
    bad.name = NULL;
    OK(api->enqueue(s, &bad));
    CODE(HALSTREAM_FUNCTION_FAILED, api->device_synchronize(0, LIMIT));
    TEXT("a native function: the shape is wrong");
    OK(api->device_synchronize(0, LIMIT));
    /* Where the stream is idle the error waits as well. */
    halstream_id gate;
    OK(api->gate_new(s, &gate));
    OK(api->enqueue(s, &bad));
    OK(api->event_record(event, s));
    OK(api->gate_open(gate));
    int done = 0;
    for (int i = 0; i < 2000000 && !done; i++) OK(api->event_query(event, &done));
    CHECK(done);
    CODE(HALSTREAM_FUNCTION_FAILED, api->stream_query(s, &done));
    OK(api->stream_query(s, &done));
    CHECK(done == 1);
    OK(api->event_close(event));
    OK(api->stream_close(s));
    return NULL;
}

static const char *C3_releases(void)
{
    STREAM(s);
    record r = {0};
    uint64_t address;
    halstream_operation o = operation(add, &r);
    o.release = release;
    OK(api->enqueue(s, &o));
    OK(api->stream_synchronize(s, LIMIT));
    CHECK(atomic_load(&r.releases) == 1 && atomic_load(&r.runs) == 1);
    o.run = call_inside;
    o.release = release_and_close;
    OK(api->block_new(s, 1000, &r.close, &address));
    OK(api->enqueue(s, &o));
    OK(api->stream_synchronize(s, LIMIT));
    CHECK(atomic_load(&r.releases) == 2 && r.code == HALSTREAM_OK);
    OK(api->nop(s)); /* a call of the program: it frees the block */
    CODE(HALSTREAM_CLOSED, api->block_free(r.close));
    o.release = release;
    r.close = 0;
    OK(api->enqueue(s, &o));
    OK(api->stream_synchronize(s, LIMIT));
    CHECK(r.code == HALSTREAM_IN_HOST_FUNCTION);
    int before = atomic_load(&r.releases);
    OK(api->stream_close(s));
    CODE(HALSTREAM_CLOSED, api->enqueue(s, &o));
    CHECK(atomic_load(&r.releases) == before);
    return NULL;
}

static const char *C5_what_is_no_number_of_an_object(void)
{
    STREAM(s);
    record r = {0};
    halstream_id event, gate, block, out = 77;
    uint64_t address, number;
    int done = 77;
    int32_t small;
    double ms;
    halstream_operation o = operation(add, &r);
    OK(api->event_new(0, 0, &event));
    OK(api->gate_new(s, &gate));
    OK(api->block_new(s, 100, &block, &address));
    halstream_id bad[] = {0, -1, 1, 2, 17, INT64_MAX, INT64_MIN, s + 16000000, s + 1};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        halstream_id b = bad[i];
        CODE(HALSTREAM_INVALID_HANDLE, api->stream_query(b, &done));
        CODE(HALSTREAM_INVALID_HANDLE, api->stream_synchronize(b, 0));
        CODE(HALSTREAM_INVALID_HANDLE, api->stream_device(b, &small));
        CODE(HALSTREAM_INVALID_HANDLE, api->stream_priority(b, &small));
        CODE(HALSTREAM_INVALID_HANDLE, api->stream_handle(b, &number));
        CODE(HALSTREAM_INVALID_HANDLE, api->stream_wait_event(s, b));
        CODE(HALSTREAM_INVALID_HANDLE, api->stream_wait_event(b, event));
        CODE(HALSTREAM_INVALID_HANDLE, api->stream_wait_stream(s, b));
        CODE(HALSTREAM_INVALID_HANDLE, api->stream_wait_stream(b, s));
        CODE(HALSTREAM_INVALID_HANDLE, api->stream_close(b));
        CODE(HALSTREAM_INVALID_HANDLE, api->event_close(b));
        CODE(HALSTREAM_INVALID_HANDLE, api->event_query(b, &done));
        CODE(HALSTREAM_INVALID_HANDLE, api->event_synchronize(b, 0));
        CODE(HALSTREAM_INVALID_HANDLE, api->event_record(b, s));
        CODE(HALSTREAM_INVALID_HANDLE, api->event_record(event, b));
        CODE(HALSTREAM_INVALID_HANDLE, api->event_record_new(b, 0, &out));
        CODE(HALSTREAM_INVALID_HANDLE, api->event_elapsed(event, b, &ms));
        CODE(HALSTREAM_INVALID_HANDLE, api->enqueue(b, &o));
        CODE(HALSTREAM_INVALID_HANDLE, api->copy(b, address, address, 1));
        CODE(HALSTREAM_INVALID_HANDLE, api->fill(b, address, 0, 1, 1));
        CODE(HALSTREAM_INVALID_HANDLE, api->nop(b));
        CODE(HALSTREAM_INVALID_HANDLE, api->delay(b, 1));
        CODE(HALSTREAM_INVALID_HANDLE, api->gate_new(b, &out));
        CODE(HALSTREAM_INVALID_HANDLE, api->gate_open(b));
        CODE(HALSTREAM_INVALID_HANDLE, api->block_new(b, 1, &out, &number));
        CODE(HALSTREAM_INVALID_HANDLE, api->block_record_stream(block, b));
        CODE(HALSTREAM_INVALID_HANDLE, api->block_record_stream(b, s));
        CODE(HALSTREAM_INVALID_HANDLE, api->block_free(b));
    }
    CHECK(out == 77 && done == 77);
    CODE(HALSTREAM_INVALID_HANDLE, api->stream_query(event, &done));
    CODE(HALSTREAM_INVALID_HANDLE, api->event_query(block, &done));
    CODE(HALSTREAM_INVALID_HANDLE, api->block_free(s));
    CODE(HALSTREAM_INVALID_HANDLE, api->stream_close(event));
    CODE(HALSTREAM_INVALID_HANDLE, api->gate_open(event));
    for (int device = -2; device < 100; device += 101) {
        CODE(HALSTREAM_INVALID_DEVICE, api->stream_new(device, 0, 0, &out));
        CODE(HALSTREAM_INVALID_DEVICE, api->stream_default(device, &out));
        CODE(HALSTREAM_INVALID_DEVICE, api->event_new(device, 0, &out));
        CODE(HALSTREAM_INVALID_DEVICE, api->device_synchronize(device, 0));
        CODE(HALSTREAM_INVALID_DEVICE, api->device_memory(device, &number, &number));
        CODE(HALSTREAM_INVALID_DEVICE, api->memory_reset_peaks(device));
        CODE(HALSTREAM_INVALID_DEVICE, api->memory_empty_cache(device));
    }
    CODE(HALSTREAM_INVALID_VALUE, api->stream_new(0, 0, 64, &out));
    CODE(HALSTREAM_INVALID_VALUE, api->event_new(0, 64, &out));
    CODE(HALSTREAM_INVALID_VALUE, api->stream_new(0, 0, 0, NULL));
    CODE(HALSTREAM_INVALID_VALUE, api->enqueue(s, NULL));
    CODE(HALSTREAM_INVALID_VALUE, api->block_new(s, 0, &out, &number));
    CODE(HALSTREAM_INVALID_VALUE, api->host_access(address, 1, 4));
    CODE(HALSTREAM_INVALID_VALUE, api->fill(s, address, 0, 3, 1));
    CODE(HALSTREAM_OUT_OF_MEMORY, api->block_new(s, UINT64_MAX, &out, &number));
    OK(api->gate_open(gate));
    OK(api->block_free(block));
    CODE(HALSTREAM_CLOSED, api->block_free(block));
    OK(api->event_close(event));
    OK(api->event_close(event));
    OK(api->stream_close(s));
    OK(api->stream_close(s));
    halstream_id ordinary;
    OK(api->stream_default(0, &ordinary));
    CODE(HALSTREAM_INVALID_VALUE, api->stream_close(ordinary));
    return NULL;
}

static const char *C8_blocks_of_streams(void)
{
    STREAM(s);
    STREAM(t);
    halstream_id first, second, third, gate;
    uint64_t a, b, c;
    halstream_memory before = {.size = sizeof before}, after = {.size = sizeof after};
    enum { SIZE = 3 << 20 };
    OK(api->memory_empty_cache(0));
    OK(api->memory_stats(0, &before));
    OK(api->gate_new(s, &gate));
    OK(api->block_new(s, SIZE, &first, &a));
    OK(api->block_free(first)); /* at once free for its own stream */
    OK(api->block_new(s, SIZE, &second, &b));
    CHECK(a == b);
    OK(api->block_free(second));
    OK(api->block_new(t, SIZE, &third, &c)); /* not for another one */
    CHECK(c != a);
    OK(api->block_free(third));
    OK(api->gate_open(gate));
    OK(api->stream_synchronize(s, LIMIT));
    /* A stream that was recorded is waited for first. */
    OK(api->block_new(s, SIZE, &first, &a));
    OK(api->gate_new(t, &gate));
    OK(api->block_record_stream(first, t));
    OK(api->block_free(first));
    OK(api->block_new(s, SIZE, &second, &b));
    CHECK(a != b);
    OK(api->block_free(second));
    OK(api->gate_open(gate));
    OK(api->stream_synchronize(t, LIMIT));
    OK(api->memory_stats(0, &after));
    CHECK(after.size == sizeof after && after.allocations - before.allocations == 5);
    CHECK(after.frees - before.frees == 5 && after.allocated == before.allocated);
    CHECK(after.allocated_peak >= SIZE && after.reserved >= SIZE);
    OK(api->memory_empty_cache(0));
    OK(api->memory_reset_peaks(0));
    OK(api->memory_stats(0, &after));
    CHECK(after.allocated_peak == after.allocated && after.reserved <= before.reserved);
    OK(api->stream_close(s));
    OK(api->stream_close(t));
    return NULL;
}

static const char *M3_copies_and_kinds_of_memory(void)
{
    STREAM(s);
    halstream_id device_block, host_block;
    uint64_t there, here;
    int kind = -1;
    int32_t device = -2;
    OK(api->block_new(s, 4096, &device_block, &there));
    OK(api->block_new_host(4096, &host_block, &here));
    unsigned char *bytes = (unsigned char *)(uintptr_t)here, stack[64] = {0};
    for (int i = 0; i < 4096; i++) bytes[i] = (unsigned char)i;
    OK(api->copy(s, there, here, 4096));
    OK(api->fill(s, there + 16, 7, 1, 4));
    OK(api->stream_synchronize(s, LIMIT));
    OK(api->copy(s, (uint64_t)(uintptr_t)stack, there, 64)); /* pageable: it waits */
    CHECK(stack[15] == 15 && stack[16] == 7 && stack[19] == 7 && stack[20] == 20);
    OK(api->copy_rows(s, here, 8, there + 256, 16, 4, 3));
    OK(api->copy_rows(s, here, 8, there, 16, 4, 0));
    OK(api->stream_synchronize(s, LIMIT));
    CHECK(bytes[0] == 0 && bytes[4] == 4 && bytes[8] == 16 && bytes[16] == 32);
    OK(api->memory_kind(there + 5, &kind, &device));
    CHECK(kind == 2 && device == 0);
    OK(api->memory_kind(here, &kind, &device));
    CHECK(kind == 1 && device == -1);
    OK(api->memory_kind((uint64_t)(uintptr_t)stack, &kind, &device));
    CHECK(kind == 0 && device == -1);
    CODE(HALSTREAM_INVALID_VALUE, api->copy(s, there, there + 4090, 100));
    OK(api->block_free(host_block));
    OK(api->block_free(device_block));
    OK(api->stream_close(s));
    return NULL;
}

static const char *C9_versions_and_sizes(void)
{
    STREAM(s);
    record r = {0};
    halstream_operation o = operation(add, &r);
    CHECK(api->version == HALSTREAM_API_VERSION && api->size == sizeof(halstream_api));
    o.size = 8;
    CODE(HALSTREAM_INVALID_VALUE, api->enqueue(s, &o));
    o.size = sizeof o + 64; /* of a later version */
    OK(api->enqueue(s, &o));
    o.flags = 1;
    CODE(HALSTREAM_INVALID_VALUE, api->enqueue(s, &o));
    o = operation(NULL, &r);
    CODE(HALSTREAM_INVALID_VALUE, api->enqueue(s, &o));
    o = operation(add, &r);
    o.count = 1;
    CODE(HALSTREAM_INVALID_VALUE, api->enqueue(s, &o));
    halstream_memory stats;
    memset(&stats, 0x55, sizeof stats);
    stats.size = 4;
    CODE(HALSTREAM_INVALID_VALUE, api->memory_stats(0, &stats));
    stats.size = offsetof(halstream_memory, allocations);
    OK(api->memory_stats(0, &stats));
    CHECK(stats.allocations == 0x5555555555555555 && stats.reserved != 0x5555555555555555);
    stats.size = sizeof stats + 800;
    OK(api->memory_stats(0, &stats));
    CHECK(stats.size == sizeof stats);
    OK(api->stream_synchronize(s, LIMIT));
    CHECK(atomic_load(&r.runs) == 1);
    OK(api->stream_close(s));
    return NULL;
}

static const char *D1_devices(void)
{
    int32_t count = 0, device = -1, priority = 5;
    char name[64] = "", little[4];
    uint64_t free_bytes, total, handle = 5;
    int64_t first, second;
    halstream_id stream;
    OK(api->device_count(&count));
    CHECK(count >= 1);
    OK(api->device_name(count - 1, name, sizeof name));
    CHECK(strlen(name) > 3);
    OK(api->device_name(0, little, sizeof little));
    CHECK(strlen(little) == 3);
    CODE(HALSTREAM_INVALID_VALUE, api->device_name(0, little, 0));
    OK(api->device_memory(0, &free_bytes, &total));
    CHECK(free_bytes > 0 && free_bytes <= total);
    OK(api->device_now(0, &first));
    OK(api->device_now(0, &second));
    CHECK(second >= first);
    CHECK(api->generation() > 0);
    OK(api->stream_default(count - 1, &stream));
    OK(api->stream_device(stream, &device));
    CHECK(device == count - 1);
    OK(api->stream_new(0, -100, 0, &stream));
    OK(api->stream_priority(stream, &priority));
    CHECK(priority < 0 && priority > -100);
    OK(api->stream_handle(stream, &handle));
    CHECK(handle > 2);
    OK(api->stream_close(stream));
    return NULL;
}

static const char *C4_sites_are_numbers(void)
{
    uint32_t one = api->site_new("model.py", 17, "forward"), other = api->site_new("model.py", 18, "forward");
    CHECK(one != 0 && other != 0 && one != other);
    CHECK(api->site_new("model.py", 17, "forward") == one);
    CHECK(api->site_new("model.py", 17, NULL) != one);
    CHECK(api->site_new(NULL, 17, "forward") == 0);
    return NULL;
}

static const struct {
    const char *name;
    const char *(*run)(void);
} cases[] = {
#define CASE(name) {#name, name}
    CASE(S1_functions_run_in_order), CASE(E2_streams_wait_for_events_and_streams),
    CASE(E4_records_with_and_without_the_core), CASE(E5_elapsed_time), CASE(C2_a_function_that_fails),
    CASE(C3_releases), CASE(C4_sites_are_numbers), CASE(C5_what_is_no_number_of_an_object),
    CASE(C8_blocks_of_streams), CASE(M3_copies_and_kinds_of_memory), CASE(C9_versions_and_sizes), CASE(D1_devices),
};

/* Python's half. */

static PyObject *use(PyObject *self, PyObject *capsule)
{
    (void)self;
    api = PyCapsule_GetPointer(capsule, HALSTREAM_API_CAPSULE);
    return api == NULL ? NULL : PyLong_FromUnsignedLong(api->version);
}

static PyObject *names(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < sizeof cases / sizeof *cases; i++) {
        PyObject *name = PyUnicode_FromString(cases[i].name);
        if (name == NULL || PyList_Append(list, name) < 0) return NULL;
        Py_DECREF(name);
    }
    return list;
}

typedef struct {
    const char *(*run)(void);
    char text[512];
} job;

static void *perform(void *argument)
{
    job *j = argument;
    const char *problem = j->run();
    snprintf(j->text, sizeof j->text, "%s", problem ? problem : "");
    return NULL;
}

/* run(name, how): how is "locked", "unlocked" or "foreign". Returns what is wrong, "" if nothing is. */
static PyObject *run(PyObject *self, PyObject *args)
{
    (void)self;
    const char *name, *how;
    if (!PyArg_ParseTuple(args, "ss", &name, &how)) return NULL;
    job j = {NULL, ""};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, name) == 0) j.run = cases[i].run;
    if (j.run == NULL) return PyErr_Format(PyExc_KeyError, "there is no case %s", name);
    if (strcmp(how, "locked") == 0) {
        perform(&j);
    } else {
        Py_BEGIN_ALLOW_THREADS;
        pthread_t thread;
        if (strcmp(how, "unlocked") == 0) perform(&j);
        else if (pthread_create(&thread, NULL, perform, &j) == 0) pthread_join(thread, NULL);
        else snprintf(j.text, sizeof j.text, "there is no thread");
        Py_END_ALLOW_THREADS;
    }
    return PyUnicode_FromString(j.text);
}

/* many(threads, rounds): threads that Python does not know enqueue at once; returns how many functions ran. */
static atomic_int many_runs;
static int many_rounds;

static int count_run(void *argument, char *text, size_t room)
{
    (void)argument, (void)text, (void)room;
    atomic_fetch_add(&many_runs, 1);
    return 0;
}

static void *many_body(void *problem)
{
    halstream_id s, event;
    halstream_operation o = {.size = sizeof o, .name = "test::many", .run = count_run};
    int failed = api->stream_new(0, 0, HALSTREAM_STREAM_NON_BLOCKING, &s);
    for (int i = 0; i < many_rounds && !failed; i++) {
        failed = api->enqueue(s, &o) || api->event_record_new(s, 0, &event) || api->stream_wait_event(s, event) ||
                 api->event_synchronize(event, LIMIT) || api->event_close(event);
    }
    if (failed || api->stream_close(s)) snprintf(problem, 256, "%s", api->error_text());
    return NULL;
}

static PyObject *many(PyObject *self, PyObject *args)
{
    (void)self;
    int threads;
    if (!PyArg_ParseTuple(args, "ii", &threads, &many_rounds)) return NULL;
    static char problems[64][256];
    memset(problems, 0, sizeof problems);
    atomic_store(&many_runs, 0);
    Py_BEGIN_ALLOW_THREADS;
    pthread_t made[64];
    for (int i = 0; i < threads; i++) pthread_create(&made[i], NULL, many_body, problems[i]);
    for (int i = 0; i < threads; i++) pthread_join(made[i], NULL);
    Py_END_ALLOW_THREADS;
    for (int i = 0; i < threads; i++)
        if (problems[i][0]) return PyErr_Format(PyExc_AssertionError, "%s", problems[i]);
    return PyLong_FromLong(atomic_load(&many_runs));
}

/* The functions that tests in Python call: an error code becomes (code, text). */
static PyObject *answer(int code)
{
    if (code == HALSTREAM_INTERRUPTED) return NULL;
    return Py_BuildValue("(is)", code, code ? api->error_text() : "");
}

static PyObject *synchronize(PyObject *self, PyObject *args)
{
    (void)self;
    long long stream, limit;
    if (!PyArg_ParseTuple(args, "LL", &stream, &limit)) return NULL;
    return answer(api->stream_synchronize(stream, limit));
}

static PyObject *open_gate(PyObject *self, PyObject *gate)
{
    (void)self;
    return answer(api->gate_open(PyLong_AsLongLong(gate)));
}

static PyObject *new_gate(PyObject *self, PyObject *stream)
{
    (void)self;
    halstream_id gate = 0;
    int code = api->gate_new(PyLong_AsLongLong(stream), &gate);
    return code ? answer(code) : PyLong_FromLongLong(gate);
}

static PyObject *new_event(PyObject *self, PyObject *stream)
{
    (void)self;
    halstream_id event = 0;
    int code = api->event_new(0, 0, &event);
    if (code == HALSTREAM_OK) code = api->event_record(event, PyLong_AsLongLong(stream));
    return code ? answer(code) : PyLong_FromLongLong(event);
}

static record shared;

/* enqueue(stream, name, site, ranges): ranges is a list of (start, bytes, rows, pitch, access). */
static PyObject *enqueue(PyObject *self, PyObject *args)
{
    (void)self;
    long long stream;
    const char *name;
    unsigned site;
    PyObject *list;
    if (!PyArg_ParseTuple(args, "LzIO!", &stream, &name, &site, &PyList_Type, &list)) return NULL;
    halstream_range ranges[16] = {{0}};
    Py_ssize_t n = PyList_Size(list);
    for (Py_ssize_t i = 0; i < n && i < 16; i++) {
        unsigned long long v[4];
        unsigned access;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "KKKKI", &v[0], &v[1], &v[2], &v[3], &access)) return NULL;
        ranges[i] = (halstream_range){v[0], v[1], v[2], v[3], access, 0};
    }
    halstream_operation o = operation(add, &shared);
    o.release = release;
    char *copy = name ? strdup(name) : NULL;
    o.name = copy;
    o.site = site;
    o.ranges = ranges;
    o.count = (size_t)n;
    int code = api->enqueue(stream, &o);
    free(copy); /* the name is the caller's after the call */
    return answer(code);
}

/* How many of the functions above have run, and how many were released. */
static PyObject *counts(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("(ii)", atomic_load(&shared.runs), atomic_load(&shared.releases));
}

static PyObject *enqueue_failing(PyObject *self, PyObject *stream)
{
    (void)self;
    halstream_operation o = operation(fail, &shared);
    return answer(api->enqueue(PyLong_AsLongLong(stream), &o));
}

static PyObject *host_access(PyObject *self, PyObject *args)
{
    (void)self;
    unsigned long long address, bytes;
    unsigned access;
    if (!PyArg_ParseTuple(args, "KKI", &address, &bytes, &access)) return NULL;
    return answer(api->host_access(address, bytes, access));
}

static PyObject *site_here(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return PyLong_FromUnsignedLong(api->site_here());
}

static PyObject *site_new(PyObject *self, PyObject *args)
{
    (void)self;
    const char *file, *function;
    unsigned line;
    if (!PyArg_ParseTuple(args, "sIs", &file, &line, &function)) return NULL;
    return PyLong_FromUnsignedLong(api->site_new(file, line, function));
}

static PyObject *listening(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return PyBool_FromLong(api->listening());
}

static PyObject *generation(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return PyLong_FromUnsignedLongLong(api->generation());
}

/* Codes of calls after something that ends them: (stream_new, event_query, enqueue, wait, gate_open, listening). */
static PyObject *all_codes(PyObject *self, PyObject *stream)
{
    (void)self;
    halstream_id s = PyLong_AsLongLong(stream), made;
    int done;
    halstream_operation o = operation(add, &shared);
    return Py_BuildValue("(iiiiii)", api->stream_new(0, 0, 0, &made), api->stream_query(s, &done), api->enqueue(s, &o),
                         api->stream_synchronize(s, -1), api->gate_open(16), api->listening());
}

/* A thread that Python does not know waits for a stream without a limit, and another one calls
 * until it is refused; both go on when the interpreter ends. */
static void *wait_for_ever(void *stream)
{
    api->stream_synchronize((halstream_id)(intptr_t)stream, -1);
    return NULL;
}

static void *call_for_ever(void *stream)
{
    int done;
    while (api->stream_query((halstream_id)(intptr_t)stream, &done) == HALSTREAM_OK) {}
    return NULL;
}

static PyObject *leave_threads(PyObject *self, PyObject *stream)
{
    (void)self;
    pthread_t thread;
    void *id = (void *)(intptr_t)PyLong_AsLongLong(stream);
    pthread_create(&thread, NULL, wait_for_ever, id);
    pthread_detach(thread);
    pthread_create(&thread, NULL, call_for_ever, id);
    pthread_detach(thread);
    Py_RETURN_NONE;
}

/* Calls the runtime when the interpreter is gone. */
static void at_exit(void)
{
    halstream_id stream;
    int code = api->stream_new(0, 0, 0, &stream);
    fprintf(stderr, "after the end: %d %s\n", code, api->error_text());
}

static PyObject *call_at_exit(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    atexit(at_exit);
    Py_AtExit(at_exit);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"use", use, METH_O, NULL}, {"names", names, METH_NOARGS, NULL}, {"run", run, METH_VARARGS, NULL},
    {"many", many, METH_VARARGS, NULL}, {"synchronize", synchronize, METH_VARARGS, NULL},
    {"open_gate", open_gate, METH_O, NULL}, {"new_gate", new_gate, METH_O, NULL},
    {"new_event", new_event, METH_O, NULL}, {"enqueue", enqueue, METH_VARARGS, NULL},
    {"enqueue_failing", enqueue_failing, METH_O, NULL}, {"host_access", host_access, METH_VARARGS, NULL},
    {"site_here", site_here, METH_NOARGS, NULL}, {"site_new", site_new, METH_VARARGS, NULL},
    {"listening", listening, METH_NOARGS, NULL}, {"generation", generation, METH_NOARGS, NULL},
    {"all_codes", all_codes, METH_O, NULL}, {"leave_threads", leave_threads, METH_O, NULL},
    {"counts", counts, METH_NOARGS, NULL}, {"call_at_exit", call_at_exit, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "capi_cases", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_capi_cases(void) { return PyModule_Create(&module); }
