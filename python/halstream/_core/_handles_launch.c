/* The usual case of a launch of a kernel, and the halves of Kernel and Loaded that it reads.
 *
 * A launch of a kernel that the device has, with a size of plain integers and with arrays of the package and
 * numbers as arguments, is checked and packed here, and goes to the core. Every other launch, and every error,
 * is of `_launch`, which is the whole of the method: what is taken here is taken there, with the same bytes. */
#include "_handles.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

/* The numbers of a launch and the bytes of an argument, as `halstream_launch` has them. */
enum { NUMBERS = 11, CELL = 16 };
/* Kernels with more parameters are launched by Python's code. */
enum { PARAMETERS_MOST = 64 };
/* The vendor's limits, as _packing.py has them. */
enum { THREADS_MOST = 1024 };
static const uint32_t grid_most[3] = {INT32_MAX, 65535, 65535}, block_most[3] = {1024, 1024, 64};

/* What a launch needs to know of a parameter. */
typedef struct {
    char kind;      /* NumPy's letter of the type; 0: of a pointer to any type, or of a scalar that is not packed here */
    uint8_t size;   /* bytes of one value, or of one element behind a pointer */
    PyObject *type; /* of a scalar NumPy's class, of a pointer the dtype; NULL where kind is 0 */
} Parameter;

/* A kernel in the memory of a device. Nothing of it changes. */
typedef struct {
    PyObject_HEAD
    int64_t function; /* its id */
    int threads, shared;
    PyObject *era, *modes; /* NULL before it was initialized */
    Py_ssize_t count;      /* of parameters */
    Parameter *parameters;
} Loaded;

typedef struct {
    PyObject_HEAD
    PyObject *loaded; /* a dictionary of Loaded by the devices' ordinals; NULL until it was given */
} Kernel;

static PyObject *present; /* the era; NULL before the first kernel of a program is loaded */

PyObject *launch_era(PyObject *module, PyObject *era)
{
    (void)module;
    PyObject *before = present;
    Py_INCREF(era);
    present = era;
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

/* The blocks or threads of a launch, as an int or as a tuple of one to three, none above its limit: false for
 * anything else. */
static bool take_size(PyObject *given, const uint32_t most[3], uint32_t size[3])
{
    bool several = PyTuple_CheckExact(given);
    Py_ssize_t n = several ? PyTuple_Size(given) : 1;
    if (n < 1 || n > 3) return false;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *one = several ? PyTuple_GetItem(given, i) : given;
        int high;
        if (!PyLong_CheckExact(one)) return false;
        long long number = PyLong_AsLongLongAndOverflow(one, &high);
        if (high || number < 1 || number > most[i]) return false;
        size[i] = (uint32_t)number;
    }
    for (Py_ssize_t i = n; i < 3; i++) size[i] = 1;
    return true;
}

/* The functions that take an argument return 1; 0 if it is for Python's code to take or to refuse; -1 with an
 * exception. */

static int take_scalar(const Parameter *p, PyObject *value, uint64_t cell[2])
{
    bool numpy = Py_IS_TYPE(value, (PyTypeObject *)p->type);
    if (p->kind == 'b') {
        if (!numpy && !PyBool_Check(value)) return 0;
        int truth = PyObject_IsTrue(value);
        cell[0] = truth > 0;
        return truth < 0 ? -1 : 1;
    }
    int size;
    if (numpy) {
        PyObject *plain = p->kind == 'f' ? PyNumber_Float(value) : PyNumber_Index(value);
        if (plain == NULL) return -1;
        size = array_element(plain, p->kind, p->size, cell);
        Py_DECREF(plain);
    } else {
        size = array_element(value, p->kind, p->size, cell);
    }
    if (size < 8) cell[0] &= (1ull << (8 * size)) - 1; /* of the sign */
    return PyErr_Occurred() ? -1 : size == p->size;
}

/* Bytes of all elements; 0 if there are none, or the shape is not one of plain integers. */
static uint64_t bytes_of(const Array *a, uint64_t size)
{
    if (a->shape == NULL || !PyTuple_CheckExact(a->shape)) return 0;
    for (Py_ssize_t i = 0, n = PyTuple_Size(a->shape); i < n; i++) {
        PyObject *length = PyTuple_GetItem(a->shape, i);
        int high;
        long long number = PyLong_CheckExact(length) ? PyLong_AsLongLongAndOverflow(length, &high) : 0;
        if (number <= 0 || __builtin_mul_overflow(size, (uint64_t)number, &size)) return 0;
    }
    return size;
}

