/* Device and pinned memory, and copies. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

/* Blocks by their address, in a table with open addressing. A block of 0 was made in a forked process, by malloc. */
static struct entry {
    uintptr_t address;
    halstream_id block;
} *entries;
static size_t count, room; /* room is 0 or a power of two */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void lock_memory(void) { pthread_mutex_lock(&lock); }
void unlock_memory(void) { pthread_mutex_unlock(&lock); }

static size_t place_of(uintptr_t address) { return (address >> 6) * (uintptr_t)0x9E3779B97F4A7C15u >> 16; }

static void put(struct entry one)
{
    size_t i = place_of(one.address) & (room - 1);
    while (entries[i].address != 0) i = (i + 1) & (room - 1);
    entries[i] = one;
}

static int remember(void *address, halstream_id block)
{
    lock_memory();
    if (4 * (count + 1) > 3 * room) {
        size_t before = room;
        struct entry *old = entries, *grown = calloc(room ? 2 * room : 1024, sizeof *entries);
        if (grown == NULL) {
            unlock_memory();
            return 0;
        }
        entries = grown;
        room = before ? 2 * before : 1024;
        for (size_t i = 0; i < before; i++)
            if (old[i].address != 0) put(old[i]);
        free(old);
    }
    put((struct entry){(uintptr_t)address, block});
    count++;
    unlock_memory();
    return 1;
}

/* Takes the entry of an address out; returns whether there was one. */
static int forget(void *address, halstream_id *block)
{
    int found = 0;
    lock_memory();
    size_t i = room ? place_of((uintptr_t)address) & (room - 1) : 0;
    while (room && entries[i].address != 0 && entries[i].address != (uintptr_t)address) i = (i + 1) & (room - 1);
    if (room && entries[i].address != 0) {
        found = 1;
        *block = entries[i].block;
        entries[i].address = 0;
        count--;
        /* What follows may have been put behind the hole. */
        for (size_t j = (i + 1) & (room - 1); entries[j].address != 0; j = (j + 1) & (room - 1)) {
            struct entry moved = entries[j];
            entries[j].address = 0;
            put(moved);
        }
    }
    unlock_memory();
    return found;
}

static int in_forked_process(void **address, size_t size)
{
    return posix_memalign(address, 64, size ? size : 1) == 0 && remember(*address, 0) ? PADDLE_SUCCESS : PADDLE_FAILED;
}

static int kept(int code, halstream_id block, uint64_t at, void **address)
{
    if (code != HALSTREAM_OK) return result(code, "allocate memory");
    *address = (void *)(uintptr_t)at;
    if (remember(*address, block)) return PADDLE_SUCCESS;
    core->block_free(block);
    return PADDLE_FAILED;
}

static int device_memory_allocate(paddle_device device, void **address, size_t size)
{
    if (forked) return in_forked_process(address, size);
    halstream_id block = 0;
    uint64_t at = 0;
    int code = core->block_new(default_stream(device->id), size, &block, &at);
    return kept(code, block, at, address);
}

static int host_memory_allocate(paddle_device device, void **address, size_t size)
{
    (void)device;
    if (forked) return in_forked_process(address, size);
    halstream_id block = 0;
    uint64_t at = 0;
    int code = core->block_new_host(size, &block, &at);
    return kept(code, block, at, address);
}

/* Calls a function with a number and each stream of a device, and returns the first error; where memory is short it waits
 * until nothing is pending there instead. */
static int with_all(int32_t device, int (*call)(halstream_id, halstream_id), halstream_id number)
{
    halstream_id few[64], *streams = few, *more;
    size_t room = sizeof few / sizeof *few, found;
    int code = HALSTREAM_OK;
    while ((found = streams_of(device, streams, room)) > room) {
        room = 2 * found;
        more = realloc(streams == few ? NULL : streams, room * sizeof *streams);
        if (more == NULL) {
            code = wait_for_device(device);
            found = 0;
            break;
        }
        streams = more;
    }
    for (size_t i = 0; i < found; i++) {
        int one = call(number, streams[i]);
        if (code == HALSTREAM_OK) code = one;
    }
    if (streams != few) free(streams);
    return code;
}

static int deallocate(paddle_device device, void *address)
{
    halstream_id block = 0;
    if (!forget(address, &block)) return address == NULL ? PADDLE_SUCCESS : PADDLE_FAILED;
    if (block == 0) {
        free(address);
        return PADDLE_SUCCESS;
    }
    if (forked) return PADDLE_SUCCESS; /* the parent's: it goes with the process */
    /* A segment of Paddle's pools: any stream may still use what was cut from it. */
    with_all(device->id, core->block_record_stream, block);
    return result(core->block_free(block), "free memory");
}

