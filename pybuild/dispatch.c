/* Python functions on streams: their table, the loop of the threads that run them, and what Python calls of it. */
#include "dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"
#include "caller.h"
#include "calls.h"
#include "sites.h"
#include "stall.h"

/* What Python's half does, _hostfunc.py: starts a thread, takes an exception, is given back one that no call will raise,
 * and does nothing. */
enum { HOOK_SPAWN, HOOK_REPORT, HOOK_UNREPORTED, HOOK_NOTHING, HOOKS };
static object *hooks[HOOKS];

/* -- the table of calls -- */

/* By the low part of their tokens. Slot 0 stays empty: 0 is no token. */
static struct {
    hs_call *call; /* NULL: the slot is free */
    uint32_t generation, next; /* and the next free one */
} *slots;
static uint32_t slot_count = 1, slot_room, free_slot;

/* Calls with few arguments are kept for the next ones. */
enum { FEW = 2, SPARE = 4096 };
static hs_call *spare;
static uint32_t spare_count;

static int64_t pending_count, kept_count; /* calls that exist, and those of them that graphs keep */

/* Gives a call its token; returns 0 without memory. */
static int enlist(hs_call *c)
{
    uint32_t at = free_slot;
    if (at != 0) {
        free_slot = slots[at].next;
    } else {
        if (slot_count >= slot_room) {
            uint32_t room = slot_room ? slot_room * 2 : 64;
            void *list = realloc(slots, room * sizeof *slots);
            if (list == NULL) return 0;
            slots = list;
            memset(slots + slot_room, 0, (room - slot_room) * sizeof *slots);
            slot_room = room;
        }
        at = slot_count++;
    }
    slots[at].call = c;
    /* Even: the numbers of exceptions are odd. */
    c->token = (int64_t)slots[at].generation << 33 | (int64_t)at << 1;
    return 1;
}

static uint32_t slot_of(int64_t token) { return (uint32_t)token >> 1; }

hs_call *halstream_call_find(int64_t token)
{
    uint32_t at = slot_of(token);
    hs_call *c = token & 1 || at >= slot_count ? NULL : slots[at].call;
    return c != NULL && c->token == token ? c : NULL;
}

/* Makes a call of `n` values, of which the last ones have names; NULL without memory. */
static hs_call *new_call(object *function, object *const *values, intptr_t n, object *names, int checked,
                         uint32_t site)
{
    hs_call *c = spare;
    if (n <= FEW && c != NULL) {
        spare = c->next;
        spare_count--;
    } else if ((c = malloc(sizeof *c + (size_t)(n < FEW ? FEW : n) * sizeof(object *))) == NULL) {
        return NULL;
    }
    *c = (hs_call){.function = function, .names = names, .count = (uint32_t)n, .site = site, .checked = checked != 0};
    if (!enlist(c)) {
        free(c);
        return NULL;
    }
    if (function != NULL) Py_IncRef(function);
    if (names != NULL) Py_IncRef(names);
    for (intptr_t i = 0; i < n; i++) Py_IncRef(c->values[i] = values[i]);
    pending_count++;
    return c;
}

void halstream_call_keep(hs_call *c)
{
    if (c == NULL || c->kept) return;
    c->kept = 1;
    kept_count++;
}

/* Frees a call, and lets go of what it refers to. */
static void free_call(hs_call *c)
{
    if (c == NULL) return;
    uint32_t at = slot_of(c->token);
    slots[at].call = NULL;
    slots[at].generation = (slots[at].generation + 1) & 0xffffff;
    slots[at].next = free_slot;
    free_slot = at;
    pending_count--;
    kept_count -= c->kept;
    /* Nobody finds it any more. The finalizers that this runs may make calls. */
    if (c->function != NULL) Py_DecRef(c->function);
    if (c->names != NULL) Py_DecRef(c->names);
    for (uint32_t i = 0; i < c->count; i++) Py_DecRef(c->values[i]);
    if (c->count <= FEW && spare_count < SPARE) {
        c->next = spare;
        spare = c;
        spare_count++;
    } else {
        free(c);
    }
}

