/* What tests control: counts of calls, faults, slow calls, settings. */
#include "graph.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct state state = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .contexts = {.kind = 0x51},
    .streams = {.kind = 0x52},
    .events = {.kind = 0x53},
    .modules = {.kind = 0x54},
    .functions = {.kind = 0x55},
    .pools = {.kind = 0x56},
    .libraries = {.kind = 0x57},
    .kernels = {.kind = 0x58},
};
atomic_bool ended;

struct fault {
    struct fault *next;
    unsigned long long at; /* the number of the call; 0: every call */
    CUresult code;
};

static const char *const names[FN_COUNT] = {
#define FUNCTION(name, base, version) [FN_##name] = #name,
#include "functions.h"
#undef FUNCTION
};
static const int versions[FN_COUNT] = {
#define FUNCTION(name, base, version) [FN_##name] = version,
#include "functions.h"
#undef FUNCTION
};
static unsigned long long counts[FN_COUNT], absent;
static atomic_ullong illegal; /* counted without the lock */
static atomic_long slow[FN_COUNT];
static atomic_ullong sleeping; /* calls that are slow now, and have done nothing yet */
static struct fault *faults[FN_COUNT];
static atomic_bool forked;
static uint64_t resets;
static FILE *calls; /* the log; NULL: none */

bool in_forked_child(void) {
    return atomic_load(&forked);
}

