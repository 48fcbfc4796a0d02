/* The usual case of methods of Python's classes: fills, copies on the device, and launches of graphs.
 *
 * A class keeps its own method under its name with an underscore before it, which is the whole of the
 * call, and makes every error. `usual` puts a method from here in front of it. */
#include "_handles.h"

#include <math.h>
#include <string.h>

PyObject *handles_answer(PyObject *self, PyObject *name, PyObject *argument)
{
    if (!PyErr_ExceptionMatches(PyExc_RuntimeError)) return NULL;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *result = PyObject_CallMethodObjArgs(self, name, value, argument, NULL);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return result;
}

/* The id of an open stream that has one of its own, 0 for anything else. */
static int64_t id_of(PyObject *stream)
{
    return PyObject_TypeCheck(stream, handles_stream) && ((Stream *)stream)->id > 0 ? ((Stream *)stream)->id : 0;
}

/* An attribute that is a number of 64 bits; 0 with an exception. */
static uint64_t number_of(PyObject *self, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(self, name);
    if (value == NULL) return 0;
    uint64_t number = PyLong_AsUnsignedLongLong(value);
    Py_DECREF(value);
    return number;
}

/* launch(stream) of an executable graph: of an object whose `_owner` has its id. */
static PyObject *graph_launch(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    int64_t stream = n == 1 && keywords == NULL && handles_in_core() ? id_of(args[0]) : 0;
    if (stream == 0) return handles_python(self, name_launch, args, n, keywords);
    PyObject *owner = PyObject_GetAttr(self, name_owner);
    if (owner == NULL) return NULL;
    int64_t id = (int64_t)number_of(owner, name_ident);
    Py_DECREF(owner);
    if (PyErr_Occurred()) return NULL;
    handles_calls.executable_launch(id, stream);
    if (PyErr_Occurred()) return handles_answer(self, name_launch_failed, args[0]);
    Py_RETURN_NONE;
}

int array_element(PyObject *value, char kind, int size, uint64_t *bits)
{
    double real;
    *bits = 0;
    if (PyLong_CheckExact(value)) {
        int overflow;
        long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow || (whole == -1 && PyErr_Occurred())) return 0;
        if ((kind == 'i' || kind == 'u') && size <= 8) {
            long long most = size == 8 ? LLONG_MAX : (1LL << (8 * size - (kind == 'i'))) - 1;
            long long least = kind == 'u' ? 0 : -most - 1;
            memcpy(bits, &whole, sizeof whole);
            return whole < least || whole > most ? 0 : size;
        }
        if (kind != 'f' || whole > 1 << 24 || whole < -(1 << 24)) return 0; /* all of them are numbers of 4 bytes, too */
        real = (double)whole;
    } else if (PyFloat_CheckExact(value) && kind == 'f') {
        real = PyFloat_AsDouble(value);
    } else {
        return 0;
    }
    uint64_t wide;
    memcpy(&wide, &real, sizeof wide);
    if (size == 8) {
        *bits = wide;
    } else if (size == 4) {
        float narrow = (float)real;
        if (isfinite(real) != isfinite(narrow)) return 0; /* NumPy warns */
        memcpy(bits, &narrow, sizeof narrow);
    } else if (wide != 0) {
        return 0; /* of other types only the bits of 0.0 are known here */
    }
    return size <= 16 ? size : 0;
}

/* Enqueues a fill of so many bytes with elements, if the core has such a fill: 1, 0 if it has none, -1 with an
 * exception. What stream_fill has returned is in `capture`. */
static int fill(int64_t stream, uint64_t address, uint64_t bits, int size, uint64_t nbytes, int64_t *capture)
{
    uint64_t byte = bits & 0xff, all = byte * 0x0101010101010101u;
    uint64_t mask = size >= 8 ? ~0ull : (1ull << (8 * size)) - 1;
    bool same = size <= 8 ? ((bits ^ all) & mask) == 0 : bits == 0;
    if (!same && size != 2 && size != 4) return 0;
    if (same) size = 1;
    *capture = handles_calls.stream_fill(stream, (int64_t)address, (int64_t)(same ? byte : bits & mask), size,
                                         (int64_t)(nbytes / (uint64_t)size));
    return PyErr_Occurred() ? -1 : 1;
}

/* The stream of a device that an array without a stream is filled on: a new reference, or NULL with an exception. */
static PyObject *current_of(PyObject *array)
{
    PyObject *memory = ((Array *)array)->memory, *device = NULL, *stream = NULL;
    if (memory != NULL) device = PyObject_GetAttr(memory, name_device);
    else PyErr_SetString(PyExc_AttributeError, "the array has no memory");
    if (device != NULL) stream = context_current(NULL, device);
    Py_XDECREF(device);
    if (stream == NULL || id_of(stream) != 0) return stream;
    Py_DECREF(stream);
    return PyObject_CallMethodObjArgs(array, name_stream_of, Py_None, NULL);
}

