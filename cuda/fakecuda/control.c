/* What tests control: settings, commands, figures. */
#include "capture.h"
#include "contention.h"
#include "device.h"
#include "event.h"
#include "graph.h"
#include "memory.h"
#include "module.h"

#include <stdio.h>
#include <strings.h>
#include <sys/mman.h>

#define MOST_CONNECTIONS 32

/* The context that an object belongs to; the current one for other numbers. */
static struct context *context_of(uint64_t handle) {
    const struct stream *stream = table_get(&streams, handle);
    const struct event *event = table_get(&events, handle);
    if (stream != NULL)
        return stream->context;
    if (event != NULL)
        return event->context;
    struct context *context = table_get(&contexts, handle);
    if (context == NULL && this_thread()->depth > 0)
        context = table_get(&contexts, this_thread()->stack[this_thread()->depth - 1]);
    return context;
}

static void fail(uint64_t handle, CUresult code) {
    struct context *context = context_of(handle);
    if (context != NULL)
        poison(context, code);
}

const struct rules rules = {
    .context_of = context_of, .fail = fail, .permits = capture_permits, .enter = enter_context, .leave = leave_context};

/* ---- Settings ---- */

static unsigned long long number(const char *name, unsigned long long otherwise) {
    const char *text = getenv(name);
    return text != NULL && *text ? strtoull(text, NULL, 0) : otherwise;
}

/* Reads lists like "cuEventRecord:3:700,cuMemAlloc_v2:1:2". */
static void read_list(const char *variable, bool is_fault) {
    const char *text = getenv(variable);
    char *list = strdup(text != NULL ? text : ""), *rest = list, *entry;
    while (list != NULL && (entry = strsep(&rest, ",")) != NULL) {
        const char *name = strsep(&entry, ":"), *first = strsep(&entry, ":"), *second = strsep(&entry, ":");
        bool complete = first != NULL && (second != NULL || !is_fault);
        bool wrong = !complete;
        if (*name && complete)
            wrong = (is_fault ? add_fault(name, first, second) : make_slow(name, first)) != 0;
        if (*name && wrong) {
            fprintf(stderr, "fakecuda: %s: cannot read \"%s\"\n", variable, name);
            abort();
        }
    }
    free(list);
}

/* The silicon profile: all that a driver may do and that a caller must survive. */
static void read_profile(struct settings *s) {
    const char *profile = getenv("FAKECUDA_PROFILE");
    bool silicon = profile != NULL && strcmp(profile, "silicon") == 0;
    if (profile != NULL && *profile && !silicon) {
        fprintf(stderr, "fakecuda: FAKECUDA_PROFILE: there is no profile \"%s\"\n", profile);
        abort();
    }
    s->context_lock = (int)number("FAKECUDA_CONTEXT_LOCK", silicon);
    s->strict = (int)number("FAKECUDA_STRICT", silicon);
    s->unmap_at_exit = (int)number("FAKECUDA_EXIT", silicon);
    s->queue = (unsigned)number("FAKECUDA_QUEUE", silicon ? 1024 : 0);
    s->connections = (int)number("FAKECUDA_CONNECTIONS", silicon ? number("CUDA_DEVICE_MAX_CONNECTIONS", 8) : 0);
    if (s->connections > MOST_CONNECTIONS)
        s->connections = MOST_CONNECTIONS;
    s->priority_queues = (int)number("FAKECUDA_PRIORITY_QUEUES", 1);
    const char *apart = getenv("FAKECUDA_APART");
    free(s->apart);
    s->apart = apart != NULL && *apart ? strdup(apart) : NULL;
    read_draining(silicon ? SILICON_WAITS : "");
}

/* Called with the lock held, or before there is a second thread. */
static void read_settings(void) {
    struct settings *s = &state.settings;
    s->devices = (int)number("FAKECUDA_DEVICES", 2);
    if (s->devices > MAX_DEVICES)
        s->devices = MAX_DEVICES;
    s->version = (int)number("FAKECUDA_VERSION", 12090);
    s->memory = number("FAKECUDA_MEMORY", 1ull << 30) / GRANULE * GRANULE;
    s->memops = (int)number("FAKECUDA_MEMOPS", 1);
    s->pools = (int)number("FAKECUDA_POOLS", 1);
    s->host_threads = (int)number("FAKECUDA_HOST_THREADS", 1);
    if (s->host_threads < 1)
        s->host_threads = 1;
    read_profile(s);
    drop_faults();
    make_none_slow();
    read_list("FAKECUDA_FAULTS", true);
    read_list("FAKECUDA_SLOW", false);
}

/* ---- Control from tests ---- */

