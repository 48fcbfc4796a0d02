/* The current device and stream: what `_current` does when nothing unusual is on the stack.
 *
 * The stack is a context variable, so each task of asyncio has its own. What is here reads
 * and makes the same entries as `_current` without a frame. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "_handles.h"

#include <dlfcn.h>

/* CPython's functions for context variables are not in the stable interface; every version from
 * 3.10 on has them. Where one has not, the variable's methods do the same. They are found by
 * name, so that the library's own symbols are those of the stable interface only. */
static int (*variable_get)(PyObject *variable, PyObject *otherwise, PyObject **value);
static PyObject *(*variable_set)(PyObject *variable, PyObject *value);
static int (*variable_reset)(PyObject *variable, PyObject *token);

__attribute__((constructor)) static void find_functions(void)
{
    *(void **)&variable_get = dlsym(RTLD_DEFAULT, "PyContextVar_Get");
    *(void **)&variable_set = dlsym(RTLD_DEFAULT, "PyContextVar_Set");
    *(void **)&variable_reset = dlsym(RTLD_DEFAULT, "PyContextVar_Reset");
}

static PyObject *innermost, *settings; /* the variable, and the function that returns a thread's choices */
static Choices *process;

/* The choices of the thread that asked last. A thread's number is never given again. */
static struct {
    uint64_t thread;
    Choices *own;
} last;

/* stack(innermost, settings, process): where the current device and streams are kept. */
PyObject *context_stack(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *variable, *function, *choices;
    if (!PyArg_ParseTuple(args, "OOO!", &variable, &function, handles_choices, &choices)) return NULL;
    PyObject *before[] = {innermost, settings, (PyObject *)process, (PyObject *)last.own};
    Py_INCREF(variable);
    Py_INCREF(function);
    Py_INCREF(choices);
    innermost = variable;
    settings = function;
    process = (Choices *)choices;
    last.thread = 0;
    last.own = NULL;
    for (int i = 0; i < 4; i++) Py_XDECREF(before[i]);
    Py_RETURN_NONE;
}

/* Makes `last` the calling thread's. */
static int own_settings(void)
{
    uint64_t thread = PyThreadState_GetID(PyThreadState_Get());
    if (thread == last.thread && last.own != NULL) return 0;
    PyObject *own = PyObject_CallNoArgs(settings);
    if (own == NULL) return -1;
    if (!PyObject_TypeCheck(own, handles_choices)) {
        PyErr_Format(PyExc_TypeError, "%R are no choices", own);
        Py_DECREF(own);
        return -1;
    }
    Choices *before = last.own;
    last.thread = thread;
    last.own = (Choices *)own;
    Py_XDECREF(before);
    /* What was let go of may have run Python's code, and another thread in it. */
    return thread == last.thread && last.own != NULL ? 0 : own_settings();
}

/* The top of the stack, None if it is empty. */
static PyObject *top_get(void)
{
    PyObject *top = NULL;
    if (!variable_get) return PyObject_CallMethodObjArgs(innermost, name_get, NULL);
    return variable_get(innermost, NULL, &top) < 0 ? NULL : top;
}

/* Returns what undoes it, or NULL. */
static PyObject *top_set(PyObject *top)
{
    return variable_set ? variable_set(innermost, top) : PyObject_CallMethodObjArgs(innermost, name_set, top, NULL);
}

static Entry *entry_of(PyObject *link) { return Py_IS_TYPE(link, handles_entry) ? (Entry *)link : NULL; }

/* Makes a stream current on a device, in front of `top`. The thread's choices were looked up before. */
static int push(PyObject *stream, PyObject *top, int ordinal, int device, bool transient)
{
    Entry *e = entry_new(last.own->key, stream, top, top, name_empty);
    if (e == NULL) return -1;
    e->ordinal = ordinal;
    e->device = device;
    e->context = true;
    e->transient = transient;
    e->token = top_set((PyObject *)e);
    int failed = e->token == NULL;
    Py_DECREF(e);
    return failed ? -1 : 0;
}

PyObject *stream_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (((Stream *)self)->id == 0 || innermost == NULL) return handles_python(self, name_enter, NULL, 0, NULL);
    PyObject *top = top_get();
    if (top == NULL) return NULL;
    int ordinal = ((Stream *)self)->ordinal;
    int failed = own_settings() < 0 || push(self, top, ordinal, ordinal, false) < 0;
    Py_DECREF(top);
    if (failed) return NULL;
    Py_INCREF(self);
    return self;
}

/* Puts what stood below an entry on top again. The variable's token saves what a new value
 * takes, but is good for one use, in the very context in which the entry was made. */
static int pop(Entry *e)
{
    PyObject *token = e->token;
    e->token = NULL;
    if (token != NULL && variable_reset) {
        int failed = variable_reset(innermost, token);
        Py_DECREF(token);
        if (!failed) return 0;
        if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_RuntimeError)) return -1;
        PyErr_Clear();
        token = NULL;
    }
    Py_XDECREF(token);
    token = top_set(e->restore);
    Py_XDECREF(token);
    return token == NULL ? -1 : 0;
}

