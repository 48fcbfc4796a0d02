/* EventBase: the half of an event's class that answers without the core where it can. */
#include "_handles.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

/* Flags of creation with which an event needs the core from its first moment on; the rest is BLOCKING_SYNC. */
#define TIMING 1
#define ALWAYS_CORE (~(1 | 2))

/* Only this object stands for the event. */
static bool unshared(const Event *e) { return e->state == PLAIN; }

static void become_plain(Event *e, bool recorded)
{
    if (e->state == SHARED) handles_drop(e->id); /* waits that are enqueued keep their place */
    if (!unshared(e)) ++*handles_calls.plain;
    e->state = PLAIN;
    e->id = 0;
    e->words = NULL; /* done, as an event is that was never recorded */
    e->recorded = recorded;
}

/* What the words say of the event holds on. */
static void become_shared(Event *e, int64_t id)
{
    if (unshared(e)) --*handles_calls.plain;
    e->state = SHARED;
    e->id = id;
}

static void forget(Event *e)
{
    if (unshared(e)) --*handles_calls.plain;
    if (e->state >= SHARED && !e->borrowed) handles_drop(e->id);
    e->state = EMPTY;
}

/* Memory of events that were collected: programs make a new one for each record, and drop it.
 * Their class has its own room for attributes and weak references, so that an event which
 * has neither is this memory and nothing else. */
#define KEPT 32
static Event *kept[KEPT];
static int kept_count;
static PyTypeObject *kept_types[4]; /* whose events are kept; a program uses one or two */
static unsigned kept_next;

static bool is_kept(const PyTypeObject *type)
{
    return type == kept_types[0] || type == kept_types[1] || type == kept_types[2] || type == kept_types[3];
}

void event_keep(PyTypeObject *type)
{
    if (is_kept(type)) return;
    PyObject *size = PyObject_GetAttrString((PyObject *)type, "__basicsize__");
    bool fits = size != NULL && PyLong_AsSsize_t(size) == (Py_ssize_t)sizeof(Event);
    Py_XDECREF(size);
    PyErr_Clear();
    if (!fits) return;
    PyTypeObject **place = &kept_types[kept_next++ % 4], *before = *place;
    Py_INCREF(type);
    *place = type;
    Py_XDECREF(before);
}

Event *event_fresh(PyTypeObject *type, int flags)
{
    Event *e;
    if (kept_count > 0 && is_kept(type)) {
        e = kept[--kept_count];
        memset((char *)e + sizeof(PyObject), 0, sizeof *e - sizeof(PyObject));
        PyObject_Init((PyObject *)e, type);
        PyObject_GC_Track((PyObject *)e);
    } else {
        e = (Event *)PyType_GenericAlloc(type, 0);
        if (e == NULL) return NULL;
    }
    e->ordinal = -1;
    e->flags = (uint16_t)flags;
    become_plain(e, false);
    return e;
}

int event_done(const Event *e)
{
    if (e->state != PLAIN && e->state != SHARED) return -1;
    if (e->words == NULL) return e->state == PLAIN ? 1 : -1;
    return __atomic_load_n(&e->words->completed, __ATOMIC_ACQUIRE) >= e->place;
}

/* Makes the core know an event; 0 with an exception if it cannot. */
static int64_t share(Event *e)
{
    if (unshared(e)) {
        const halstream_calls *calls = &handles_calls;
        int64_t id = event_done(e) == 0 ? calls->event_placed(e->id, (int64_t)(uintptr_t)e->words, (int64_t)e->place, e->flags)
                     : e->recorded      ? calls->event_recorded(e->ordinal, e->flags)
                                        : calls->event_new(e->ordinal, e->flags);
        if (id == 0) return 0;
        if (unshared(e)) become_shared(e, id);
        else handles_drop(id); /* a call inside made it known */
    }
    return e->id;
}

int64_t event_expose(Event *e)
{
    int64_t id = share(e);
    if (id != 0) e->state = CORE;
    return id;
}

int event_wait_on(Event *e, Stream *s)
{
    if (event_done(e) == 1 && !handles_lost()) return 0;
    if (e->state == PLAIN)
        handles_calls.stream_wait_place(s->id, e->id, (int64_t)(uintptr_t)e->words, (int64_t)e->place);
    else
        handles_calls.stream_wait_event(s->id, e->id);
    return PyErr_Occurred() ? -1 : 0;
}

/* Records an event, which is not CORE, by a call of the core; -1 with an exception. */
static int record_in_core(Event *e, Stream *s)
{
    const halstream_calls *calls = &handles_calls;
    if (unshared(e)) {
        int64_t id = calls->stream_record_new(s->id, e->ordinal, e->flags);
        if (id == 0) return -1;
        become_shared(e, id);
    } else {
        calls->stream_record(s->id, e->id);
        if (PyErr_Occurred()) return -1;
    }
    e->ordinal = s->ordinal;
    e->words = calls->recorded->words;
    e->place = calls->recorded->place;
    return 0;
}

