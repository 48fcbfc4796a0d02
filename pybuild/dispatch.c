#include "dispatch.h"

#include <pthread.h>
#include <stdlib.h>

#include "_cgo_export.h"
#include "caller.h"
#include "calls.h"
#include "stall.h"
#include "unstable.h"

static _Atomic uint32_t pressure;

uint32_t *halstream_pressure_word(void) { return (uint32_t *)&pressure; }

/* A dispatcher that had nothing to do for so long ends, unless it is the spare. */
static const int64_t idle_ns = 2000000000;
/* For how long it spins before it sleeps: waking it costs microseconds. */
static const int64_t spin_ns = 20000;
/* After so many functions of C a function of Python's is called, in which the
 * interpreter looks whether another thread waits for its lock. */
enum { BREATHE = 64 };

hs_runner *halstream_runners;

/* Numbers of exceptions of checked functions, odd. */
static int64_t last_error = 1;

static object *arguments_of(hs_call *c, intptr_t count)
{
    object *tuple = PyTuple_New(count);
    for (intptr_t i = 0; tuple != NULL && i < count; i++) {
        Py_IncRef(c->values[i + 1]);
        PyTuple_SetItem(tuple, i, c->values[i + 1]);
    }
    return tuple;
}

/* For a CPython whose PyObject_Vectorcall was not found. */
static object *call_slowly(hs_call *c, intptr_t positional)
{
    object *keywords = NULL, *result = NULL, *args = arguments_of(c, positional);
    if (args != NULL && c->names != NULL) {
        keywords = PyDict_New();
        for (intptr_t i = positional; keywords != NULL && i < (intptr_t)c->count; i++)
            PyDict_SetItem(keywords, PyTuple_GetItem(c->names, i - positional), c->values[i + 1]);
    }
    if (args != NULL && !PyErr_Occurred()) result = PyObject_Call(c->function, args, keywords);
    if (args != NULL) Py_DecRef(args);
    if (keywords != NULL) Py_DecRef(keywords);
    return result;
}

static object *perform(hs_call *c)
{
    if (c->function == NULL) return none();
    intptr_t positional = c->count;
    if (c->names != NULL) positional -= PyTuple_Size(c->names);
    if (!halstream_unstable.vectorcall) return call_slowly(c, positional);
    const size_t offset = (size_t)1 << (8 * sizeof(size_t) - 1); /* PY_VECTORCALL_ARGUMENTS_OFFSET */
    return halstream_unstable.vectorcall(c->function, (void *const *)(c->values + 1), (size_t)positional | offset, c->names);
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
    object *text = PyObject_CallFunctionObjArgs(halstream_hook(HOOK_REPORT), n, function, value, NULL);
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
    object *result = PyObject_CallFunctionObjArgs(halstream_hook(which), n, NULL);
    if (n != NULL) Py_DecRef(n);
    if (result == NULL) PyErr_WriteUnraisable(halstream_hook(which));
    else Py_DecRef(result);
}

/* Begins the next call of a burst; seals the burst when there is none. */
static hs_call *begin(hs_burst *b, uint64_t *word)
{
    uint64_t w = atomic_load_explicit(&b->word, memory_order_relaxed);
    for (;;) {
        int left = !(w & BURST_CUT) && (w >> BURST_BITS & BURST_MOST) != (w & BURST_MOST);
        uint64_t next = left ? w + BURST_BEGIN : w | BURST_SEALED;
        if (next != w && !atomic_compare_exchange_weak(&b->word, &w, next)) continue;
        *word = next;
        if (!left || b->first == NULL) return NULL;
        hs_call *c = b->first;
        b->first = c->next;
        if (b->first == NULL) b->end = &b->first;
        return c;
    }
}

/* What the core is told of an end: the exception's text and number, or NULL. */
typedef struct {
    object *text;
    int64_t number;
} outcome;

static const char *text_of(outcome *o)
{
    const char *text = o->text ? PyUnicode_AsUTF8AndSize(o->text, NULL) : NULL;
    if (o->text != NULL && text == NULL) PyErr_Clear();
    return text;
}

static void release(outcome *o)
{
    if (o->text != NULL) Py_DecRef(o->text);
    o->text = NULL;
}

/* Runs the function of a burst that a graph keeps, and leaves it where it is. */
static void run_kept(hs_runner *r, hs_burst *b, outcome *out)
{
    hs_call *c = b->first;
    r->burst = b;
    r->call = c;
    halstream_self.inside = 1;
    halstream_running++;
    object *result = c != NULL ? perform(c) : none();
    if (result != NULL) {
        Py_DecRef(result);
    } else {
        out->number = last_error += 2;
        out->text = report(c, out->number);
        if (out->text == NULL) out->number = 0;
    }
    r->call = NULL;
    halstream_running--;
    halstream_self.inside = 0;
    r->burst = NULL;
}

/* Runs the functions of a burst. Returns 1 when it has ended, with what is to be
 * reported, and 0 when other functions have to run before the rest of it. */
