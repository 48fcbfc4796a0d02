/* Graphs: made by captures or node by node, instantiated and launched. A launch is one
 * operation of its stream. */
#include "graph.h"

#define HINT(stream) ((stream) > STREAM_PER_THREAD ? (stream) : 0)
#define AUTO_FREE 1u
#define UPLOAD 2u
#define NODE_PRIORITY 8u
#define NODE_KIND (0x5bull << 40)

struct table graphs = {.kind = 0x59}, executables = {.kind = 0x5a};

struct program *program_new(void) {
    struct program *program = calloc(1, sizeof *program);
    if (program != NULL)
        program->refs = 1;
    return program;
}

void program_unref(struct program *program) {
    if (--program->refs > 0)
        return;
    for (size_t i = 0; i < program->count; i++) {
        operation_free(program->nodes[i].operation);
        free(program->nodes[i].after);
    }
    free(program->nodes);
    graph_memory_drop(program);
    conditions_free(program->conditions);
    keep_release(program->kept);
    free(program);
}

/* Whether a graph can have an operation: a body has work of the device only. */
static bool program_takes(const struct program *program, const struct operation *operation) {
    switch (operation->kind) {
    case HOST_FUNCTION:
    case RECORD:
    case MEMORY_OPS:
    case FREE:
        return !program->body;
    default:
        return true;
    }
}

/* Adds a node and takes ownership of its operation. */
CUresult program_add(struct program *program, struct operation *operation, const size_t *after, size_t count) {
    if (!program_takes(program, operation)) {
        operation_free(operation);
        return NOT_SUPPORTED;
    }
    size_t *copy = calloc(count + 1, sizeof *copy);
    if (program->count == program->room) {
        size_t room = program->room ? 2 * program->room : 16;
        struct node *nodes = realloc(program->nodes, room * sizeof *nodes);
        if (nodes != NULL) {
            program->nodes = nodes;
            program->room = room;
        }
    }
    if (copy == NULL || program->count == program->room) {
        free(copy);
        operation_free(operation);
        return OUT_OF_MEMORY;
    }
    if (count > 0)
        memcpy(copy, after, count * sizeof *copy);
    program->nodes[program->count++] = (struct node){operation, copy, count};
    return SUCCESS;
}

/* Whether every node from the first one on that no other waits for is among the tips. */
bool program_joined(const struct program *program, size_t first, const size_t *tips, size_t count) {
    bool *followed = calloc(program->count + 1, sizeof *followed), joined = true;
    if (followed == NULL)
        abort();
    for (size_t i = 0; i < program->count; i++)
        for (size_t k = 0; k < program->nodes[i].after_count; k++)
            followed[program->nodes[i].after[k]] = true;
    for (size_t i = 0; i < count; i++)
        followed[tips[i]] = true;
    for (size_t i = first; i < program->count; i++)
        joined = joined && followed[i];
    free(followed);
    return joined;
}

/* Makes a graph that owns a program. */
CUresult graph_new(struct program *program, bool owned, uint64_t *handle) {
    struct graph *graph = calloc(1, sizeof *graph);
    if (graph == NULL) {
        program_unref(program);
        return OUT_OF_MEMORY;
    }
    graph->program = program;
    graph->owned = owned;
    graph->id = ++state.next_id & 0xfffff;
    *handle = graph->handle = table_put(&graphs, graph);
    return SUCCESS;
}

size_t live_graphs(void) {
    return table_live(&graphs);
}

size_t live_executables(void) {
    return table_live(&executables);
}

static void graph_free(struct graph *graph) {
    table_drop(&graphs, graph->handle);
    program_unref(graph->program);
    free(graph);
}

void graph_give(uint64_t handle) {
    struct graph *graph = table_get(&graphs, handle);
    if (graph != NULL)
        graph->owned = false;
}

void graph_drop(uint64_t handle) {
    struct graph *graph = table_get(&graphs, handle);
    if (graph != NULL)
        graph_free(graph);
}

