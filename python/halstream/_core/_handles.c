/* The module _handles: the base classes of Stream, Event and owners of memory, written in C.
 *
 * Why C: the calls that programs make most find nothing to do. An event is done, a
 * stream is idle, a new event is recorded where no work is pending. Python's code
 * took 0.1 to 1.5 microseconds to find that out, nearly all of it for frames, for
 * entering Go and for objects that nobody asks for again. The core keeps a few words
 * of every stream where C code can read them (hal/status/status.h), and the methods
 * here answer from those.
 *
 * They decide nothing themselves: an answer is given here only where it follows from
 * the words, as long as no listener, no deterministic schedule and no function of a
 * stream is involved. Every other call goes to the core (`handles_calls`), or to the
 * method of Python's class that has the same name with an underscore before it, which
 * is the whole of the call. Errors are made by Python's code alone.
 *
 * Why a module of its own: the extension starts Go's threads when it is loaded, which
 * happens at the first call; the classes are needed when the package is imported, and
 * a process that only imported it may fork.
 *
 * Python's lock is held everywhere here, and guards all that is not read from the words. */
#include "_handles.h"

#include <stdlib.h>
#include <string.h>

static uint32_t not_loaded = 1, *slow = &not_loaded;
halstream_calls handles_calls = {.slow = &slow};
PyTypeObject *handles_stream, *handles_event, *handles_guard, *handles_entry, *handles_choices, *handles_memory;
#define DEFINE_NAME(name, text) PyObject *name_##name;
HANDLES_NAMES(DEFINE_NAME)

PyObject *handles_python(PyObject *self, PyObject *name, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    if (n == 0 && keywords == NULL) return PyObject_CallMethodObjArgs(self, name, NULL);
    if (n == 1 && keywords == NULL) return PyObject_CallMethodObjArgs(self, name, args[0], NULL);
    PyObject *method = PyObject_GetAttr(self, name), *result = NULL, *named = NULL;
    PyObject *positional = PyTuple_New(n);
    if (method == NULL || positional == NULL) goto end;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_INCREF(args[i]);
        PyTuple_SetItem(positional, i, args[i]);
    }
    if (keywords != NULL) {
        named = PyDict_New();
        if (named == NULL) goto end;
        for (Py_ssize_t i = 0; i < PyTuple_Size(keywords); i++)
            if (PyDict_SetItem(named, PyTuple_GetItem(keywords, i), args[n + i]) < 0) goto end;
    }
    result = PyObject_Call(method, positional, named);
end:
    Py_XDECREF(method);
    Py_XDECREF(positional);
    Py_XDECREF(named);
    return result;
}

PyObject *handles_failed(PyObject *self, const char *operation, PyObject *operand)
{
    if (!PyErr_ExceptionMatches(PyExc_RuntimeError)) return NULL;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *word = PyUnicode_FromString(operation);
    PyObject *none = word == NULL ? NULL
                                  : PyObject_CallMethodObjArgs(self, name_raise, value, word,
                                                               operand == NULL ? Py_None : operand, NULL);
    Py_XDECREF(word);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return none;
}

/* Ids of events that were collected: a finalizer may run anywhere, so it only adds to this list. */
static struct {
    int64_t *ids;
    size_t count, room;
} dropped;

/* Calls that make events close the dropped ones from this number on; REAP_AT in _reap.py. */
#define REAP_AT 32

void handles_drop(int64_t id)
{
    if (dropped.count == dropped.room) {
        size_t room = dropped.room ? 2 * dropped.room : 2 * REAP_AT;
        int64_t *ids = realloc(dropped.ids, room * sizeof *ids);
        if (ids == NULL) return; /* the event stays open */
        dropped.ids = ids;
        dropped.room = room;
    }
    dropped.ids[dropped.count++] = id;
}