/* What `plain` says of an array, if it is still so: the bytes, and the code of the type. */
static bool described(const Array *a, uint64_t *nbytes, long *code)
{
    if (a->plain == NULL || !PyTuple_CheckExact(a->plain) || PyTuple_GetItem(a->plain, 0) != a->shape ||
        PyTuple_GetItem(a->plain, 1) != a->dtype)
        return false;
    *nbytes = PyLong_AsUnsignedLongLong(PyTuple_GetItem(a->plain, 2));
    *code = PyLong_AsLong(PyTuple_GetItem(a->plain, 3));
    return true;
}

/* fill(value, stream=None) of an array. */
static PyObject *array_fill(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    PyObject *stream = NULL, *result = NULL;
    uint64_t bits, nbytes;
    int64_t capture;
    long code;
    int done = 0;
    if (n < 1 || n > 2 || keywords != NULL || !handles_in_core() || !described((Array *)self, &nbytes, &code)) goto slowly;
    int size = array_element(args[0], (char)(code & 0xff), (int)(code >> 8), &bits);
    if (PyErr_Occurred()) goto end;
    if (size == 0) goto slowly;
    if (n == 2 && args[1] != Py_None) {
        stream = args[1];
        Py_INCREF(stream);
    } else {
        stream = current_of(self);
        if (stream == NULL) goto end;
    }
    if (id_of(stream) == 0) goto slowly;
    done = fill(id_of(stream), ((Array *)self)->ptr, bits, size, nbytes, &capture);
    if (done > 0) {
        Py_INCREF(Py_None);
        result = Py_None;
    } else if (done < 0) {
        result = handles_answer(self, name_fill_failed, n == 2 ? args[1] : Py_None);
    }
slowly:
    if (done == 0) result = handles_python(self, name_fill, args, n, keywords);
end:
    Py_XDECREF(stream);
    return result;
}

/* The memory that captures keep already, by its address: the graph keeps it, so that no other memory has the
 * address while the capture of the number goes on. Numbers of captures are not given again. */
enum { KEPT = 64 };
static struct {
    int64_t capture;
    PyObject *memory;
} kept[KEPT];

/* Has the graph of a capture keep the memory of a pointer: 0, or -1 with an exception. */
static int keep(PyObject *pointer, PyObject *stream, int64_t capture)
{
    PyObject *memory = PyObject_GetAttr(pointer, name_block);
    if (memory == NULL) return -1;
    size_t at = ((uintptr_t)memory >> 4) % KEPT;
    int failed = 0;
    if (capture < 0 || kept[at].capture != capture || kept[at].memory != memory) {
        PyObject *none = PyObject_CallMethodObjArgs(pointer, name_keep, stream, NULL);
        failed = none == NULL;
        Py_XDECREF(none);
        if (!failed) {
            kept[at].capture = capture;
            kept[at].memory = memory;
        }
    }
    Py_DECREF(memory);
    return failed ? -1 : 0;
}

/* The stream that the last of the arguments of a method of a pointer is, or the current one: a new reference, or NULL
 * with an exception. */
static PyObject *stream_at(PyObject *const *args, Py_ssize_t n, Py_ssize_t at)
{
    if (n > at && args[at] != Py_None) {
        Py_INCREF(args[at]);
        return args[at];
    }
    PyObject *device = context_device(NULL, NULL), *stream = device == NULL ? NULL : context_current(NULL, device);
    Py_XDECREF(device);
    return stream;
}

/* A number of bytes that is an int and fits: -1 for anything else. */
static long long size_of(PyObject *value)
{
    int high = 0;
    long long size = PyLong_CheckExact(value) ? PyLong_AsLongLongAndOverflow(value, &high) : -1;
    return high || size < 0 ? -1 : size;
}

/* memset_async(value, size, stream=None) of a pointer: of an object with `_ptr`, in memory `_mem`. */
static PyObject *pointer_fill(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    if (n < 2 || n > 3 || keywords != NULL || !PyLong_CheckExact(args[0]) || !handles_in_core())
        return handles_python(self, name_memset_async, args, n, keywords);
    int high;
    long long value = PyLong_AsLongLongAndOverflow(args[0], &high), size = size_of(args[1]);
    PyObject *stream = stream_at(args, n, 2), *result = NULL;
    if (stream == NULL) return NULL;
    if (high || size < 0 || id_of(stream) == 0) {
        result = handles_python(self, name_memset_async, args, n, keywords);
    } else {
        uint64_t address = number_of(self, name_pointer);
        int64_t capture = 0;
        if (!PyErr_Occurred()) capture = handles_calls.stream_fill(id_of(stream), (int64_t)address, value & 0xff, 1, size);
        if (PyErr_Occurred()) {
            result = handles_answer(self, name_fill_failed, stream);
        } else if (capture == 0 || keep(self, stream, capture) == 0) {
            Py_INCREF(Py_None);
            result = Py_None;
        }
    }
    Py_DECREF(stream);
    return result;
}

