/* The module _handles: base classes of events and of owners of memory.
 *
 * They are in C for one reason: an object that is freed leaves the number that the core has for it on a list, which
 * ordinary calls of the package close. A method __del__ would do so as well, but also for an object that the finalizer of
 * a program keeps alive, whose event or memory would be closed under it; and it takes as long as a record.
 *
 * Nothing is decided here, and the core is not called. The module is apart from the extension because that starts Go's
 * threads when it is loaded, which happens at the first call: the classes are needed when the package is imported, and a
 * process that only imported it may fork. Python's lock is held everywhere here. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    PyObject *id;  /* an int; NULL: the object stands for no event */
    bool borrowed; /* the event is not closed with this object */
} Event;

typedef struct {
    PyObject_HEAD
    long long id;           /* 0: there is no block */
    unsigned long long ptr; /* 0: it was freed */
    long long nbytes;
    PyObject *weak; /* weak references, NULL while there are none */
} Memory;

/* Where ids are left, and for memory what functions on streams see, with the function that is given the id of such a
 * block; NULL before Python's code has given them. */
static PyObject *collected, *seen, *drop_seen;

static PyTypeObject *event_base;

/* Leaves an id, which an object is freed with. */
static void leave(PyObject *id, bool of_memory)
{
    if (id == NULL || collected == NULL) return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (!of_memory || seen == NULL || PyDict_Size(seen) == 0) PyList_Append(collected, id);
    else Py_XDECREF(PyObject_CallFunctionObjArgs(drop_seen, id, NULL));
    if (PyErr_Occurred()) PyErr_WriteUnraisable(NULL);
    PyErr_Restore(type, value, traceback);
}

static void put(PyObject **place, PyObject *value)
{
    PyObject *before = *place;
    Py_INCREF(value);
    *place = value;
    Py_XDECREF(before);
}

static PyObject *leave_to(PyObject *module, PyObject *ids)
{
    (void)module;
    if (!PyList_Check(ids)) return PyErr_Format(PyExc_TypeError, "leave_to() takes a list, not %R", ids);
    put(&collected, ids);
    Py_RETURN_NONE;
}

static PyObject *seen_by_functions(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *held, *function;
    if (!PyArg_ParseTuple(args, "O!O:seen_by_functions", &PyDict_Type, &held, &function)) return NULL;
    put(&seen, held);
    put(&drop_seen, function);
    Py_RETURN_NONE;
}

/* An event of a class that has an id: what object.__new__ and an assignment do, in half of the time. */
static PyObject *event_of(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (n != 2 || !PyType_Check(args[0]) || !PyType_IsSubtype((PyTypeObject *)args[0], event_base))
        return PyErr_Format(PyExc_TypeError, "event_of() takes a class of events and an id");
    PyObject *self = PyType_GenericAlloc((PyTypeObject *)args[0], 0);
    if (self == NULL) return NULL;
    Py_INCREF(args[1]);
    ((Event *)self)->id = args[1];
    return self;
}

static PyObject *event_id(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *id = ((Event *)self)->id;
    if (id == NULL)
        return PyErr_Format(PyExc_AttributeError, "%R object has no attribute '_id'", (PyObject *)Py_TYPE(self));
    Py_INCREF(id);
    return id;
}

/* An event that had another id is made again, which ends the earlier one; with `del` the object gives its id up. */
static int event_set_id(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    Event *e = (Event *)self;
    PyObject *before = e->id;
    Py_XINCREF(value);
    e->id = value;
    if (value != NULL && !e->borrowed) leave(before, false);
    Py_XDECREF(before);
    return 0;
}

static PyObject *event_owned(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(!((Event *)self)->borrowed);
}

static int event_set_owned(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    int owned = value == NULL ? 1 : PyObject_IsTrue(value);
    if (owned < 0) return -1;
    ((Event *)self)->borrowed = !owned;
    return 0;
}

static void event_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Event *e = (Event *)self;
    if (!e->borrowed) leave(e->id, false);
    Py_CLEAR(e->id);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyGetSetDef event_attributes[] = {
    {"_id", event_id, event_set_id, "The runtime's number of the event.", NULL},
    {"_owned", event_owned, event_set_owned, "Whether the event is closed with this object.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot event_slots[] = {
    {Py_tp_doc, "The half of an event that is written in C; see `Event`."},
    {Py_tp_dealloc, event_dealloc},
    {Py_tp_getset, event_attributes},
    {0, NULL},
};

static PyType_Spec event_spec = {
    "halstream._core._handles.EventBase", sizeof(Event), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, event_slots,
};

static int memory_traverse(PyObject *self, visitproc visit, void *arg)
{
    (void)arg;
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static void memory_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Memory *m = (Memory *)self;
    PyObject_GC_UnTrack(self);
    if (m->weak != NULL) PyObject_ClearWeakRefs(self);
    if (m->ptr != 0 && m->id != 0) {
        PyObject *id = PyLong_FromLongLong(m->id);
        m->ptr = 0;
        leave(id, true);
        Py_XDECREF(id);
    }
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

static PyType_Spec memory_spec = {
    "halstream._core._handles.MemoryBase", sizeof(Memory), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, memory_slots,
};

static PyMethodDef functions[] = {
    {"leave_to", leave_to, METH_O,
     "leave_to($module, ids, /)\n--\n\nSay to which list the ids of objects go that are freed.\n"},
    {"seen_by_functions", seen_by_functions, METH_VARARGS,
     "seen_by_functions($module, seen, dropped, /)\n--\n\n"
     "Say which blocks functions on streams see; while there are any, `dropped` gets the ids of memory instead.\n"},
    {"event_of", (PyCFunction)(void (*)(void))event_of, METH_FASTCALL,
     "event_of($module, class, id, /)\n--\n\nReturn an event of a class for an id of the core's.\n"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_handles", "The base classes of events and of owners of memory.", -1, functions,
    NULL, NULL, NULL, NULL,
};

#ifdef Py_GIL_DISABLED
/* What is here and in the extension is guarded by Python's lock. A free-threaded interpreter takes the lock
 * for good, and says so, when it loads a module that does not declare to need none - unless it was told not to. */
static int lock_is_there(void)
{
    PyObject *ask = PySys_GetObject("_is_gil_enabled"), *answer = ask ? PyObject_CallNoArgs(ask) : NULL;
    int there = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    if (there == 0)
        PyErr_SetString(PyExc_ImportError, "halstream needs Python's global lock (GIL); start Python without "
                                           "PYTHON_GIL=0 and -X gil=0");
    return there == 1;
}
#else
static int lock_is_there(void) { return 1; }
#endif

static int add_type(PyObject *module, PyType_Spec *spec, const char *name)
{
    PyObject *type = PyType_FromSpec(spec);
    if (spec == &event_spec) event_base = (PyTypeObject *)type;
    return type == NULL ? -1 : PyModule_AddObject(module, name, type);
}

PyMODINIT_FUNC PyInit__handles(void)
{
    if (!lock_is_there()) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && add_type(module, &event_spec, "EventBase") == 0 &&
        add_type(module, &memory_spec, "MemoryBase") == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}