void handles_reap(void)
{
    if (dropped.count < REAP_AT || (!handles_fast() && !handles_captured())) return;
    int64_t ids[REAP_AT];
    while (dropped.count > 0) {
        size_t n = dropped.count < REAP_AT ? dropped.count : REAP_AT;
        dropped.count -= n;
        memcpy(ids, dropped.ids + dropped.count, n * sizeof *ids);
        handles_calls.reap_events((int64_t)(uintptr_t)ids, (int64_t)n);
        PyErr_Clear(); /* only a function of a stream may not close, and none runs here */
    }
}

static PyObject *reap(PyObject *module, PyObject *id)
{
    (void)module;
    long long ident = PyLong_AsLongLong(id);
    if (PyErr_Occurred()) return NULL;
    int64_t released = handles_calls.reap != NULL ? handles_calls.reap(ident) : 0;
    if (PyErr_Occurred()) return NULL;
    if (released) handles_calls.calls_released();
    Py_RETURN_NONE;
}

static PyObject *take_dropped(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *list = PyList_New(0);
    if (list == NULL) return NULL;
    while (dropped.count > 0) {
        PyObject *id = PyLong_FromLongLong(dropped.ids[dropped.count - 1]);
        if (id == NULL || PyList_Append(list, id) < 0) {
            Py_XDECREF(id);
            Py_DECREF(list);
            return NULL;
        }
        dropped.count--;
        Py_DECREF(id);
    }
    return list;
}

static PyObject *count_dropped(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromSize_t(dropped.count);
}

/* collected(id): the owner of an object is gone. Finalizers call it. */
static PyObject *collected(PyObject *module, PyObject *id)
{
    (void)module;
    if (handles_calls.collected != NULL) {
        long long number = PyLong_AsLongLong(id);
        if (number == -1 && PyErr_Occurred()) return NULL;
        handles_calls.collected(number);
    }
    Py_RETURN_NONE;
}

