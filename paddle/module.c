/* The functions for halstream.paddle.plugin: the library is an extension module of Python's, too. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "plugin.h"

/* Returns None, or raises RuntimeError with the runtime's text. */
static PyObject *none_or_error(int code)
{
    if (code == HALSTREAM_OK || code == HALSTREAM_SHUT_DOWN) Py_RETURN_NONE;
    if (code == HALSTREAM_INTERRUPTED) return NULL; /* Python's exception is set */
    return PyErr_Format(PyExc_RuntimeError, "%s", core->error_text());
}

static int is_loaded(void)
{
    if (core == NULL) PyErr_SetString(PyExc_RuntimeError, "Paddle has not loaded the plug-in");
    return core != NULL;
}

static PyObject *announce_stream(PyObject *self, PyObject *args)
{
    (void)self;
    int priority, blocking;
    if (!PyArg_ParseTuple(args, "ip", &priority, &blocking)) return NULL;
    next_stream = (struct next_stream){1, priority, blocking ? 0 : HALSTREAM_STREAM_NON_BLOCKING};
    Py_RETURN_NONE;
}

static PyObject *announce_event(PyObject *self, PyObject *args)
{
    (void)self;
    int timing, blocking;
    if (!PyArg_ParseTuple(args, "pp", &timing, &blocking)) return NULL;
    next_event_flags = (timing ? HALSTREAM_EVENT_TIMING : 0) | (blocking ? HALSTREAM_EVENT_BLOCKING_SYNC : 0);
    Py_RETURN_NONE;
}

static PyObject *wait_stream(PyObject *self, PyObject *args)
{
    (void)self;
    long long stream, other;
    if (!PyArg_ParseTuple(args, "LL", &stream, &other) || !is_loaded()) return NULL;
    return none_or_error(forked ? HALSTREAM_OK : core->stream_wait_stream(stream, other));
}

static PyObject *elapsed(PyObject *self, PyObject *args)
{
    (void)self;
    long long start, end;
    double milliseconds = 0;
    if (!PyArg_ParseTuple(args, "LL", &start, &end) || !is_loaded()) return NULL;
    int code = wait_for_event(end);
    if (code == HALSTREAM_OK && !forked) code = core->event_elapsed(start, end, &milliseconds);
    if (code != HALSTREAM_OK) return none_or_error(code);
    return PyFloat_FromDouble(milliseconds);
}

static PyObject *waited(PyObject *args, int (*wait)(halstream_id))
{
    long long id;
    if (!PyArg_ParseTuple(args, "L", &id) || !is_loaded()) return NULL;
    return none_or_error(wait(id));
}

static int device_wait(halstream_id device) { return wait_for_device((int32_t)device); }

static PyObject *synchronize_stream(PyObject *self, PyObject *args)
{
    (void)self;
    return waited(args, wait_for_stream);
}

static PyObject *synchronize_event(PyObject *self, PyObject *args)
{
    (void)self;
    return waited(args, wait_for_event);
}

static PyObject *synchronize_device(PyObject *self, PyObject *args)
{
    (void)self;
    return waited(args, device_wait);
}

/* The operators' half takes the table and the variables from here; it is linked to neither library. */
static struct {
    const halstream_api **core;
    const int *forked;
} for_operators = {&core, &forked};

static PyObject *shared(PyObject *self, PyObject *args)
{
    (void)self;
    (void)args;
    return PyCapsule_New(&for_operators, "halstream_paddle.shared", NULL);
}

static PyMethodDef methods[] = {
    {"announce_stream", announce_stream, METH_VARARGS, "announce_stream(priority, blocking): for the thread's next one."},
    {"announce_event", announce_event, METH_VARARGS, "announce_event(timing, blocking): for the thread's next one."},
    {"wait_stream", wait_stream, METH_VARARGS, "wait_stream(stream, other): let a stream wait; the host does not."},
    {"elapsed", elapsed, METH_VARARGS, "elapsed(start, end): milliseconds; waits for `end`."},
    {"synchronize_stream", synchronize_stream, METH_VARARGS, "Wait for a stream."},
    {"synchronize_event", synchronize_event, METH_VARARGS, "Wait for an event."},
    {"synchronize_device", synchronize_device, METH_VARARGS, "Wait for all streams of a device."},
    {"shared", shared, METH_NOARGS, "What the operators' half needs, as a capsule."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "halstream_paddle", "halstream's half of a Paddle device type.", -1, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_halstream_paddle(void) { return PyModule_Create(&definition); }