static int take_pointer(const Parameter *p, char mode, PyObject *value, uint64_t cell[2])
{
    Array *a = array_owned(value);
    if (a != NULL) {
        long size = p->size;
        if (p->type == NULL) {
            PyObject *number = a->dtype == NULL ? NULL : PyObject_GetAttr(a->dtype, name_itemsize);
            size = number == NULL ? -1 : PyLong_AsLong(number);
            Py_XDECREF(number);
            if (PyErr_Occurred()) return -1;
        } else if (a->dtype != p->type) {
            return 0; /* also for one that equals it */
        }
        cell[0] = a->ptr;
        cell[1] = size > 0 ? bytes_of(a, (uint64_t)size) : 0;
        return cell[1] != 0;
    }
    if (value == Py_None) return 1;
    return memory_numpy(value, p->type == NULL ? 0 : (unsigned char)p->kind | (long)p->size << 8, mode != 'r', &cell[0], &cell[1]);
}

static int take_arguments(const Loaded *l, PyObject *const *args, uint64_t (*cells)[2])
{
    const char *modes = PyBytes_AsString(l->modes);
    for (Py_ssize_t i = 0; i < l->count; i++) {
        const Parameter *p = &l->parameters[i];
        cells[i][0] = cells[i][1] = 0;
        int taken = modes[i] != '-' ? take_pointer(p, modes[i], args[i], cells[i])
                    : p->kind != 0  ? take_scalar(p, args[i], cells[i])
                                    : 0;
        if (taken <= 0) return taken;
    }
    return 1;
}

/* The kernel in the memory of a stream's device, a borrowed reference; NULL if it is not there. */
static Loaded *loaded_for(const Kernel *kernel, const Stream *stream)
{
    if (kernel->loaded == NULL || !PyDict_CheckExact(kernel->loaded)) return NULL;
    PyObject *ordinal = PyLong_FromLong(stream->ordinal);
    PyObject *found = ordinal == NULL ? NULL : PyDict_GetItemWithError(kernel->loaded, ordinal);
    Py_XDECREF(ordinal);
    if (found == NULL || !PyObject_TypeCheck(found, handles_loaded)) return NULL;
    Loaded *l = (Loaded *)found;
    return l->era != NULL && l->era == present ? l : NULL;
}

/* Checks and packs a launch of grid, block and arguments: 1; 0 or -1 as above. */
static int take_launch(const Loaded *l, PyObject *const *args, Py_ssize_t n, uint32_t size[NUMBERS], uint64_t (*cells)[2])
{
    uint32_t *block = size + 3;
    memset(size, 0, NUMBERS * sizeof *size);
    if (l->era == NULL || n - 2 != l->count || l->count > PARAMETERS_MOST || !take_size(args[0], grid_most, size) ||
        !take_size(args[1], block_most, block))
        return 0;
    int most = l->threads < THREADS_MOST ? l->threads : THREADS_MOST;
    if ((uint64_t)block[0] * block[1] * block[2] > (uint64_t)most) return 0;
    return take_arguments(l, args + 2, cells);
}

/* Enqueues a launch of kernel, grid, block and arguments: 1; 0 with nothing done, or -1, as above. */
static int launch(const Stream *stream, PyObject *const *args, Py_ssize_t n)
{
    Loaded *l = loaded_for((const Kernel *)args[0], stream);
    if (l == NULL) return PyErr_Occurred() ? -1 : 0;
    uint32_t size[NUMBERS];
    uint64_t cells[PARAMETERS_MOST][2];
    int taken = take_launch(l, args + 1, n - 1, size, cells);
    if (taken <= 0) return taken;
    halstream_launch given = {size, PyBytes_AsString(l->modes), cells, l->count};
    Py_INCREF(l); /* another thread may load the kernel again meanwhile */
    int64_t misplaced = handles_calls.stream_launch(stream->id, l->function, (int64_t)(uintptr_t)&given);
    Py_DECREF(l);
    return PyErr_Occurred() ? -1 : misplaced == 0;
}

/* packed(loaded, grid, block, *arguments): what the core is given, for tests. */
PyObject *launch_packed(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (n < 3 || !PyObject_TypeCheck(args[0], handles_loaded))
        return PyErr_Format(PyExc_TypeError, "packed() takes a loaded kernel, grid, block and arguments");
    struct {
        uint32_t size[NUMBERS];
        uint64_t cells[PARAMETERS_MOST][2];
    } made;
    int taken = take_launch((Loaded *)args[0], args + 1, n - 1, made.size, made.cells);
    if (taken < 0) return NULL;
    if (taken == 0) Py_RETURN_NONE;
    return Py_BuildValue("(y#y#)", (const char *)made.size, (Py_ssize_t)sizeof made.size, (const char *)made.cells,
                         (n - 3) * (Py_ssize_t)CELL);
}

