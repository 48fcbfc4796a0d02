"""Writes the C half of the extension from gopy's description of it.

gopy describes each Go function by a call in a script, ``build.py``, that is
meant for the package pybindgen. The script is run with this module under that
name. pybindgen's own output packs the arguments of every call into a tuple and
parses them with keywords; the functions written here take them straight from
CPython's vector (``METH_FASTCALL``, in the limited API since 3.10), which makes
a call about 0.04 microseconds cheaper. Anything that is not a flat function on
numbers, booleans and strings stops the build, see ``CTYPES`` and ``Function``.
"""

# Type in build.py -> C type, conversion of an argument, conversion of a result.
CTYPES = {
    "int64_t": ("long long", "PyLong_AsLongLong(v)", "PyLong_FromLongLong(r)"),
    "uint64_t": ("unsigned long long", "PyLong_AsUnsignedLongLong(v)", "PyLong_FromUnsignedLongLong(r)"),
    "double": ("double", "PyFloat_AsDouble(v)", "PyFloat_FromDouble(r)"),
    "bool": ("char", "(char)PyObject_IsTrue(v)", "PyBool_FromLong(r)"),
    "char*": ("char *", "text(v)", 'PyUnicode_DecodeUTF8(r, (Py_ssize_t)strlen(r), "replace")'),
}

HEAD = r"""
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>
#include "halstream_go.h"
#include "caller.h"
#include "calls.h"
#include "collected.h"
#include "halstream.h"
#include "sites.h"

/* Keep in step with records.ErrorPrefix of bindings, and with errorRecord in pybuild/records.go. */
static PyObject *refused(void)
{
    PyErr_SetString(PyExc_RuntimeError,
                    "halstream error: {\"kind\":\"forked\",\"code\":0,\"operation\":\"call\",\"token\":0,\"text\":\""
                    "this process was forked after halstream was loaded, and the runtime's threads stayed in "
                    "the parent; start processes with the 'spawn' method of multiprocessing instead\"}");
    return NULL;
}

/* The UTF-8 form that CPython keeps inside the str object; Go copies it. */
static char *text(PyObject *v)
{
    Py_ssize_t n;
    if (!PyUnicode_Check(v)) {
        PyErr_Format(PyExc_TypeError, "a str is needed, not %R", (PyObject *)Py_TYPE(v));
        return NULL;
    }
    const char *s = PyUnicode_AsUTF8AndSize(v, &n);
    if (s != NULL && strlen(s) != (size_t)n) {
        PyErr_SetString(PyExc_ValueError, "embedded null character");
        return NULL;
    }
    return (char *)s;
}

static PyObject *wrong_count(const char *name, int want, Py_ssize_t got)
{
    return PyErr_Format(PyExc_TypeError, "%s takes %d arguments (%zd given)", name, want, got);
}
"""

