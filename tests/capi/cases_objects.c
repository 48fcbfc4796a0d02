/* Cases about numbers of objects, memory, devices and structs. */
#include "cases.h"

const char *C5_what_is_no_number_of_an_object(void)
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

const char *C8_blocks_of_streams(void)
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
    OK(api->block_new_in_order(s, SIZE, &first, &a));
    OK(api->block_free(first));
    OK(api->block_new_in_order(s, SIZE, &second, &b));
    CHECK(a == b);
    OK(api->block_free(second));
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
    CHECK(after.size == sizeof after && after.allocations - before.allocations == 7);
    CHECK(after.frees - before.frees == 7 && after.allocated == before.allocated);
    CHECK(after.allocated_peak >= SIZE && after.reserved >= SIZE);
    OK(api->memory_empty_cache(0));
    OK(api->memory_reset_peaks(0));
    OK(api->memory_stats(0, &after));
    CHECK(after.allocated_peak == after.allocated && after.reserved <= before.reserved);
    OK(api->stream_close(s));
    OK(api->stream_close(t));
    return NULL;
}

const char *M3_copies_and_kinds_of_memory(void)
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

const char *C9_versions_and_sizes(void)
{
    STREAM(s);
    record r = {0};
    halstream_operation o = operation(add, &r);
    CHECK(api->version == HALSTREAM_API_VERSION && api->size == sizeof(halstream_api));
    o.size = 8;
    CODE(HALSTREAM_INVALID_VALUE, api->enqueue(s, &o));
    o.size = sizeof o + 64; /* of a later version */
    OK(api->enqueue(s, &o));
    o.flags = 8; /* no flag */
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

const char *D1_devices(void)
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

const char *C4_sites_are_numbers(void)
{
    uint32_t one = api->site_new("model.py", 17, "forward"), other = api->site_new("model.py", 18, "forward");
    CHECK(one != 0 && other != 0 && one != other);
    CHECK(api->site_new("model.py", 17, "forward") == one);
    CHECK(api->site_new("model.py", 17, NULL) != one);
    CHECK(api->site_new(NULL, 17, "forward") == 0);
    return NULL;
}
