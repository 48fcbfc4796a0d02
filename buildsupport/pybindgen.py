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

/* Keep in step with errorPrefix and errorRecord in pybuild/records.go. */
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

TAIL = r"""
/* The functions that the C classes of streams and events call. */
#define CALL_1(name, function) \
    static int64_t call_##name(int64_t a) { return halstream_enter() ? (refused(), 0) : function(a); }
#define CALL_2(name, function) \
    static int64_t call_##name(int64_t a, int64_t b) { return halstream_enter() ? (refused(), 0) : function(a, b); }
#define CALL_3(name, function) \
    static int64_t call_##name(int64_t a, int64_t b, int64_t c) \
    { \
        return halstream_enter() ? (refused(), 0) : function(a, b, c); \
    }
#define CALL_4(name, function) \
    static int64_t call_##name(int64_t a, int64_t b, int64_t c, int64_t d) \
    { \
        return halstream_enter() ? (refused(), 0) : function(a, b, c, d); \
    }
#define CALL_5(name, function) \
    static int64_t call_##name(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e) \
    { \
        return halstream_enter() ? (refused(), 0) : function(a, b, c, d, e); \
    }
static int64_t call_stream_nop(int64_t a)
{
    if (halstream_enter()) return refused(), 0;
    halstream_self.site = halstream_line();
    int64_t result = pybuild_StreamNop(a);
    halstream_self.site = 0;
    return result;
}
static int64_t call_stream_launch(int64_t a, int64_t b, int64_t c)
{
    if (halstream_enter()) return refused(), 0;
    halstream_self.site = halstream_line();
    int64_t result = pybuild_StreamLaunch(a, b, c);
    halstream_self.site = 0;
    return result;
}

CALL_1(stream_status, pybuild_StreamStatus)
CALL_2(stream_record, pybuild_StreamRecord)
CALL_3(stream_record_new, pybuild_StreamRecordNew)
CALL_2(stream_wait_event, pybuild_StreamWaitEvent)
CALL_2(stream_wait_stream, pybuild_StreamWaitStream)
CALL_1(stream_query, pybuild_StreamQuery)
CALL_2(stream_sync, pybuild_StreamSync)
CALL_1(event_query, pybuild_EventQuery)
CALL_2(event_sync, pybuild_EventSync)
CALL_2(event_recorded, pybuild_EventRecorded)
CALL_2(event_new, pybuild_EventNew)
CALL_2(reap_events, pybuild_ReapEvents)
CALL_4(stream_wait_place, pybuild_StreamWaitPlace)
CALL_4(event_placed, pybuild_EventPlaced)
CALL_1(mem_find, pybuild_MemFind)
CALL_4(stream_copy, pybuild_StreamCopy)
CALL_3(block_new_async, pybuild_BlockNewAsync)
CALL_2(block_free_async, pybuild_BlockFreeAsync)
CALL_1(reap, pybuild_Reap)
CALL_2(executable_launch, pybuild_ExecutableLaunch)
CALL_4(stream_copy_async, pybuild_StreamCopyAsync)
CALL_5(stream_fill, pybuild_StreamFill)

static const halstream_calls calls = {
    sizeof(halstream_calls), &halstream_slow, &halstream_plain, &halstream_devices, &halstream_recorded,
    &halstream_running, halstream_inside,
    call_stream_status, call_stream_nop, call_stream_record, call_stream_record_new, call_stream_wait_event,
    call_stream_wait_stream, call_stream_query, call_stream_sync, call_event_query, call_event_sync,
    call_event_recorded, call_event_new, call_reap_events,
    call_stream_wait_place, call_event_placed, &halstream_found, call_mem_find,
    call_stream_copy, call_block_new_async, call_block_free_async, call_reap,
    call_stream_launch, halstream_collected, call_executable_launch, call_stream_copy_async,
    call_stream_fill, halstream_calls_released,
};

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
    PyObject *capsule = PyCapsule_New((void *)&calls, HALSTREAM_CALLS, NULL);
    if (capsule == NULL || PyModule_AddObject(m, "calls", capsule) < 0) {
        Py_XDECREF(capsule);
        Py_DECREF(m);
        return NULL;
    }
    capsule = PyCapsule_New((void *)halstream_get_api(HALSTREAM_API_VERSION), HALSTREAM_API_CAPSULE, NULL);
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
            file.write(HEAD + "".join(f.c_text() for f in self.functions))
            file.write("\nstatic PyMethodDef functions[] = {\n" + "".join(f.c_entry() for f in self.functions))
            file.write("    {NULL, NULL, 0, NULL},\n};\n" + TAIL % {"name": self.name})