OBJECTS = r"""
/* Functions that take or make Python's objects, which gopy has no functions for. Their names have no prefix. */

/* collected(id): the owner of an object is gone. Finalizers call it, anywhere: it does not enter Go. */
static PyObject *own_collected(PyObject *self, PyObject *id)
{
    (void)self;
    long long number = PyLong_AsLongLong(id);
    if (number == -1 && PyErr_Occurred()) return NULL;
    halstream_collected(number);
    Py_RETURN_NONE;
}

/* reap(ids): closes what the ids of a list stand for, whose owners were collected, and empties the list. */
static PyObject *own_reap(PyObject *self, PyObject *list)
{
    (void)self;
    if (!PyList_Check(list)) return PyErr_Format(PyExc_TypeError, "reap() takes a list, not %R", list);
    Py_ssize_t n = PyList_Size(list);
    int64_t *ids = PyMem_Malloc((size_t)(n + 1) * sizeof *ids);
    if (ids == NULL) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) {
        ids[i] = PyLong_AsLongLong(PyList_GetItem(list, i));
        if (ids[i] == -1 && PyErr_Occurred()) {
            PyMem_Free(ids);
            return NULL;
        }
    }
    if (halstream_enter() || PyList_SetSlice(list, 0, n, NULL) < 0) {
        PyMem_Free(ids);
        return PyErr_Occurred() ? NULL : refused();
    }
    int64_t released = pybuild_ReapIds((int64_t)(uintptr_t)ids, n);
    PyMem_Free(ids);
    if (PyErr_Occurred()) return NULL;
    if (released) halstream_calls_released();
    Py_RETURN_NONE;
}

/* mem_block(address): kind, start, size and device of the block that holds an address. */
static PyObject *own_mem_block(PyObject *self, PyObject *address)
{
    (void)self;
    unsigned long long at = PyLong_AsUnsignedLongLong(address);
    if (at == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
    if (halstream_enter()) return refused();
    long long kind = pybuild_MemFind((int64_t)at);
    if (PyErr_Occurred()) return NULL;
    const halstream_block *b = &halstream_found;
    return Py_BuildValue("(LKKL)", kind, (unsigned long long)b->start, (unsigned long long)b->size,
                         (long long)b->device);
}

/* capsule(tensor, versioned, destructor): a capsule of DLPack for a tensor at an address. */
static PyObject *own_capsule(PyObject *self, PyObject *const *v, Py_ssize_t n)
{
    (void)self;
    if (n != 3) return wrong_count("capsule", 3, n);
    void *tensor = PyLong_AsVoidPtr(v[0]), *destructor = PyLong_AsVoidPtr(v[2]);
    int versioned = PyObject_IsTrue(v[1]);
    if (PyErr_Occurred()) return NULL;
    /* Capsules keep the address of their name. */
    return PyCapsule_New(tensor, versioned ? "dltensor_versioned" : "dltensor", (PyCapsule_Destructor)destructor);
}

/* launch(stream, function, modes, size, arguments): enqueues a launch of a kernel; 1, with nothing done, if an
 * argument's memory is not the stream's. */
enum { LAUNCH_NUMBERS = 11, LAUNCH_CELL = 16 };
static PyObject *own_launch(PyObject *self, PyObject *const *v, Py_ssize_t n)
{
    (void)self;
    if (n != 5) return wrong_count("launch", 5, n);
    char *size, *modes, *cells;
    Py_ssize_t size_bytes, count, cell_bytes;
    int64_t stream = PyLong_AsLongLong(v[0]), function = PyLong_AsLongLong(v[1]);
    if (PyErr_Occurred() || PyBytes_AsStringAndSize(v[2], &modes, &count) < 0 ||
        PyBytes_AsStringAndSize(v[3], &size, &size_bytes) < 0 || PyBytes_AsStringAndSize(v[4], &cells, &cell_bytes) < 0)
        return NULL;
    if (size_bytes != LAUNCH_NUMBERS * (Py_ssize_t)sizeof(uint32_t) || cell_bytes != count * LAUNCH_CELL)
        return PyErr_Format(PyExc_ValueError,
                            "%zd bytes are no size of a launch, or %zd bytes are not those of %zd cells",
                            size_bytes, cell_bytes, count);
    uint32_t numbers[LAUNCH_NUMBERS];
    memcpy(numbers, size, sizeof numbers);
    halstream_launch launch = {numbers, modes, cells, count};
    if (halstream_enter()) return refused();
    int64_t misplaced = pybuild_StreamLaunch(stream, function, (int64_t)(uintptr_t)&launch);
    if (halstream_unseen) halstream_look_at();
    return PyErr_Occurred() ? NULL : PyLong_FromLongLong(misplaced);
}
"""

OBJECT_ENTRIES = r"""
    {"collected", own_collected, METH_O, "collected($module, id, /)\n--\n\n"},
    {"reap", own_reap, METH_O, "reap($module, ids, /)\n--\n\n"},
    {"mem_block", own_mem_block, METH_O, "mem_block($module, address, /)\n--\n\n"},
    {"capsule", (PyCFunction)(void (*)(void))own_capsule, METH_FASTCALL,
     "capsule($module, tensor, versioned, destructor, /)\n--\n\n"},
    {"launch", (PyCFunction)(void (*)(void))own_launch, METH_FASTCALL,
     "launch($module, stream, function, modes, size, arguments, /)\n--\n\n"},
"""