PyObject *stream_launch(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)
{
    if (keywords == NULL && n >= 3 && ((Stream *)self)->id > 0 && PyObject_TypeCheck(args[0], handles_kernel) &&
        handles_in_core()) {
        int done = launch((Stream *)self, args, n);
        if (done > 0) Py_RETURN_NONE;
        if (done < 0) return handles_failed(self, "launch", NULL);
    }
    return handles_python(self, name_launch, args, n, keywords);
}

/* Reads (code of a type or 0, class or dtype or None) of each parameter. */
static int read_parameters(Loaded *l, PyObject *parameters)
{
    for (Py_ssize_t i = 0; i < l->count; i++) {
        long code;
        PyObject *type;
        if (!PyArg_ParseTuple(PyTuple_GetItem(parameters, i), "lO", &code, &type)) return -1;
        if (code == 0) continue;
        Py_INCREF(type);
        l->parameters[i] = (Parameter){(char)(code & 0xff), (uint8_t)(code >> 8), type};
    }
    return 0;
}

static int loaded_init(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"function", "threads", "shared", "era", "modes", "parameters", NULL};
    Loaded *l = (Loaded *)self;
    PyObject *era, *modes, *parameters;
    long long function;
    int threads, shared;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "LiiOSO!:Loaded", names, &function, &threads, &shared, &era, &modes,
                                     &PyTuple_Type, &parameters))
        return -1;
    Py_ssize_t count = PyTuple_Size(parameters);
    if (l->parameters != NULL || PyBytes_Size(modes) != count) {
        PyErr_SetString(PyExc_ValueError, "a loaded kernel is made once, with a letter for each parameter");
        return -1;
    }
    l->parameters = PyMem_Calloc((size_t)count + 1, sizeof *l->parameters);
    if (l->parameters == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    l->count = count;
    if (read_parameters(l, parameters) < 0) return -1;
    l->function = function;
    l->threads = threads;
    l->shared = shared;
    Py_INCREF(modes);
    l->modes = modes;
    Py_INCREF(era);
    l->era = era;
    return 0;
}

static void loaded_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Loaded *l = (Loaded *)self;
    for (Py_ssize_t i = 0; i < l->count; i++) Py_XDECREF(l->parameters[i].type);
    PyMem_Free(l->parameters);
    Py_XDECREF(l->modes);
    Py_XDECREF(l->era);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMemberDef loaded_members[] = {
    {"function", T_LONGLONG, offsetof(Loaded, function), READONLY, "The extension's id of it."},
    {"threads", T_INT, offsetof(Loaded, threads), READONLY, "That a block of it may have on the device."},
    {"shared", T_INT, offsetof(Loaded, shared), READONLY, "Bytes of dynamic shared memory that a block may have there."},
    {"era", T_OBJECT_EX, offsetof(Loaded, era), READONLY, "Of the backend that loaded it."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot loaded_slots[] = {
    {Py_tp_doc, "The half of a kernel in the memory of a device that is written in C; see `Loaded`."},
    {Py_tp_init, loaded_init},
    {Py_tp_dealloc, loaded_dealloc},
    {Py_tp_members, loaded_members},
    {0, NULL},
};

PyType_Spec handles_loaded_spec = {
    "halstream._core._handles.LoadedBase", sizeof(Loaded), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, loaded_slots,
};

static int kernel_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Kernel *)self)->loaded);
    return 0;
}

static int kernel_clear(PyObject *self)
{
    Py_CLEAR(((Kernel *)self)->loaded);
    return 0;
}

static void kernel_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    kernel_clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMemberDef kernel_members[] = {
    {"_loaded", T_OBJECT_EX, offsetof(Kernel, loaded), 0, "The kernel as each device has it, by ordinals."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot kernel_slots[] = {
    {Py_tp_doc, "The half of a kernel that is written in C; see `Kernel`."},
    {Py_tp_traverse, kernel_traverse},
    {Py_tp_clear, kernel_clear},
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_members, kernel_members},
    {0, NULL},
};

PyType_Spec handles_kernel_spec = {
    "halstream._core._handles.KernelBase", sizeof(Kernel), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, kernel_slots,
};
