/* MemoryBase: objects that own a block of memory. What collected objects leave behind is their id, as everywhere. */
#include "_handles.h"

#include <stddef.h>
#include <structmember.h>

/* Of Python's code, see memory_owners; NULL before it ran. */
static PyObject *collected, *seen, *drop_seen;

PyObject *memory_owners(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *ids, *held, *function;
    if (!PyArg_ParseTuple(args, "O!O!O:owners", &PyList_Type, &ids, &PyDict_Type, &held, &function))
        return NULL;
    PyObject *before[] = {collected, seen, drop_seen};
    Py_INCREF(ids);
    Py_INCREF(held);
    Py_INCREF(function);
    collected = ids;
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

static void memory_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((Memory *)self)->weak != NULL) PyObject_ClearWeakRefs(self);
    leave((Memory *)self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMemberDef memory_members[] = {
    {"_id", T_LONGLONG, offsetof(Memory, id), 0, "The runtime's number of the block."},
    {"ptr", T_ULONGLONG, offsetof(Memory, ptr), 0, "Address of the first byte; 0 after `free`."},
    {"nbytes", T_LONGLONG, offsetof(Memory, nbytes), 0, "Size in bytes."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Memory, weak), READONLY, NULL},
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
