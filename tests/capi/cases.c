/* Cases for the functions of halstream.h, as an extension module of their own: each is
 * run on a thread that holds Python's lock, on one that has released it, and on one
 * that Python has never seen. A case returns NULL, or the text of what is wrong. */
#include "cases.h"

const halstream_api *api;

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

/* A function that runs until it is told to end. */
static atomic_int blocking = 0, running = 0;

static int block(void *argument, char *text, size_t room)
{
    (void)argument, (void)text, (void)room;
    struct timespec pause = {0, 100000};
    atomic_store(&running, 1);
    while (atomic_load(&blocking)) nanosleep(&pause, NULL);
    atomic_store(&running, 0);
    return 0;
}

/* Returns when it runs. */
static PyObject *enqueue_blocking(PyObject *self, PyObject *stream)
{
    (void)self;
    halstream_operation o = operation(block, NULL);
    o.name = "test::block";
    atomic_store(&blocking, 1);
    int code = api->enqueue(PyLong_AsLongLong(stream), &o);
    struct timespec pause = {0, 100000};
    for (int i = 0; i < 100000 && !code && !atomic_load(&running); i++) nanosleep(&pause, NULL);
    return answer(code);
}

static PyObject *unblock(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    atomic_store(&blocking, 0);
    Py_RETURN_NONE;
}

static PyObject *enqueue_failing(PyObject *self, PyObject *stream)
{
    (void)self;
    halstream_operation o = operation(fail, &shared);
    return answer(api->enqueue(PyLong_AsLongLong(stream), &o));
}

/* A function with whose error the device is lost, enqueued at the line of the program that calls. */
static PyObject *enqueue_losing(PyObject *self, PyObject *stream)
{
    (void)self;
    halstream_operation o = operation(fail, &shared);
    o.release = release;
    o.flags = HALSTREAM_LOSES_DEVICE;
    o.site = api->line_here();
    return answer(api->enqueue(PyLong_AsLongLong(stream), &o));
}

/* A function that hands in one range, and the code of that. */
static atomic_int code_of_hand_in = -1;

static int hand_in_one(void *argument, char *text, size_t room)
{
    (void)text, (void)room;
    atomic_store(&code_of_hand_in, api->hand_in(argument, 1));
    return 0;
}

/* enqueue_handing_in(stream, flagged, start, bytes, offset, size): a function that may write to bytes from a
 * start, and hands in size of them at an offset. */
static PyObject *enqueue_handing_in(PyObject *self, PyObject *args)
{
    (void)self;
    long long stream;
    int flagged;
    unsigned long long start, bytes, offset, size;
    if (!PyArg_ParseTuple(args, "LpKKKK", &stream, &flagged, &start, &bytes, &offset, &size)) return NULL;
    halstream_range *what = malloc(sizeof *what);
    if (what == NULL) return PyErr_NoMemory();
    *what = (halstream_range){start + offset, size, 0, 0, HALSTREAM_WRITE, 0};
    halstream_range most = {start, bytes, 0, 0, HALSTREAM_WRITE, 0};
    halstream_operation o = operation(hand_in_one, &shared);
    o.argument = what;
    o.release = free;
    o.ranges = &most;
    o.count = 1;
    o.flags = flagged ? HALSTREAM_HANDS_IN : 0;
    return answer(api->enqueue(stream, &o));
}

/* The code of the latest hand_in of such a function. */
static PyObject *handed_in(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return PyLong_FromLong(atomic_load(&code_of_hand_in));
}

static PyObject *hand_in(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return answer(api->hand_in(NULL, 0));
}

static PyObject *device_failure(PyObject *self, PyObject *device)
{
    (void)self;
    char text[256];
    int code = api->device_failure((int32_t)PyLong_AsLong(device), text, sizeof text);
    return code ? answer(code) : PyUnicode_FromString(text);
}

/* The codes of calls on a lost device, without a look at their texts: (enqueue, stream_query, stream_synchronize,
 * event_query, event_record, block_new, device_synchronize, stream_new). */
static PyObject *codes_of_lost(PyObject *self, PyObject *args)
{
    (void)self;
    long long stream, event;
    halstream_id made;
    uint64_t address;
    int done;
    if (!PyArg_ParseTuple(args, "LL", &stream, &event)) return NULL;
    halstream_operation o = operation(add, &shared);
    return Py_BuildValue("(iiiiiiii)", api->enqueue(stream, &o), api->stream_query(stream, &done),
                         api->stream_synchronize(stream, -1), api->event_query(event, &done),
                         api->event_record(event, stream), api->block_new(stream, 64, &made, &address),
                         api->device_synchronize(0, -1), api->stream_new(0, 0, 0, &made));
}

static PyObject *host_access(PyObject *self, PyObject *args)
{
    (void)self;
    unsigned long long address, bytes;
    unsigned access;
    if (!PyArg_ParseTuple(args, "KKI", &address, &bytes, &access)) return NULL;
    return answer(api->host_access(address, bytes, access));
}

static PyObject *capture_of(PyObject *self, PyObject *stream)
{
    (void)self;
    uint64_t capture = 0;
    int code = api->stream_capture(PyLong_AsLongLong(stream), &capture);
    return code ? answer(code) : PyLong_FromUnsignedLongLong(capture);
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
    {"enqueue_failing", enqueue_failing, METH_O, NULL}, {"enqueue_losing", enqueue_losing, METH_O, NULL},
    {"enqueue_handing_in", enqueue_handing_in, METH_VARARGS, NULL}, {"handed_in", handed_in, METH_NOARGS, NULL},
    {"hand_in", hand_in, METH_NOARGS, NULL},
    {"device_failure", device_failure, METH_O, NULL}, {"codes_of_lost", codes_of_lost, METH_VARARGS, NULL},
    {"host_access", host_access, METH_VARARGS, NULL},
    {"site_here", site_here, METH_NOARGS, NULL}, {"site_new", site_new, METH_VARARGS, NULL},
    {"listening", listening, METH_NOARGS, NULL}, {"generation", generation, METH_NOARGS, NULL},
    {"all_codes", all_codes, METH_O, NULL}, {"leave_threads", leave_threads, METH_O, NULL},
    {"counts", counts, METH_NOARGS, NULL}, {"capture_of", capture_of, METH_O, NULL},
    {"enqueue_blocking", enqueue_blocking, METH_O, NULL}, {"unblock", unblock, METH_NOARGS, NULL}, {"call_at_exit", call_at_exit, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "capi_cases", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_capi_cases(void) { return PyModule_Create(&module); }
