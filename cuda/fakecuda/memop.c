/* Stream memory operations: a stream writes a word, or waits for a value. */
#include "graph.h"
#include "memory.h"

#include <sched.h>
#include <time.h>

enum { WAIT_32 = 1, WRITE_32 = 2, FLUSH = 3, WAIT_64 = 4, WRITE_64 = 5, BARRIER = 6 };
enum { GEQ = 0, EQ = 1, AND = 2, NOR = 3, FLUSH_FLAG = 1 << 30 };

/* One entry of the batch, in the layout that callers use. */
struct parameters {
    int operation;
    uint32_t flush_flags;
    uint64_t address;
    uint64_t value;
    uint32_t flags;
    uint64_t alias;
    uint64_t unused;
};

_Static_assert(sizeof(struct parameters) == 48, "the layout of CUstreamBatchMemOpParams");

static bool is_wide(int operation) {
    return operation == WAIT_64 || operation == WRITE_64;
}

static bool holds(const struct memory_op *op, const void *at) {
    unsigned how = op->flags & ~(unsigned)FLUSH_FLAG;
    if (is_wide(op->operation)) {
        uint64_t seen = __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
        return how == GEQ ? (int64_t)(seen - op->value) >= 0
             : how == EQ  ? seen == op->value
             : how == AND ? (seen & op->value) != 0
                          : ~(seen | op->value) != 0;
    }
    uint32_t seen = __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE), value = (uint32_t)op->value;
    return how == GEQ ? (int32_t)(seen - value) >= 0
         : how == EQ  ? seen == value
         : how == AND ? (seen & value) != 0
                      : ~(seen | value) != 0;
}

/* Polls often at first and then less, since a long wait must not use a processor that
 * tests need. Ends when the context is poisoned. */
static void wait_until(struct stream *stream, const struct memory_op *op, const void *at) {
    struct context *context = stream->context;
    uint64_t start = now(), waited;
    if (holds(op, at))
        return;
    pthread_mutex_lock(&state.lock);
    wait_begins(stream);
    pthread_mutex_unlock(&state.lock);
    while (!holds(op, at) && atomic_load(&context->error) == SUCCESS) {
        waited = now() - start;
        if (waited < 20000) {
            sched_yield();
            continue;
        }
        long pause = waited < 5000000 ? 30000 : waited < 100000000 ? 100000 : 250000;
        nanosleep(&(struct timespec){0, pause}, NULL);
    }
    pthread_mutex_lock(&state.lock);
    wait_ends(stream);
    pthread_mutex_unlock(&state.lock);
}

static CUresult run(struct stream *stream, struct operation *operation) {
    for (unsigned i = 0; i < operation->memory.count; i++) {
        const struct memory_op *op = &operation->memory.ops[i];
        if (op->operation == FLUSH || op->operation == BARRIER)
            continue;
        pthread_mutex_lock(&state.lock);
        void *at = reach(NULL, op->address, is_wide(op->operation) ? 8 : 4);
        pthread_mutex_unlock(&state.lock);
        if (at == NULL)
            return ILLEGAL_ADDRESS;
        if (state.settings.memops == 2) /* they are accepted, and do nothing */
            continue;
        if (op->operation == WRITE_32)
            __atomic_store_n((uint32_t *)at, (uint32_t)op->value, __ATOMIC_RELEASE);
        else if (op->operation == WRITE_64)
            __atomic_store_n((uint64_t *)at, op->value, __ATOMIC_RELEASE);
        else
            wait_until(stream, op, at);
    }
    return SUCCESS;
}

static void drop(struct operation *operation) {
    free(operation->memory.ops);
}

static const struct kind memory_ops_kind = {.node = 12, .not_in_bodies = true, .run = run, .drop = drop};

