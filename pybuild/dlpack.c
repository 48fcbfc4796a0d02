#include "dlpack.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

/* Layouts of the DLPack specification, version 1.0. The legacy form has no
 * version and no flags. */
typedef struct {
    int32_t type, id;
} device_of;

typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} type_of;

typedef struct {
    void *data;
    device_of device;
    int32_t ndim;
    type_of dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} tensor;

typedef struct managed {
    tensor t;
    void *context;
    void (*deleter)(struct managed *);
} managed;

typedef struct versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct versioned *);
    uint64_t flags;
    tensor t;
} versioned;

/* One allocation: this, then shape and strides. It is its own note that the
 * tensor came back, so that a deleter needs no memory. */
typedef struct lent {
    union {
        managed m;
        versioned v;
    } as;
    struct lent *next;
    int64_t token;
    int64_t lengths[];
} lent;

static _Atomic(lent *) back;
static _Atomic(uint64_t) count; /* notes that were left and not taken */

/* A consumer calls a deleter on any thread, with or without Python's lock, also
 * while the interpreter ends: it calls nothing and leaves a note. */
static void leave(lent *l)
{
    l->next = atomic_load(&back);
    while (!atomic_compare_exchange_weak(&back, &l->next, l)) {}
    atomic_fetch_add(&count, 1);
}

static void end_managed(managed *m) { leave((lent *)m); }
static void end_versioned(versioned *v) { leave((lent *)v); }

/* Called by Go. Returns the address of a tensor in C order, 0 without memory. */
uint64_t halstream_lend(int64_t token, uint64_t data, uint64_t type, uint64_t device, uint64_t flags,
                        int is_versioned, const int64_t *shape, int32_t ndim)
{
    lent *l = malloc(sizeof *l + 2 * (size_t)ndim * sizeof(int64_t));
    if (l == NULL) return 0;
    l->next = NULL;
    l->token = token;
    tensor *t;
    if (is_versioned) {
        l->as.v = (versioned){.major = 1, .context = l, .deleter = end_versioned, .flags = flags};
        t = &l->as.v.t;
    } else {
        l->as.m = (managed){.context = l, .deleter = end_managed};
        t = &l->as.m.t;
    }
    *t = (tensor){
        .data = (void *)(uintptr_t)data,
        .device = {(int32_t)(uint32_t)device, (int32_t)(device >> 32)},
        .ndim = ndim,
        .dtype = {(uint8_t)type, (uint8_t)(type >> 8), (uint16_t)(type >> 16)},
        .shape = l->lengths,
        .strides = l->lengths + ndim,
    };
    int64_t step = 1;
    for (int32_t i = ndim - 1; i >= 0; i--) {
        t->shape[i] = shape[i];
        t->strides[i] = step;
        step *= shape[i];
    }
    return (uint64_t)(uintptr_t)l;
}

/* Called by Go with Python's lock held. */
void halstream_read(uint64_t address, int is_versioned, halstream_fields *to)
{
    const tensor *t;
    *to = (halstream_fields){0};
    if (is_versioned) {
        const versioned *v = (const versioned *)(uintptr_t)address;
        to->major = v->major;
        to->minor = v->minor;
        if (v->major != 1) return; /* what follows is laid out in another way */
        to->deleter = (uint64_t)(uintptr_t)v->deleter;
        to->flags = v->flags;
        t = &v->t;
    } else {
        const managed *m = (const managed *)(uintptr_t)address;
        to->deleter = (uint64_t)(uintptr_t)m->deleter;
        t = &m->t;
    }
    to->data = (uint64_t)(uintptr_t)t->data;
    to->shape = (uint64_t)(uintptr_t)t->shape;
    to->strides = (uint64_t)(uintptr_t)t->strides;
    to->offset = t->byte_offset;
    to->type = t->device.type;
    to->id = t->device.id;
    to->ndim = t->ndim;
    to->code = t->dtype.code;
    to->bits = t->dtype.bits;
    to->lanes = t->dtype.lanes;
}

/* Called by Go, on any thread: leaves the token for halstream_returned. */
void halstream_give_back(int64_t token)
{
    lent *l = malloc(sizeof *l);
    if (l == NULL) return; /* the owner is kept: a leak, but no wrong answer */
    l->token = token;
    leave(l);
}

/* Called by Go with Python's lock held, so by one thread at a time. Returns the
 * token of a tensor that came back and forgets the tensor, 0 if there is none. */
int64_t halstream_returned(void)
{
    lent *l = atomic_load(&back);
    while (l != NULL && !atomic_compare_exchange_weak(&back, &l, l->next)) {}
    if (l == NULL) return 0;
    int64_t token = l->token;
    free(l);
    atomic_fetch_sub(&count, 1);
    return token;
}

/* Where the number of notes stands, for a look that costs no call. */
uint64_t halstream_returned_count(void) { return (uint64_t)(uintptr_t)&count; }

/* Python's functions, by the names the process that loads us has; absent in
 * Go's own tests. */
extern int PyCapsule_IsValid(void *capsule, const char *name) __attribute__((weak));
extern void *PyCapsule_GetPointer(void *capsule, const char *name) __attribute__((weak));

/* Called by Python, with its lock held, for a capsule that is collected. One
 * that a consumer took has another name by then, and is the consumer's. */
static void end_capsule(void *capsule)
{
    if (PyCapsule_IsValid == NULL || PyCapsule_GetPointer == NULL) return;
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        managed *m = PyCapsule_GetPointer(capsule, "dltensor");
        m->deleter(m);
    } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        versioned *v = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        v->deleter(v);
    }
}

uint64_t halstream_capsule_end(void) { return (uint64_t)(uintptr_t)&end_capsule; }
