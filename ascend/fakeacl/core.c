/* Calls, objects, errors, and what tests control. */
#include "fakeacl.h"

#include <stdio.h>
#include <unistd.h>

struct state state = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static const char *const names[FN_COUNT] = {
#define FUNCTION(name) [FN_##name] = #name,
#include "functions.h"
#undef FUNCTION
};

struct fault {
    struct fault *next;
    unsigned long long at; /* the number of the call; 0: every one */
    aclError code;
};
static struct fault *faults[FN_COUNT];
static unsigned long long counts[FN_COUNT];
static atomic_ullong illegal; /* calls within callbacks */
static bool stopping[FN_COUNT]; /* whose calls stop behind their answer, as if their thread did not go on */
static pthread_cond_t stops_changed = PTHREAD_COND_INITIALIZER;
static unsigned long long stopped; /* calls that are stopped now */
static uint64_t resets;

struct thread *this_thread(void) {
    static _Thread_local struct thread thread;
    return &thread;
}

static aclError fault_of(enum function function) {
    for (struct fault *f = faults[function]; f != NULL; f = f->next)
        if (f->at == 0 || f->at == counts[function])
            return f->code;
    return ACL_SUCCESS;
}

aclError begin(enum function function) {
    struct thread *thread = this_thread();
    if (thread->reporting) {
        /* "Must not call": a library may deadlock then. A code says which call it was. */
        atomic_fetch_add(&illegal, 1);
        return ACL_ERROR_RT_NO_PERMISSION;
    }
    pthread_mutex_lock(&state.lock);
    if (thread->generation != resets) {
        thread->generation = resets;
        thread->current = NULL;
    }
    counts[function]++;
    aclError code = fault_of(function);
    if (code == ACL_SUCCESS && state.users == 0 && function != FN_aclInit && function != FN_aclrtGetVersion &&
        function != FN_aclFinalize)
        code = ACL_ERROR_UNINITIALIZE;
    return code == ACL_SUCCESS ? ACL_SUCCESS : end(function, code);
}

aclError end(enum function function, aclError code) {
    if (stopping[function]) {
        stopped++;
        while (stopping[function]) pthread_cond_wait(&stops_changed, &state.lock);
        stopped--;
    }
    pthread_mutex_unlock(&state.lock);
    struct thread *thread = this_thread();
    if (code != ACL_SUCCESS) {
        snprintf(thread->text, sizeof thread->text, "EE1001: %s of the look-alike returned %d", names[function], code);
        thread->has_text = true;
    }
    return code;
}

__attribute__((visibility("default"))) const char *aclGetRecentErrMsg(void) {
    struct thread *thread = this_thread();
    bool has = thread->has_text;
    thread->has_text = false;
    return has ? thread->text : NULL;
}

/* ---- Objects ---- */

static struct object **bucket_of(const void *address) { return &state.objects[(uintptr_t)address / 64 % BUCKETS]; }

void *object_new(enum kind kind, size_t size) {
    struct object *object = calloc(1, size);
    if (object == NULL) abort();
    struct object **bucket = bucket_of(object);
    object->kind = kind;
    object->next = *bucket;
    *bucket = object;
    state.live[kind]++;
    return object;
}

void object_drop(struct object *object) {
    state.live[object->kind]--;
    object->kind = FREED;
}

/* Looks in the list, as a handle may be of another library. */
bool is(const void *handle, enum kind kind) {
    for (const struct object *o = *bucket_of(handle); o != NULL; o = o->next)
        if (o == handle) return o->kind == kind;
    return false;
}

void wait_for_change(void) {
    state.waiting++;
    pthread_cond_wait(&state.changed, &state.lock);
    state.waiting--;
}

void tell_change(void) {
    if (state.waiting > 0) pthread_cond_broadcast(&state.changed);
}

/* A device was lost, or the settings have changed. */
void tell_everybody(void) {
    tell_change();
    for (int i = 0; i < MAX_DEVICES; i++)
        for (struct stream *s = state.devices[i].primary ? state.devices[i].primary->streams : NULL; s != NULL; s = s->next)
            pthread_cond_signal(&s->work);
}

/* ---- Settings ---- */

static unsigned long long number(const char *name, unsigned long long otherwise) {
    const char *text = getenv(name);
    return text != NULL && *text ? strtoull(text, NULL, 0) : otherwise;
}

