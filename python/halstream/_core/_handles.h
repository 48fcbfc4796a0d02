/* What the parts of the module _handles share; _handles.c says what it is for. */
#ifndef HALSTREAM_HANDLES_H
#define HALSTREAM_HANDLES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "calls.h"

/* Of the extension. Until that is loaded only `slow` is there, and says that nothing else may be used. */
extern halstream_calls handles_calls;

typedef struct {
    PyObject_HEAD
    int64_t id;                    /* 0: none was given, or a subclass finds it otherwise */
    const halstream_status *words; /* NULL: not looked for, or there are none */
    int32_t ordinal;               /* of the device, while there is an id */
    bool looked;                   /* for the words */
} Stream;

/* What the core knows of an event. */
enum {
    EMPTY,  /* the object stands for no event */
    PLAIN,  /* nothing: it was never recorded, or stands for a place of a stream's timeline */
    SHARED, /* it has an id there, which no other object has */
    CORE    /* Python's code has seen the id: other objects may record it, too */
};

typedef struct {
    PyObject_HEAD
    int64_t id;                    /* SHARED, CORE; PLAIN: of the stream that has the words */
    const halstream_status *words; /* of the stream of the latest record; NULL: SHARED: ask the core, PLAIN: it is done */
    uint64_t place;                /* of the latest record on it */
    int32_t ordinal;               /* but CORE: of the device, -1 before the first record */
    uint16_t flags;                /* but CORE: of its creation */
    uint8_t state;
    bool recorded : 1;             /* PLAIN */
    bool borrowed : 1;             /* it is not closed with this object */
    PyObject *attributes, *weak;   /* a dictionary and weak references, NULL while nobody uses them */
} Event;

/* One element of the stack of current streams; `_handles_entry.c` says what its fields are. */
typedef struct {
    PyObject_HEAD
    PyObject *key, *stream, *below, *restore, *label; /* never NULL */
    PyObject *token; /* of the context variable, NULL if Python's code made the entry */
    int ordinal, device;
    bool context, transient;
} Entry;

/* What a thread, or the process, chose outside any context. */
typedef struct {
    PyObject_HEAD
    PyObject *key, *device, *streams, *transient; /* never NULL; a dictionary, and a set */
} Choices;

/* An owner of memory. */
typedef struct {
    PyObject_HEAD
    int64_t id;      /* 0: there is no block */
    uint64_t ptr;    /* 0: it was freed */
    int64_t nbytes;
    PyObject *weak;  /* weak references, NULL while there are none */
} Memory;

/* What was current before a guard was entered: a device and its stream, and the same of the
 * entered stream's device, if that is another one; NULL where there is nothing. */
typedef struct {
    PyObject *here, *here_stream, *there, *there_stream;
} Before;

extern PyTypeObject *handles_stream, *handles_event, *handles_guard, *handles_entry, *handles_choices,
    *handles_memory;
extern PyMethodDef handles_stream_methods[], handles_event_methods[], handles_guard_methods[];
extern PyType_Spec handles_stream_spec, handles_event_spec, handles_guard_spec, handles_entry_spec, handles_choices_spec,
    handles_memory_spec;

/* Names of attributes and methods, as strings that Python has interned: name_wait is "_wait". */
#define HANDLES_NAMES(NAME)                                                                                            \
    NAME(create, "_create_event") NAME(empty, "") NAME(enter, "_enter") NAME(get, "get") \
    NAME(leave, "_leave") NAME(nop, "_nop") NAME(ordinal, "_ordinal") NAME(other, "_other_stream")                     \
    NAME(query, "_query") NAME(raise, "_raise") NAME(record, "_record") NAME(set, "set")                               \
    NAME(synchronize_event, "_synchronize_event") NAME(synchronize_stream, "_synchronize_stream")                      \
    NAME(wait, "_wait") NAME(wait_any, "_wait_any") NAME(wait_event, "_wait_event")                                    \
    NAME(wait_stream, "_wait_stream") NAME(public_wait_event, "wait_event") NAME(public_wait_stream, "wait_stream")
#define DECLARE_NAME(name, text) extern PyObject *name_##name;
HANDLES_NAMES(DECLARE_NAME)