/* Tokens of calls that are to be freed. */
static struct {
    uint64_t *tokens;
    size_t count, room;
} released;

void halstream_calls_release(const uint64_t *tokens, size_t count)
{
    if (released.count + count > released.room) {
        size_t room = 2 * (released.count + count);
        uint64_t *more = realloc(released.tokens, room * sizeof *more);
        if (more == NULL) return; /* they stay kept */
        released.tokens = more;
        released.room = room;
    }
    memcpy(released.tokens + released.count, tokens, count * sizeof *tokens);
    released.count += count;
}

void halstream_calls_released(void)
{
    while (released.count > 0) /* finalizers may release more, and free these */
        free_call(halstream_call_find((int64_t)released.tokens[--released.count]));
}

/* -- threads -- */

/* After so many functions a function of Python's is called, in which the interpreter looks whether another thread waits
 * for its lock: functions of C do not look. */
enum { BREATHE = 64 };

/* A thread that runs functions, and what it runs; NULL between two. */
typedef struct runner {
    struct runner *next, **link;
    uint64_t ident;
    hs_call *call;
} runner;
static runner *runners;

static int64_t last_error = 1; /* numbers of exceptions of checked functions are odd */

/* What the core is told of an end: the exception's text and number, or NULL. */
typedef struct {
    object *text;
    int64_t number;
} outcome;

static object *perform(hs_call *c)
{
    if (c->function == NULL) return none();
    intptr_t named = c->names == NULL ? 0 : PyTuple_Size(c->names), positional = c->count - named;
    object *arguments = PyTuple_New(positional), *keywords = named > 0 ? PyDict_New() : NULL, *result = NULL;
    for (intptr_t i = 0; arguments != NULL && i < positional; i++) {
        Py_IncRef(c->values[i]);
        PyTuple_SetItem(arguments, i, c->values[i]);
    }
    for (intptr_t i = 0; keywords != NULL && i < named; i++)
        PyDict_SetItem(keywords, PyTuple_GetItem(c->names, i), c->values[positional + i]);
    if (PyErr_Occurred() == NULL) result = PyObject_Call(c->function, arguments, keywords);
    Py_DecRef(arguments);
    Py_DecRef(keywords);
    return result;
}

/* Gives an exception to Python's half, which says with what text it becomes the
 * stream's error: an object to be released, NULL if it was not to be had. */
static object *report(hs_call *c, int64_t number)
{
    object *type = NULL, *value = NULL, *traceback = NULL;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL) PyException_SetTraceback(value, traceback);
    object *function = c->function != NULL ? c->function : none_object;
    object *n = PyLong_FromLongLong(c->checked ? number : 0);
    object *text = PyObject_CallFunctionObjArgs(hooks[HOOK_REPORT], n, function, value, NULL);
    if (text == NULL) PyErr_WriteUnraisable(function);
    if (n != NULL) Py_DecRef(n);
    if (type != NULL) Py_DecRef(type);
    if (value != NULL) Py_DecRef(value);
    if (traceback != NULL) Py_DecRef(traceback);
    return text;
}

static void call_hook(int which, int64_t number)
{
    object *n = number ? PyLong_FromLongLong(number) : NULL;
    object *result = PyObject_CallFunctionObjArgs(hooks[which], n, NULL);
    if (n != NULL) Py_DecRef(n);
    if (result == NULL) PyErr_WriteUnraisable(hooks[which]);
    else Py_DecRef(result);
}

/* Runs a call, and frees it unless a graph keeps it: the finalizers that this runs may not call the runtime either, and
 * nothing refers to the arguments any more when the core learns of the end. */
static outcome run(runner *r, hs_call *c)
{
    outcome out = {NULL, 0};
    r->call = c;
    halstream_self.inside = 1;
    object *result = perform(c);
    if (result != NULL) {
        Py_DecRef(result);
    } else {
        out.number = last_error += 2;
        out.text = report(c, out.number);
    }
    r->call = NULL;
    if (!c->kept) free_call(c);
    halstream_self.inside = 0;
    return out;
}