TAIL = r"""
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "%(name)s", NULL, -1, functions, NULL, NULL, NULL, NULL};

/* The one Go runtime of a process keeps one set of threads, handles and pending
 * work, so it belongs to one interpreter. The dictionary is for what the Python
 * half must keep when its modules are imported a second time. */
PyMODINIT_FUNC PyInit_%(name)s(void)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        PyErr_SetString(PyExc_ImportError, "halstream does not support subinterpreters");
        return NULL;
    }
    PyObject *m = PyModule_Create(&module);
    if (m == NULL) return NULL;
    PyObject *state = PyDict_New();
    if (state == NULL || PyModule_AddObject(m, "process_state", state) < 0) {
        Py_XDECREF(state);
        Py_DECREF(m);
        return NULL;
    }
    PyObject *capsule = PyCapsule_New((void *)halstream_get_api(HALSTREAM_API_VERSION), HALSTREAM_API_CAPSULE, NULL);
    if (capsule == NULL || PyModule_AddObject(m, "api", capsule) < 0) {
        Py_XDECREF(capsule);
        Py_DECREF(m);
        return NULL;
    }
    return m;
}
"""


def retval(ctype, **_):
    return ctype


def param(ctype, name, **_):
    return ctype, name


class Function:
    """One function; build.py derives a class of its own from this one."""

    def __init__(self, name, result, params, **_):
        self.name, self.result, self.params = name, result, params
        self.after_call = self  # build.py asks for free() here if the result is Go's copy of a string.
        self.frees = False

    def add_cleanup_code(self, code):
        self.frees = code == "free(retval);"

    def c_text(self):
        if self.result is None or (self.result == "char*") != self.frees:
            raise SystemExit(f"{self.name}: return (T, error), as nothing or only an error is not supported")
        for ctype in [self.result, *(ctype for ctype, _ in self.params)]:
            if ctype not in CTYPES:
                raise SystemExit(f"{self.name}: C type {ctype}; use int64, uint64, float64, bool and string")
        body, n = "", len(self.params)
        for i, (ctype, _) in enumerate(self.params):
            c, convert, _ = CTYPES[ctype]
            failed = f"a{i} == NULL" if ctype == "char*" else f"a{i} == ({c})-1 && PyErr_Occurred()"
            body += f"    {c} a{i} = {convert.replace('v)', f'v[{i}])')};\n    if ({failed}) return NULL;\n"
        c, _, convert = CTYPES[self.result]
        free = "    free(r);\n" if self.frees else ""
        return (
            f"\nstatic PyObject *py_{self.name}(PyObject *self, PyObject *const *v, Py_ssize_t n)\n{{\n"
            f'    (void)self;\n    if (n != {n}) return wrong_count("{self.name}", {n}, n);\n{body}'
            # After the conversions: they may run Python code, during which other threads call.
            f"    if (halstream_enter()) return refused();\n"
            f"    {c} r = {self.name}({', '.join(f'a{i}' for i in range(n))});\n"
            # Here, since the runtime has no lock any more, and the frames of the call are as they were in it.
            f"    if (halstream_unseen) halstream_look_at();\n"
            f"    PyObject *out = PyErr_Occurred() ? NULL : {convert};\n{free}    return out;\n}}\n"
        )

    def c_entry(self):
        names = "".join(f", {name}" for _, name in self.params)
        doc = f"{self.name}($module{names}, /)\\n--\\n\\n"  # the form that inspect.signature reads
        return f'    {{"{self.name}", (PyCFunction)(void (*)(void))py_{self.name}, METH_FASTCALL, "{doc}"}},\n'


class Module:
    def __init__(self, name):
        self.name, self.functions = name, []

    def add_include(self, _):
        pass

    def add_function(self, name, *_):
        """gopy's own helpers, left out; for Go variables, structs and methods it uses this call, too."""
        if name.startswith("pybuild_"):
            raise SystemExit(f"{name}: pybuild may export functions only, no variables, structs or methods")

    def _add_function_obj(self, function):
        self.functions.append(function)

    def generate(self, file):
        with file:
            self.functions.sort(key=lambda f: f.name)  # gopy's order changes from run to run
            file.write(HEAD + "".join(f.c_text() for f in self.functions) + OBJECTS)
            file.write(
                "\nstatic PyMethodDef functions[] = {\n" + "".join(f.c_entry() for f in self.functions) + OBJECT_ENTRIES
            )
            file.write("    {NULL, NULL, 0, NULL},\n};\n" + TAIL % {"name": self.name})