static int run(hs_runner *r, hs_burst *b, outcome *out)
{
    uint64_t word;
    hs_call *c;
    unsigned calls = 0;
    r->burst = b;
    halstream_self.inside = 1;
    halstream_running++;
    int ended = 1;
    while ((c = begin(b, &word)) != NULL) {
        r->call = c;
        object *result = perform(c);
        outcome failure = {NULL, 0};
        if (result != NULL) {
            Py_DecRef(result);
        } else {
            failure.number = last_error += 2;
            failure.text = report(c, failure.number);
            if (failure.text == NULL) failure.number = 0;
        }
        r->call = NULL;
        halstream_call_free(c);
        if (failure.text != NULL) {
            word = atomic_load(&b->word);
            if (word & BURST_SEALED && (word >> BURST_BITS & BURST_MOST) == (word & BURST_MOST)) {
                *out = failure;
                break;
            }
            const char *text = text_of(&failure);
            halstream_enter();
            if (halstreamHostFail(failure.number, (char *)text)) call_hook(HOOK_UNREPORTED, failure.number);
            release(&failure);
        }
        if (word & BURST_SEALED && (word >> BURST_BITS & BURST_MOST) == (word & BURST_MOST)) break;
        if (++calls % BREATHE == 0) call_hook(HOOK_NOTHING, 0);
        if (atomic_load_explicit(&pressure, memory_order_relaxed)) {
            ended = 0;
            break;
        }
    }
    halstream_running--;
    halstream_self.inside = 0;
    r->burst = NULL;
    return ended;
}

/* Forgets a burst that will not run, or the exception that the core does not need. */
static void drop(int64_t token)
{
    hs_burst *b = halstream_burst_find(token);
    if (b == NULL) {
        call_hook(HOOK_UNREPORTED, token);
    } else if (atomic_load(&b->word) & BURST_CUT) {
        halstream_burst_empty(b); /* it was handed over, and who takes it reports its end */
    } else {
        halstream_burst_free(b);
    }
}

/* Releases Python's lock, also when the interpreter is ending. */
static void *unlock(void)
{
    halstream_self.released = 1;
    return PyEval_SaveThread();
}

/* Sleeps until there is something to do; returns what, as the Go functions do. */
static int64_t sit(hs_runner *r)
{
    for (;;) {
        void *state = unlock();
        int got = hs_park_wait(r->parker, idle_ns, spin_ns);
        halstream_relock(state);
        if (!got) {
            halstream_enter();
            int left = halstreamHostLeave();
            if (left == 2) return HOST_END;
            if (left == 1) return 0;
            state = unlock();
            hs_park_wait(r->parker, -1, 0); /* it was chosen meanwhile */
            halstream_relock(state);
        }
        uint32_t flags = r->given->flags;
        int64_t packed = (int64_t)r->given->token << HOST_SHIFT;
        if (flags & GIVEN_DROP) packed |= HOST_DROP;
        if (flags & GIVEN_SPAWN) packed |= HOST_SPAWN;
        if (flags & GIVEN_WATCH) {
            halstream_enter();
            halstreamHostWatch();
        }
        atomic_store(&r->given->taken, 1); /* with Python's lock, which the function has now */
        return packed;
    }
}

/* What a dispatcher thread of Python's does until it is told to end. */
object *halstream_dispatch(object *self, object *unused)
{
    (void)self;
    (void)unused;
    if (halstream_enter()) return none();
    hs_runner r = {.ident = halstream_ident()};
    r.given = calloc(1, sizeof *r.given);
    if (r.given == NULL) return none();
    r.parker = halstreamHostSeat(r.given);
    /* Only now: what allocates objects may collect garbage, and finalizers let other threads run. */
    r.next = halstream_runners;
    r.link = &halstream_runners;
    if (halstream_runners != NULL) halstream_runners->link = &r.next;
    halstream_runners = &r;
    outcome out = {NULL, 0};
    int64_t packed = 0, ended = 0;
    for (;;) {
        if (packed == 0) {
            hs_burst *b = ended ? halstream_burst_find(ended) : NULL;
            if (b != NULL && b->kept) b = NULL;
            if (b != NULL) halstream_burst_empty(b); /* while finalizers may not call the runtime */
            halstream_enter();
            packed = halstreamHostNext(ended, out.number, (char *)text_of(&out));
            release(&out);
            if (b != NULL) halstream_burst_free(b); /* the core has read its word for the last time */
            ended = 0;
            if (packed & HOST_UNREPORTED) call_hook(HOOK_UNREPORTED, out.number);
            out.number = 0;
        }
        if (packed & HOST_SIT) {
            packed = sit(&r);
            continue;
        }
        int64_t token = packed >> HOST_SHIFT, flags = packed;
        packed = 0;
        if (flags & HOST_SPAWN) call_hook(HOOK_SPAWN, 0);
        if (flags & HOST_DROP) {
            drop(token);
        } else if (token != 0) {
            hs_burst *b = halstream_burst_find(token);
            if (b != NULL && b->kept) {
                run_kept(&r, b, &out);
                ended = token;
            } else if (b != NULL && !run(&r, b, &out)) {
                halstream_enter();
                packed = halstreamHostYield();
            } else {
                ended = token;
            }
        }
        if (flags & HOST_END) break;
    }
    *r.link = r.next;
    if (r.next != NULL) r.next->link = r.link;
    halstream_enter();
    halstreamHostStand();
    free(r.given);
    return none();
}