/* Forgets a call that will not run, or the exception that the core does not need. */
static void drop(int64_t token)
{
    if (token & 1) call_hook(HOOK_UNREPORTED, token);
    else free_call(halstream_call_find(token));
}

/* What a thread of Python's does until it is told to end. */
static object *dispatch(object *self, object *unused)
{
    (void)self;
    (void)unused;
    if (halstream_enter()) return none();
    runner r = {.ident = halstream_ident(), .next = runners, .link = &runners};
    if (runners != NULL) runners->link = &r.next;
    runners = &r;
    outcome out = {NULL, 0};
    int ended = 0;
    for (unsigned runs = 1;; runs++) {
        const char *text = out.text != NULL ? PyUnicode_AsUTF8AndSize(out.text, NULL) : NULL;
        if (out.text != NULL && text == NULL) PyErr_Clear();
        halstream_enter();
        int64_t packed = halstreamHostNext(ended, out.number, (char *)text), token = packed >> HOST_SHIFT;
        if (out.text != NULL) Py_DecRef(out.text);
        if (packed & HOST_UNREPORTED) call_hook(HOOK_UNREPORTED, out.number);
        out = (outcome){NULL, 0};
        if (packed & HOST_SPAWN) call_hook(HOOK_SPAWN, 0);
        hs_call *c = packed & HOST_DROP ? NULL : halstream_call_find(token);
        if (packed & HOST_DROP) drop(token);
        if (c != NULL) out = run(&r, c);
        ended = token != 0 && !(packed & HOST_DROP);
        if (packed & HOST_END) break;
        if (runs % BREATHE == 0) call_hook(HOOK_NOTHING, 0);
    }
    *r.link = r.next;
    if (r.next != NULL) r.next->link = r.link;
    return none();
}

/* -- what runs and what waits to run, for reports -- */

/* What a thread runs, taken without allocating an object of Python's: that may collect garbage, and finalizers let
 * other threads run, which may end calls. */
typedef struct {
    uint64_t ident;
    int64_t token, count;
    object *function;
} taken;

static taken take(const runner *r)
{
    taken one = {.ident = r->ident, .function = none_object};
    if (r->call != NULL) {
        one.token = r->call->token;
        one.count = (int64_t)r->call->count;
        if (r->call->function != NULL) one.function = r->call->function;
    }
    Py_IncRef(one.function);
    return one;
}

/* Returns what the threads run: a list of (thread, token, function, number of arguments). The arguments stay with the
 * call: a copy would keep alive for a while what ends with the function. */
static object *running(object *self, object *unused)
{
    (void)self;
    (void)unused;
    size_t n = 0, at = 0;
    for (runner *r = runners; r != NULL; r = r->next) n++;
    taken *all = calloc(n + 1, sizeof *all);
    if (all == NULL) return PyErr_NoMemory();
    for (runner *r = runners; r != NULL; r = r->next) all[at++] = take(r);
    object *list = PyList_New(0);
    for (taken *one = all; one < all + n; one++) {
        object *entry = PyTuple_New(4);
        if (entry != NULL && list != NULL) {
            PyTuple_SetItem(entry, 0, PyLong_FromUnsignedLongLong(one->ident));
            PyTuple_SetItem(entry, 1, PyLong_FromLongLong(one->token));
            PyTuple_SetItem(entry, 2, one->function);
            PyTuple_SetItem(entry, 3, PyLong_FromLongLong(one->count));
            PyList_Append(list, entry);
        } else {
            Py_DecRef(one->function);
        }
        if (entry != NULL) Py_DecRef(entry);
    }
    free(all);
    if (PyErr_Occurred()) {
        if (list != NULL) Py_DecRef(list);
        return NULL;
    }
    return list;
}

