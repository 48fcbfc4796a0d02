/* Functions that run on streams, and cases about streams, events and functions. */
#include "cases.h"

const char *wrong(const char *format, ...)
{
    static _Thread_local char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

/* The monotonic clock, in nanoseconds. */
static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int add(void *argument, char *text, size_t room)
{
    (void)text;
    (void)room;
    atomic_fetch_add(&((record *)argument)->value, 1);
    atomic_fetch_add(&((record *)argument)->runs, 1);
    return 0;
}

int twice(void *argument, char *text, size_t room)
{
    record *r = argument;
    atomic_store(&r->value, 2 * atomic_load(&r->value));
    (void)text;
    (void)room;
    return 0;
}

int fail(void *argument, char *text, size_t room)
{
    atomic_fetch_add(&((record *)argument)->runs, 1);
    snprintf(text, room, "the shape is wrong");
    return 9;
}

int call_inside(void *argument, char *text, size_t room)
{
    record *r = argument;
    halstream_id stream;
    int done;
    r->code = api->stream_new(0, 0, 0, &stream);
    if (r->code == HALSTREAM_IN_HOST_FUNCTION && r->idle != 0) /* what needs no core is refused as well */
        r->code = api->stream_query(r->idle, &done);
    (void)text;
    (void)room;
    return 0;
}

void release(void *argument) { atomic_fetch_add(&((record *)argument)->releases, 1); }

void release_and_close(void *argument)
{
    record *r = argument;
    r->code = api->block_free(r->close);
    atomic_fetch_add(&r->releases, 1);
}

halstream_operation operation(int (*run)(void *, char *, size_t), record *r)
{
    return (halstream_operation){.size = sizeof(halstream_operation), .name = "test::op", .run = run, .argument = r};
}

const char *new_stream(halstream_id *stream)
{
    OK(api->stream_new(0, 0, HALSTREAM_STREAM_NON_BLOCKING, stream));
    return NULL;
}

const char *S1_functions_run_in_order(void)
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

const char *E2_streams_wait_for_events_and_streams(void)
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
const char *E4_records_with_and_without_the_core(void)
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
        OK(api->event_synchronize(event, LIMIT));
        OK(api->event_query(event, &done));
        CHECK(done == 1);
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
        OK(api->event_synchronize(event, LIMIT));
        OK(api->event_query(event, &done));
        CHECK(done == 1);
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

const char *E5_elapsed_time(void)
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

const char *C2_a_function_that_fails(void)
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
    for (int64_t end = now() + LIMIT; !done && now() < end;) OK(api->event_query(event, &done));
    CHECK(done);
    CODE(HALSTREAM_FUNCTION_FAILED, api->stream_query(s, &done));
    OK(api->stream_query(s, &done));
    CHECK(done == 1);
    /* The record is made without the core, and its stream has an error when the core learns of it. */
    OK(api->gate_new(s, &gate));
    OK(api->enqueue(s, &bad));
    OK(api->event_record(event, s));
    OK(api->gate_open(gate));
    CODE(HALSTREAM_FUNCTION_FAILED, api->event_synchronize(event, LIMIT));
    OK(api->stream_synchronize(s, LIMIT));
    OK(api->event_close(event));
    OK(api->stream_close(s));
    return NULL;
}

const char *C3_releases(void)
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
    STREAM(idle);
    r.idle = idle;
    OK(api->enqueue(s, &o));
    OK(api->stream_synchronize(s, LIMIT));
    CHECK(r.code == HALSTREAM_IN_HOST_FUNCTION);
    int before = atomic_load(&r.releases);
    OK(api->stream_close(s));
    CODE(HALSTREAM_CLOSED, api->enqueue(s, &o));
    CHECK(atomic_load(&r.releases) == before);
    return NULL;
}
