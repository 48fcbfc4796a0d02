/* ArrayBase: the fields of an array, where launches, fills and copies read them without asking Python. */
#include "_handles.h"

#include <stddef.h>
#include <structmember.h>

static int array_traverse(PyObject *self, visitproc visit, void *arg)
{
    Array *a = (Array *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(a->memory);
    Py_VISIT(a->shape);
    Py_VISIT(a->dtype);
    Py_VISIT(a->plain);
    return 0;
}

static int array_clear(PyObject *self)
{
    Array *a = (Array *)self;
    Py_CLEAR(a->memory);
    Py_CLEAR(a->shape);
    Py_CLEAR(a->dtype);
    Py_CLEAR(a->plain);
    return 0;
}

static void array_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    array_clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"_memory", T_OBJECT_EX, offsetof(Array, memory), 0, "The owner of the memory."},
    {"shape", T_OBJECT_EX, offsetof(Array, shape), 0, "Length in each dimension."},
    {"dtype", T_OBJECT_EX, offsetof(Array, dtype), 0, "Type of the elements."},
    {"ptr", T_ULONGLONG, offsetof(Array, ptr), 0, "Address on the device."},
    {"_plain", T_OBJECT_EX, offsetof(Array, plain), 0, "What fills and copies look at, or None."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The half of an array that is written in C; see `Array`."},
    {Py_tp_traverse, array_traverse},
    {Py_tp_clear, array_clear},
    {Py_tp_dealloc, array_dealloc},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec handles_array_spec = {
    "halstream._core._handles.ArrayBase", sizeof(Array), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots,
};
