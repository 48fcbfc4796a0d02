/* The entry that Paddle calls, devices, errors and forks. */
#include <Python.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

const halstream_api *core;
int forked;

static int32_t devices;
static _Thread_local int chosen; /* the device of this thread, as Paddle set it */
static char type_name[64] = "custom_cpu", sub_type[] = "halstream";

int result(int code, const char *doing)
{
    if (code == HALSTREAM_OK || code == HALSTREAM_SHUT_DOWN) return PADDLE_SUCCESS;
    if (code == HALSTREAM_INTERRUPTED && PyGILState_GetThisThreadState() != NULL) {
        /* Paddle's exception would replace Python's. A KeyboardInterrupt comes again with the next bytecode. */
        PyGILState_STATE state = PyGILState_Ensure();
        int interrupt = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
        if (interrupt) {
            PyErr_Clear();
            PyErr_SetInterrupt();
        } else {
            PyErr_Print(); /* the report of a wait that cannot end */
        }
        PyGILState_Release(state);
        return PADDLE_FAILED;
    }
    fprintf(stderr, "halstream: Paddle could not %s: %s\n", doing, core->error_text());
    return PADDLE_FAILED;
}

static int init_device(paddle_device device)
{
    return device->id >= 0 && device->id < devices ? PADDLE_SUCCESS : PADDLE_FAILED;
}

static int set_device(paddle_device device)
{
    if (init_device(device) != PADDLE_SUCCESS) return PADDLE_FAILED;
    chosen = device->id;
    return PADDLE_SUCCESS;
}

static int get_device(paddle_device device)
{
    device->id = chosen;
    return PADDLE_SUCCESS;
}

static int get_device_count(size_t *count)
{
    *count = (size_t)devices;
    return PADDLE_SUCCESS;
}

static int get_device_list(size_t *list)
{
    for (int32_t i = 0; i < devices; i++) list[i] = (size_t)i;
    return PADDLE_SUCCESS;
}

static int nothing(void) { return PADDLE_SUCCESS; }
static int nothing_for(paddle_device device)
{
    (void)device;
    return PADDLE_SUCCESS;
}

/* -- forks ------------------------------------------------------------------ */

/* A fork copies the locks as they are: none may be held by another thread then. */
static void before_fork(void)
{
    lock_streams();
    lock_memory();
}

static void after_fork(void)
{
    unlock_memory();
    unlock_streams();
}

static void in_child(void)
{
    forked = 1;
    after_fork();
}

/* -- the entry -------------------------------------------------------------- */

/* Returns the runtime's table, with Python's lock held; prints an error of Python's. */
static const halstream_api *table(void)
{
    const halstream_api *found = NULL;
    PyObject *package = PyImport_ImportModule("halstream");
    PyObject *capsule = package ? PyObject_CallMethod(package, "get_api", NULL) : NULL;
    if (capsule != NULL) found = PyCapsule_GetPointer(capsule, HALSTREAM_API_CAPSULE);
    if (found == NULL) PyErr_Print();
    Py_XDECREF(capsule);
    Py_XDECREF(package);
    return found;
}

static int has_runtime(void)
{
    if (core != NULL) return 1;
    if (!Py_IsInitialized()) return 0;
    PyGILState_STATE state = PyGILState_Ensure();
    const halstream_api *found = table();
    PyGILState_Release(state);
    if (found == NULL || found->size < offsetof(halstream_api, stream_drain)) return 0;
    core = found;
    pthread_atfork(before_fork, after_fork, in_child);
    return 1;
}

/* Paddle calls it once while `import paddle` runs. Where it leaves the parameters as they are, Paddle says that the
 * library is no plug-in and goes on without the device. */
__attribute__((visibility("default"))) void InitPlugin(struct paddle_parameters *parameters)
{
    struct paddle_hooks *hooks = parameters->hooks;
    if (parameters->size < sizeof *parameters || hooks->size < sizeof *hooks) {
        fprintf(stderr, "halstream: this Paddle's interface for devices is older than that of Paddle 3.0\n");
        return;
    }
    if (!has_runtime()) return;
    int code = core->device_count(&devices);
    if (code != HALSTREAM_OK) {
        result(code, "count the devices");
        return;
    }
    const char *named = getenv("HALSTREAM_PADDLE_DEVICE");
    if (named != NULL && *named != 0 && strlen(named) < sizeof type_name) strcpy(type_name, named);
    const size_t version[] = PADDLE_INTERFACE_VERSION;
    memcpy(parameters->version, version, sizeof version);
    parameters->device_type = type_name;
    parameters->sub_device_type = sub_type;
    hooks->initialize = nothing;
    hooks->finalize = nothing;
    hooks->init_device = init_device;
    hooks->set_device = set_device;
    hooks->get_device = get_device;
    hooks->deinit_device = nothing_for;
    hooks->get_device_count = get_device_count;
    hooks->get_device_list = get_device_list;
    fill_stream_hooks(hooks);
    fill_memory_hooks(hooks);
}