int event_record_on(Event *e, Stream *s)
{
    const halstream_status *w = stream_fast(s);
    bool captured = w == NULL && s->id > 0 && handles_captured();
    if (e->state == EMPTY || (w == NULL && !captured)) return 1;
    if (e->state == CORE) {
        handles_calls.stream_record(s->id, e->id);
        return PyErr_Occurred() ? -1 : 0;
    }
    if (e->ordinal >= 0 && e->ordinal != s->ordinal) return 1; /* of another device */
    if (captured || e->flags & TIMING || !words_record_plain(w)) return record_in_core(e, s);
    become_plain(e, true);
    e->ordinal = s->ordinal;
    e->place = __atomic_load_n(&w->submitted, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&w->completed, __ATOMIC_ACQUIRE) < e->place) {
        e->words = w;
        e->id = s->id;
    }
    return 0;
}

/* The one argument of a method, NULL if it is left out or the call needs Python's code. */
static PyObject *only(PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    return n == 1 && keywords == NULL ? args[0] : NULL;
}

/* The id of an event for a call of the core on a stream; 0 if Python's code has to make that. */
static int64_t on_stream(Event *e, PyObject *stream)
{
    if (stream == NULL || !PyObject_TypeCheck(stream, handles_stream) || ((Stream *)stream)->id <= 0) return 0;
    return event_in_core(e);
}

static PyObject *event_record(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    PyObject *stream = only(args, n, keywords);
    if (stream != NULL && PyObject_TypeCheck(stream, handles_stream)) {
        int answer = event_record_on((Event *)self, (Stream *)stream);
        if (answer == 0) Py_RETURN_NONE;
        if (answer < 0) return handles_failed(self, "record", stream);
    }
    int64_t id = on_stream((Event *)self, stream);
    if (id != 0) {
        handles_calls.stream_record(((Stream *)stream)->id, id);
        if (!PyErr_Occurred()) Py_RETURN_NONE;
        return handles_failed(self, "record", stream);
    }
    return handles_python(self, name_record, args, n, keywords);
}

static PyObject *event_wait(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    PyObject *stream = only(args, n, keywords);
    Event *e = (Event *)self;
    if (stream != NULL && e->state != EMPTY && PyObject_TypeCheck(stream, handles_stream) &&
        stream_fast((Stream *)stream) != NULL) {
        if (event_wait_on(e, (Stream *)stream) == 0) Py_RETURN_NONE;
        return handles_failed(self, "wait", stream);
    }
    int64_t id = on_stream(e, stream);
    if (id != 0) {
        handles_calls.stream_wait_event(((Stream *)stream)->id, id);
        if (!PyErr_Occurred()) Py_RETURN_NONE;
        return handles_failed(self, "wait", stream);
    }
    return handles_python(self, name_wait, args, n, keywords);
}

static PyObject *event_query(PyObject *self, PyObject *unused)
{
    (void)unused;
    Event *e = (Event *)self;
    if (e->state != EMPTY && handles_fast()) {
        int done = event_done(e);
        if (done < 0) {
            int64_t id = share(e);
            if (id != 0) done = (int)handles_calls.event_query(id);
            if (PyErr_Occurred()) return handles_failed(self, "query", NULL);
        }
        if (!handles_lost()) return PyBool_FromLong(done);
    }
    int64_t id = event_in_core(e);
    if (id != 0) {
        long done = (long)handles_calls.event_query(id);
        return PyErr_Occurred() ? handles_failed(self, "query", NULL) : PyBool_FromLong(done);
    }
    return handles_python(self, name_query, NULL, 0, NULL);
}

static PyObject *event_synchronize(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    Event *e = (Event *)self;
    if (n == 0 && keywords == NULL && e->state != EMPTY && handles_fast()) {
        if (event_done(e) == 1 && !handles_lost()) Py_RETURN_NONE;
        int64_t id = share(e);
        if (id != 0) handles_calls.event_sync(id, -1);
        if (!PyErr_Occurred()) Py_RETURN_NONE;
        return handles_failed(self, "synchronize", NULL);
    }
    return handles_python(self, name_synchronize_event, args, n, keywords);
}

static PyObject *event_create(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    Event *e = (Event *)self;
    if (n == 2 && keywords == NULL && (handles_fast() || handles_captured()) && e->state == EMPTY) {
        long ordinal = PyLong_AsLong(args[0]), flags = PyLong_AsLong(args[1]);
        if (PyErr_Occurred()) return NULL;
        if (ordinal >= -1 && ordinal < *handles_calls.devices && !(flags & ALWAYS_CORE)) {
            handles_reap();
            /* CPython 3.12 gives each new object a dictionary, with which calls of its methods are slower. */
            if (e->attributes != NULL && PyDict_Size(e->attributes) == 0) Py_CLEAR(e->attributes);
            e->ordinal = (int32_t)ordinal;
            e->flags = (uint16_t)flags;
            e->borrowed = false;
            become_plain(e, false);
            Py_RETURN_NONE;
        }
    }
    return handles_python(self, name_create, args, n, keywords);
}

