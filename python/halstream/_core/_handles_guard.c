/* GuardBase: a context that makes a stream current, as a separate object (torch.cuda.StreamContext). */
#include "_handles.h"

typedef struct {
    PyObject_HEAD
    PyObject *stream;  /* as it was given */
    PyObject *idx;     /* of the device that was current when this was made */
    PyObject *entered; /* the stream that was entered, NULL before that */
    PyObject *here, *here_stream;   /* the device that was current then, and its stream; NULL before that */
    PyObject *there, *there_stream; /* the same of the stream's device, if that is another one */
} Guard;

static void put(PyObject **place, PyObject *value)
{
    PyObject *before = *place;
    *place = value;
    Py_XDECREF(before);
}

static int guard_init(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"stream", NULL};
    Guard *g = (Guard *)self;
    PyObject *stream;
    if (keywords == NULL && PyTuple_Size(args) == 1)
        stream = PyTuple_GetItem(args, 0); /* as nearly always; parsing takes longer than all the rest */
    else if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:StreamContext", names, &stream))
        return -1;
    PyObject *device = context_device(NULL, NULL);
    if (device == NULL) return -1;
    Py_INCREF(stream);
    put(&g->stream, stream);
    put(&g->idx, device);
    return 0;
}

static PyObject *guard_enter(PyObject *self, PyObject *unused)
{
    Guard *g = (Guard *)self;
    if (g->stream == Py_None) Py_RETURN_NONE;
    PyObject *stream = g->stream;
    if (stream == NULL || !PyObject_TypeCheck(stream, handles_stream)) {
        stream = handles_python(self, name_other, NULL, 0, NULL);
        if (stream == NULL) return NULL;
        if (!PyObject_TypeCheck(stream, handles_stream)) { /* of a subclass that overrides the method */
            PyErr_Format(PyExc_TypeError, "_other_stream() returned %R, which is no stream", stream);
            Py_DECREF(stream);
            return NULL;
        }
    } else {
        Py_INCREF(stream); /* code that runs meanwhile may replace it */
    }
    PyObject *here = context_device(NULL, NULL), *there = NULL, *here_stream = NULL, *there_stream = NULL, *entered = NULL;
    int64_t id = ((Stream *)stream)->id;
    /* A stream of cupy may be known by its handle only. */
    PyObject *ordinal = id ? PyLong_FromLong(((Stream *)stream)->ordinal) : PyObject_GetAttr(stream, name_ordinal);
    if (here == NULL || ordinal == NULL || (here_stream = context_current(NULL, here)) == NULL) goto end;
    int same = PyObject_RichCompareBool(here, ordinal, Py_EQ);
    if (same < 0) goto end;
    if (!same) {
        if ((there_stream = context_current(NULL, ordinal)) == NULL) goto end;
        there = ordinal;
        Py_INCREF(there);
    }
    entered = stream_enter(stream, unused);
end:
    Py_DECREF(stream);
    Py_XDECREF(ordinal);
    if (entered == NULL) {
        Py_XDECREF(here);
        Py_XDECREF(here_stream);
        Py_XDECREF(there);
        Py_XDECREF(there_stream);
        return NULL;
    }
    put(&g->here, here);
    put(&g->here_stream, here_stream);
    put(&g->there, there);
    put(&g->there_stream, there_stream);
    put(&g->entered, entered);
    Py_RETURN_NONE;
}

static PyObject *guard_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    Guard *g = (Guard *)self;
    if (n != 3) return PyErr_Format(PyExc_TypeError, "__exit__() takes 3 arguments (%zd given)", n);
    if (g->stream == Py_None) Py_RETURN_NONE;
    if (g->entered != NULL) {
        PyObject *entered = g->entered;
        Py_INCREF(entered);
        PyObject *none = stream_exit(entered, args, n);
        Py_DECREF(entered);
        return none;
    }
    return handles_python(self, name_leave, NULL, 0, NULL);
}

static PyObject *pair(PyObject *device, PyObject *stream)
{
    if (device == NULL || stream == NULL) Py_RETURN_NONE;
    return Py_BuildValue("(OO)", device, stream);
}

static PyObject *get_before(PyObject *self, void *other)
{
    Guard *g = (Guard *)self;
    return other == NULL ? pair(g->here, g->here_stream) : pair(g->there, g->there_stream);
}

static PyObject *get_object(PyObject *self, void *name)
{
    Guard *g = (Guard *)self;
    PyObject *found = name == NULL ? g->stream : g->idx;
    if (found == NULL)
        return PyErr_Format(PyExc_AttributeError, "%R object has no attribute '%s'", (PyObject *)Py_TYPE(self),
                            name == NULL ? "stream" : "idx");
    Py_INCREF(found);
    return found;
}

static int set_object(PyObject *self, PyObject *value, void *name)
{
    Guard *g = (Guard *)self;
    Py_XINCREF(value);
    put(name == NULL ? &g->stream : &g->idx, value);
    return 0;
}

static int guard_traverse(PyObject *self, visitproc visit, void *arg)
{
    Guard *g = (Guard *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(g->stream);
    Py_VISIT(g->idx);
    Py_VISIT(g->entered);
    Py_VISIT(g->here_stream);
    Py_VISIT(g->there_stream);
    return 0;
}

static int guard_clear(PyObject *self)
{
    Guard *g = (Guard *)self;
    PyObject **places[] = {&g->stream, &g->idx, &g->entered, &g->here, &g->here_stream, &g->there, &g->there_stream};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) put(places[i], NULL);
    return 0;
}

static void guard_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    guard_clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"__enter__", guard_enter, METH_NOARGS, "__enter__($self)\n--\n\nMake the stream and its device current.\n"},
    {"__exit__", (PyCFunction)(void (*)(void))guard_exit, METH_FASTCALL,
     "__exit__($self, type, value, traceback)\n--\n\nRestore what was current before.\n"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"stream", get_object, set_object, "The stream that is made current; None changes nothing.", NULL},
    {"idx", get_object, set_object, "The device that was current when this was made.", ""},
    {"_before", get_before, NULL, "The device that was current and its stream; None before entering.", NULL},
    {"_there", get_before, NULL, "Another device of the stream and what was current there; else None.", ""},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "GuardBase(stream)\n--\n\nThe half of a context of a stream that is written in C."},
    {Py_tp_init, guard_init},
    {Py_tp_traverse, guard_traverse},
    {Py_tp_clear, guard_clear},
    {Py_tp_dealloc, guard_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};

PyType_Spec handles_guard_spec = {
    "halstream._core._handles.GuardBase", sizeof(Guard), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots,
};
