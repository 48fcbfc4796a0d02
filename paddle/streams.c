/* Streams, events and waits. Paddle calls these on the program's threads, most of them with Python's lock. */
#include <Python.h>

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

_Thread_local struct next_stream next_stream;
_Thread_local uint32_t next_event_flags;

/* All streams of Paddle, in the order of their creation. The stream of a device's context is the default stream,
 * which reports call so; its order with others is that of any stream, as they are non-blocking. */
static struct entry {
    halstream_id stream;
    int32_t device;
    int is_default;
} *streams;
static size_t count, room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void lock_streams(void) { pthread_mutex_lock(&lock); }
void unlock_streams(void) { pthread_mutex_unlock(&lock); }

size_t streams_of(int32_t device, halstream_id *into, size_t most)
{
    size_t found = 0;
    lock_streams();
    for (size_t i = 0; i < count; i++) {
        if (streams[i].device != device) continue;
        if (found < most) into[found] = streams[i].stream;
        found++;
    }
    unlock_streams();
    return found;
}

halstream_id default_stream(int32_t device)
{
    halstream_id stream = 0;
    core->stream_default(device, &stream);
    return stream;
}

static int remember(struct entry one)
{
    lock_streams();
    if (count == room) {
        size_t more = room ? 2 * room : 16;
        struct entry *grown = realloc(streams, more * sizeof *streams);
        if (grown == NULL) {
            unlock_streams();
            return 0;
        }
        streams = grown;
        room = more;
    }
    streams[count++] = one;
    unlock_streams();
    return 1;
}

static int has_default(int32_t device)
{
    int found = 0;
    lock_streams();
    for (size_t i = 0; i < count; i++) found |= streams[i].is_default && streams[i].device == device;
    unlock_streams();
    return found;
}

static int create_stream(paddle_device device, paddle_stream *stream)
{
    struct next_stream wanted = next_stream;
    next_stream = (struct next_stream){0};
    if (forked) { /* any number: nothing looks at it */
        *stream = handle_of(1);
        return PADDLE_SUCCESS;
    }
    struct entry one = {.device = device->id};
    int code;
    if (wanted.announced) {
        code = core->stream_new(device->id, wanted.priority, wanted.flags, &one.stream);
    } else if (has_default(device->id)) {
        code = core->stream_new(device->id, 0, HALSTREAM_STREAM_NON_BLOCKING, &one.stream);
    } else {
        one.is_default = 1;
        code = core->stream_default(device->id, &one.stream);
    }
    if (code != HALSTREAM_OK) return result(code, "create a stream");
    if (!remember(one)) return PADDLE_FAILED;
    *stream = handle_of(one.stream);
    return PADDLE_SUCCESS;
}

static int destroy_stream(paddle_device device, paddle_stream stream)
{
    (void)device;
    if (forked) return PADDLE_SUCCESS;
    int is_default = 0;
    lock_streams();
    for (size_t i = 0; i < count; i++) {
        if (streams[i].stream != id_of(stream)) continue;
        is_default = streams[i].is_default;
        for (count--; i < count; i++) streams[i] = streams[i + 1];
        break;
    }
    unlock_streams();
    return is_default ? PADDLE_SUCCESS : result(core->stream_close(id_of(stream)), "close a stream");
}

static int answer(int code, int done, const char *doing)
{
    if (code != HALSTREAM_OK) return result(code, doing);
    return done ? PADDLE_SUCCESS : PADDLE_FAILED;
}

static int query_stream(paddle_device device, paddle_stream stream)
{
    (void)device;
    if (forked) return PADDLE_SUCCESS;
    int done = 0, code = core->stream_query(id_of(stream), &done);
    return answer(code, done, "query a stream");
}

static int create_event(paddle_device device, paddle_event *event)
{
    uint32_t flags = next_event_flags;
    next_event_flags = 0;
    halstream_id id = 1;
    if (!forked) {
        int code = core->event_new(device->id, flags, &id);
        if (code != HALSTREAM_OK) return result(code, "create an event");
    }
    *event = handle_of(id);
    return PADDLE_SUCCESS;
}

static int destroy_event(paddle_device device, paddle_event event)
{
    (void)device;
    return forked ? PADDLE_SUCCESS : result(core->event_close(id_of(event)), "close an event");
}

static int record_event(paddle_device device, paddle_stream stream, paddle_event event)
{
    (void)device;
    if (forked) return PADDLE_SUCCESS;
    return result(core->event_record(id_of(event), id_of(stream)), "record an event");
}