static CUresult check(const struct memory_op *op) {
    bool bad, waits = op->operation == WAIT_32 || op->operation == WAIT_64;
    if (op->operation == FLUSH || op->operation == BARRIER)
        return SUCCESS;
    if (!waits && op->operation != WRITE_32 && !is_wide(op->operation))
        return INVALID_VALUE;
    uint64_t size = is_wide(op->operation) ? 8 : 4;
    if (op->address % size != 0 || classify(op->address, size, &bad) == UNKNOWN_MEMORY || bad)
        return INVALID_VALUE;
    const struct block *block = find_block(op->address, size);
    if (block->pool != NULL || block->managed || block->of_graph) /* drivers refuse memory of pools and managed memory */
        return INVALID_VALUE;
    if (waits ? (op->flags & ~(unsigned)FLUSH_FLAG) > NOR : op->flags > 1)
        return INVALID_VALUE;
    return SUCCESS;
}

static CUresult batch(CUstream handle, const struct parameters *list, unsigned count) {
    struct stream *stream;
    CUresult code;
    if (!state.settings.memops)
        return NOT_SUPPORTED;
    if ((code = find_stream(handle, &stream)) != SUCCESS || (code = make_room(stream)) != SUCCESS)
        return code;
    if (count == 0)
        return SUCCESS;
    if (list == NULL || count > 256)
        return INVALID_VALUE;
    struct memory_op *ops = calloc(count, sizeof *ops);
    struct operation *operation = operation_new(&memory_ops_kind);
    if (ops == NULL || operation == NULL)
        code = OUT_OF_MEMORY;
    for (unsigned i = 0; i < count && code == SUCCESS; i++) {
        ops[i] = (struct memory_op){list[i].operation, list[i].address, list[i].value, list[i].flags};
        code = check(&ops[i]);
    }
    if (code != SUCCESS) {
        free(ops);
        free(operation);
        return code;
    }
    operation->memory.ops = ops;
    operation->memory.count = count;
    return submit(stream, operation, false);
}

API cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, struct parameters *list, unsigned int flags) {
    BEGIN(cuStreamBatchMemOp_v2, stream > STREAM_PER_THREAD ? stream : 0);
    return end(flags != 0 ? INVALID_VALUE : batch(stream, list, count));
}

/* One operation, as the calls for single values make it. */
static CUresult single(CUstream stream, int32_t operation, CUdeviceptr address, uint64_t value, unsigned flags) {
    struct parameters one = {.operation = operation, .address = address, .value = value, .flags = flags};
    return batch(stream, &one, 1);
}

API cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value, unsigned int flags) {
    BEGIN(cuStreamWaitValue32_v2, stream > STREAM_PER_THREAD ? stream : 0);
    return end(single(stream, WAIT_32, address, value, flags));
}

API cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value, unsigned int flags) {
    BEGIN(cuStreamWriteValue32_v2, stream > STREAM_PER_THREAD ? stream : 0);
    return end(single(stream, WRITE_32, address, value, flags));
}

API cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, uint64_t value, unsigned int flags) {
    BEGIN(cuStreamWaitValue64_v2, stream > STREAM_PER_THREAD ? stream : 0);
    return end(single(stream, WAIT_64, address, value, flags));
}

API cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, uint64_t value, unsigned int flags) {
    BEGIN(cuStreamWriteValue64_v2, stream > STREAM_PER_THREAD ? stream : 0);
    return end(single(stream, WRITE_64, address, value, flags));
}

struct node_parameters {
    CUcontext context;
    unsigned int count;
    const struct parameters *list;
    unsigned int flags;
};

API cuGraphAddBatchMemOpNode(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count,
                             const struct node_parameters *p) {
    BEGIN(cuGraphAddBatchMemOpNode, 0);
    if (p == NULL || p->count == 0 || p->flags != 0)
        return end(INVALID_VALUE);
    struct node_maker m;
    TRY(node_begin(&m, node, graph, after, count, p->context));
    return end(node_end(&m, batch(m.stream->handle, p->list, p->count)));
}