static void executable_free(struct executable *executable) {
    table_drop(&executables, executable->handle);
    if (executable->last.stream != NULL)
        stream_unref(executable->last.stream);
    executable->program->executables--;
    program_unref(executable->program);
    free(executable);
}

/* For reset. */
void drop_graphs(void) {
    for (size_t i = 0; i < graphs.count; i++)
        if (graphs.items[i] != NULL)
            graph_free(graphs.items[i]);
    for (size_t i = 0; i < executables.count; i++)
        if (executables.items[i] != NULL)
            executable_free(executables.items[i]);
    table_clear(&graphs);
    table_clear(&executables);
    conditions_clear();
    user_objects_clear();
    graph_memory_clear();
}

CUresult find_graph(uint64_t handle, struct program **program) {
    const struct graph *graph = table_get(&graphs, handle);
    if (graph == NULL)
        return INVALID_VALUE;
    *program = graph->program;
    return SUCCESS;
}

uint64_t node_handle(uint64_t handle, size_t index) {
    const struct graph *graph = table_get(&graphs, handle);
    return NODE_KIND | graph->id << 20 | (index + 1);
}

CUresult node_index(uint64_t handle, uint64_t node, size_t *index) {
    const struct graph *graph = table_get(&graphs, handle);
    *index = (size_t)(node & 0xfffff) - 1;
    return graph != NULL && node == node_handle(handle, *index) && *index < graph->program->count ? SUCCESS
                                                                                                  : INVALID_VALUE;
}

API cuGraphCreate(uint64_t *handle, unsigned int flags) {
    BEGIN(cuGraphCreate, 0);
    if (handle == NULL || flags != 0)
        return end(INVALID_VALUE);
    struct program *program = program_new();
    return end(program == NULL ? OUT_OF_MEMORY : graph_new(program, false, handle));
}

API cuGraphDestroy(uint64_t handle) {
    BEGIN(cuGraphDestroy, 0);
    struct graph *graph = table_get(&graphs, handle);
    if (graph != NULL && captured_into(handle))
        return end(ILLEGAL_STATE);
    if (graph == NULL || graph->owned)
        return end(INVALID_VALUE);
    graph_free(graph);
    return end(SUCCESS);
}

/* With no array it returns how many there are; else it fills what the array has room for,
 * the rest with zeros, and returns the number of nodes or edges that it wrote. */
API cuGraphGetNodes(uint64_t handle, uint64_t *nodes, size_t *count) {
    BEGIN(cuGraphGetNodes, 0);
    const struct graph *graph = table_get(&graphs, handle);
    if (graph == NULL || count == NULL)
        return end(INVALID_VALUE);
    size_t room = *count, total = graph->program->count;
    *count = nodes == NULL || room > total ? total : room;
    for (size_t i = 0; nodes != NULL && i < room; i++)
        nodes[i] = i < total ? NODE_KIND | graph->id << 20 | (i + 1) : 0;
    return end(SUCCESS);
}

API cuGraphGetEdges(uint64_t handle, uint64_t *from, uint64_t *to, size_t *count) {
    BEGIN(cuGraphGetEdges, 0);
    const struct graph *graph = table_get(&graphs, handle);
    if (graph == NULL || count == NULL || (from == NULL) != (to == NULL))
        return end(INVALID_VALUE);
    size_t room = from == NULL ? 0 : *count, total = 0;
    for (size_t i = 0; i < graph->program->count; i++) {
        const struct node *node = &graph->program->nodes[i];
        for (size_t k = 0; k < node->after_count; k++, total++) {
            if (total >= room)
                continue;
            from[total] = NODE_KIND | graph->id << 20 | (node->after[k] + 1);
            to[total] = NODE_KIND | graph->id << 20 | (i + 1);
        }
    }
    for (size_t i = total; i < room; i++)
        from[i] = to[i] = 0;
    *count = from == NULL || room > total ? total : room;
    return end(SUCCESS);
}

