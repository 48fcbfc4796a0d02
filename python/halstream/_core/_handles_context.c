/* The current device and stream: what `_current` does when nothing unusual is on the stack.
 *
 * The stack is Python's (`_stack`): entries are tuples in a context variable, so each task of
 * asyncio has its own. What is here reads and makes the same entries without a frame. */
#include "_handles.h"

/* CPython's functions for context variables are not in the stable interface; every version from
 * 3.10 on has them. Where one has not, the variable's methods do the same. */
extern int PyContextVar_Get(PyObject *variable, PyObject *otherwise, PyObject **value) __attribute__((weak));
extern PyObject *PyContextVar_Set(PyObject *variable, PyObject *value) __attribute__((weak));

/* Places in an entry; the class is `_stack.Entry`. */
enum { KEY, ORDINAL, STREAM, DEVICE, BELOW, CONTEXT, TRANSIENT, RESTORE, LABEL, FIELDS };

static PyObject *innermost, *settings, *process; /* the variable, the function that returns a thread's, the process's */
static PyTypeObject *entry_type;

/* The settings of the thread that asked last. A thread's number is never given again. */
static struct {
    uint64_t thread;
    PyObject *own, *key, *streams;
} last;

PyObject *context_forget(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *before[] = {last.own, last.key, last.streams};
    last.thread = 0;
    last.own = last.key = last.streams = NULL;
    for (int i = 0; i < 3; i++) Py_XDECREF(before[i]);
    Py_RETURN_NONE;
}

/* stack(innermost, entry, settings, process): where the current device and streams are kept. */
PyObject *context_stack(PyObject *module, PyObject *args)
{
    PyObject *variable, *entry, *function, *choices;
    if (!PyArg_ParseTuple(args, "OO!OO", &variable, &PyType_Type, &entry, &function, &choices)) return NULL;
    PyObject *before[] = {innermost, (PyObject *)entry_type, settings, process};
    Py_INCREF(variable);
    Py_INCREF(entry);
    Py_INCREF(function);
    Py_INCREF(choices);
    innermost = variable;
    entry_type = (PyTypeObject *)entry;
    settings = function;
    process = choices;
    for (int i = 0; i < 4; i++) Py_XDECREF(before[i]);
    return context_forget(module, NULL);
}

/* Makes `last` the calling thread's. */
static int own_settings(void)
{
    uint64_t thread = PyThreadState_GetID(PyThreadState_Get());
    if (thread == last.thread && last.own != NULL) return 0;
    PyObject *own = PyObject_CallNoArgs(settings), *key = NULL, *streams = NULL;
    if (own != NULL) key = PyObject_GetAttr(own, name_key);
    if (key != NULL) streams = PyObject_GetAttr(own, name_streams);
    if (streams == NULL) {
        Py_XDECREF(own);
        Py_XDECREF(key);
        return -1;
    }
    PyObject *before[] = {last.own, last.key, last.streams};
    last.thread = thread;
    last.own = own;
    last.key = key;
    last.streams = streams;
    for (int i = 0; i < 3; i++) Py_XDECREF(before[i]);
    /* What was let go of may have run Python's code, and another thread in it. */
    return thread == last.thread && last.own != NULL ? 0 : own_settings();
}

/* The top of the stack, None if it is empty. */
static PyObject *top_get(void)
{
    PyObject *top = NULL;
    if (!PyContextVar_Get) return PyObject_CallMethodObjArgs(innermost, name_get, NULL);
    return PyContextVar_Get(innermost, NULL, &top) < 0 ? NULL : top;
}

static int top_set(PyObject *top)
{
    PyObject *token = PyContextVar_Set ? PyContextVar_Set(innermost, top)
                                       : PyObject_CallMethodObjArgs(innermost, name_set, top, NULL);
    Py_XDECREF(token);
    return token == NULL ? -1 : 0;
}

static PyObject *field(PyObject *entry, int which) { return PyTuple_GetItem(entry, which); }

static long number(PyObject *entry, int which) { return PyLong_AsLong(field(entry, which)); }

