/* MemoryBase and PooledBase: objects that own a block of memory, and those whose block is in the order of a stream.
 *
 * An object of Python with a finalizer, and two methods that make and free the block, took as long
 * again as the two calls of the core. What collected objects leave behind is their id, as everywhere. */
#include "_handles.h"

#include <stddef.h>
#include <structmember.h>

typedef struct {
    Memory memory;
    PyObject *stream; /* NULL until it was given */
    int device;
} Pooled;

/* Of Python's code, see memory_owners; NULL before it ran. */
static PyObject *collected, *lent, *seen, *drop_seen;

PyObject *memory_owners(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *ids, *others, *held, *function;
    if (!PyArg_ParseTuple(args, "O!O!O!O:owners", &PyList_Type, &ids, &PyDict_Type, &others, &PyDict_Type, &held, &function))
        return NULL;
    PyObject *before[] = {collected, lent, seen, drop_seen};
    Py_INCREF(ids);
    Py_INCREF(others);
    Py_INCREF(held);
    Py_INCREF(function);
    collected = ids;
    lent = others;
    seen = held;
    drop_seen = function;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) Py_XDECREF(before[i]);
    Py_RETURN_NONE;
}

/* Leaves the block to an ordinary call, as its owner is collected; a collector may run anywhere. */
static void leave(Memory *m)
{
    int64_t id = m->id;
    if (m->ptr == 0 || id == 0 || collected == NULL) return;
    m->ptr = 0;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *number = PyLong_FromLongLong(id);
    if (number != NULL) {
        if (PyDict_Size(seen) == 0) PyList_Append(collected, number);
        else Py_XDECREF(PyObject_CallFunctionObjArgs(drop_seen, number, NULL));
        Py_DECREF(number);
    }
    if (PyErr_Occurred()) PyErr_WriteUnraisable(NULL);
    PyErr_Restore(type, value, traceback);
}

static int memory_traverse(PyObject *self, visitproc visit, void *arg)
{
    (void)arg;
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int pooled_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Pooled *)self)->stream);
    return 0;
}

static int pooled_clear(PyObject *self)
{
    Py_CLEAR(((Pooled *)self)->stream);
    return 0;
}

static void memory_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((Memory *)self)->weak != NULL) PyObject_ClearWeakRefs(self);
    leave((Memory *)self);
    if (PyType_IsSubtype(type, handles_pooled)) pooled_clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* The core has a usual call of this thread: nothing else that keeps or uses memory is to be considered. */
static bool usual(PyObject *stream)
{
    return collected != NULL && PyObject_TypeCheck(stream, handles_stream) && ((Stream *)stream)->id > 0 &&
           (handles_fast() || handles_core()) && PyDict_Size(lent) == 0 && PyDict_Size(seen) == 0;
}

/* Gives back what one collected object left, the usual case in a loop that drops what it made; false
 * if Python's code has to see what there is. */
static bool nothing_left(void)
{
    Py_ssize_t n = PyList_Size(collected);
    if (n != 1) return n == 0;
    int64_t id = PyLong_AsLongLong(PyList_GetItem(collected, 0));
    if (id <= 0 || PyList_SetSlice(collected, 0, 1, NULL) < 0) {
        PyErr_Clear();
        return false;
    }
    handles_calls.reap(id);
    if (!PyErr_Occurred()) return true;
    PyErr_Clear(); /* Python's code gets the error again */
    PyObject *number = PyLong_FromLongLong(id);
    if (number == NULL || PyList_Append(collected, number) < 0) PyErr_Clear();
    Py_XDECREF(number);
    return false;
}

/* handles_answer for a block, whose Python code makes the block or raises. */
static int answer(PyObject *self, PyObject *name, PyObject *nbytes)
{
    PyObject *none = handles_answer(self, name, nbytes);
    Py_XDECREF(none);
    return none == NULL ? -1 : 0;
}

