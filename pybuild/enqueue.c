/* Enqueuing functions: the methods of Python's streams for it, and their connection with Python's half. */
#include "dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"
#include "caller.h"
#include "sites.h"
#include "unstable.h"

static object *id_name;
/* Types whose objects are not given to functions as they are; a tuple or NULL. */
static object *special;
/* The class of functions that declare what they work on, or NULL. */
static object *declared;
/* A dispatcher was started. */
static int started;
/* Python's half looks at every function: a sanitizer is on. */
static int inspected;

/* The layout of every object begins so. */
static void *type_of(object *o) { return ((void **)o)[halstream_unstable.type_at]; }

/* Reports whether arguments are given to a function as they are. */
static int plain(object *const *v, intptr_t n)
{
    intptr_t types = special ? PyTuple_Size(special) : 0;
    for (intptr_t i = 0; i < n; i++)
        for (intptr_t k = 0; k < types; k++)
            if (PyType_IsSubtype(type_of(v[i]), PyTuple_GetItem(special, k))) return 0;
    return 1;
}

/* Reports whether a function is enqueued without a look at it. */
static int unseen(object *function)
{
    return !inspected && type_of(function) != (void *)declared && PyCallable_Check(function);
}

/* Reports whether none of the names is one of call's own parameters. */
static int given(object *names)
{
    for (intptr_t i = 0, n = names ? PyTuple_Size(names) : 0; i < n; i++) {
        object *name = PyTuple_GetItem(names, i);
        if (!PyUnicode_CompareWithASCIIString(name, "reads") || !PyUnicode_CompareWithASCIIString(name, "writes"))
            return 0;
    }
    return 1;
}

/* Returns the id of a stream, or -1 without an exception. */
static int64_t id_of(object *stream)
{
    object *value = PyObject_GetAttr(stream, id_name);
    long long id = value ? PyLong_AsLongLong(value) : -1;
    if (value != NULL) Py_DecRef(value);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return -1;
    }
    return id;
}

/* Enqueues a call, which it takes over. Returns 0 with nothing enqueued, and the call freed, where only Python's half
 * knows what is to be done. */
static int enqueue(object *stream, hs_call *c)
{
    int64_t id = halstream_forked ? -1 : id_of(stream); /* nobody runs what a forked child adds */
    int64_t token = c->token; /* the function may have run, and be gone, before the call returns */
    if (id >= 0 && !halstream_enter() && halstreamHostFunc(id, token)) return 1;
    halstream_call_free(c);
    return 0;
}

static object *vector(object *f, object *const *v, intptr_t n, object *names)
{
    if (halstream_unstable.vectorcall) return halstream_unstable.vectorcall(f, (void *const *)v, (size_t)n, names);
    object *args = PyTuple_New(n), *keywords = names ? PyDict_New() : NULL, *result = NULL;
    for (intptr_t i = 0; args != NULL && i < n; i++) {
        Py_IncRef(v[i]);
        PyTuple_SetItem(args, i, v[i]);
    }
    for (intptr_t i = 0, k = keywords ? PyTuple_Size(names) : 0; i < k; i++)
        PyDict_SetItem(keywords, PyTuple_GetItem(names, i), v[n + i]);
    if (args != NULL && !PyErr_Occurred()) result = PyObject_Call(f, args, keywords);
    if (args != NULL) Py_DecRef(args);
    if (keywords != NULL) Py_DecRef(keywords);
    return result;
}

/* Calls the Python function that a method of this file stands for. */
static object *slowly(int which, object *self, object *const *v, intptr_t n, object *names)
{
    intptr_t all = n + (names ? PyTuple_Size(names) : 0);
    object **given = malloc((size_t)(all + 1) * sizeof *given);
    if (given == NULL) return PyErr_NoMemory();
    given[0] = self;
    memcpy(given + 1, v, (size_t)all * sizeof *given);
    object *result = vector(halstream_hooks[which], given, n + 1, names);
    free(given);
    return result;
}