/* An executable does not depend on its graph, which may be destroyed. */
static CUresult instantiate(uint64_t *handle, uint64_t graph_handle, unsigned long long flags) {
    const struct graph *graph = table_get(&graphs, graph_handle);
    if (handle == NULL || graph == NULL || flags & ~(unsigned long long)(AUTO_FREE | NODE_PRIORITY))
        return INVALID_VALUE;
    if (graph->program->executables > 0 && program_has_memory(graph->program))
        return NOT_SUPPORTED; /* the memory has one address */
    struct executable *executable = calloc(1, sizeof *executable);
    if (executable == NULL)
        return OUT_OF_MEMORY;
    executable->flags = flags;
    executable->program = graph->program;
    executable->program->refs++;
    executable->program->executables++;
    *handle = executable->handle = table_put(&executables, executable);
    return SUCCESS;
}

API cuGraphInstantiateWithFlags(uint64_t *handle, uint64_t graph, unsigned long long flags) {
    BEGIN(cuGraphInstantiateWithFlags, 0);
    return end(instantiate(handle, graph, flags));
}

struct instantiate_params {
    unsigned long long flags;
    CUstream upload;
    uint64_t node;
    int result;
};

/* Nothing is to be uploaded. */
API cuGraphInstantiateWithParams(uint64_t *handle, uint64_t graph, struct instantiate_params *params) {
    BEGIN(cuGraphInstantiateWithParams, 0);
    if (params == NULL)
        return end(INVALID_VALUE);
    CUresult code = instantiate(handle, graph, params->flags & ~(unsigned long long)UPLOAD);
    params->node = 0;
    params->result = code == SUCCESS ? 0 : 1;
    return end(code);
}

API cuGraphUpload(uint64_t handle, CUstream stream_handle) {
    BEGIN(cuGraphUpload, HINT(stream_handle));
    struct stream *stream;
    TRY(find_stream(stream_handle, &stream));
    return end(table_get(&executables, handle) == NULL ? INVALID_VALUE : SUCCESS);
}

/* Launches in flight still run. */
/* Waits for the launches of an executable that has nodes with conditions. */
static CUresult wait_launches(const struct executable *executable) {
    if (executable->last.stream == NULL || !program_has_conditions(executable->program))
        return SUCCESS;
    return wait_point(executable->last.stream, executable->last.seq);
}

API cuGraphExecDestroy(uint64_t handle) {
    BEGIN(cuGraphExecDestroy, 0);
    struct executable *executable = table_get(&executables, handle);
    if (executable == NULL)
        return end(INVALID_VALUE);
    TRY(wait_launches(executable));
    executable = table_get(&executables, handle); /* another thread may have destroyed it meanwhile */
    if (executable == NULL)
        return end(INVALID_VALUE);
    executable_free(executable);
    return end(SUCCESS);
}

/* One executable runs at most once at a time, whatever streams it is launched on. */
API cuGraphLaunch(uint64_t handle, CUstream stream_handle) {
    BEGIN(cuGraphLaunch, HINT(stream_handle));
    struct stream *stream;
    TRY(find_stream(stream_handle, &stream));
    TRY(make_room(stream));
    struct executable *executable = table_get(&executables, handle);
    if (executable == NULL)
        return end(INVALID_VALUE);
    if (stream->capture != NULL && program_has_memory(executable->program))
        return end(NOT_SUPPORTED);
    TRY(graph_memory_launched(executable->program, executable->flags & AUTO_FREE));
    struct operation *launch = operation_new(GRAPH);
    if (launch == NULL)
        return end(OUT_OF_MEMORY);
    launch->graph.program = executable->program;
    executable->program->refs++;
    if (stream->capture != NULL)
        return end(submit(stream, launch, false));
    if (executable->last.stream != NULL)
        operation_after(launch, executable->last.stream, executable->last.seq);
    TRY(submit(stream, launch, false));
    if (executable->last.stream != NULL)
        stream_unref(executable->last.stream);
    stream_ref(stream);
    executable->last = (struct point){stream, stream->enqueued};
    return end(SUCCESS);
}