static PyObject *get_id(PyObject *self, void *unused)
{
    (void)unused;
    Event *e = (Event *)self;
    if (e->state == EMPTY)
        return PyErr_Format(PyExc_AttributeError, "%R object has no attribute '_id'", (PyObject *)Py_TYPE(self));
    int64_t id = event_expose(e);
    return id == 0 ? handles_failed(self, "create event", NULL) : PyLong_FromLongLong(id);
}

static int set_id(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    Event *e = (Event *)self;
    long long id = 0;
    if (value != NULL) {
        id = PyLong_AsLongLong(value);
        if (id == -1 && PyErr_Occurred()) return -1;
    }
    if (value != NULL) {
        forget(e); /* as an event that is made again with __init__ */
    } else if (unshared(e)) {
        --*handles_calls.plain;
    }
    e->state = value == NULL ? EMPTY : CORE;
    e->id = id;
    return 0;
}

static PyObject *get_owned(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(!((Event *)self)->borrowed);
}

static int set_owned(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    int owned = value == NULL ? 1 : PyObject_IsTrue(value);
    if (owned < 0) return -1;
    ((Event *)self)->borrowed = !owned;
    return 0;
}

/* What is known without the core, None if that has to be asked. */
static PyObject *get_plain(PyObject *self, void *unused)
{
    (void)unused;
    Event *e = (Event *)self;
    /* Without words a capture may have taken the record. */
    if ((e->state != PLAIN && (e->state != SHARED || e->words == NULL)) || !handles_fast()) Py_RETURN_NONE;
    bool recorded = e->state == SHARED || e->recorded;
    return Py_BuildValue("(NiI)", PyBool_FromLong(recorded), (int)e->ordinal, (unsigned)e->flags);
}

static int event_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Event *)self)->attributes);
    return 0;
}

static int event_clear(PyObject *self)
{
    Py_CLEAR(((Event *)self)->attributes);
    return 0;
}

static void event_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Event *e = (Event *)self;
    PyObject_GC_UnTrack(self);
    if (e->weak != NULL) PyObject_ClearWeakRefs(self);
    Py_CLEAR(e->attributes);
    forget(e);
    if (kept_count < KEPT && is_kept(type) && !PyObject_GC_IsFinalized(self)) kept[kept_count++] = e;
    else ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

#define KEYWORDS(f) (PyCFunction)(void (*)(void))f, METH_FASTCALL | METH_KEYWORDS

PyMethodDef handles_event_methods[] = {
    {"record", KEYWORDS(event_record),
     "record($self, stream=None)\n--\n\n"
     "Record on a stream; None is the current stream of the event's device.\n\n"
     "An event without a device yet takes the current device's stream.\n\n"
     "Parameters\n----------\n"
     "stream : Stream or None\n\n"
     "Raises\n------\n"
     "WrongDeviceError\n    If the stream is on another device than the event.\n"
     "TypeError\n    If `stream` is no stream.\n"
     "ClosedError\n    If the event or the stream is closed.\n"},
    {"wait", KEYWORDS(event_wait),
     "wait($self, stream=None)\n--\n\n"
     "Make later work of a stream (None: the current one) wait for this event.\n\n"
     "Parameters\n----------\n"
     "stream : Stream or None\n\n"
     "Raises\n------\n"
     "TypeError\n    If `stream` is no stream.\n"
     "ClosedError\n    If the event or the stream is closed.\n"},
    {"query", event_query, METH_NOARGS,
     "query($self)\n--\n\n"
     "Return True if the latest record is done, or there is none; never blocks.\n\n"
     "Returns\n-------\nbool\n\n"
     "Raises\n------\n"
     "ClosedError\n    If the event is closed.\n"},
    {"synchronize", KEYWORDS(event_synchronize),
     "synchronize($self, timeout=None)\n--\n\n"
     "Block until the latest record is done.\n\n"
     "Parameters\n----------\n"
     "timeout : float or None\n    Seconds; None waits for ever.\n\n"
     "Raises\n------\n"
     "WaitTimeoutError\n    When the limit comes first; the work goes on.\n"
     "ClosedError\n    If the event is closed.\n"},
    {"_create", KEYWORDS(event_create),
     "_create($self, ordinal, flags)\n--\n\n"
     "Make a new event of a device (-1: that of its first record), which this object closes.\n"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"_id", get_id, set_id, "The runtime's number of the event.", NULL},
    {"_owned", get_owned, set_owned, "False for a wrapper of an event that is closed by its handle.", NULL},
    {"_plain", get_plain, NULL,
     "Whether it was recorded, its device and flags, if they are known without the core; else None.", NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(Event, attributes), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Event, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The half of an event that is written in C; see `Event`."},
    {Py_tp_dealloc, event_dealloc},
    {Py_tp_traverse, event_traverse},
    {Py_tp_clear, event_clear},
    {Py_tp_members, members},
    {Py_tp_methods, handles_event_methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};

PyType_Spec handles_event_spec = {
    "halstream._core._handles.EventBase", sizeof(Event), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots,
};
