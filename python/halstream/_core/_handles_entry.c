/* Entry and ChoicesBase: what the current device and the current streams are kept in.
 *
 * Both are plain data, which `_stack` and `_current` make, read and link. They are written in
 * C so that `_handles_context.c` reads fields instead of looking attributes up. */
#include "_handles.h"

#include <stddef.h>
#include <structmember.h>

/* Memory of entries that were left: a context is entered and left in turns. */
#define KEPT 32
static Entry *kept[KEPT];
static int kept_count;

Entry *entry_new(PyObject *key, PyObject *stream, PyObject *below, PyObject *restore, PyObject *label)
{
    Entry *e;
    if (kept_count > 0) {
        e = kept[--kept_count];
        PyObject_Init((PyObject *)e, handles_entry);
    } else {
        e = PyObject_GC_New(Entry, handles_entry);
        if (e == NULL) return NULL;
    }
    Py_INCREF(key);
    Py_INCREF(stream);
    Py_INCREF(below);
    Py_INCREF(restore);
    Py_INCREF(label);
    e->key = key;
    e->stream = stream;
    e->below = below;
    e->restore = restore;
    e->label = label;
    e->token = NULL;
    e->ordinal = e->device = -1;
    e->context = e->transient = false;
    PyObject_GC_Track((PyObject *)e);
    return e;
}

/* Makes an entry of the arguments; those that are left out come from another one. */
static PyObject *make(PyObject *args, PyObject *keywords, const Entry *from)
{
    static char *names[] = {"key", "ordinal", "stream", "device", "below", "context", "transient", "restore", "label", NULL};
    PyObject *key = from ? from->key : NULL, *stream = from ? from->stream : Py_None;
    PyObject *below = from ? from->below : Py_None, *restore = from ? from->restore : Py_None;
    PyObject *label = from ? from->label : name_empty;
    int ordinal = from ? from->ordinal : -1, device = from ? from->device : -1;
    int context = from && from->context, transient = from && from->transient;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, from ? "|$OiOiOppOU:replaced" : "OiOiOppO|U:Entry", names, &key, &ordinal,
                                     &stream, &device, &below, &context, &transient, &restore, &label))
        return NULL;
    for (int i = 0; i < 2; i++) {
        PyObject *link = i ? restore : below;
        if (link != Py_None && !Py_IS_TYPE(link, handles_entry))
            return PyErr_Format(PyExc_TypeError, "%s must be an Entry or None, not %R", i ? "restore" : "below", link);
    }
    Entry *e = entry_new(key, stream, below, restore, label);
    if (e == NULL) return NULL;
    e->ordinal = ordinal;
    e->device = device;
    e->context = context;
    e->transient = transient;
    return (PyObject *)e;
}

static PyObject *entry_make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type;
    return make(args, keywords, NULL);
}

static PyObject *entry_replaced(PyObject *self, PyObject *args, PyObject *keywords)
{
    return make(args, keywords, (Entry *)self);
}

static int entry_traverse(PyObject *self, visitproc visit, void *arg)
{
    Entry *e = (Entry *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(e->key);
    Py_VISIT(e->stream);
    Py_VISIT(e->below);
    Py_VISIT(e->restore);
    Py_VISIT(e->token);
    return 0;
}

static int entry_clear(PyObject *self)
{
    Entry *e = (Entry *)self;
    PyObject *before[] = {e->key, e->stream, e->below, e->restore, e->label, e->token};
    e->key = e->stream = e->below = e->restore = Py_None;
    e->label = name_empty;
    e->token = NULL;
    for (int i = 0; i < 4; i++) Py_INCREF(Py_None);
    Py_INCREF(name_empty);
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) Py_XDECREF(before[i]);
    return 0;
}

/* Entries of a deep stack are freed one after the other here, not each in the call that frees the one above. */
static void entry_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Entry *e = (Entry *)self;
    PyObject_GC_UnTrack(self);
    PyObject *below = e->below;
    Py_XDECREF(e->token);
    Py_DECREF(e->restore);
    Py_DECREF(e->label);
    Py_DECREF(e->stream);
    Py_DECREF(e->key);
    if (kept_count < KEPT) kept[kept_count++] = e;
    else PyObject_GC_Del(self);
    Py_DECREF(type);
    while (Py_IS_TYPE(below, type) && (uint32_t)Py_REFCNT(below) == 1) {
        PyObject *next = ((Entry *)below)->below;
        ((Entry *)below)->below = Py_None;
        Py_INCREF(Py_None);
        Py_DECREF(below);
        below = next;
    }
    Py_DECREF(below);
}