/* Functions of the module, and methods that another file than that of their type has. */
PyObject *stream_remember(PyObject *module, PyObject *args);
PyObject *stream_enter(PyObject *self, PyObject *unused);
PyObject *stream_exit(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *context_stack(PyObject *module, PyObject *args);
PyObject *context_device(PyObject *module, PyObject *unused);
PyObject *context_current(PyObject *module, PyObject *ordinal);
PyObject *context_push(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *context_pop(PyObject *module, PyObject *stream);
PyObject *guard_class(PyObject *module, PyObject *class);
PyObject *methods_own(PyObject *module, PyObject *class);
PyObject *memory_launch(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *memory_owners(PyObject *module, PyObject *args);
PyObject *memory_capsule(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *guard_of(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *keywords);

/* Makes a stream current as stream_enter does, and notes what was before; -1 with an exception. */
int context_enter(Stream *stream, Before *before);
void before_clear(Before *before);
Entry *entry_new(PyObject *key, PyObject *stream, PyObject *below, PyObject *restore, PyObject *label);

/* Calls self.NAME(*args, **keywords). */
PyObject *handles_python(PyObject *self, PyObject *name, PyObject *const *args, Py_ssize_t n, PyObject *keywords);
/* Gives the exception of a call of the core to self._raise, which raises what the object's class makes
 * of it. Other exceptions, of handlers of signals, stay. */
PyObject *handles_failed(PyObject *self, const char *operation, PyObject *operand);
/* Takes note of the id of an event that was collected. */
void handles_drop(int64_t id);
/* Closes those events, if there are many. */
void handles_reap(void);

/* Makes the core know an event, whose id Python's code is about to see; 0 with an exception if it cannot. */
int64_t event_expose(Event *event);
/* Records an event on a stream; -1 with an exception. 1: only Python's code can tell what happens. */
int event_record_on(Event *event, Stream *stream);
/* Makes later work of a stream for which `stream_fast` holds wait for an event that is not EMPTY;
 * -1 with an exception. */
int event_wait_on(Event *event, Stream *stream);
/* Returns a new event of a class, PLAIN and not recorded. */
Event *event_fresh(PyTypeObject *type, int flags);
/* Lets later events of a class have the memory of earlier ones, if they need no more than its base class. */
void event_keep(PyTypeObject *type);
/* Returns 1 if the event is known to be done, 0 if it is known not to be, -1 if only the core can tell. */
int event_done(const Event *event);

/* The calling thread may have an answer without the core's help: no listener, no schedule and no
 * function of a stream is to be considered. */
static inline bool handles_fast(void)
{
    if (__atomic_load_n(*handles_calls.slow, __ATOMIC_ACQUIRE) != 0) return false;
    return *handles_calls.running == 0 || !handles_calls.inside();
}

/* Nothing but that the devices are a vendor's, or that a stream captures, keeps the calling thread from an
 * answer: the core has it, and Python's code would only ask there. */
static inline bool handles_core(void)
{
    uint32_t slow = __atomic_load_n(*handles_calls.slow, __ATOMIC_ACQUIRE);
    if (slow == 0 || (slow & ~(HALSTREAM_FOREIGN | HALSTREAM_CAPTURED)) != 0) return false;
    return *handles_calls.running == 0 || !handles_calls.inside();
}

/* No listener, no schedule and no function of a stream is to be considered: the core has the call. */
static inline bool handles_in_core(void) { return handles_fast() || handles_core(); }

/* Nothing but that a stream of the host device captures keeps the calling thread from an answer. */
static inline bool handles_captured(void)
{
    return __atomic_load_n(*handles_calls.slow, __ATOMIC_ACQUIRE) == HALSTREAM_CAPTURED && handles_core();
}

/* The id of an event for a call of the core that `handles_core` allows, 0 if Python's code has to make that. */
static inline int64_t event_in_core(Event *e)
{
    bool known = e->state >= SHARED ? handles_core() : e->state != EMPTY && handles_captured();
    return known ? event_expose(e) : 0;
}

const halstream_status *stream_words(Stream *stream);

/* The words of an open stream with nothing special about it, NULL if it is none. */
static inline const halstream_status *stream_fast(Stream *stream)
{
    if (!handles_fast()) return NULL;
    const halstream_status *w = stream->looked ? stream->words : stream_words(stream);
    if (w == NULL || w->id != (uint64_t)stream->id || __atomic_load_n(&w->special, __ATOMIC_ACQUIRE)) return NULL;
    return w;
}

/* All work is done and no error waits to be reported, which the core notes before it counts the work. */
static inline bool words_idle(const halstream_status *w)
{
    uint64_t done = __atomic_load_n(&w->completed, __ATOMIC_ACQUIRE);
    return done == __atomic_load_n(&w->submitted, __ATOMIC_ACQUIRE);
}

static inline bool words_special(const halstream_status *w) { return __atomic_load_n(&w->special, __ATOMIC_ACQUIRE) != 0; }

/* A device was lost: what is done there may have been dropped. Who has found that work is done asks afterwards. */
static inline bool handles_lost(void)
{
    return (__atomic_load_n(*handles_calls.slow, __ATOMIC_ACQUIRE) & HALSTREAM_LOST) != 0;
}

/* A record that is made now stands for the operations that were enqueued so far, and for nothing else:
 * the legacy default stream does not come first. */
static inline bool words_record_plain(const halstream_status *w)
{
    return w->order == NULL || __atomic_load_n(w->order, __ATOMIC_ACQUIRE) == 0;
}

#endif /* HALSTREAM_HANDLES_H */
