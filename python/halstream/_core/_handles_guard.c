/* GuardBase: a context that makes a stream current, as a separate object (torch.cuda.StreamContext). */
#include "_handles.h"

#include <stddef.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    PyObject *stream;  /* as it was given */
    PyObject *idx;     /* of the device that was current when this was made */
    PyObject *entered; /* the stream that was entered, NULL before that */
    Before before;     /* empty before that */
    PyObject *attributes, *references; /* of the program: its attributes and weak references */
} Guard;

/* The class that `stream` makes objects of, and memory of those that it made. */
#define KEPT 16
static PyTypeObject *made;
static Guard *kept[KEPT];
static int kept_count;

static void put(PyObject **place, PyObject *value)
{
    PyObject *before = *place;
    *place = value;
    Py_XDECREF(before);
}

void before_clear(Before *before)
{
    put(&before->here, NULL);
    put(&before->here_stream, NULL);
    put(&before->there, NULL);
    put(&before->there_stream, NULL);
}

static int guard_begin(Guard *g, PyObject *stream)
{
    PyObject *device = context_device(NULL, NULL);
    if (device == NULL) return -1;
    Py_INCREF(stream);
    put(&g->stream, stream);
    put(&g->idx, device);
    return 0;
}

static PyObject *argument(PyObject *args, PyObject *keywords, const char *format)
{
    static char *names[] = {"stream", NULL};
    PyObject *stream;
    return PyArg_ParseTupleAndKeywords(args, keywords, format, names, &stream) ? stream : NULL;
}

static int guard_init(PyObject *self, PyObject *args, PyObject *keywords)
{
    PyObject *stream;
    if (keywords == NULL && PyTuple_Size(args) == 1)
        stream = PyTuple_GetItem(args, 0); /* as nearly always; parsing takes longer than all the rest */
    else if ((stream = argument(args, keywords, "O:StreamContext")) == NULL)
        return -1;
    return guard_begin((Guard *)self, stream);
}

/* The memory of one object of the class does for every other. */
static bool has_size(PyObject *class)
{
    PyObject *size = PyObject_GetAttrString(class, "__basicsize__");
    bool same = size != NULL && PyLong_AsSsize_t(size) == (Py_ssize_t)sizeof(Guard);
    Py_XDECREF(size);
    PyErr_Clear();
    return same;
}

PyObject *guard_class(PyObject *module, PyObject *class)
{
    (void)module;
    if (!PyType_Check(class) || !PyType_IsSubtype((PyTypeObject *)class, handles_guard))
        return PyErr_Format(PyExc_TypeError, "%R is no class of guards", class);
    if (!has_size(class)) return PyErr_Format(PyExc_TypeError, "objects of %R are larger than a guard", class);
    PyTypeObject *before = made;
    while (kept_count > 0) PyObject_GC_Del(kept[--kept_count]);
    Py_INCREF(class);
    made = (PyTypeObject *)class;
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyObject *by_name(PyObject *stream)
{
    return PyObject_CallFunctionObjArgs((PyObject *)made, stream, NULL);
}

PyObject *guard_of(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    (void)module;
    if (n != 1 || keywords != NULL) {
        if (n == 0 && keywords != NULL && PyTuple_Size(keywords) == 1) {
            int same = PyUnicode_CompareWithASCIIString(PyTuple_GetItem(keywords, 0), "stream");
            if (same == 0) return by_name(args[0]);
        }
        return PyErr_Format(PyExc_TypeError, "stream() takes exactly one argument, 'stream'");
    }
    if (kept_count == 0) return by_name(args[0]);
    Guard *g = kept[--kept_count];
    PyObject_Init((PyObject *)g, made);
    PyObject_GC_Track((PyObject *)g);
    if (guard_begin(g, args[0]) == 0) return (PyObject *)g;
    Py_DECREF(g);
    return NULL;
}

static PyObject *enter_other(Guard *g)
{
    PyObject *stream = handles_python((PyObject *)g, name_other, NULL, 0, NULL);
    if (stream != NULL && !PyObject_TypeCheck(stream, handles_stream)) { /* of a subclass that overrides the method */
        PyErr_Format(PyExc_TypeError, "_other_stream() returned %R, which is no stream", stream);
        Py_DECREF(stream);
        return NULL;
    }
    return stream;
}

static PyObject *guard_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    Guard *g = (Guard *)self;
    if (g->stream == Py_None) Py_RETURN_NONE;
    PyObject *stream = g->stream;
    if (stream != NULL && PyObject_TypeCheck(stream, handles_stream)) Py_INCREF(stream); /* it may be replaced meanwhile */
    else if ((stream = enter_other(g)) == NULL) return NULL;
    Before before;
    if (context_enter((Stream *)stream, &before) < 0) {
        Py_DECREF(stream);
        return NULL;
    }
    Before old = g->before;
    g->before = before;
    before_clear(&old);
    put(&g->entered, stream);
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
    const Before *b = &((Guard *)self)->before;
    return other == NULL ? pair(b->here, b->here_stream) : pair(b->there, b->there_stream);
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
    Py_VISIT(g->before.here_stream);
    Py_VISIT(g->before.there_stream);
    Py_VISIT(g->attributes);
    return 0;
}

static int guard_clear(PyObject *self)
{
    Guard *g = (Guard *)self;
    put(&g->stream, NULL);
    put(&g->idx, NULL);
    put(&g->entered, NULL);
    put(&g->attributes, NULL);
    before_clear(&g->before);
    return 0;
}

static void guard_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((Guard *)self)->references != NULL) PyObject_ClearWeakRefs(self);
    guard_clear(self);
    if (type == made && kept_count < KEPT) kept[kept_count++] = (Guard *)self;
    else ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

PyMethodDef handles_guard_methods[] = {
    {"__enter__", guard_enter, METH_NOARGS, "__enter__($self)\n--\n\nMake the stream and its device current.\n"},
    {"__exit__", (PyCFunction)(void (*)(void))guard_exit, METH_FASTCALL,
     "__exit__($self, type, value, traceback)\n--\n\nRestore what was current before.\n"},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(Guard, attributes), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Guard, references), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"stream", get_object, set_object, "The stream that is made current; None changes nothing.", NULL},
    {"idx", get_object, set_object, "The device that was current when this was made.", ""},
    {"_before", get_before, NULL, "The device that was current and its stream; None before entering.", NULL},
    {"_there", get_before, NULL, "Another device of the stream and what was current there; else None.", ""},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "GuardBase(stream)\n--\n\nThe half of a context of a stream that is written in C."},
    {Py_tp_init, guard_init},
    {Py_tp_traverse, guard_traverse},
    {Py_tp_clear, guard_clear},
    {Py_tp_dealloc, guard_dealloc},
    {Py_tp_methods, handles_guard_methods},
    {Py_tp_members, members},
    {Py_tp_getset, attributes},
    {0, NULL},
};

PyType_Spec handles_guard_spec = {
    "halstream._core._handles.GuardBase", sizeof(Guard), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots,
};
