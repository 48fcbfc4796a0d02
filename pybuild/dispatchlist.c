/* What runs and what waits to run, for reports. */
#include "dispatch.h"

#include <stdlib.h>

/* What a thread runs, with references of its own. */
typedef struct {
    uint64_t ident;
    int64_t token;
    object *function;
    object **values;
    intptr_t count;
} running;

/* Copies what the threads run without allocating an object: that may collect garbage,
 * and finalizers let other threads run, which may end. Returns NULL without memory. */
static running *what_runs(size_t *count)
{
    size_t n = 0;
    for (hs_runner *r = halstream_runners; r != NULL; r = r->next) n++;
    running *all = calloc(n + 1, sizeof *all), *next = all;
    *count = n;
    if (all == NULL) return NULL;
    for (hs_runner *r = halstream_runners; r != NULL; r = r->next, next++) {
        hs_call *c = r->call; /* none between two functions */
        next->ident = r->ident;
        next->token = r->burst != NULL ? r->burst->token : 0;
        next->function = c != NULL && c->function != NULL ? c->function : none_object;
        Py_IncRef(next->function);
        if (c == NULL) continue;
        next->values = calloc((size_t)c->count + 1, sizeof *next->values);
        if (next->values == NULL) continue;
        next->count = c->count;
        for (intptr_t i = 0; i < next->count; i++) {
            next->values[i] = c->values[i + 1];
            Py_IncRef(next->values[i]);
        }
    }
    return all;
}

/* Returns what the threads run: a list of (thread, token, function, arguments). */
object *halstream_performed(object *self, object *unused)
{
    (void)self;
    (void)unused;
    size_t count;
    running *all = what_runs(&count);
    if (all == NULL) return PyErr_NoMemory();
    object *list = PyList_New(0);
    for (running *one = all; one < all + count; one++) {
        object *arguments = PyTuple_New(one->count), *entry = PyTuple_New(4);
        for (intptr_t i = 0; i < one->count; i++) {
            if (arguments != NULL) PyTuple_SetItem(arguments, i, one->values[i]);
            else Py_DecRef(one->values[i]);
        }
        free(one->values);
        if (entry == NULL) {
            Py_DecRef(one->function);
            if (arguments != NULL) Py_DecRef(arguments);
            continue;
        }
        PyTuple_SetItem(entry, 0, PyLong_FromUnsignedLongLong(one->ident));
        PyTuple_SetItem(entry, 1, PyLong_FromLongLong(one->token));
        PyTuple_SetItem(entry, 2, one->function);
        PyTuple_SetItem(entry, 3, arguments);
        if (list != NULL) PyList_Append(list, entry);
        Py_DecRef(entry);
    }
    free(all);
    if (PyErr_Occurred()) {
        if (list != NULL) Py_DecRef(list);
        return NULL;
    }
    return list;
}

/* Returns the call that a token stands for now, the one that runs if there is one; NULL
 * if it stands for none. */
static hs_call *call_of(object *token)
{
    hs_burst *b = halstream_burst_find(PyLong_AsLongLong(token));
    if (b == NULL) return NULL;
    for (hs_runner *r = halstream_runners; r != NULL; r = r->next)
        if (r->burst == b && r->call != NULL) return r->call;
    return b->first;
}

/* Returns the function that a token stands for now, None if it stands for none. */
object *halstream_function_of(object *self, object *token)
{
    (void)self;
    hs_call *c = call_of(token);
    if (PyErr_Occurred()) return NULL;
    object *function = c != NULL && c->function != NULL ? c->function : none_object;
    Py_IncRef(function);
    return function;
}

/* Returns the arguments of the function that a token stands for now, None if it stands for
 * none. The references are taken before an object is allocated, see what_runs. */
object *halstream_arguments_of(object *self, object *token)
{
    (void)self;
    hs_call *c = call_of(token);
    if (PyErr_Occurred()) return NULL;
    if (c == NULL || c->function == NULL) return none();
    intptr_t count = (intptr_t)c->count;
    object **values = calloc((size_t)count + 1, sizeof *values);
    if (values == NULL) return PyErr_NoMemory();
    for (intptr_t i = 0; i < count; i++) Py_IncRef(values[i] = c->values[i + 1]);
    object *arguments = PyTuple_New(count);
    for (intptr_t i = 0; i < count; i++) {
        if (arguments != NULL) PyTuple_SetItem(arguments, i, values[i]);
        else Py_DecRef(values[i]);
    }
    free(values);
    return arguments;
}

/* Returns where the call that a token stands for now was enqueued, as
 * halstream_callplace_tuple says. */
object *halstream_place_of(object *self, object *token)
{
    (void)self;
    hs_call *c = call_of(token);
    if (PyErr_Occurred()) return NULL;
    return c != NULL ? halstream_callplace_tuple(&c->at) : none();
}
