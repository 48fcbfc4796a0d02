/* Times the functions of halstream.h, as an extension module: benchmarks/capi.py. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <halstream.h>
#include <time.h>

static const halstream_api *api;
static halstream_operation operation;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int nothing(void *argument, char *text, size_t room)
{
    (void)argument, (void)text, (void)room;
    return 0;
}

/* One call, in nanoseconds: the mean of `count` of them. */
#define TIME(name, call)                                                                                               \
    do {                                                                                                               \
        double began = seconds();                                                                                      \
        for (int i = 0; i < count; i++)                                                                                \
            if ((call) != HALSTREAM_OK) goto failed;                                                                   \
        PyObject *ns = PyFloat_FromDouble((seconds() - began) / count * 1e9);                                          \
        if (ns == NULL || PyDict_SetItemString(rows, name, ns) < 0) return NULL;                                       \
        Py_DECREF(ns);                                                                                                 \
    } while (0)
#define NEED(call)                                                                                                     \
    if ((call) != HALSTREAM_OK) goto failed

/* measure(capsule, count) */
static PyObject *measure(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *capsule;
    int count;
    if (!PyArg_ParseTuple(args, "Oi", &capsule, &count)) return NULL;
    api = PyCapsule_GetPointer(capsule, HALSTREAM_API_CAPSULE);
    PyObject *rows = api ? PyDict_New() : NULL;
    if (rows == NULL) return NULL;
    halstream_id stream, other, event, gate, block;
    uint64_t address;
    int done;
    NEED(api->stream_new(0, 0, HALSTREAM_STREAM_NON_BLOCKING, &stream));
    NEED(api->stream_new(0, 0, HALSTREAM_STREAM_NON_BLOCKING, &other));
    NEED(api->event_new(0, 0, &event));
    NEED(api->block_new(stream, 4096, &block, &address));
    halstream_range ranges[3] = {{address, 64, 0, 0, HALSTREAM_READ, 0}, {address + 512, 64, 0, 0, HALSTREAM_READ, 0},
                                 {address + 1024, 64, 0, 0, HALSTREAM_WRITE, 0}};
    operation = (halstream_operation){.size = sizeof operation, .name = "aten::addmm", .ranges = ranges, .count = 3,
                                      .run = nothing};
    TIME("record, idle stream", api->event_record(event, stream));
    TIME("wait for an event that is done", api->stream_wait_event(other, event));
    TIME("query of an idle stream", api->stream_query(stream, &done));
    TIME("synchronize of an idle stream", api->stream_synchronize(stream, -1));
    NEED(api->gate_new(stream, &gate));
    TIME("enqueue, 3 ranges, held stream", api->enqueue(stream, &operation));
    TIME("record, busy stream", api->event_record(event, stream));
    TIME("wait for a pending event", api->stream_wait_event(other, event));
    TIME("nop, held stream", api->nop(stream));
    NEED(api->gate_open(gate));
    NEED(api->stream_synchronize(other, -1));
    TIME("enqueue, 3 ranges, running stream", api->enqueue(stream, &operation));
    NEED(api->stream_synchronize(stream, -1));
    TIME("block, made and freed", api->block_new(stream, 4096, &block, &address) || api->block_free(block));
    TIME("event, made, recorded and closed",
         api->event_record_new(stream, 0, &event) || api->event_close(event));
    return rows;
failed:
    Py_DECREF(rows);
    return PyErr_Format(PyExc_RuntimeError, "%s", api->error_text());
}

static PyMethodDef methods[] = {{"measure", measure, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "capi", NULL, -1, methods, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_capi(void) { return PyModule_Create(&module); }