static PyMemberDef members[] = {
    {"key", T_OBJECT, offsetof(Entry, key), READONLY, "Marks the thread that made the entry."},
    {"ordinal", T_INT, offsetof(Entry, ordinal), READONLY, "Device whose current stream the entry sets, -1 for none."},
    {"stream", T_OBJECT, offsetof(Entry, stream), READONLY, "The stream, or None."},
    {"device", T_INT, offsetof(Entry, device), READONLY, "Current device that the entry sets, -1 for none."},
    {"below", T_OBJECT, offsetof(Entry, below), READONLY, "The next entry of the stack, or None."},
    {"context", T_BOOL, offsetof(Entry, context), READONLY,
     "True for a context: leaving it removes the entry and the settings above it."},
    {"transient", T_BOOL, offsetof(Entry, transient), READONLY,
     "True for cupy's use(), which the next context forgets, and for cupy's contexts,\n"
     "which undo nothing but the stream of their device."},
    {"restore", T_OBJECT, offsetof(Entry, restore), READONLY, "Top of the stack after leaving, or None."},
    {"label", T_OBJECT, offsetof(Entry, label), READONLY, "Name the device was chosen by, '' for none (paddle)."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef methods[] = {
    {"replaced", (PyCFunction)(void (*)(void))entry_replaced, METH_VARARGS | METH_KEYWORDS,
     "replaced($self, /, **fields)\n--\n\nReturn a copy with other values of some fields.\n"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Entry(key, ordinal, stream, device, below, context, transient, restore, label='')\n--\n\n"
     "One element of the stack; `below` links to the next."},
    {Py_tp_new, entry_make},
    {Py_tp_traverse, entry_traverse},
    {Py_tp_clear, entry_clear},
    {Py_tp_dealloc, entry_dealloc},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec handles_entry_spec = {
    "halstream._core._handles.Entry", sizeof(Entry), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots,
};

static PyObject *choices_make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args, (void)keywords;
    PyObject *self = PyType_GenericAlloc(type, 0);
    if (self == NULL) return NULL;
    Choices *c = (Choices *)self;
    c->streams = PyDict_New();
    c->transient = PySet_New(NULL);
    Py_INCREF(Py_None);
    c->key = Py_None;
    Py_INCREF(Py_None);
    c->device = Py_None;
    if (c->streams == NULL || c->transient == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    return self;
}

static int choices_traverse(PyObject *self, visitproc visit, void *arg)
{
    Choices *c = (Choices *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(c->key);
    Py_VISIT(c->device);
    Py_VISIT(c->streams);
    Py_VISIT(c->transient);
    return 0;
}

static int choices_clear(PyObject *self)
{
    /* The four are read without asking whether they are there: only the streams are let go of. */
    PyDict_Clear(((Choices *)self)->streams);
    return 0;
}

static void choices_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Choices *c = (Choices *)self;
    PyObject_GC_UnTrack(self);
    Py_XDECREF(c->key);
    Py_XDECREF(c->device);
    Py_XDECREF(c->streams);
    Py_XDECREF(c->transient);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static int choices_set(PyObject *self, PyObject *value, void *which)
{
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "cannot delete a choice");
        return -1;
    }
    PyObject **place = which == NULL ? &((Choices *)self)->device : &((Choices *)self)->key, *before = *place;
    Py_INCREF(value);
    *place = value;
    Py_DECREF(before);
    return 0;
}

static PyObject *choices_get(PyObject *self, void *which)
{
    PyObject *value = which == NULL ? ((Choices *)self)->device : ((Choices *)self)->key;
    Py_INCREF(value);
    return value;
}

static PyMemberDef choices_members[] = {
    {"streams", T_OBJECT, offsetof(Choices, streams), READONLY, "The current streams by their devices."},
    {"transient", T_OBJECT, offsetof(Choices, transient), READONLY,
     "The devices whose current stream is forgotten by their next context (cupy)."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef choices_attributes[] = {
    {"device", choices_get, choices_set, "Ordinal of the current device, or None.", NULL},
    {"key", choices_get, choices_set, "Marks the entries of the thread; of the process None.", ""},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot choices_slots[] = {
    {Py_tp_doc, "What a thread, or the process, chose outside any context; see `_stack`."},
    {Py_tp_new, choices_make},
    {Py_tp_traverse, choices_traverse},
    {Py_tp_clear, choices_clear},
    {Py_tp_dealloc, choices_dealloc},
    {Py_tp_members, choices_members},
    {Py_tp_getset, choices_attributes},
    {0, NULL},
};

PyType_Spec handles_choices_spec = {
    "halstream._core._handles.ChoicesBase", sizeof(Choices), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, choices_slots,
};