static int number_of(const char *name) {
    for (int i = 0; i < FN_COUNT; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
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
    if (f == NULL) return -1;
    f->at = strtoull(at + (*at == '+'), NULL, 10) + (*at == '+' ? counts[function] : 0);
    f->code = atoi(code);
    f->next = faults[function];
    faults[function] = f;
    return 0;
}

static int stop_calls(const char *name, bool on) {
    int function = number_of(name);
    if (function < 0) return -1;
    stopping[function] = on;
    pthread_cond_broadcast(&stops_changed);
    return 0;
}

static void stop_calls_no_more(void) {
    memset(stopping, 0, sizeof stopping);
    pthread_cond_broadcast(&stops_changed);
}

/* Reads a list like "aclrtRecordEvent:3:507899,aclrtMalloc:1:207001". */
static void read_faults(void) {
    const char *text = getenv("FAKEACL_FAULTS");
    char *list = strdup(text != NULL ? text : ""), *rest = list, *entry;
    while (list != NULL && (entry = strsep(&rest, ",")) != NULL) {
        const char *name = strsep(&entry, ":"), *at = strsep(&entry, ":"), *code = strsep(&entry, ":");
        if (*name && (code == NULL || add_fault(name, at, code) != 0)) {
            fprintf(stderr, "fakeacl: FAKEACL_FAULTS: cannot read \"%s\"\n", name);
            abort();
        }
    }
    free(list);
}

void read_settings(void) {
    struct settings *s = &state.settings;
    s->devices = (int)number("FAKEACL_DEVICES", 2);
    if (s->devices > MAX_DEVICES) s->devices = MAX_DEVICES;
    s->version = (int)number("FAKEACL_MINOR", ACL_MINOR_VERSION);
    s->queue = (unsigned)number("FAKEACL_QUEUE", 0);
    s->streams = (unsigned)number("FAKEACL_STREAMS", 1984);
    s->memory = number("FAKEACL_MEMORY", 256ull << 20);
    s->no_block = (int)number("FAKEACL_NO_BLOCK", 1);
    s->planes = (int)number("FAKEACL_PLANES", 0);
    drop_faults();
    read_faults();
}

__attribute__((constructor)) static void loaded(void) {
    state.last_report = &state.reports;
    for (int i = 0; i < REPORT_CONDITIONS; i++) pthread_cond_init(&state.reported[i], NULL);
    read_settings();
}

/* ---- Control from tests ---- */

/* As if the library had just been loaded. What streams still do is waited for. */
static void reset(void) {
    stop_calls_no_more();
    for (int i = 0; i < MAX_DEVICES; i++)
        if (state.devices[i].primary != NULL) streams_drop(state.devices[i].primary);
    for (int i = 0; i < BUCKETS; i++)
        for (struct object *o = state.objects[i]; o != NULL; o = o->next)
            if (o->kind != FREED) object_drop(o);
    state.reports = NULL;
    state.last_report = &state.reports;
    memory_drop();
    for (int i = 0; i < MAX_DEVICES; i++) {
        struct device *d = &state.devices[i];
        d->users = 0, d->lost = 0, d->primary = NULL, d->used = 0;
        memset(d->peers, 0, sizeof d->peers);
    }
    memset(counts, 0, sizeof counts);
    atomic_store(&illegal, 0);
    state.users = 0;
    state.left_streams = 0;
    resets++;
    read_settings();
}

/* Executes one command. Returns 0, or -1 if it is unknown or names an unknown object. */
CONTROL int fakeacl_control(const char *command) {
    char copy[256], *rest = copy, *words[4] = {NULL};
    snprintf(copy, sizeof copy, "%s", command);
    for (int i = 0; i < 4 && rest != NULL; i++) words[i] = strsep(&rest, " ");
    int done = -1;
    pthread_mutex_lock(&state.lock);
    if (strcmp(words[0], "reset") == 0) {
        reset();
        done = 0;
    } else if (strcmp(words[0], "faults") == 0) {
        drop_faults();
        done = 0;
    } else if (strcmp(words[0], "fault") == 0 && words[3]) {
        done = add_fault(words[1], words[2], words[3]);
    } else if (strcmp(words[0], "stop") == 0 && words[2]) {
        done = stop_calls(words[1], strcmp(words[2], "0") != 0);
    } else if (strcmp(words[0], "queue") == 0 && words[1]) {
        state.settings.queue = (unsigned)strtoul(words[1], NULL, 10);
        done = 0;
    } else if (strcmp(words[0], "lose") == 0 && words[2] && (unsigned)atoi(words[1]) < MAX_DEVICES) {
        lose(atoi(words[1]), atoi(words[2]));
        done = 0;
    }
    tell_everybody();
    pthread_mutex_unlock(&state.lock);
    return done;
}

/* How many operations are enqueued and not done. */
static unsigned long long pending(void) {
    unsigned long long total = 0;
    for (int i = 0; i < MAX_DEVICES; i++)
        for (struct stream *s = state.devices[i].primary ? state.devices[i].primary->streams : NULL; s != NULL; s = s->next)
            total += s->enqueued - s->completed;
    return total;
}

/* The number of calls of a function, or another figure; -1 of unsigned type if there is none of that name. */
CONTROL unsigned long long fakeacl_count(const char *name) {
    unsigned long long total = 0, found = (unsigned long long)-1;
    pthread_mutex_lock(&state.lock);
    for (int i = 0; i < FN_COUNT; i++) total += counts[i];
    const struct { const char *name; unsigned long long value; } figures[] = {
        {"total", total},
        {"illegal", atomic_load(&illegal)},
        {"pending", pending()},
        {"stopped", stopped},
        {"live.streams", state.live[STREAM]},
        {"left.streams", state.left_streams},
        {"live.events", state.live[EVENT]},
        {"live.memory", state.live_memory},
        {"live.pinned", state.live_pinned},
        {"live.registered", state.live_registered},
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (strcmp(figures[i].name, name) == 0) found = figures[i].value;
    if (number_of(name) >= 0) found = counts[number_of(name)];
    pthread_mutex_unlock(&state.lock);
    return found;
}

/* Where a test can read the memory at an address of a device; NULL if there is none. */
CONTROL void *fakeacl_host(unsigned long long address) {
    pthread_mutex_lock(&state.lock);
    const void *at = (const void *)(uintptr_t)address;
    char *found = block_of(at, 1) != NULL ? reachable(at) : NULL;
    pthread_mutex_unlock(&state.lock);
    return found;
}

/* By its presence a caller distinguishes this library from a vendor's. */
CONTROL int fakeacl_is_fake(void) { return 1; }