/* A setting that the next context of a device forgets is in force there: 1, 0, or -1 with an exception. */
static int transient_set(PyObject *top, int ordinal)
{
    for (Entry *e = entry_of(top); e != NULL; e = entry_of(e->below))
        if (e->ordinal == ordinal && e->key == last.own->key) return !e->context && e->transient;
    if (PySet_Size(last.own->transient) == 0) return 0;
    PyObject *number = PyLong_FromLong(ordinal);
    int found = number == NULL ? -1 : PySet_Contains(last.own->transient, number);
    Py_XDECREF(number);
    return found;
}

PyObject *context_push(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (n != 4) return PyErr_Format(PyExc_TypeError, "push() takes 4 arguments (%zd given)", n);
    int ordinal = (int)PyLong_AsLong(args[1]), device = (int)PyLong_AsLong(args[2]);
    bool transient = args[3] == Py_True;
    PyObject *top = PyErr_Occurred() ? NULL : top_get();
    if (top == NULL) return NULL;
    int failed = own_settings(), other = !failed && transient ? transient_set(top, ordinal) : 0;
    if (!failed && other == 0) failed = push(args[0], top, ordinal, device, transient);
    Py_DECREF(top);
    return failed || other < 0 ? NULL : PyBool_FromLong(!other);
}

PyObject *context_pop(PyObject *module, PyObject *stream)
{
    (void)module;
    PyObject *top = top_get();
    if (top == NULL) return NULL;
    Entry *e = entry_of(top);
    bool mine = e != NULL && e->context && (stream == Py_None || e->stream == stream);
    int failed = mine ? own_settings() : 0;
    if (mine && !failed && (mine = e->key == last.own->key)) failed = pop(e);
    Py_DECREF(top);
    return failed ? NULL : PyBool_FromLong(mine);
}

PyObject *stream_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)args, (void)n;
    if (innermost == NULL) return handles_python(self, name_leave, NULL, 0, NULL);
    PyObject *top = top_get();
    if (top == NULL) return NULL;
    Entry *e = entry_of(top);
    if (e != NULL && e->stream == self && e->context && own_settings() == 0 && e->key == last.own->key) {
        int failed = pop(e);
        Py_DECREF(top);
        if (failed) return NULL;
        Py_RETURN_NONE;
    }
    Py_DECREF(top);
    return PyErr_Occurred() ? NULL : handles_python(self, name_leave, NULL, 0, NULL);
}

static PyObject *new_reference(PyObject *o)
{
    Py_XINCREF(o);
    return o;
}

/* Returns the current device, borrowed. The thread's choices were looked up before. */
static PyObject *device_number(PyObject *top, long *device)
{
    for (Entry *e = entry_of(top); e != NULL; e = entry_of(e->below)) {
        if (e->device >= 0 && e->key == last.own->key) {
            *device = e->device;
            return NULL;
        }
    }
    return last.own->device == Py_None ? process->device : last.own->device;
}

static PyObject *device_object(PyObject *top)
{
    long device;
    PyObject *found = device_number(top, &device);
    return found == NULL ? PyLong_FromLong(device) : new_reference(found);
}

/* Returns the current stream of a device, None for its default stream, NULL with an exception. */
static PyObject *stream_object(PyObject *top, PyObject *ordinal)
{
    long where = PyLong_AsLong(ordinal);
    if (where == -1 && PyErr_Occurred()) return NULL;
    for (Entry *e = entry_of(top); e != NULL; e = entry_of(e->below))
        if (e->ordinal == where && e->key == last.own->key) return new_reference(e->stream);
    PyObject *stream = PyDict_GetItemWithError(last.own->streams, ordinal);
    if (stream == NULL && !PyErr_Occurred()) stream = PyDict_GetItemWithError(process->streams, ordinal);
    if (stream == NULL && !PyErr_Occurred()) stream = Py_None;
    return new_reference(stream);
}

PyObject *context_device(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *top = top_get();
    if (top == NULL) return NULL;
    PyObject *device = own_settings() == 0 ? device_object(top) : NULL;
    Py_DECREF(top);
    return device;
}

PyObject *context_current(PyObject *module, PyObject *ordinal)
{
    (void)module;
    PyObject *top = top_get();
    if (top == NULL) return NULL;
    PyObject *stream = own_settings() == 0 ? stream_object(top, ordinal) : NULL;
    Py_DECREF(top);
    return stream;
}

int context_enter(Stream *s, Before *before)
{
    *before = (Before){NULL, NULL, NULL, NULL};
    /* A stream of cupy may be known by its handle only. */
    PyObject *number = s->id ? PyLong_FromLong(s->ordinal) : PyObject_GetAttr((PyObject *)s, name_ordinal);
    PyObject *top = number == NULL ? NULL : top_get();
    int failed = -1;
    if (top == NULL || own_settings() < 0 || (before->here = device_object(top)) == NULL) goto end;
    if ((before->here_stream = stream_object(top, before->here)) == NULL) goto end;
    int same = PyObject_RichCompareBool(before->here, number, Py_EQ);
    if (same < 0) goto end;
    if (!same) {
        if ((before->there_stream = stream_object(top, number)) == NULL) goto end;
        before->there = new_reference(number);
    }
    if (s->id != 0) {
        failed = push((PyObject *)s, top, s->ordinal, s->ordinal, false);
    } else {
        PyObject *entered = handles_python((PyObject *)s, name_enter, NULL, 0, NULL);
        if (entered != NULL) failed = 0;
        Py_XDECREF(entered);
    }
end:
    Py_XDECREF(number);
    Py_XDECREF(top);
    if (failed) before_clear(before);
    return failed;
}