static object *call_one(object *self, object *const *v, intptr_t n, object *names, int checked)
{
    if (n > 0 && started && !halstream_self.inside && unseen(v[0]) && given(names)) {
        intptr_t count = n - 1 + (names ? PyTuple_Size(names) : 0);
        if (plain(v + 1, count)) {
            hs_call *c = halstream_call_new(v[0], v + 1, count, names, checked, halstream_here());
            if (c != NULL && enqueue(self, c)) return none();
        }
    }
    return slowly(checked ? HOOK_CHECKED : HOOK_CALL, self, v, n, names);
}

static object *call(object *self, object *const *v, intptr_t n, object *names)
{
    return call_one(self, v, n, names, 0);
}

static object *call_checked(object *self, object *const *v, intptr_t n, object *names)
{
    return call_one(self, v, n, names, 1);
}

/* Makes the call of one element of call_many's list; NULL for one that is not plain. */
static hs_call *element(object *one, uint32_t site)
{
    if (PyCallable_Check(one)) return unseen(one) ? halstream_call_new(one, NULL, 0, NULL, 0, site) : NULL;
    if (!PyType_IsSubtype(type_of(one), PyTuple_Type)) return NULL;
    intptr_t n = PyTuple_Size(one) - 1;
    if (n < 0) return NULL;
    object *few[8], **values = n <= 8 ? few : malloc((size_t)n * sizeof *values);
    if (values == NULL) return NULL;
    for (intptr_t i = 0; i < n; i++) values[i] = PyTuple_GetItem(one, i + 1);
    object *function = PyTuple_GetItem(one, 0);
    hs_call *c = NULL;
    if (unseen(function) && plain(values, n)) c = halstream_call_new(function, values, n, NULL, 0, site);
    if (values != few) free(values);
    return c;
}

static void free_calls(hs_call *c)
{
    while (c != NULL) {
        hs_call *next = c->next;
        halstream_call_free(c);
        c = next;
    }
}

/* Makes the calls of a list or a tuple; NULL where there are none, or one is not plain. */
static hs_call *elements(object *list)
{
    hs_call *first = NULL, **end = &first;
    uint32_t site = halstream_here();
    for (intptr_t i = 0; i < PySequence_Size(list); i++) {
        object *one = PySequence_GetItem(list, i);
        hs_call *c = one != NULL ? element(one, site) : NULL;
        if (one != NULL) Py_DecRef(one);
        if (c == NULL) {
            PyErr_Clear();
            free_calls(first);
            return NULL;
        }
        *end = c;
        end = &c->next;
    }
    return first;
}

/* Reports whether an object is a list or a tuple, which is not used up by a look at it. */
static int is_list(object *o)
{
    return PyType_IsSubtype(type_of(o), PyList_Type) || PyType_IsSubtype(type_of(o), PyTuple_Type);
}

/* Enqueues all functions before another thread of Python's can enqueue one, as it keeps Python's lock. */
static object *call_many(object *self, object *const *v, intptr_t n, object *names)
{
    int usual = n == 1 && names == NULL && started && !halstream_self.inside && is_list(v[0]);
    hs_call *c = usual ? elements(v[0]) : NULL;
    if (c == NULL) return slowly(HOOK_MANY, self, v, n, names);
    for (intptr_t taken = 0; c != NULL; taken++) {
        hs_call *next = c->next;
        if (!enqueue(self, c)) {
            free_calls(next);
            object *rest = PySequence_GetSlice(v[0], taken, PySequence_Size(v[0]));
            if (rest == NULL) return NULL;
            object *result = slowly(HOOK_MANY, self, &rest, 1, NULL);
            Py_DecRef(rest);
            return result;
        }
        c = next;
    }
    return none();
}

/* Makes a call for Python's half: (function or None, arguments, keywords' names, checked). Returns its token. */
static object *task(object *self, object *const *v, intptr_t n)
{
    (void)self;
    if (n != 4) return PyErr_Format(PyExc_TypeError, "task takes 4 arguments (%zd given)", n);
    intptr_t count = PyTuple_Size(v[1]);
    long long checked = PyLong_AsLongLong(v[3]);
    if (count < 0 || PyErr_Occurred()) return NULL;
    object **values = malloc((size_t)(count + 1) * sizeof *values);
    if (values == NULL) return PyErr_NoMemory();
    for (intptr_t i = 0; i < count; i++) values[i] = PyTuple_GetItem(v[1], i);
    object *names = PyTuple_Size(v[2]) > 0 ? v[2] : NULL, *function = v[0] == none_object ? NULL : v[0];
    uint32_t site = function != NULL ? halstream_here() : 0;
    hs_call *c = halstream_call_new(function, values, count, names, checked != 0, site);
    free(values);
    return c != NULL ? PyLong_FromLongLong(c->token) : PyErr_NoMemory();
}

