/* Calls about memory that are made often: their usual case, without objects that nobody asks for. */
#include "_handles.h"

/* What `__array_struct__` of a NumPy array points to; part of NumPy's array interface. */
typedef struct {
    int two; /* 2 */
    int dimensions;
    char kind;
    int itemsize, flags;
    Py_intptr_t *shape, *strides;
    void *data;
    PyObject *descr;
} ArrayStruct;
enum { LAUNCH_NUMBERS = 11, LAUNCH_CELL = 16 };
enum { C_ORDER = 0x1, F_ORDER = 0x2, NATIVE = 0x200, WRITABLE = 0x400 };

static PyTypeObject *arrays; /* numpy.ndarray, once NumPy is used */

PyObject *memory_arrays(PyObject *module, PyObject *class)
{
    (void)module;
    if (!PyType_Check(class)) return PyErr_Format(PyExc_TypeError, "arrays() takes a class, not %R", class);
    PyTypeObject *before = arrays;
    Py_INCREF(class);
    arrays = (PyTypeObject *)class;
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

/* The array is in one piece and has so many bytes, and elements of the type of a code: kind, size above it. */
static bool fits(const ArrayStruct *a, unsigned long long nbytes, long code)
{
    if (a->two != 2 || !(a->flags & NATIVE) || !(a->flags & (C_ORDER | F_ORDER))) return false;
    if (code != ((unsigned char)a->kind | (long)a->itemsize << 8)) return false;
    unsigned long long size = (unsigned long long)a->itemsize;
    for (int i = 0; i < a->dimensions; i++) size *= (unsigned long long)a->shape[i];
    return size == nbytes;
}

int memory_numpy(PyObject *array, long code, bool written, uint64_t *address, uint64_t *nbytes)
{
    if (arrays == NULL || !Py_IS_TYPE(array, arrays)) return 0;
    PyObject *capsule = PyObject_GetAttr(array, name_array_struct);
    const ArrayStruct *a = capsule == NULL ? NULL : PyCapsule_GetPointer(capsule, NULL);
    int wanted = C_ORDER | NATIVE | (written ? WRITABLE : 0), usual = a == NULL ? -1 : 0;
    if (a != NULL && a->two == 2 && (a->flags & wanted) == wanted &&
        (code == 0 || code == ((unsigned char)a->kind | (long)a->itemsize << 8))) {
        *nbytes = (uint64_t)a->itemsize;
        for (int i = 0; i < a->dimensions; i++) *nbytes *= (uint64_t)a->shape[i];
        *address = (uint64_t)(uintptr_t)a->data;
        usual = *nbytes != 0;
    }
    Py_XDECREF(capsule);
    return usual;
}

PyObject *memory_copy(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (n != 5) return PyErr_Format(PyExc_TypeError, "copy() takes 5 arguments");
    if (!PyObject_TypeCheck(args[0], handles_stream) || !handles_in_core()) Py_RETURN_FALSE;
    int64_t stream = ((Stream *)args[0])->id;
    unsigned long long target = PyLong_AsUnsignedLongLong(args[1]), nbytes = PyLong_AsUnsignedLongLong(args[3]);
    long code = PyLong_AsLong(args[4]);
    if (PyErr_Occurred()) return NULL;
    if (stream <= 0) Py_RETURN_FALSE;
    if (!Py_IS_TYPE(args[2], arrays)) {
        uint64_t own = array_address(args[2], nbytes, code);
        if (PyErr_Occurred()) return NULL;
        if (own == 0) Py_RETURN_FALSE;
        handles_calls.stream_copy(stream, (int64_t)target, (int64_t)own, (int64_t)nbytes);
        if (PyErr_Occurred()) return NULL;
        Py_RETURN_TRUE;
    }
    PyObject *capsule = PyObject_GetAttr(args[2], name_array_struct);
    if (capsule == NULL) return NULL;
    const ArrayStruct *a = PyCapsule_GetPointer(capsule, NULL);
    bool usual = a != NULL && fits(a, nbytes, code);
    uint64_t source = usual ? (uint64_t)(uintptr_t)a->data : 0;
    Py_DECREF(capsule);
    if (PyErr_Occurred()) return NULL;
    if (!usual) Py_RETURN_FALSE;
    handles_calls.stream_copy(stream, (int64_t)target, (int64_t)source, (int64_t)nbytes);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_TRUE;
}

PyObject *memory_capsule(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (n != 3) return PyErr_Format(PyExc_TypeError, "capsule() takes 3 arguments");
    void *tensor = PyLong_AsVoidPtr(args[0]), *destructor = PyLong_AsVoidPtr(args[2]);
    int versioned = PyObject_IsTrue(args[1]);
    if (PyErr_Occurred()) return NULL;
    /* Capsules keep the address of their name. */
    return PyCapsule_New(tensor, versioned ? "dltensor_versioned" : "dltensor", (PyCapsule_Destructor)destructor);
}

PyObject *memory_launch(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (n != 5) return PyErr_Format(PyExc_TypeError, "launch() takes 5 arguments");
    char *size, *modes, *cells;
    Py_ssize_t size_bytes, count, cell_bytes;
    int64_t stream = PyLong_AsLongLong(args[0]), function = PyLong_AsLongLong(args[1]);
    if (PyErr_Occurred() || PyBytes_AsStringAndSize(args[2], &modes, &count) < 0 ||
        PyBytes_AsStringAndSize(args[3], &size, &size_bytes) < 0 ||
        PyBytes_AsStringAndSize(args[4], &cells, &cell_bytes) < 0)
        return NULL;
    if (size_bytes != LAUNCH_NUMBERS * (Py_ssize_t)sizeof(uint32_t) || cell_bytes != count * LAUNCH_CELL)
        return PyErr_Format(PyExc_ValueError, "%zd bytes are no size of a launch, or %zd bytes are not those of %zd arguments",
                            size_bytes, cell_bytes, count);
    uint32_t numbers[LAUNCH_NUMBERS];
    memcpy(numbers, size, sizeof numbers);
    halstream_launch launch = {numbers, modes, cells, count};
    int64_t misplaced = handles_calls.stream_launch(stream, function, (int64_t)(uintptr_t)&launch);
    return PyErr_Occurred() ? NULL : PyLong_FromLongLong(misplaced);
}