static int query_event(paddle_device device, paddle_event event)
{
    (void)device;
    if (forked) return PADDLE_SUCCESS;
    int done = 0, code = core->event_query(id_of(event), &done);
    return answer(code, done, "query an event");
}

static int stream_wait_event(paddle_device device, paddle_stream stream, paddle_event event)
{
    (void)device;
    if (forked) return PADDLE_SUCCESS;
    return result(core->stream_wait_event(id_of(stream), id_of(event)), "let a stream wait for an event");
}

/* -- callbacks ------------------------------------------------------------- */

typedef struct {
    paddle_callback callback;
    struct paddle_ordinal device;
    paddle_stream stream;
    void *argument;
} callback;

static int run_callback(void *argument, char *text, size_t size)
{
    (void)text;
    (void)size;
    callback *one = argument;
    int status = PADDLE_SUCCESS;
    one->callback(&one->device, one->stream, one->argument, &status);
    return 0; /* Paddle's own callbacks leave the status as it is */
}

static int stream_add_callback(paddle_device device, paddle_stream stream, paddle_callback function, void *argument)
{
    callback *one = malloc(sizeof *one);
    if (one == NULL) return PADDLE_FAILED;
    *one = (callback){function, *device, stream, argument};
    if (forked) {
        run_callback(one, NULL, 0);
        free(one);
        return PADDLE_SUCCESS;
    }
    halstream_operation operation = {
        .size = sizeof operation, .name = "a callback of Paddle", .run = run_callback, .argument = one, .release = free,
    };
    int code = core->enqueue(id_of(stream), &operation);
    if (code != HALSTREAM_OK) free(one);
    return result(code, "add a callback");
}

/* -- waits of the host ------------------------------------------------------ */

static int with_lock(int (*wait)(halstream_id, int64_t), halstream_id id)
{
    /* Threads that Python does not know handle no signals, and need no lock. */
    if (!Py_IsInitialized() || PyGILState_GetThisThreadState() == NULL) return wait(id, -1);
    PyGILState_STATE state = PyGILState_Ensure();
    int code = wait(id, -1);
    PyGILState_Release(state);
    return code;
}

static int device_wait(halstream_id device, int64_t timeout) { return core->device_synchronize((int32_t)device, timeout); }

int wait_for_stream(halstream_id stream) { return forked ? HALSTREAM_OK : with_lock(core->stream_synchronize, stream); }
int wait_for_event(halstream_id event) { return forked ? HALSTREAM_OK : with_lock(core->event_synchronize, event); }
int wait_for_device(int32_t device) { return forked ? HALSTREAM_OK : with_lock(device_wait, device); }

static int synchronize_device(paddle_device device) { return result(wait_for_device(device->id), "synchronize a device"); }

static int synchronize_stream(paddle_device device, paddle_stream stream)
{
    (void)device;
    return result(wait_for_stream(id_of(stream)), "synchronize a stream");
}

/* Whether Paddle's destructor of events is among the callers. It waits for the event, and ends the process if that
 * fails. The runtime needs no such wait: what waits for the event keeps what was recorded. */
static int is_dropped(void)
{
    void *frames[8];
    int found = backtrace(frames, sizeof frames / sizeof *frames);
    for (int i = 2; i < found; i++) {
        Dl_info info;
        if (dladdr(frames[i], &info) == 0 || info.dli_sname == NULL) continue;
        if (strstr(info.dli_sname, "phi5event5EventD") || strstr(info.dli_sname, "phi5event5Event7Destroy")) return 1;
    }
    return 0;
}

static int synchronize_event(paddle_device device, paddle_event event)
{
    (void)device;
    int done = 1;
    if (!forked) core->event_query(id_of(event), &done);
    if (done || is_dropped()) return PADDLE_SUCCESS;
    return result(wait_for_event(id_of(event)), "synchronize an event");
}

void fill_stream_hooks(struct paddle_hooks *hooks)
{
    hooks->create_stream = create_stream;
    hooks->destroy_stream = destroy_stream;
    hooks->query_stream = query_stream;
    hooks->stream_add_callback = stream_add_callback;
    hooks->create_event = create_event;
    hooks->record_event = record_event;
    hooks->destroy_event = destroy_event;
    hooks->query_event = query_event;
    hooks->synchronize_device = synchronize_device;
    hooks->synchronize_stream = synchronize_stream;
    hooks->synchronize_event = synchronize_event;
    hooks->stream_wait_event = stream_wait_event;
}