static object *set_started(object *self, object *value)
{
    (void)self;
    started = PyLong_AsLongLong(value) != 0;
    return PyErr_Occurred() ? NULL : none();
}

/* Sets the tuple of types whose objects have to be looked at by Python's half. */
static object *set_special(object *self, object *types)
{
    (void)self;
    Py_IncRef(types);
    if (special != NULL) Py_DecRef(special);
    special = types;
    return none();
}

/* Sets the class of functions that declare what they work on. */
static object *set_declared(object *self, object *type)
{
    (void)self;
    Py_IncRef(type);
    if (declared != NULL) Py_DecRef(declared);
    declared = type;
    return none();
}

/* Sets whether Python's half looks at every function. */
static object *set_inspected(object *self, object *value)
{
    (void)self;
    inspected = PyLong_AsLongLong(value) != 0;
    return PyErr_Occurred() ? NULL : none();
}

static method functions[] = {
    {"set_started", set_started, METH_O, NULL},
    {"set_special", set_special, METH_O, NULL},
    {"set_declared", set_declared, METH_O, NULL},
    {"set_inspected", set_inspected, METH_O, NULL},
    {"task", task, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct {
    const char *name;
    void *function;
    const char *hook; /* the Python function that it stands for */
    const char *doc;  /* the key of its signature and docstring */
} methods[] = {
    {"call", call, "slow_call", "doc_call"},
    {"call_checked", call_checked, "slow_call_checked", "doc_call_checked"},
    {"call_many", call_many, "slow_call_many", "doc_call_many"},
};

static const char *const names_of_hooks[HOOKS] = {"spawn", "report", "unreported", "nothing",
                                                  "slow_call", "slow_call_checked", "slow_call_many"};

/* Puts functions into a dictionary; returns 0, or -1 with an exception set. */
static int put(object *table, method *list)
{
    for (; list->name != NULL; list++) {
        object *f = PyCFunction_NewEx(list, NULL, NULL);
        if (f == NULL || PyDict_SetItemString(table, list->name, f) < 0) return -1;
        Py_DecRef(f);
    }
    return 0;
}

int halstream_dispatch_install(uint64_t hooks_table)
{
    object *table = (object *)(uintptr_t)hooks_table;
    if (!PyDescr_NewMethod) return 0;
    if (id_name == NULL) id_name = PyUnicode_InternFromString("_id");
    for (int i = 0; i < HOOKS; i++) {
        object *hook = PyDict_GetItemString(table, names_of_hooks[i]);
        if (hook == NULL) {
            PyErr_Format(PyExc_TypeError, "there is no %s", names_of_hooks[i]);
            return -1;
        }
        Py_IncRef(hook);
        if (halstream_hooks[i] != NULL) Py_DecRef(halstream_hooks[i]);
        halstream_hooks[i] = hook;
    }
    if (put(table, halstream_dispatch_functions) < 0 || put(table, functions) < 0) return -1;
    object *type = PyDict_GetItemString(table, "class");
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        object *text = PyDict_GetItemString(table, methods[i].doc);
        const char *doc = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
        method *m = calloc(1, sizeof *m); /* the descriptor refers to it for ever */
        if (doc == NULL || m == NULL) return -1;
        m->name = methods[i].name;
        m->function = methods[i].function;
        m->flags = METH_FASTCALL | METH_KEYWORDS;
        m->doc = strdup(doc);
        object *descriptor = PyDescr_NewMethod(type, m);
        if (descriptor == NULL || PyDict_SetItemString(table, methods[i].name, descriptor) < 0) return -1;
        Py_DecRef(descriptor);
    }
    return 0;
}