/* lookup(address): kind, start, size and device of a block; None while there is no extension. */
static PyObject *lookup(PyObject *module, PyObject *address)
{
    (void)module;
    if (handles_calls.mem_find == NULL) Py_RETURN_NONE;
    unsigned long long at = PyLong_AsUnsignedLongLong(address);
    if (at == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
    long long kind = handles_calls.mem_find((int64_t)at);
    if (PyErr_Occurred()) return NULL;
    const halstream_block *b = handles_calls.block;
    return Py_BuildValue("(LKKL)", kind, (unsigned long long)b->start, (unsigned long long)b->size, (long long)b->device);
}

static PyObject *connect(PyObject *module, PyObject *capsule)
{
    (void)module;
    const halstream_calls *calls = PyCapsule_GetPointer(capsule, HALSTREAM_CALLS);
    if (calls == NULL) return NULL;
    if (calls->size < sizeof *calls) {
        PyErr_SetString(PyExc_ImportError, "the extension of halstream is older than its classes; build both again");
        return NULL;
    }
    handles_calls = *calls;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"connect", connect, METH_O, "connect($module, calls, /)\n--\n\nUse the functions of the extension from now on.\n"},
    {"collected", collected, METH_O,
     "collected($module, id, /)\n--\n\n"
     "Say that a stream's owner was collected: its part in a capture ends with the next call.\n"},
    {"lookup", lookup, METH_O,
     "lookup($module, address, /)\n--\n\n"
     "Return kind, start, size and device of the block that holds an address; None before the first call.\n"},
    {"dropped", take_dropped, METH_NOARGS,
     "dropped($module, /)\n--\n\nReturn the ids of events that were collected since the last call.\n"},
    {"dropped_count", count_dropped, METH_NOARGS,
     "dropped_count($module, /)\n--\n\nReturn how many ids `dropped` would return.\n"},
    {"reap", reap, METH_O,
     "reap($module, id, /)\n--\n\nClose what an id stands for, whose owner was collected, and let go of what only it has kept.\n"},
    {"remember", stream_remember, METH_VARARGS,
     "remember($module, stream, event, flags, /)\n--\n\n"
     "Let streams of a class make new events of another class without asking Python's code.\n"},
    {"stack", context_stack, METH_VARARGS,
     "stack($module, innermost, settings, process, /)\n--\n\n"
     "Say where the current device and the current streams are kept.\n"},
    {"current_device", context_device, METH_NOARGS,
     "current_device($module, /)\n--\n\nReturn the ordinal of the calling task's current device.\n"},
    {"current_stream", context_current, METH_O,
     "current_stream($module, ordinal, /)\n--\n\n"
     "Return the stream that is current on a device, None for its default stream.\n"},
    {"push", (PyCFunction)(void (*)(void))context_push, METH_FASTCALL,
     "push($module, stream, ordinal, device, transient, /)\n--\n\n"
     "Make a stream current on a device, and another device current (-1: none); False, with nothing\n"
     "done, if a context that is transient has a setting to forget.\n"},
    {"pop", context_pop, METH_O,
     "pop($module, stream, /)\n--\n\n"
     "Leave the innermost context if it is this thread's and was entered with a stream (None: any).\n"},
    {"own", methods_own, METH_O,
     "own($module, class, /)\n--\n\n"
     "Give a class descriptors of its own for the methods in C that it inherits, which makes their calls\n"
     "faster. To be called again when methods of its bases were exchanged.\n"},
    {"launch", (PyCFunction)(void (*)(void))memory_launch, METH_FASTCALL,
     "launch($module, stream, function, modes, size, arguments, /)\n--\n\n"
     "Enqueue a launch of a kernel: the ids of stream and function, and as bytes a letter for each argument, the\n"
     "size of the launch and the arguments. 1, with nothing done, if an argument's memory is not the stream's.\n"},
    {"owners", memory_owners, METH_VARARGS,
     "owners($module, collected, seen, dropped, /)\n--\n\n"
     "Say where collected owners of memory leave their ids, and which blocks functions see;\n"
     " `dropped` gets the ids instead while there are such blocks.\n"},
    {"capsule", (PyCFunction)(void (*)(void))memory_capsule, METH_FASTCALL,
     "capsule($module, tensor, versioned, destructor, /)\n--\n\nReturn a capsule of DLPack for a tensor at an address.\n"},
    {"guards", guard_class, METH_O, "guards($module, class, /)\n--\n\nLet `stream` make objects of a class of guards.\n"},
    {"stream", (PyCFunction)(void (*)(void))guard_of, METH_FASTCALL | METH_KEYWORDS,
     "stream($module, stream)\n--\n\ntorch.cuda.stream (2.15): None changes nothing.\n"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_handles", "The base classes of Stream and Event.", -1, functions, NULL, NULL, NULL, NULL,
};

static int add_type(PyObject *module, PyTypeObject **type, PyType_Spec *spec, const char *name)
{
    *type = (PyTypeObject *)PyType_FromSpec(spec);
    if (*type == NULL) return -1;
    Py_INCREF(*type);
    return PyModule_AddObject(module, name, (PyObject *)*type);
}

static int intern_names(void)
{
#define INTERN_NAME(name, text) \
    if ((name_##name = PyUnicode_InternFromString(text)) == NULL) return -1;
    HANDLES_NAMES(INTERN_NAME)
    return 0;
}

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

PyMODINIT_FUNC PyInit__handles(void)
{
    if (!lock_is_there()) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && intern_names() == 0 &&
        add_type(module, &handles_stream, &handles_stream_spec, "StreamBase") == 0 &&
        add_type(module, &handles_event, &handles_event_spec, "EventBase") == 0 &&
        add_type(module, &handles_guard, &handles_guard_spec, "GuardBase") == 0 &&
        add_type(module, &handles_entry, &handles_entry_spec, "Entry") == 0 &&
        add_type(module, &handles_choices, &handles_choices_spec, "ChoicesBase") == 0 &&
        add_type(module, &handles_memory, &handles_memory_spec, "MemoryBase") == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}