/* copy_from_device_async(src, size, stream=None) of a pointer. */
static PyObject *pointer_copy(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    if (n < 2 || n > 3 || keywords != NULL || !Py_IS_TYPE(args[0], Py_TYPE(self)) || !handles_in_core())
        return handles_python(self, name_copy, args, n, keywords);
    long long size = size_of(args[1]);
    PyObject *stream = stream_at(args, n, 2), *result = NULL;
    if (stream == NULL) return NULL;
    if (size < 0 || id_of(stream) == 0) {
        result = handles_python(self, name_copy, args, n, keywords);
    } else {
        uint64_t target = number_of(self, name_pointer), source = number_of(args[0], name_pointer);
        int64_t capture = 0, on = id_of(stream);
        if (!PyErr_Occurred()) capture = handles_calls.stream_copy_async(on, (int64_t)target, (int64_t)source, size);
        if (PyErr_Occurred()) {
            result = handles_answer(self, name_copy_failed, stream);
        } else if (capture == 0 || (keep(self, stream, capture) == 0 && keep(args[0], stream, capture) == 0)) {
            Py_INCREF(Py_None);
            result = Py_None;
        }
    }
    Py_DECREF(stream);
    return result;
}

static PyTypeObject *array_class; /* of which fill is the usual one */

uint64_t array_address(PyObject *array, unsigned long long nbytes, long code)
{
    uint64_t bytes;
    long type;
    if (array_class == NULL || !Py_IS_TYPE(array, array_class)) return 0;
    return described((Array *)array, &bytes, &type) && bytes == nbytes && type == code ? ((Array *)array)->ptr : 0;
}

static PyTypeObject *owned_class; /* of owners of memory that the package has allocated and may write */

PyObject *memory_owned(PyObject *module, PyObject *class)
{
    (void)module;
    if (!PyType_Check(class)) return PyErr_Format(PyExc_TypeError, "owned() takes a class, not %R", class);
    PyTypeObject *before = owned_class;
    Py_INCREF(class);
    owned_class = (PyTypeObject *)class;
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

Array *array_owned(PyObject *object)
{
    if (array_class == NULL || owned_class == NULL || !Py_IS_TYPE(object, array_class)) return NULL;
    Array *a = (Array *)object;
    return a->memory != NULL && PyObject_TypeCheck(a->memory, owned_class) && ((Memory *)a->memory)->ptr != 0 ? a : NULL;
}

static PyMethodDef methods[] = {
    {"launch", (PyCFunction)(void (*)(void))graph_launch, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"fill", (PyCFunction)(void (*)(void))array_fill, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"copy_from_device_async", (PyCFunction)(void (*)(void))pointer_copy, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"memset_async", (PyCFunction)(void (*)(void))pointer_fill, METH_FASTCALL | METH_KEYWORDS, NULL},
};

/* The documentation of methods that were put in front of others, in the form that CPython reads signatures from. */
static PyMethodDef *definition_for(PyMethodDef *of, PyObject *signature, PyObject *function)
{
    PyObject *doc = PyObject_GetAttrString(function, "__doc__");
    PyObject *text = doc == NULL ? NULL : PyUnicode_FromFormat("%s%U\n--\n\n%S", of->ml_name, signature, doc);
    Py_ssize_t length;
    const char *bytes = text == NULL ? NULL : PyUnicode_AsUTF8AndSize(text, &length);
    PyMethodDef *made = bytes == NULL ? NULL : PyMem_Malloc(sizeof *made); /* as long as the class */
    char *copy = made == NULL ? NULL : PyMem_Malloc((size_t)length + 1);
    if (copy == NULL) {
        if (bytes != NULL) PyErr_NoMemory();
        PyMem_Free(made);
        made = NULL;
    } else {
        memcpy(copy, bytes, (size_t)length + 1);
        *made = *of;
        made->ml_doc = copy;
    }
    Py_XDECREF(doc);
    Py_XDECREF(text);
    return made;
}

PyObject *methods_usual(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *class, *signature;
    const char *name;
    if (!PyArg_ParseTuple(args, "O!sU:usual", &PyType_Type, &class, &name, &signature)) return NULL;
    PyMethodDef *of = NULL;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i].ml_name, name) == 0) of = &methods[i];
    if (of == NULL) return PyErr_Format(PyExc_ValueError, "there is no method %s in C", name);
    PyObject *function = PyObject_GetAttrString(class, name), *hidden = PyUnicode_FromFormat("_%s", name), *method = NULL;
    PyMethodDef *made = function == NULL || hidden == NULL ? NULL : definition_for(of, signature, function);
    if (made != NULL) method = PyDescr_NewMethod((PyTypeObject *)class, made);
    int failed = method == NULL || PyObject_SetAttr(class, hidden, function) < 0 ||
                 PyObject_SetAttrString(class, name, method) < 0;
    Py_XDECREF(function);
    Py_XDECREF(hidden);
    Py_XDECREF(method);
    if (failed) return NULL;
    if (of->ml_meth == (PyCFunction)(void (*)(void))array_fill) {
        Py_INCREF(class);
        array_class = (PyTypeObject *)class;
    }
    Py_RETURN_NONE;
}
