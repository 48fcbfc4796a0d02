/* The beginning of the interpreter's end, for a process that has loaded the extension without the package: the package has
 * a handler of its own. */
#include "atexit.h"

#include <signal.h>
#include <stddef.h>

#include "caller.h"

/* CPython's, as in caller.c; the layout of PyMethodDef is part of the stable interface. */
typedef void object;
typedef struct {
    const char *name;
    object *(*function)(object *self, object *arguments);
    int flags;
    const char *doc;
} method;
enum { METH_NOARGS = 4 };
extern object *PyCFunction_NewEx(method *m, object *self, object *module) __attribute__((weak));
extern object *PyImport_ImportModule(const char *name) __attribute__((weak));
extern object *PyObject_GetAttrString(object *o, const char *name) __attribute__((weak));
extern object *PyObject_CallFunctionObjArgs(object *f, ...) __attribute__((weak));
extern object *Py_BuildValue(const char *format, ...) __attribute__((weak));
extern void Py_DecRef(object *o) __attribute__((weak));

static void (*at_end)(void);

/* Python takes its own stack for signals from this thread next (faulthandler), which Go uses as well: no signal of Go's
 * may come there any more. */
static object *end(object *self, object *arguments)
{
    (void)self, (void)arguments;
    halstream_caller = &halstream_self;
    at_end();
    sigset_t go;
    sigemptyset(&go);
    sigaddset(&go, SIGURG);
    pthread_sigmask(SIG_BLOCK, &go, NULL);
    return Py_BuildValue("");
}

int halstream_at_exit(void (*function)(void))
{
    static method call = {"halstream_end", end, METH_NOARGS, NULL};
    if (!PyImport_ImportModule) return 0;
    at_end = function;
    object *module = PyImport_ImportModule("atexit"), *own = PyCFunction_NewEx(&call, NULL, NULL);
    object *add = module ? PyObject_GetAttrString(module, "register") : NULL;
    object *done = add && own ? PyObject_CallFunctionObjArgs(add, own, (object *)NULL) : NULL;
    if (module) Py_DecRef(module);
    if (own) Py_DecRef(own);
    if (add) Py_DecRef(add);
    if (done) Py_DecRef(done);
    return done != NULL;
}