static int device_memory_deallocate(paddle_device device, void *address, size_t size)
{
    (void)size;
    return deallocate(device, address);
}

static int host_memory_deallocate(paddle_device device, void *address, size_t size)
{
    (void)size;
    return deallocate(device, address);
}

/* Paddle names no stream, so the call comes behind the work of all, and all later work behind it. */
static int device_memory_set(paddle_device device, void *address, unsigned char value, size_t size)
{
    if (forked) {
        memset(address, value, size);
        return PADDLE_SUCCESS;
    }
    halstream_id stream = default_stream(device->id);
    int code = wait_for_device(device->id);
    if (code == HALSTREAM_OK) code = core->fill(stream, (uintptr_t)address, value, 1, size);
    if (code == HALSTREAM_OK) code = wait_for_stream(stream);
    return result(code, "fill memory");
}

static int device_memory_stats(paddle_device device, size_t *total, size_t *free_bytes)
{
    uint64_t left = (uint64_t)1 << 32, all = left;
    int code = forked ? HALSTREAM_OK : core->device_memory(device->id, &left, &all);
    *free_bytes = left;
    *total = all;
    return result(code, "ask for the memory of a device");
}

/* -- copies ----------------------------------------------------------------- */

/* The runtime has the rules of the vendors for pageable memory: a small source is taken within the call, and for
 * larger ones and for pageable targets the call returns when the copy is done. Paddle relies on the first: it may
 * free the source at once. */
static int copy(paddle_device device, paddle_stream stream, void *dst, const void *src, size_t size)
{
    (void)device;
    if (size == 0) return PADDLE_SUCCESS;
    if (forked) {
        memmove(dst, src, size);
        return PADDLE_SUCCESS;
    }
    return result(core->copy(id_of(stream), (uintptr_t)dst, (uintptr_t)src, size), "copy memory");
}

static int before(halstream_id first, halstream_id stream) { return core->stream_wait_stream(stream, first); }

/* Paddle names a stream of the target's device. So the copy comes behind the work of all streams of the source's device,
 * and before their later work, which may be given the source's memory. */
static int copy_between(paddle_device to, paddle_device from, paddle_stream stream, void *dst, const void *src,
                        size_t size)
{
    if (forked || from->id == to->id) return copy(to, stream, dst, src, size);
    int code = with_all(from->id, core->stream_wait_stream, id_of(stream));
    if (code != HALSTREAM_OK) return result(code, "let a copy wait for the source's device");
    int status = copy(to, stream, dst, src, size);
    if (status != PADDLE_SUCCESS) return status;
    return result(with_all(from->id, before, id_of(stream)), "let the source's device wait for a copy");
}

static int copy_now(paddle_device device, void *dst, const void *src, size_t size)
{
    halstream_id stream = forked ? 1 : default_stream(device->id); /* Paddle has waited for its own */
    int status = copy(device, handle_of(stream), dst, src, size);
    return status == PADDLE_SUCCESS ? result(wait_for_stream(stream), "wait for a copy") : status;
}

static int copy_between_now(paddle_device to, paddle_device from, void *dst, const void *src, size_t size)
{
    (void)to;
    return copy_now(from, dst, src, size);
}

void fill_memory_hooks(struct paddle_hooks *hooks)
{
    hooks->device_memory_allocate = device_memory_allocate;
    hooks->device_memory_deallocate = device_memory_deallocate;
    hooks->device_memory_set = device_memory_set;
    hooks->host_memory_allocate = host_memory_allocate;
    hooks->host_memory_deallocate = host_memory_deallocate;
    hooks->unified_memory_allocate = host_memory_allocate;
    hooks->unified_memory_deallocate = host_memory_deallocate;
    hooks->memory_copy_h2d = copy_now;
    hooks->memory_copy_d2h = copy_now;
    hooks->memory_copy_d2d = copy_now;
    hooks->memory_copy_p2p = copy_between_now;
    hooks->async_memory_copy_h2d = copy;
    hooks->async_memory_copy_d2h = copy;
    hooks->async_memory_copy_d2d = copy;
    hooks->async_memory_copy_p2p = copy_between;
    hooks->device_memory_stats = device_memory_stats;
}
