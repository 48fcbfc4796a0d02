/* StreamBase: the half of a stream's class that answers without the core where it can. */
#include "_handles.h"

const halstream_status *stream_words(Stream *s)
{
    if (s->id > 0) {
        s->words = (const halstream_status *)(uintptr_t)handles_calls.stream_status(s->id);
        PyErr_Clear(); /* the call that follows tells */
        s->looked = true;
    }
    return s->words;
}

/* The classes of streams whose new events are made here, and those of the events. */
static struct {
    PyTypeObject *stream, *event;
    int flags;
} classes[8];

static unsigned place_of(PyTypeObject *type)
{
    uintptr_t n = (uintptr_t)type;
    return (unsigned)((n >> 4 ^ n >> 8 ^ n >> 12) % 8);
}

/* remember(stream, event, flags): streams of a class make new events of another one. */
PyObject *stream_remember(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *stream, *event;
    int flags;
    if (!PyArg_ParseTuple(args, "O!O!i", &PyType_Type, &stream, &PyType_Type, &event, &flags)) return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)event, handles_event) || flags & ~3)
        Py_RETURN_NONE; /* made by Python's code */
    unsigned i = place_of((PyTypeObject *)stream);
    PyObject *before[] = {(PyObject *)classes[i].stream, (PyObject *)classes[i].event};
    Py_INCREF(stream);
    Py_INCREF(event);
    classes[i].stream = (PyTypeObject *)stream;
    classes[i].event = (PyTypeObject *)event;
    classes[i].flags = flags;
    Py_XDECREF(before[0]);
    Py_XDECREF(before[1]);
    event_keep((PyTypeObject *)event);
    Py_RETURN_NONE;
}

static PyObject *record_new(PyObject *self)
{
    unsigned i = place_of(Py_TYPE(self));
    if (classes[i].stream != Py_TYPE(self)) return handles_python(self, name_record, NULL, 0, NULL);
    handles_reap();
    /* The collector may run, and with it code that closes the stream: looked at afterwards. */
    Event *e = event_fresh(classes[i].event, classes[i].flags);
    if (e == NULL) return NULL;
    int answer = event_record_on(e, (Stream *)self);
    if (answer == 0) return (PyObject *)e;
    PyObject *result = answer < 0 ? handles_failed(self, "record", (PyObject *)e)
                                  : handles_python(self, name_record, NULL, 0, NULL);
    Py_DECREF(e);
    return result;
}

/* The id of the event that is a method's one argument, for a call of the core; 0 if Python's code has to make that. */
static int64_t event_given(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    if (n != 1 || keywords != NULL || ((Stream *)self)->id <= 0 || !PyObject_TypeCheck(args[0], handles_event)) return 0;
    return event_in_core((Event *)args[0]);
}

static PyObject *stream_record(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    if (keywords == NULL && (n == 0 || (n == 1 && args[0] == Py_None)) &&
        (stream_fast((Stream *)self) != NULL || handles_captured()))
        return record_new(self);
    if (keywords == NULL && n == 1 && PyObject_TypeCheck(args[0], handles_event)) {
        int answer = event_record_on((Event *)args[0], (Stream *)self);
        if (answer == 0) {
            Py_INCREF(args[0]);
            return args[0];
        }
        if (answer < 0) return handles_failed(self, "record", args[0]);
    }
    int64_t event = event_given(self, args, n, keywords);
    if (event != 0) {
        handles_calls.stream_record(((Stream *)self)->id, event);
        if (PyErr_Occurred()) return handles_failed(self, "record", args[0]);
        Py_INCREF(args[0]);
        return args[0];
    }
    return handles_python(self, name_record, args, n, keywords);
}

static PyObject *stream_wait_event(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    if (n == 1 && keywords == NULL && stream_fast((Stream *)self) != NULL &&
        PyObject_TypeCheck(args[0], handles_event)) {
        Event *e = (Event *)args[0];
        if (e->state != EMPTY) {
            if (event_wait_on(e, (Stream *)self) == 0) Py_RETURN_NONE;
            return handles_failed(self, "wait_event", args[0]);
        }
    }
    int64_t event = event_given(self, args, n, keywords);
    if (event != 0) {
        handles_calls.stream_wait_event(((Stream *)self)->id, event);
        if (!PyErr_Occurred()) Py_RETURN_NONE;
        return handles_failed(self, "wait_event", args[0]);
    }
    return handles_python(self, name_wait_event, args, n, keywords);
}