int number_of(const char *name) {
    for (int i = 0; i < FN_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

const char *name_of(int function) {
    return names[function];
}

uint64_t reset_count(void) {
    return resets;
}

bool is_sticky(CUresult code) {
    switch (code) {
    case 214: case 220: case 700: case 702: case 710: case 714: case 715: case 716:
    case 717: case 718: case 719: case 721: case 810: case 911:
        return true;
    }
    return false;
}

static bool works_before_init(int function) {
    return function == FN_cuInit || function == FN_cuDriverGetVersion || function == FN_cuGetProcAddress_v2 ||
           function == FN_cuGetErrorName || function == FN_cuGetErrorString || function == FN_cuGetExportTable;
}

static CUresult fault_of(int function) {
    CUresult code = SUCCESS;
    for (struct fault *f = faults[function]; f != NULL; f = f->next)
        if (f->at == 0 || f->at == counts[function])
            code = f->code;
    return code;
}

/* Starts a call. On success the lock is held. */
CUresult begin(int function, uint64_t handle) {
    if (atomic_load_explicit(&ended, memory_order_relaxed))
        return DEINITIALIZED;
    if (atomic_load_explicit(&forked, memory_order_relaxed))
        return NOT_INITIALIZED;
    struct thread *thread = this_thread();
    if (thread->hosting) {
        atomic_fetch_add(&illegal, 1);
        return NOT_PERMITTED;
    }
    long microseconds = atomic_load_explicit(&slow[function], memory_order_relaxed);
    if (microseconds > 0) {
        struct timespec left = {microseconds / 1000000, microseconds % 1000000 * 1000};
        atomic_fetch_add(&sleeping, 1);
        while (nanosleep(&left, &left) != 0 && errno == EINTR) {
        }
        atomic_fetch_sub(&sleeping, 1);
    }
    pthread_mutex_lock(&state.lock);
    if (thread->generation != resets) {
        bool hosting = thread->hosting;
        memset(thread, 0, sizeof *thread);
        thread->generation = resets;
        thread->hosting = hosting;
    }
    thread->function = function;
    counts[function]++;
    if (calls != NULL)
        fprintf(calls, "%ld %s\n", (long)gettid(), names[function]);
    if (versions[function] > state.settings.version) {
        absent++;
        return end(NOT_SUPPORTED);
    }
    if (faults[function] != NULL) {
        CUresult code = fault_of(function);
        if (code != SUCCESS) {
            struct context *context = context_of(handle);
            if (is_sticky(code) && context != NULL)
                poison(context, code);
            return end(code);
        }
    }
    if (!state.initialized && !works_before_init(function))
        return end(NOT_INITIALIZED);
    CUresult code = capture_permits(function, handle);
    if (code != SUCCESS)
        return end(code);
    enter_context(function, handle);
    return SUCCESS;
}

/* ---- Settings ---- */

static unsigned long long number(const char *name, unsigned long long otherwise) {
    const char *text = getenv(name);
    return text != NULL && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void drop_faults(void) {
    for (int i = 0; i < FN_COUNT; i++) {
        while (faults[i] != NULL) {
            struct fault *f = faults[i];
            faults[i] = f->next;
            free(f);
        }
    }
}

/* at is a number of a call; with a plus in front it counts from now. */
static int add_fault(const char *name, const char *at, const char *code) {
    int function = number_of(name);
    struct fault *f = function < 0 ? NULL : calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    f->at = strtoull(at + (*at == '+'), NULL, 10) + (*at == '+' ? counts[function] : 0);
    f->code = atoi(code);
    f->next = faults[function];
    faults[function] = f;
    return 0;
}

static int make_slow(const char *name, const char *microseconds) {
    int function = number_of(name);
    if (function < 0)
        return -1;
    atomic_store(&slow[function], atol(microseconds));
    return 0;
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
void read_settings(void) {
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
    for (int i = 0; i < FN_COUNT; i++)
        atomic_store(&slow[i], 0);
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
    pool_drop_all();
    close_devices();
    struct table *const tables[] = {&state.contexts, &state.streams,   &state.events,
                                    &state.modules,  &state.functions, &state.pools,
                                    &state.libraries, &state.kernels};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        table_clear(tables[i]);
    memset(counts, 0, sizeof counts);
    absent = 0;
    state.dead_handles = 0;
    state.looks = 0;
    state.optional = false;
    state.launched_shared = state.launched_cluster = 0;
    atomic_store(&illegal, 0);
    state.initialized = false;
    state.device_count = 0;
    resets++;
    read_settings();
}

/* "log PATH" writes the thread and the name of each call into a file, "log off" closes it. */
static int log_calls(const char *path) {
    if (calls != NULL)
        fclose(calls);
    calls = NULL;
    if (strcmp(path, "off") == 0)
        return 0;
    calls = fopen(path, "we");
    return calls != NULL ? 0 : -1;
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
        for (size_t i = 0; i < state.contexts.count; i++)
            if (state.contexts.items[i] != NULL)
                wake_all(state.contexts.items[i]);
        done = 0;
    } else if (strcmp(words[0], "log") == 0 && words[1]) {
        done = log_calls(words[1]);
    } else if (strcmp(words[0], "poison") == 0 && words[2]) {
        int device = atoi(words[1]), code = atoi(words[2]);
        if (device >= 0 && device < state.device_count && state.devices[device].context != NULL && code > 0) {
            poison(state.devices[device].context, code);
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
    unsigned long long total = 0, found = (unsigned long long)-1;
    pthread_mutex_lock(&state.lock);
    for (int i = 0; i < FN_COUNT; i++)
        total += counts[i];
    const struct { const char *name; unsigned long long value; } figures[] = {
        {"total", total + atomic_load(&illegal)},
        {"illegal", atomic_load(&illegal)},
        {"absent", absent},
        {"dead", state.dead_handles},
        {"sleeping", atomic_load(&sleeping)},
        {"stopped", stopped_calls()},
        {"looks", state.looks},
        {"launched.shared", state.launched_shared},
        {"launched.cluster", state.launched_cluster},
        {"live.contexts", table_live(&state.contexts)},
        {"live.streams", table_live(&state.streams)},
        {"live.events", table_live(&state.events)},
        {"live.graphs", live_graphs()},
        {"live.executables", live_executables()},
        {"live.modules", table_live(&state.modules)},
        {"live.pools", live_pools()},
        {"live.memory", state.live_memory},
        {"live.bytes", bytes_in_use()},
        {"live.pinned", state.live_pinned},
        {"live.registered", state.live_registered},
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (strcmp(figures[i].name, name) == 0)
            found = figures[i].value;
    int function = number_of(name);
    if (function >= 0)
        found = counts[function];
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
    const struct table *const tables[] = {&state.contexts, &state.streams, &state.events, &state.modules,
                                          &state.functions, &state.pools, &state.libraries, &state.kernels};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        mmap((void *)(tables[i]->kind << KIND_SHIFT), RESERVED_HANDLES << SLOT_SHIFT, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

__attribute__((constructor)) static void loaded(void) {
    reserve_handles();
    read_settings();
    pthread_atfork(before_fork, after_fork, in_child);
}