/* Finds the call of a token that Python gives; NULL if it has ended, or with an exception set. */
static hs_call *given(object *token)
{
    int64_t number = PyLong_AsLongLong(token);
    return PyErr_Occurred() ? NULL : halstream_call_find(number);
}

/* Returns the function of a token, None if it has ended. */
static object *function_of(object *self, object *token)
{
    (void)self;
    hs_call *c = given(token);
    if (PyErr_Occurred()) return NULL;
    object *function = c != NULL && c->function != NULL ? c->function : none_object;
    Py_IncRef(function);
    return function;
}

/* Returns the arguments of a token's function, None if it has ended. */
static object *arguments_of(object *self, object *token)
{
    (void)self;
    hs_call *c = given(token);
    if (PyErr_Occurred()) return NULL;
    if (c == NULL || c->function == NULL) return none();
    object **values = malloc((size_t)(c->count + 1) * sizeof *values);
    if (values == NULL) return PyErr_NoMemory();
    /* References first: making the tuple may run finalizers, and they let other threads run, which may end the call. */
    intptr_t count = (intptr_t)c->count;
    for (intptr_t i = 0; i < count; i++) Py_IncRef(values[i] = c->values[i]);
    object *arguments = PyTuple_New(count);
    for (intptr_t i = 0; i < count; i++) {
        if (arguments != NULL) PyTuple_SetItem(arguments, i, values[i]);
        else Py_DecRef(values[i]);
    }
    free(values);
    return arguments;
}

/* Returns the site where a token's function was enqueued, 0 if it is not known. */
static object *site_of(object *self, object *token)
{
    (void)self;
    hs_call *c = given(token);
    return PyErr_Occurred() ? NULL : PyLong_FromLongLong(c != NULL ? c->site : 0);
}

/* Makes a call: (function or None, arguments, keywords' names, checked). Returns its token. */
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
    hs_call *c = new_call(function, values, count, names, checked != 0, site);
    free(values);
    return c != NULL ? PyLong_FromLongLong(c->token) : PyErr_NoMemory();
}

/* Frees a call that no stream has taken. */
static object *discard(object *self, object *token)
{
    (void)self;
    hs_call *c = given(token);
    if (PyErr_Occurred()) return NULL;
    free_call(c);
    return none();
}

static object *pending(object *self, object *unused)
{
    (void)self;
    (void)unused;
    return PyLong_FromLongLong(pending_count);
}

static object *kept(object *self, object *unused)
{
    (void)self;
    (void)unused;
    return PyLong_FromLongLong(kept_count);
}

static method functions[] = {
    {"task", task, METH_FASTCALL, NULL},
    {"dispatch", dispatch, METH_NOARGS, NULL},
    {"running", running, METH_NOARGS, NULL},
    {"pending", pending, METH_NOARGS, NULL},
    {"kept", kept, METH_NOARGS, NULL},
    {"function_of", function_of, METH_O, NULL},
    {"arguments_of", arguments_of, METH_O, NULL},
    {"site_of", site_of, METH_O, NULL},
    {"discard", discard, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static const char *const names_of_hooks[HOOKS] = {"spawn", "report", "unreported", "nothing"};

int halstream_dispatch_install(uint64_t hooks_table)
{
    object *table = (object *)(uintptr_t)hooks_table;
    if (!PyCFunction_NewEx) return 0;
    for (int i = 0; i < HOOKS; i++) {
        object *hook = PyDict_GetItemString(table, names_of_hooks[i]);
        if (hook == NULL) {
            PyErr_Format(PyExc_TypeError, "there is no %s", names_of_hooks[i]);
            return -1;
        }
        Py_IncRef(hook);
        if (hooks[i] != NULL) Py_DecRef(hooks[i]);
        hooks[i] = hook;
    }
    for (method *m = functions; m->name != NULL; m++) {
        object *f = PyCFunction_NewEx(m, NULL, NULL);
        if (f == NULL || PyDict_SetItemString(table, m->name, f) < 0) return -1;
        Py_DecRef(f);
    }
    return 0;
}
