/* Calls: counts, faults, slow calls; names of functions; objects by handles. */
#include "call.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

struct state state = {.lock = PTHREAD_MUTEX_INITIALIZER};
atomic_bool ended, forked;

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

struct fault {
    struct fault *next;
    unsigned long long at; /* the number of the call; 0: every call */
    CUresult code;
};

static struct {
    unsigned long long of[FN_COUNT], absent;
    unsigned long long dead; /* handles that callers have passed */
    atomic_ullong illegal;  /* counted without the lock */
    atomic_ullong sleeping; /* calls that are slow now, and have done nothing yet */
} counts;

static struct fault *faults[FN_COUNT];
static atomic_long slow[FN_COUNT];
static FILE *log_file; /* NULL: none */

static _Thread_local struct thread self;

struct thread *this_thread(void) {
    return &self;
}

uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int start_thread(void *(*body)(void *), void *argument, size_t stack) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (stack > 0)
        pthread_attr_setstacksize(&attributes, stack);
    int failed = pthread_create(&thread, &attributes, body, argument);
    pthread_attr_destroy(&attributes);
    return failed;
}

int number_of(const char *name) {
    for (int i = 0; i < FN_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static bool is_sticky(CUresult code) {
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
        if (f->at == 0 || f->at == counts.of[function])
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
        atomic_fetch_add(&counts.illegal, 1);
        return NOT_PERMITTED;
    }
    long microseconds = atomic_load_explicit(&slow[function], memory_order_relaxed);
    if (microseconds > 0) {
        struct timespec left = {microseconds / 1000000, microseconds % 1000000 * 1000};
        atomic_fetch_add(&counts.sleeping, 1);
        while (nanosleep(&left, &left) != 0 && errno == EINTR) {
        }
        atomic_fetch_sub(&counts.sleeping, 1);
    }
    pthread_mutex_lock(&state.lock);
    if (thread->generation != state.resets) {
        bool hosting = thread->hosting;
        memset(thread, 0, sizeof *thread);
        thread->generation = state.resets;
        thread->hosting = hosting;
    }
    thread->function = function;
    counts.of[function]++;
    if (log_file != NULL)
        fprintf(log_file, "%ld %s\n", (long)gettid(), names[function]);
    if (versions[function] > state.settings.version) {
        counts.absent++;
        return end(NOT_SUPPORTED);
    }
    if (faults[function] != NULL) {
        CUresult code = fault_of(function);
        if (code != SUCCESS) {
            if (is_sticky(code))
                rules.fail(handle, code);
            return end(code);
        }
    }
    if (!state.initialized && !works_before_init(function))
        return end(NOT_INITIALIZED);
    CUresult code = rules.permits(function, handle);
    if (code != SUCCESS)
        return end(code);
    rules.enter(function, handle);
    return SUCCESS;
}

CUresult end(CUresult code) {
    rules.leave();
    pthread_mutex_unlock(&state.lock);
    return code;
}

/* ---- What tests set and count ---- */

void drop_faults(void) {
    for (int i = 0; i < FN_COUNT; i++) {
        while (faults[i] != NULL) {
            struct fault *f = faults[i];
            faults[i] = f->next;
            free(f);
        }
    }
}

/* at is a number of a call; with a plus in front it counts from now. */
int add_fault(const char *name, const char *at, const char *code) {
    int function = number_of(name);
    struct fault *f = function < 0 ? NULL : calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    f->at = strtoull(at + (*at == '+'), NULL, 10) + (*at == '+' ? counts.of[function] : 0);
    f->code = atoi(code);
    f->next = faults[function];
    faults[function] = f;
    return 0;
}

int make_slow(const char *name, const char *microseconds) {
    int function = number_of(name);
    if (function < 0)
        return -1;
    atomic_store(&slow[function], atol(microseconds));
    return 0;
}

void make_none_slow(void) {
    for (int i = 0; i < FN_COUNT; i++)
        atomic_store(&slow[i], 0);
}

/* "log PATH" writes the thread and the name of each call into a file, "log off" closes it. */
int log_calls(const char *path) {
    if (log_file != NULL)
        fclose(log_file);
    log_file = NULL;
    if (strcmp(path, "off") == 0)
        return 0;
    log_file = fopen(path, "we");
    return log_file != NULL ? 0 : -1;
}

/* For reset. */
void drop_counts(void) {
    memset(counts.of, 0, sizeof counts.of);
    counts.absent = counts.dead = 0;
    atomic_store(&counts.illegal, 0);
}

/* The calls of a function, or another figure; false without one of that name. */
bool count_of(const char *name, unsigned long long *count) {
    unsigned long long total = atomic_load(&counts.illegal);
    for (int i = 0; i < FN_COUNT; i++)
        total += counts.of[i];
    const struct { const char *name; unsigned long long value; } figures[] = {
        {"total", total},
        {"illegal", atomic_load(&counts.illegal)},
        {"absent", counts.absent},
        {"dead", counts.dead},
        {"sleeping", atomic_load(&counts.sleeping)},
    };
    int function = number_of(name);
    if (function >= 0)
        *count = counts.of[function];
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        if (strcmp(figures[i].name, name) != 0)
            continue;
        *count = figures[i].value;
        return true;
    }
    return function >= 0;
}

/* ---- Objects by their handles ---- */

uint64_t table_put(struct table *table, void *item) {
    uint32_t slot;
    if (table->unused_count > 0) {
        slot = table->unused[--table->unused_count];
    } else {
        if (table->count == table->room) {
            table->room = table->room ? 2 * table->room : 64;
            table->items = realloc(table->items, table->room * sizeof *table->items);
            table->unused = realloc(table->unused, table->room * sizeof *table->unused);
            if (table->items == NULL || table->unused == NULL)
                abort();
        }
        slot = (uint32_t)table->count++;
    }
    table->items[slot] = item;
    return table->kind << KIND_SHIFT | ((uint64_t)slot + 1) << SLOT_SHIFT;
}

static size_t slot_of(const struct table *table, uint64_t handle) {
    uint64_t low = handle & ((1ull << KIND_SHIFT) - 1);
    if (handle >> KIND_SHIFT != table->kind || low & ((1 << SLOT_SHIFT) - 1) || low == 0)
        return table->count;
    return (low >> SLOT_SHIFT) - 1;
}

void *table_get(const struct table *table, uint64_t handle) {
    size_t slot = slot_of(table, handle);
    return slot < table->count ? table->items[slot] : NULL;
}

/* The object of a handle that a caller passed. With an unknown handle or one of an object that was destroyed a
 * driver does anything; where the settings are strict this ends the process, so that no test passes by luck. */
void *table_find(const struct table *table, uint64_t handle) {
    void *item = table_get(table, handle);
    if (item == NULL && handle != 0)
        counts.dead++;
    if (item == NULL && handle != 0 && state.settings.strict) {
        fprintf(stderr, "fakecuda: %s: 0x%llx is no live %s; a driver may crash or corrupt memory\n",
                names[this_thread()->function], (unsigned long long)handle, table->name);
        abort();
    }
    return item;
}

void table_drop(struct table *table, uint64_t handle) {
    size_t slot = slot_of(table, handle);
    if (slot >= table->count || table->items[slot] == NULL)
        return;
    table->items[slot] = NULL;
    table->unused[table->unused_count++] = (uint32_t)slot;
}

size_t table_live(const struct table *table) {
    return table->count - table->unused_count;
}

void table_clear(struct table *table) {
    table->count = table->unused_count = 0;
}