PyObject *stream_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    Stream *s = (Stream *)self;
    if (s->id == 0 || innermost == NULL) return handles_python(self, name_enter, NULL, 0, NULL);
    PyObject *top = top_get();
    if (top == NULL) return NULL;
    PyObject *entry = PyType_GenericAlloc(entry_type, FIELDS);
    PyObject *ordinal = PyLong_FromLong(s->ordinal);
    /* Last, as the collector may have run Python's code, and another thread in it. */
    if (entry == NULL || ordinal == NULL || own_settings() < 0) {
        Py_DECREF(top);
        Py_XDECREF(entry);
        Py_XDECREF(ordinal);
        return NULL;
    }
    /* Each SetItem takes a reference. */
    PyObject *values[FIELDS] = {last.key, ordinal, self, ordinal, top, Py_True, Py_False, top, name_empty};
    for (int i = 0; i < FIELDS; i++) {
        Py_INCREF(values[i]);
        PyTuple_SetItem(entry, i, values[i]);
    }
    int failed = top_set(entry);
    Py_DECREF(ordinal);
    Py_DECREF(top);
    Py_DECREF(entry);
    if (failed) return NULL;
    Py_INCREF(self);
    return self;
}

PyObject *stream_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)args, (void)n;
    if (innermost == NULL) return handles_python(self, name_leave, NULL, 0, NULL);
    PyObject *top = top_get();
    if (top == NULL) return NULL;
    bool plain = Py_IS_TYPE(top, entry_type) && field(top, STREAM) == self && field(top, CONTEXT) == Py_True;
    if (plain && own_settings() == 0 && field(top, KEY) == last.key) {
        int failed = top_set(field(top, RESTORE));
        Py_DECREF(top);
        if (failed) return NULL;
        Py_RETURN_NONE;
    }
    Py_DECREF(top);
    return PyErr_Occurred() ? NULL : handles_python(self, name_leave, NULL, 0, NULL);
}

/* The innermost entry of this thread that sets a field, NULL if there is none; borrowed from `top`. */
static PyObject *set_by(PyObject *top, int which, long at_least, long at_most)
{
    for (PyObject *entry = top; entry != Py_None; entry = field(entry, BELOW)) {
        long value = number(entry, which);
        if (value >= at_least && value <= at_most && field(entry, KEY) == last.key) return entry;
    }
    return NULL;
}

PyObject *context_device(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *top = top_get();
    if (top == NULL) return NULL;
    PyObject *device = NULL;
    if (own_settings() == 0) {
        PyObject *entry = top == Py_None ? NULL : set_by(top, DEVICE, 0, LONG_MAX);
        device = entry == NULL ? PyObject_GetAttr(last.own, name_device) : field(entry, DEVICE);
        if (entry != NULL) Py_INCREF(device);
        if (device == Py_None) {
            Py_DECREF(device);
            device = PyObject_GetAttr(process, name_device);
        }
    }
    Py_DECREF(top);
    return device;
}

PyObject *context_current(PyObject *module, PyObject *ordinal)
{
    (void)module;
    long where = PyLong_AsLong(ordinal);
    if (where == -1 && PyErr_Occurred()) return NULL;
    PyObject *top = top_get();
    if (top == NULL) return NULL;
    PyObject *stream = NULL;
    if (own_settings() == 0) {
        PyObject *entry = top == Py_None ? NULL : set_by(top, ORDINAL, where, where);
        if (entry != NULL) {
            stream = field(entry, STREAM);
        } else {
            stream = PyDict_GetItemWithError(last.streams, ordinal);
            if (stream == NULL && !PyErr_Occurred()) {
                PyObject *streams = PyObject_GetAttr(process, name_streams);
                if (streams != NULL) stream = PyDict_GetItemWithError(streams, ordinal);
                Py_XDECREF(streams); /* the process keeps it */
                if (stream == NULL && !PyErr_Occurred()) stream = Py_None;
            }
        }
    }
    Py_XINCREF(stream);
    Py_DECREF(top);
    return stream;
}
