#include "dlpack.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

/* Layouts of the DLPack specification, version 1.0. The legacy form has no
 * version and no flags. */
typedef struct {
    int32_t type, id;
} tensor_device;

typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} tensor_type;

typedef struct {
    void *data;
    tensor_device device;
    int32_t ndim;
    tensor_type dtype;
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

/* A tensor that another library uses, followed by its shape and strides in the same
 * allocation. When it is deleted it becomes an entry of the list `returned`, so that
 * a deleter allocates nothing. */
typedef struct exported {
    union {
        managed m;
        versioned v;
    } as;
    struct exported *next;
    int64_t token;
    int64_t lengths[];
} exported;

static _Atomic(exported *) returned;
static _Atomic(uint64_t) returned_count; /* entries of that list */

/* A consumer calls a deleter on any thread, with or without Python's lock, also
 * while the interpreter ends: it only appends to a list. */
static void push_returned(exported *l)
{
    l->next = atomic_load(&returned);
    while (!atomic_compare_exchange_weak(&returned, &l->next, l)) {}
    atomic_fetch_add(&returned_count, 1);
}

static void delete_managed(managed *m) { push_returned((exported *)m); }
static void delete_versioned(versioned *v) { push_returned((exported *)v); }

/* Called by Go. Returns the address of a new tensor in C order, 0 if there is no memory for it. */
uint64_t halstream_export_tensor(int64_t token, uint64_t data, uint64_t type, uint64_t device, uint64_t flags,
                        int is_versioned, const int64_t *shape, int32_t ndim)
{
    exported *l = malloc(sizeof *l + 2 * (size_t)ndim * sizeof(int64_t));
    if (l == NULL) return 0;
    l->next = NULL;
    l->token = token;
    tensor *t;
    if (is_versioned) {
        l->as.v = (versioned){.major = 1, .context = l, .deleter = delete_versioned, .flags = flags};
        t = &l->as.v.t;
    } else {
        l->as.m = (managed){.context = l, .deleter = delete_managed};
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
void halstream_read_tensor(uint64_t address, int is_versioned, halstream_tensor_fields *to)
{
    const tensor *t;
    *to = (halstream_tensor_fields){0};
    if (is_versioned) {
        const versioned *v = (const versioned *)(uintptr_t)address;
        to->major = v->major;
        to->minor = v->minor;
        if (v->major != 1) return; /* the layout of the rest is not known */
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

/* Called by Go on any thread: appends a token for halstream_pop_token. */
void halstream_push_token(int64_t token)
{
    exported *l = malloc(sizeof *l);
    if (l == NULL) return; /* the owner is never freed: a leak, but no memory is used after it was freed */
    l->token = token;
    push_returned(l);
}

/* Called by Go with Python's lock held, so by one thread at a time. Frees a tensor
 * whose deleter was called and returns its token, 0 if there is none. */
int64_t halstream_pop_token(void)
{
    exported *l = atomic_load(&returned);
    while (l != NULL && !atomic_compare_exchange_weak(&returned, &l, l->next)) {}
    if (l == NULL) return 0;
    int64_t token = l->token;
    free(l);
    atomic_fetch_sub(&returned_count, 1);
    return token;
}

/* The address of the number of such tensors, which Python reads without a call. */
uint64_t halstream_pending_tokens(void) { return (uint64_t)(uintptr_t)&returned_count; }

/* Python's functions, by the names the process that loads us has; absent in
 * Go's own tests. */
extern int PyCapsule_IsValid(void *capsule, const char *name) __attribute__((weak));
extern void *PyCapsule_GetPointer(void *capsule, const char *name) __attribute__((weak));

/* The destructor of capsules; Python's lock is held. A consumer renames a capsule
 * and owns its tensor from then on. */
static void destroy_capsule(void *capsule)
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

uint64_t halstream_capsule_destructor(void) { return (uint64_t)(uintptr_t)&destroy_capsule; }