static PyObject *stream_wait_stream(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    if (n == 1 && keywords == NULL && stream_fast((Stream *)self) != NULL &&
        PyObject_TypeCheck(args[0], handles_stream)) {
        const halstream_status *other = stream_fast((Stream *)args[0]);
        if (other != NULL) {
            if (args[0] == self || (words_idle(other) && !handles_lost())) Py_RETURN_NONE;
            handles_calls.stream_wait_stream(((Stream *)self)->id, ((Stream *)args[0])->id);
            if (!PyErr_Occurred()) Py_RETURN_NONE;
            return handles_failed(self, "wait_stream", args[0]);
        }
    }
    if (n == 1 && keywords == NULL && ((Stream *)self)->id > 0 && PyObject_TypeCheck(args[0], handles_stream) &&
        ((Stream *)args[0])->id > 0 && handles_core()) {
        handles_calls.stream_wait_stream(((Stream *)self)->id, ((Stream *)args[0])->id);
        if (!PyErr_Occurred()) Py_RETURN_NONE;
        return handles_failed(self, "wait_stream", args[0]);
    }
    return handles_python(self, name_wait_stream, args, n, keywords);
}

/* Reports whether a class has the method of this file by a name, not one that stands in front of it. */
static bool has_own(PyTypeObject *type, PyObject *name)
{
    PyObject *method = PyObject_GetAttr((PyObject *)type, name);
    bool own = method != NULL && Py_IS_TYPE(method, &PyMethodDescr_Type);
    if (method == NULL) PyErr_Clear();
    Py_XDECREF(method);
    return own;
}

static PyObject *stream_wait(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    if (n == 1 && keywords == NULL) {
        if (PyObject_TypeCheck(args[0], handles_event) && has_own(Py_TYPE(self), name_public_wait_event))
            return stream_wait_event(self, args, n, keywords);
        if (PyObject_TypeCheck(args[0], handles_stream) && has_own(Py_TYPE(self), name_public_wait_stream))
            return stream_wait_stream(self, args, n, keywords);
    }
    return handles_python(self, name_wait_any, args, n, keywords);
}

static PyObject *stream_query(PyObject *self, PyObject *unused)
{
    (void)unused;
    const halstream_status *w = stream_fast((Stream *)self);
    if (w != NULL) {
        bool idle = words_idle(w);
        if (!words_special(w) && !handles_lost()) return PyBool_FromLong(idle);
    } else if (((Stream *)self)->id > 0 && handles_core()) {
        long idle = (long)handles_calls.stream_query(((Stream *)self)->id);
        return PyErr_Occurred() ? handles_failed(self, "query", NULL) : PyBool_FromLong(idle);
    }
    return handles_python(self, name_query, NULL, 0, NULL);
}

static PyObject *stream_synchronize(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    const halstream_status *w = n == 0 && keywords == NULL ? stream_fast((Stream *)self) : NULL;
    if (w != NULL) {
        if (words_idle(w) && !words_special(w) && !handles_lost()) Py_RETURN_NONE;
        handles_calls.stream_sync(((Stream *)self)->id, -1);
        if (!PyErr_Occurred()) Py_RETURN_NONE;
        return handles_failed(self, "synchronize", NULL);
    }
    return handles_python(self, name_synchronize_stream, args, n, keywords);
}

static PyObject *stream_nop(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (stream_fast((Stream *)self) != NULL || (((Stream *)self)->id > 0 && handles_core())) {
        handles_calls.stream_nop(((Stream *)self)->id);
        if (!PyErr_Occurred()) Py_RETURN_NONE;
        return handles_failed(self, "nop", NULL);
    }
    return handles_python(self, name_nop, NULL, 0, NULL);
}

static PyObject *stream_bind(PyObject *self, PyObject *args)
{
    long long id;
    int ordinal;
    if (!PyArg_ParseTuple(args, "Li", &id, &ordinal)) return NULL;
    Stream *s = (Stream *)self;
    s->id = id;
    s->ordinal = ordinal;
    s->words = NULL;
    s->looked = false;
    Py_RETURN_NONE;
}

static PyObject *get_number(PyObject *self, void *which)
{
    Stream *s = (Stream *)self;
    if (s->id == 0)
        return PyErr_Format(PyExc_AttributeError, "%R object has no attribute '%s'", (PyObject *)Py_TYPE(self),
                            which == NULL ? "_id" : "_ordinal");
    return which == NULL ? PyLong_FromLongLong(s->id) : PyLong_FromLong(s->ordinal);
}

static void stream_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