static int pooled_make(Pooled *p, PyObject *size)
{
    PyObject *self = (PyObject *)p;
    if (PyLong_CheckExact(size) && usual(p->stream) && nothing_left()) {
        int overflow;
        long long nbytes = PyLong_AsLongLongAndOverflow(size, &overflow);
        PyObject *release = PyObject_GetAttr(self, name_release);
        long kind = release == NULL ? -1 : PyLong_AsLong(release);
        Py_XDECREF(release);
        if (PyErr_Occurred()) return -1;
        if (!overflow) {
            p->device = ((Stream *)p->stream)->ordinal;
            int64_t id = handles_calls.block_new_async(((Stream *)p->stream)->id, nbytes, kind);
            if (PyErr_Occurred()) return answer(self, name_allocate_again, size);
            p->memory.id = id;
            p->memory.ptr = handles_calls.block->start;
            p->memory.nbytes = nbytes;
            return 0;
        }
    }
    PyObject *none = PyObject_CallMethodObjArgs(self, name_allocate, size, NULL);
    Py_XDECREF(none);
    return none == NULL ? -1 : 0;
}

static int pooled_init(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"nbytes", "stream", NULL};
    PyObject *size, *stream;
    Pooled *p = (Pooled *)self;
    if (keywords == NULL && PyTuple_Size(args) == 2) { /* as nearly always */
        size = PyTuple_GetItem(args, 0);
        stream = PyTuple_GetItem(args, 1);
    } else if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO:PooledMemory", names, &size, &stream)) {
        return -1;
    }
    leave(&p->memory); /* as an object that is made again with __init__ */
    PyObject *before = p->stream;
    Py_INCREF(stream);
    p->stream = stream;
    Py_XDECREF(before);
    return pooled_make(p, size);
}

static PyObject *pooled_free(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    Pooled *p = (Pooled *)self;
    if (n == 0 && keywords == NULL && p->memory.ptr != 0 && p->stream != NULL && usual(p->stream)) {
        int64_t stays = handles_calls.block_free_async(p->memory.id, ((Stream *)p->stream)->id);
        if (PyErr_Occurred()) return handles_failed(p->stream, "free", NULL);
        if (!stays) p->memory.ptr = 0;
        Py_RETURN_NONE;
    }
    return handles_python(self, name_free, args, n, keywords);
}

PyMethodDef handles_pooled_methods[] = {
    {"free", (PyCFunction)(void (*)(void))pooled_free, METH_FASTCALL | METH_KEYWORDS,
     "free($self, stream=None)\n--\n\n"
     "Give it back at the point that a stream (None: its own) has reached.\n\n"
     "Raises\n------\n"
     "BufferError\n    If another library uses the memory, which it got through DLPack.\n"
     "InvalidValueError\n    If the stream is on another device.\n"},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef memory_members[] = {
    {"_id", T_LONGLONG, offsetof(Memory, id), 0, "The runtime's number of the block."},
    {"ptr", T_ULONGLONG, offsetof(Memory, ptr), 0, "Address of the first byte; 0 after `free`."},
    {"nbytes", T_LONGLONG, offsetof(Memory, nbytes), 0, "Size in bytes."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Memory, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMemberDef pooled_members[] = {
    {"stream", T_OBJECT_EX, offsetof(Pooled, stream), 0, "The stream in whose order it was allocated."},
    {"device", T_INT, offsetof(Pooled, device), 0, "Ordinal of the device."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot memory_slots[] = {
    {Py_tp_doc, "The half of an owner of memory that is written in C; see `Memory`."},
    {Py_tp_traverse, memory_traverse},
    {Py_tp_dealloc, memory_dealloc},
    {Py_tp_members, memory_members},
    {0, NULL},
};

PyType_Spec handles_memory_spec = {
    "halstream._core._handles.MemoryBase", sizeof(Memory), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, memory_slots,
};

static PyType_Slot pooled_slots[] = {
    {Py_tp_doc, "PooledBase(nbytes, stream)\n--\n\nThe half of `PooledMemory` that is written in C."},
    {Py_tp_init, pooled_init},
    {Py_tp_traverse, pooled_traverse},
    {Py_tp_clear, pooled_clear},
    {Py_tp_dealloc, memory_dealloc},
    {Py_tp_methods, handles_pooled_methods},
    {Py_tp_members, pooled_members},
    {0, NULL},
};

PyType_Spec handles_pooled_spec = {
    "halstream._core._handles.PooledBase", sizeof(Pooled), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, pooled_slots,
};
