/* Calls that need C: what Python's code cannot give the core, or make of what it got. */
#include "_handles.h"

enum { LAUNCH_NUMBERS = 11, LAUNCH_CELL = 16 };

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