#define KEYWORDS(f) (PyCFunction)(void (*)(void))f, METH_FASTCALL | METH_KEYWORDS

PyMethodDef handles_stream_methods[] = {
    {"record", KEYWORDS(stream_record),
     "record($self, event=None)\n--\n\n"
     "Mark the point that the stream has reached; None makes a new event.\n\n"
     "Parameters\n----------\n"
     "event : Event or None\n"
     "    Overwritten if it was recorded before. An event that was made\n"
     "    without a device takes the stream's.\n\n"
     "Returns\n-------\n"
     "Event\n    `event`, or the new one.\n\n"
     "Raises\n------\n"
     "WrongDeviceError\n    If the event belongs to another device.\n"
     "TypeError\n    If `event` is no event.\n"
     "ClosedError\n    If the stream or the event is closed.\n\n"
     "Notes\n-----\nContract E3, E4, E7.\n"},
    {"wait", KEYWORDS(stream_wait),
     "wait($self, other)\n--\n\n"
     "Make later work wait for an event or for another stream's work so far.\n\n"
     "The host does not block. An event that was never recorded is complete.\n\n"
     "Parameters\n----------\n"
     "other : Event or Stream\n"
     "    A stream stands for all work enqueued on it before this call; it\n"
     "    may be another library's, with ``__cuda_stream__``.\n\n"
     "Raises\n------\n"
     "TypeError\n    If `other` is neither.\n"
     "ClosedError\n    If it or the stream is closed.\n\n"
     "Notes\n-----\nContract E1, E2, E3, S6.\n"},
    {"wait_event", KEYWORDS(stream_wait_event),
     "wait_event($self, event)\n--\n\n"
     "Make later work wait for the latest record of an event.\n\n"
     "Parameters\n----------\n"
     "event : Event\n\n"
     "Raises\n------\n"
     "TypeError\n    If `event` is no event.\n"
     "ClosedError\n    If the stream or the event is closed.\n"},
    {"wait_stream", KEYWORDS(stream_wait_stream),
     "wait_stream($self, stream)\n--\n\n"
     "Make later work wait for the work enqueued on another stream so far.\n\n"
     "Parameters\n----------\n"
     "stream : Stream\n\n"
     "Raises\n------\n"
     "TypeError\n    If `stream` is no stream.\n"
     "ClosedError\n    If either stream is closed.\n"},
    {"query", stream_query, METH_NOARGS,
     "query($self)\n--\n\n"
     "Return True if all work enqueued so far is done; never blocks.\n\n"
     "Returns\n-------\nbool\n\n"
     "Raises\n------\n"
     "HalError\n    The first error of the stream, once; `ClosedError` if it is closed.\n"},
    {"synchronize", KEYWORDS(stream_synchronize),
     "synchronize($self, timeout=None)\n--\n\n"
     "Block until all work enqueued before the call is done.\n\n"
     "Parameters\n----------\n"
     "timeout : float or None\n    Seconds; None waits for ever.\n\n"
     "Raises\n------\n"
     "WaitTimeoutError\n"
     "    When the limit comes first. The work goes on; the text names the\n"
     "    stream and what its head operation waits for.\n"
     "Exception\n    The first exception of a function given to `call_checked`, once.\n\n"
     "Notes\n-----\nContract S4. Ctrl-C raises `KeyboardInterrupt` within 0.1 s.\n"},
    {"nop", stream_nop, METH_NOARGS,
     "nop($self)\n--\n\n"
     "Enqueue an operation that does nothing.\n\n"
     "Raises\n------\n"
     "ClosedError\n    If the stream is closed.\n"},
    {"__enter__", stream_enter, METH_NOARGS, "__enter__($self)\n--\n\nMake the stream and its device current.\n"},
    {"__exit__", (PyCFunction)(void (*)(void))stream_exit, METH_FASTCALL,
     "__exit__($self, *exc_info)\n--\n\nRestore what was current before.\n"},
    {"_bind", stream_bind, METH_VARARGS,
     "_bind($self, ident, ordinal)\n--\n\nMake this object stand for a stream of a device.\n"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"_id", get_number, NULL, "The runtime's number of the stream.", NULL},
    {"_ordinal", get_number, NULL, "Ordinal of the stream's device.", ""},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The half of a stream that is written in C; see `Stream`."},
    {Py_tp_dealloc, stream_dealloc},
    {Py_tp_methods, handles_stream_methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};

PyType_Spec handles_stream_spec = {
    "halstream._core._handles.StreamBase", sizeof(Stream), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots,
};