static void reset(void) {
    stop_calls_no_more();
    drop_captures();
    drop_graphs();
    drop_libraries();
    drop_contexts();
    pools_reset();
    close_devices();
    modules_reset();
    table_clear(&events);
    work_reset();
    drop_counts();
    state.initialized = false;
    state.resets++;
    read_settings();
}

/* Executes one command. Returns 0, or -1 if it is unknown or names an unknown object. */
CONTROL int fakecuda_control(const char *command) {
    char copy[256], *rest = copy, *words[4] = {NULL};
    snprintf(copy, sizeof copy, "%s", command);
    for (int i = 0; i < 4 && rest != NULL; i++)
        words[i] = strsep(&rest, " ");
    int done = -1;
    pthread_mutex_lock(&state.lock);
    if (strcmp(words[0], "reset") == 0) {
        reset();
        done = 0;
    } else if (strcmp(words[0], "faults") == 0 && words[1] && strcmp(words[1], "off") == 0) {
        drop_faults();
        done = 0;
    } else if (strcmp(words[0], "fault") == 0 && words[3]) {
        done = add_fault(words[1], words[2], words[3]);
    } else if (strcmp(words[0], "slow") == 0 && words[2]) {
        done = make_slow(words[1], words[2]);
    } else if (strcmp(words[0], "drain") == 0 && words[2]) {
        done = make_draining(words[1], strcmp(words[2], "0") != 0);
    } else if (strcmp(words[0], "stop") == 0 && words[2]) {
        done = make_stopping(words[1], strcmp(words[2], "0") != 0);
    } else if (strcmp(words[0], "strict") == 0 && words[1]) {
        state.settings.strict = strcmp(words[1], "0") != 0;
        done = 0;
    } else if (strcmp(words[0], "queue") == 0 && words[1]) {
        state.settings.queue = (unsigned)strtoul(words[1], NULL, 10);
        for (size_t i = 0; i < contexts.count; i++)
            if (contexts.items[i] != NULL)
                wake_all(contexts.items[i]);
        done = 0;
    } else if (strcmp(words[0], "log") == 0 && words[1]) {
        done = log_calls(words[1]);
    } else if (strcmp(words[0], "poison") == 0 && words[2]) {
        int device = atoi(words[1]), code = atoi(words[2]);
        if (device >= 0 && device < device_count && devices[device].context != NULL && code > 0) {
            poison(devices[device].context, code);
            done = 0;
        }
    } else {
        done = control_queues(words[0], words[1]);
    }
    pthread_mutex_unlock(&state.lock);
    return done;
}

/* The number of calls of a function, or another figure; -1 of unsigned type
 * when there is none of that name. */
CONTROL unsigned long long fakecuda_count(const char *name) {
    unsigned long long found = (unsigned long long)-1;
    pthread_mutex_lock(&state.lock);
    const struct { const char *name; unsigned long long value; } figures[] = {
        {"stopped", stopped_calls()},
        {"looks", looks_in_vain()},
        {"launched.shared", last_launch.shared},
        {"launched.cluster", last_launch.cluster},
        {"live.contexts", table_live(&contexts)},
        {"live.streams", table_live(&streams)},
        {"live.events", table_live(&events)},
        {"live.graphs", live_graphs()},
        {"live.executables", live_executables()},
        {"live.modules", live_modules()},
        {"live.pools", live_pools()},
        {"live.memory", live_blocks.memory},
        {"live.bytes", bytes_in_use()},
        {"live.pinned", live_blocks.pinned},
        {"live.registered", live_blocks.registered},
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (strcmp(figures[i].name, name) == 0)
            found = figures[i].value;
    count_of(name, &found);
    pthread_mutex_unlock(&state.lock);
    return found;
}

/* By its presence a caller distinguishes this library from a driver. */
CONTROL int fakecuda_is_fake(void) {
    return 1;
}

/* ---- The process ---- */

static void before_fork(void) {
    pthread_mutex_lock(&state.lock);
}

static void after_fork(void) {
    pthread_mutex_unlock(&state.lock);
}

static void in_child(void) {
    if (state.initialized)
        atomic_store(&forked, true);
    pthread_mutex_unlock(&state.lock);
}

/* The handles of a driver are addresses of memory that is mapped, where it looks without a check. */
static void reserve_handles(void) {
    for (uint64_t kind = CONTEXTS; kind <= KERNELS; kind++)
        mmap((void *)(kind << KIND_SHIFT), RESERVED_HANDLES << SLOT_SHIFT, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

__attribute__((constructor)) static void loaded(void) {
    reserve_handles();
    read_settings();
    pthread_atfork(before_fork, after_fork, in_child);
}
