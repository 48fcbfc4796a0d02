/* Graphs: made by captures or node by node, instantiated and launched. A launch is one
 * operation of its stream. */
#include "graph.h"
#include "event.h"
#include "memory.h"

#include <stdio.h>

#define AUTO_FREE 1u
#define UPLOAD 2u
#define NODE_PRIORITY 8u
#define NODE_KIND ((uint64_t)NODES << KIND_SHIFT)

struct graph {
    uint64_t handle, id;
    struct program *program;
    bool owned; /* by a capture or a node */
    int captures; /* that add nodes to it */
};

struct executable {
    uint64_t handle, flags;
    struct program *program;
    struct point last; /* its latest launch: the next one waits for it */
};

static struct table graphs = {.kind = GRAPHS}, executables = {.kind = EXECUTABLES};
static const struct kind graph_kind, conditional_kind, map_kind, unmap_kind;

static void conditions_free(struct condition *list);
static void conditions_clear(void);
static void program_reset(const struct program *program);
static bool program_has_conditions(const struct program *program);
static void keep_release(struct keep *list);
static void user_objects_clear(void);
static CUresult run_program(struct stream *stream, const struct program *program);
static const struct operation *operation_of_node(uint64_t handle);
static bool program_has_memory(const struct program *program);
static CUresult graph_memory_launched(const struct program *program, bool auto_free);
static void graph_memory_drop(const struct program *program);
static void graph_memory_clear(void);

struct program *program_new(void) {
    struct program *program = calloc(1, sizeof *program);
    if (program != NULL)
        program->refs = 1;
    return program;
}

static void program_unref(struct program *program) {
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

/* Adds a node and takes ownership of its operation. */
static CUresult program_add(struct program *program, struct operation *operation, const size_t *after, size_t count) {
    if (program->body && operation->kind->not_in_bodies) {
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

void graph_captures(uint64_t handle, int more) {
    struct graph *graph = table_get(&graphs, handle);
    if (graph != NULL)
        graph->captures += more;
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
    if (graph != NULL && graph->captures > 0)
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

/* Waits for the launches of an executable that has nodes with conditions. */
static CUresult wait_launches(const struct executable *executable) {
    if (executable->last.stream == NULL || !program_has_conditions(executable->program))
        return SUCCESS;
    return wait_point(executable->last.stream, executable->last.seq);
}

/* Launches in flight still run. */
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

static CUresult run_graph(struct stream *stream, struct operation *operation) {
    program_reset(operation->graph.program);
    return run_program(stream, operation->graph.program);
}

static void graph_operation_drop(struct operation *operation) {
    if (operation->graph.child != 0)
        graph_drop(operation->graph.child);
    program_unref(operation->graph.program);
}

static const struct kind graph_kind = {.node = 4, .run = run_graph, .drop = graph_operation_drop};

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
    struct operation *launch = operation_new(&graph_kind);
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

/* ---- A launch of a graph: branches run at the same time, each on a thread of its own. ---- */

#define MOST_BRANCHES 64

/* A run of a program. A branch is a list of nodes of which each but the first waits for the one
 * before it, so that a node that blocks stops only what comes after it. */
struct run {
    const struct program *program;
    struct stream *stream;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t *branch; /* of each node */
    bool *done;     /* nodes that have run, or that a failure has skipped */
    size_t running; /* branches on threads of their own */
    CUresult code;  /* of the first node that failed */
};

struct branch {
    struct run *run;
    size_t number;
};

/* A node continues the branch of a node that it waits for and that no other has continued. */
static size_t divide(const struct program *program, size_t *branch) {
    size_t count = 0;
    bool *continued = calloc(program->count + 1, sizeof *continued);
    if (continued == NULL)
        abort();
    for (size_t i = 0; i < program->count; i++) {
        const struct node *node = &program->nodes[i];
        size_t found = SIZE_MAX;
        for (size_t k = 0; k < node->after_count && found == SIZE_MAX; k++)
            if (!continued[node->after[k]])
                found = node->after[k];
        if (found != SIZE_MAX)
            continued[found] = true;
        branch[i] = found != SIZE_MAX ? branch[found] : count++ % MOST_BRANCHES;
    }
    free(continued);
    return count < MOST_BRANCHES ? count : MOST_BRANCHES;
}

static bool is_due(const struct run *run, const struct node *node) {
    for (size_t k = 0; k < node->after_count; k++)
        if (!run->done[node->after[k]])
            return false;
    return true;
}

/* Runs the nodes of a branch. Each run works on a copy of the operation, since the job of a host
 * function has a state. */
static void run_branch(struct run *run, size_t number) {
    pthread_mutex_lock(&run->lock);
    for (size_t i = 0; i < run->program->count; i++) {
        if (run->branch[i] != number)
            continue;
        while (!is_due(run, &run->program->nodes[i]))
            pthread_cond_wait(&run->changed, &run->lock);
        CUresult code = run->code != SUCCESS ? run->code : atomic_load(&run->stream->context->error);
        if (code == SUCCESS) {
            struct operation operation = *run->program->nodes[i].operation;
            pthread_mutex_unlock(&run->lock);
            code = execute(run->stream, &operation);
            pthread_mutex_lock(&run->lock);
        }
        if (run->code == SUCCESS)
            run->code = code;
        run->done[i] = true;
        pthread_cond_broadcast(&run->changed);
    }
    pthread_mutex_unlock(&run->lock);
}

static void *serve_branch(void *argument) {
    struct branch *branch = argument;
    struct run *run = branch->run;
    run_branch(run, branch->number);
    free(branch);
    pthread_mutex_lock(&run->lock);
    run->running--;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    return NULL;
}

static CUresult run_program(struct stream *stream, const struct program *program) {
    struct run run = {.program = program, .stream = stream, .lock = PTHREAD_MUTEX_INITIALIZER,
                      .changed = PTHREAD_COND_INITIALIZER};
    run.branch = calloc(program->count + 1, sizeof *run.branch);
    run.done = calloc(program->count + 1, sizeof *run.done);
    if (run.branch == NULL || run.done == NULL)
        abort();
    size_t count = divide(program, run.branch);
    for (size_t i = 1; i < count; i++) {
        struct branch *branch = calloc(1, sizeof *branch);
        if (branch == NULL)
            abort();
        *branch = (struct branch){&run, i};
        pthread_mutex_lock(&run.lock);
        run.running++;
        pthread_mutex_unlock(&run.lock);
        if (start_thread(serve_branch, branch, 512 << 10) != 0)
            abort();
    }
    run_branch(&run, 0);
    pthread_mutex_lock(&run.lock);
    while (run.running > 0)
        pthread_cond_wait(&run.changed, &run.lock);
    pthread_mutex_unlock(&run.lock);
    free(run.branch);
    free(run.done);
    return run.code;
}

/* ---- Nodes with conditions: which of their graphs run is decided when they run. A condition is a number
 * that a kernel sets; each launch may begin with its default. ---- */

enum { IF = 0, WHILE = 1, SWITCH = 2 };
enum { NODE_CONDITIONAL = 13, ASSIGN_DEFAULT = 1, MOST_GRAPHS = 1 << 16 };

struct condition {
    struct condition *next; /* of its graph's */
    uint64_t handle;
    const struct program *program;
    bool resets;
    uint32_t first; /* what a launch begins with */
    _Atomic uint32_t value;
};

struct conditional {
    struct condition *condition;
    int type;
    uint32_t size;
    uint64_t *graphs;
    struct program **programs; /* of the graphs */
};

/* CUgraphNodeParams of a node with a condition. */
struct node_params {
    int type, unused[3];
    uint64_t handle;
    int condition_type;
    uint32_t size;
    uint64_t *graphs; /* for the caller to fill the graphs */
    CUcontext context;
};

static struct table conditions = {.kind = CONDITIONS};

static void conditions_free(struct condition *list) {
    while (list != NULL) {
        struct condition *next = list->next;
        table_drop(&conditions, list->handle);
        free(list);
        list = next;
    }
}

static void conditions_clear(void) {
    table_clear(&conditions);
}

static void conditional_drop(struct operation *operation) {
    struct conditional *conditional = operation->conditional;
    for (uint32_t i = 0; i < conditional->size && conditional->graphs[i] != 0; i++)
        graph_drop(conditional->graphs[i]);
    free(conditional->graphs);
    free(conditional->programs);
    free(conditional);
}

static bool program_has_conditions(const struct program *program) {
    for (size_t i = 0; i < program->count; i++)
        if (program->nodes[i].operation->kind == &conditional_kind)
            return true;
    return false;
}

static void program_reset(const struct program *program) {
    for (struct condition *c = program->conditions; c != NULL; c = c->next)
        if (c->resets)
            atomic_store(&c->value, c->first);
    for (size_t i = 0; i < program->count; i++) {
        const struct operation *operation = program->nodes[i].operation;
        for (uint32_t k = 0; operation->kind == &conditional_kind && k < operation->conditional->size; k++)
            program_reset(operation->conditional->programs[k]);
    }
}

/* Returns the graph that a value selects, NULL for none. */
static const struct program *selected(const struct conditional *c, uint32_t value) {
    uint32_t i = c->type == SWITCH ? value : value == 0;
    return i < c->size ? c->programs[i] : NULL;
}

static CUresult run_conditional(struct stream *stream, struct operation *operation) {
    const struct conditional *conditional = operation->conditional;
    const struct program *program;
    CUresult code = SUCCESS;
    do {
        program = selected(conditional, atomic_load(&conditional->condition->value));
        if (program != NULL)
            code = run_program(stream, program);
        if (code == SUCCESS)
            code = atomic_load(&stream->context->error);
    } while (conditional->type == WHILE && program != NULL && code == SUCCESS);
    return code;
}

static const struct kind conditional_kind = {.node = 13, .run = run_conditional, .drop = conditional_drop};

API cuGraphConditionalHandleCreate(uint64_t *handle, uint64_t graph, CUcontext context, unsigned value, unsigned flags) {
    BEGIN(cuGraphConditionalHandleCreate, 0);
    struct program *program;
    (void)context;
    if (handle == NULL || flags > ASSIGN_DEFAULT)
        return end(INVALID_VALUE);
    TRY(find_graph(graph, &program));
    struct condition *condition = calloc(1, sizeof *condition);
    if (condition == NULL)
        return end(OUT_OF_MEMORY);
    condition->program = program;
    condition->resets = flags == ASSIGN_DEFAULT;
    condition->first = value;
    condition->next = program->conditions;
    program->conditions = condition;
    *handle = condition->handle = table_put(&conditions, condition);
    return end(SUCCESS);
}

/* What a kernel does by cudaGraphSetConditional. Called without the lock. */
CUresult condition_set(uint64_t handle, uint32_t value) {
    pthread_mutex_lock(&state.lock);
    struct condition *condition = table_get(&conditions, handle);
    if (condition != NULL)
        atomic_store(&condition->value, value);
    pthread_mutex_unlock(&state.lock);
    return condition == NULL ? ILLEGAL_ADDRESS : SUCCESS;
}

static CUresult conditional_new(const struct node_params *params, struct conditional **made) {
    struct condition *condition = table_get(&conditions, params->handle);
    uint32_t most = params->condition_type == IF ? 2 : params->condition_type == WHILE ? 1 : MOST_GRAPHS;
    if (condition == NULL || params->condition_type < IF || params->condition_type > SWITCH || params->size == 0 ||
        params->size > most)
        return INVALID_VALUE;
    struct conditional *c = calloc(1, sizeof *c);
    if (c == NULL || (c->graphs = calloc(params->size, sizeof *c->graphs)) == NULL ||
        (c->programs = calloc(params->size, sizeof *c->programs)) == NULL)
        abort();
    *c = (struct conditional){condition, params->condition_type, params->size, c->graphs, c->programs};
    for (uint32_t i = 0; i < c->size; i++) {
        c->programs[i] = program_new();
        if (c->programs[i] == NULL || graph_new(c->programs[i], true, &c->graphs[i]) != SUCCESS)
            abort();
        c->programs[i]->body = true;
    }
    *made = c;
    return SUCCESS;
}

/* Of the kinds of nodes only this one has no function of its own. */
static CUresult add_node(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count, struct node_params *params) {
    struct node_maker m;
    struct conditional *conditional;
    if (params == NULL || node == NULL)
        return INVALID_VALUE;
    if (params->type != NODE_CONDITIONAL)
        return NOT_SUPPORTED;
    CUresult code = node_begin(&m, node, graph, after, count, params->context);
    if (code != SUCCESS)
        return code;
    code = conditional_new(params, &conditional);
    if (code != SUCCESS)
        return node_end(&m, code);
    struct operation *operation = operation_new(&conditional_kind);
    if (operation == NULL)
        abort();
    operation->conditional = conditional;
    code = submit(m.stream, operation, false);
    if (code == SUCCESS)
        params->graphs = conditional->graphs;
    return node_end(&m, code);
}

API cuGraphAddNode(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count, struct node_params *params) {
    BEGIN(cuGraphAddNode, 0);
    return end(add_node(node, graph, after, count, params));
}

API cuGraphAddNode_v2(uint64_t *node, uint64_t graph, const uint64_t *after, const void *edges, size_t count,
                      struct node_params *params) {
    BEGIN(cuGraphAddNode_v2, 0);
    (void)edges;
    return end(add_node(node, graph, after, count, params));
}

/* ---- Objects of the caller that graphs keep. The function of an object is called once, when nobody refers to it. ---- */

struct user_object {
    uint64_t handle;
    unsigned refs;
    void *object;
    void (*destroy)(void *);
};

/* References of a graph to an object. */
struct keep {
    struct keep *next;
    struct user_object *object;
    unsigned refs;
};

static struct table objects = {.kind = USER_OBJECTS};

static void *destroy(void *argument) {
    struct user_object *object = argument;
    object->destroy(object->object);
    free(object);
    return NULL;
}

/* The function is called on a thread of the driver, and without the lock. */
static void let_go(struct user_object *object, unsigned count) {
    object->refs -= count;
    if (object->refs > 0)
        return;
    table_drop(&objects, object->handle);
    if (start_thread(destroy, object, 256 << 10) != 0)
        abort();
}

static void keep_release(struct keep *list) {
    while (list != NULL) {
        struct keep *next = list->next;
        let_go(list->object, list->refs);
        free(list);
        list = next;
    }
}

static void user_objects_clear(void) {
    for (size_t i = 0; i < objects.count; i++)
        free(objects.items[i]);
    table_clear(&objects);
}

API cuUserObjectCreate(uint64_t *handle, void *object, void (*function)(void *), unsigned count, unsigned flags) {
    BEGIN(cuUserObjectCreate, 0);
    if (handle == NULL || function == NULL || count == 0 || flags != 1)
        return end(INVALID_VALUE);
    struct user_object *made = calloc(1, sizeof *made);
    if (made == NULL)
        return end(OUT_OF_MEMORY);
    *made = (struct user_object){0, count, object, function};
    *handle = made->handle = table_put(&objects, made);
    return end(SUCCESS);
}

API cuUserObjectRetain(uint64_t handle, unsigned count) {
    BEGIN(cuUserObjectRetain, 0);
    struct user_object *object = table_get(&objects, handle);
    if (object == NULL || count == 0)
        return end(INVALID_VALUE);
    object->refs += count;
    return end(SUCCESS);
}

API cuUserObjectRelease(uint64_t handle, unsigned count) {
    BEGIN(cuUserObjectRelease, 0);
    struct user_object *object = table_get(&objects, handle);
    if (object == NULL || count == 0 || count > object->refs)
        return end(INVALID_VALUE);
    let_go(object, count);
    return end(SUCCESS);
}

/* With the flag the caller's references become the graph's. */
API cuGraphRetainUserObject(uint64_t graph, uint64_t handle, unsigned count, unsigned flags) {
    BEGIN(cuGraphRetainUserObject, 0);
    struct program *program;
    struct user_object *object = table_get(&objects, handle);
    if (object == NULL || count == 0 || flags > 1)
        return end(INVALID_VALUE);
    TRY(find_graph(graph, &program));
    struct keep *kept = calloc(1, sizeof *kept);
    if (kept == NULL)
        return end(OUT_OF_MEMORY);
    if (flags == 0)
        object->refs += count;
    *kept = (struct keep){program->kept, object, count};
    program->kept = kept;
    return end(SUCCESS);
}

API cuGraphReleaseUserObject(uint64_t graph, uint64_t handle, unsigned count) {
    BEGIN(cuGraphReleaseUserObject, 0);
    struct program *program;
    struct user_object *object = table_get(&objects, handle);
    TRY(find_graph(graph, &program));
    for (struct keep **k = &program->kept; object != NULL && *k != NULL; k = &(*k)->next) {
        struct keep *kept = *k;
        if (kept->object != object || kept->refs < count)
            continue;
        kept->refs -= count;
        if (kept->refs == 0) {
            *k = kept->next;
            free(kept);
        }
        let_go(object, count);
        return end(SUCCESS);
    }
    return end(INVALID_VALUE);
}

/* ---- Nodes of graphs: what they are, and how they are added where no capture makes them. ---- */

/* Finds what a handle of a node names. */
static CUresult find_node(uint64_t handle, struct graph **graph, size_t *index) {
    for (size_t i = 0; i < graphs.count; i++) {
        *graph = graphs.items[i];
        if (*graph != NULL && node_index((*graph)->handle, handle, index) == SUCCESS)
            return SUCCESS;
    }
    return INVALID_VALUE;
}

static const struct operation *operation_of_node(uint64_t handle) {
    struct graph *graph;
    size_t index;
    return find_node(handle, &graph, &index) == SUCCESS ? graph->program->nodes[index].operation : NULL;
}

/* Other nodes keep their numbers, so only the one that was added last goes away; another one does nothing
 * from then on. */
API cuGraphDestroyNode(uint64_t handle) {
    BEGIN(cuGraphDestroyNode, 0);
    struct graph *graph;
    size_t index;
    TRY(find_node(handle, &graph, &index));
    if (graph->program->refs > 1 || program_has_memory(graph->program))
        return end(NOT_SUPPORTED);
    struct node *node = &graph->program->nodes[index];
    operation_free(node->operation);
    if (index + 1 == graph->program->count) {
        free(node->after);
        graph->program->count--;
        return end(SUCCESS);
    }
    node->operation = operation_new(&wait_kind);
    if (node->operation == NULL)
        abort();
    return end(SUCCESS);
}

/* The kinds with CUDA's numbers. */
API cuGraphNodeGetType(uint64_t handle, int *type) {
    BEGIN(cuGraphNodeGetType, 0);
    struct graph *graph;
    size_t index;
    if (type == NULL)
        return end(INVALID_VALUE);
    TRY(find_node(handle, &graph, &index));
    *type = graph->program->nodes[index].operation->kind->node;
    return end(SUCCESS);
}

API cuGraphChildGraphNodeGetGraph(uint64_t handle, uint64_t *child) {
    BEGIN(cuGraphChildGraphNodeGetGraph, 0);
    struct graph *graph;
    size_t index;
    if (child == NULL)
        return end(INVALID_VALUE);
    TRY(find_node(handle, &graph, &index));
    const struct operation *operation = graph->program->nodes[index].operation;
    if (operation->kind != &graph_kind || operation->graph.child == 0)
        return end(INVALID_VALUE);
    *child = operation->graph.child;
    return end(SUCCESS);
}

/* Nodes by their numbers; the flags change nothing. */
API cuGraphDebugDotPrint(uint64_t handle, const char *path, unsigned int flags) {
    BEGIN(cuGraphDebugDotPrint, 0);
    const struct graph *graph = table_get(&graphs, handle);
    (void)flags;
    if (graph == NULL || path == NULL)
        return end(INVALID_VALUE);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return end(OPERATING_SYSTEM);
    fprintf(file, "digraph fakecuda {\n");
    for (size_t i = 0; i < graph->program->count; i++) {
        const struct node *node = &graph->program->nodes[i];
        fprintf(file, "  n%zu [label=\"%d\"];\n", i, node->operation->kind->node);
        for (size_t k = 0; k < node->after_count; k++)
            fprintf(file, "  n%zu -> n%zu;\n", node->after[k], i);
    }
    fprintf(file, "}\n");
    return end(fclose(file) == 0 ? SUCCESS : OPERATING_SYSTEM);
}

struct update_result {
    int result;
    uint64_t node, from;
};

/* Returns which of CUDA's reasons keeps a program from becoming another one, 0 if none does. */
static int differs(const struct program *before, const struct program *after, size_t *at) {
    enum { TOPOLOGY = 2, TYPE = 3, UNSUPPORTED = 6 };
    *at = 0;
    if (before->count != after->count)
        return TOPOLOGY;
    for (; *at < after->count; ++*at) {
        const struct node *a = &before->nodes[*at], *b = &after->nodes[*at];
        if (a->operation->kind != b->operation->kind)
            return TYPE;
        if (a->after_count != b->after_count ||
            (a->after_count > 0 && memcmp(a->after, b->after, a->after_count * sizeof *a->after) != 0))
            return TOPOLOGY;
    }
    *at = 0;
    if (before != after && (program_has_memory(before) || program_has_memory(after)))
        return UNSUPPORTED;
    return 0;
}

/* Later launches run the nodes of the graph. */
API cuGraphExecUpdate_v2(uint64_t handle, uint64_t graph_handle, struct update_result *result) {
    BEGIN(cuGraphExecUpdate_v2, 0);
    struct executable *executable = table_get(&executables, handle);
    const struct graph *graph = table_get(&graphs, graph_handle);
    size_t at;
    if (executable == NULL || graph == NULL || result == NULL)
        return end(INVALID_VALUE);
    int code = differs(executable->program, graph->program, &at);
    *result = (struct update_result){code, code == 0 ? 0 : node_handle(graph_handle, at), 0};
    if (code != 0)
        return end(EXEC_UPDATE_FAILURE);
    graph->program->refs++;
    graph->program->executables++;
    executable->program->executables--;
    program_unref(executable->program);
    executable->program = graph->program;
    return end(SUCCESS);
}

/* Nodes of a clone have the numbers of the original's. */
API cuGraphNodeFindInClone(uint64_t *node, uint64_t original, uint64_t clone) {
    BEGIN(cuGraphNodeFindInClone, 0);
    struct graph *graph;
    size_t index;
    const struct graph *copy = table_get(&graphs, clone);
    if (node == NULL || copy == NULL)
        return end(INVALID_VALUE);
    TRY(find_node(original, &graph, &index));
    if (graph->program != copy->program)
        return end(INVALID_VALUE);
    *node = node_handle(clone, index);
    return end(SUCCESS);
}

/* ---- Nodes; those of other operations are where streams have them ---- */

CUresult node_begin(struct node_maker *m, uint64_t *node, uint64_t graph, const uint64_t *after, size_t count,
                    CUcontext handle) {
    struct program *program;
    struct context *context;
    CUresult code;
    if (node == NULL || (count > 0 && after == NULL))
        return INVALID_VALUE;
    if ((code = find_graph(graph, &program)) != SUCCESS)
        return code;
    if (program->refs > 1)
        return NOT_SUPPORTED; /* nodes are added before a graph is instantiated */
    code = handle == 0 ? current_context(&context) : healthy_context(handle, &context);
    if (code != SUCCESS)
        return code;
    size_t *tips = calloc(count + 1, sizeof *tips);
    for (size_t i = 0; tips != NULL && i < count && code == SUCCESS; i++)
        code = node_index(graph, after[i], &tips[i]);
    struct stream *stream = tips == NULL ? NULL : stream_new(context, 1, 0, false);
    struct capture *capture = calloc(1, sizeof *capture);
    if (code == SUCCESS && (stream == NULL || capture == NULL))
        code = OUT_OF_MEMORY;
    if (code != SUCCESS) {
        free(tips);
        free(capture);
        if (stream != NULL)
            stream_close(stream);
        return code;
    }
    stream->handle = table_put(&streams, stream);
    stream->tips = tips;
    stream->tip_count = count;
    capture->recorder = &graph_recorder;
    capture->program = program;
    stream->capture = capture;
    *m = (struct node_maker){graph, node, stream, capture};
    return SUCCESS;
}

CUresult node_end(struct node_maker *m, CUresult code) {
    if (code == SUCCESS)
        *m->node = node_handle(m->graph, m->capture->program->count - 1);
    m->stream->capture = NULL;
    free(m->capture);
    stream_close(m->stream);
    return code;
}

/* The node has the graph as it is, to which no node can be added any more. */
API cuGraphAddChildGraphNode(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count, uint64_t child) {
    BEGIN(cuGraphAddChildGraphNode, 0);
    struct node_maker m;
    struct program *program;
    TRY(find_graph(child, &program));
    if (program_has_memory(program))
        return end(NOT_SUPPORTED);
    TRY(node_begin(&m, node, graph, after, count, 0));
    struct operation *operation = operation_new(&graph_kind);
    if (operation == NULL)
        return end(node_end(&m, OUT_OF_MEMORY));
    operation->graph.program = program;
    program->refs += 2; /* also of the node's own handle */
    CUresult code = graph_new(program, true, &operation->graph.child);
    if (code != SUCCESS) {
        operation_free(operation);
        return end(node_end(&m, code));
    }
    return end(node_end(&m, submit(m.stream, operation, false)));
}

API cuGraphAddEmptyNode(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count) {
    BEGIN(cuGraphAddEmptyNode, 0);
    struct node_maker m;
    TRY(node_begin(&m, node, graph, after, count, 0));
    struct operation *operation = operation_new(&wait_kind);
    return end(node_end(&m, operation == NULL ? OUT_OF_MEMORY : submit(m.stream, operation, false)));
}

/* ---- Memory of graphs: nodes that allocate and free it, also those that captures make of calls in stream order. The
 * address is the graph's own from when the node is made; work reaches the memory between the two nodes of a launch. ---- */

enum { USED, USED_HIGH, RESERVED, RESERVED_HIGH };

/* The highest figures of the devices, since they were reset. */
static struct { uint64_t used, reserved; } high[MAX_DEVICES];

static bool program_has_memory(const struct program *program) {
    for (size_t i = 0; i < program->count; i++)
        if (program->nodes[i].operation->kind == &map_kind || program->nodes[i].operation->kind == &unmap_kind)
            return true;
    return false;
}

static bool frees(const struct program *program, uint64_t block) {
    for (size_t i = 0; i < program->count; i++)
        if (program->nodes[i].operation->kind == &unmap_kind && program->nodes[i].operation->block == block)
            return true;
    return false;
}

/* Enqueues a node on a stream that captures into a program. */
static CUresult take(struct stream *stream, const struct kind *kind, uint64_t block) {
    struct operation *operation = operation_new(kind);
    if (operation == NULL)
        return OUT_OF_MEMORY;
    operation->block = block;
    return submit(stream, operation, false);
}

static CUresult graph_allocate(struct stream *stream, struct context *context, size_t size, CUdeviceptr *address) {
    struct program *program = stream->capture->program;
    struct block *block;
    if (address == NULL || size == 0)
        return INVALID_VALUE;
    if (program->body)
        return NOT_SUPPORTED;
    CUresult code = allocate(context, size, NULL, &block);
    if (code != SUCCESS)
        return code;
    block->program = program;
    block->of_graph = block->unmapped = true;
    code = take(stream, &map_kind, block->id);
    if (code != SUCCESS)
        release(block);
    else
        *address = block->address;
    return code;
}

static CUresult graph_free_node(struct stream *stream, const struct block *block) {
    return frees(stream->capture->program, block->id) ? INVALID_VALUE : take(stream, &unmap_kind, block->id);
}

/* What a device holds for graphs. Drivers take it in large pieces, and count what a launch has freed as in use until
 * it is given back. */
static uint64_t figure(int device) {
    enum { PIECE = 32 << 20 };
    uint64_t sum = 0;
    for (size_t i = 0; i < block_count; i++) {
        const struct block *block = blocks[i];
        if (block->of_graph && block->device == device && block->backed)
            sum += block->size;
    }
    return (sum + PIECE - 1) / PIECE * PIECE;
}

static CUresult run_map(struct stream *stream, struct operation *operation) {
    (void)stream;
    pthread_mutex_lock(&state.lock);
    struct block *block = block_by_id(operation->block);
    CUresult code = block == NULL ? ILLEGAL_ADDRESS : SUCCESS;
    if (block != NULL) {
        const struct device *device = &devices[block->device];
        block->unmapped = false;
        block->backed = true;
        /* The contents are those of no launch before. */
        memset(device->bytes + (block->address - device->base), 0xCD, block->asked < 4096 ? block->asked : 4096);
        uint64_t held = figure(block->device);
        if (held > high[block->device].used)
            high[block->device].used = held;
        if (held > high[block->device].reserved)
            high[block->device].reserved = held;
    }
    pthread_mutex_unlock(&state.lock);
    return code;
}

static CUresult run_unmap(struct stream *stream, struct operation *operation) {
    (void)stream;
    pthread_mutex_lock(&state.lock);
    struct block *block = block_by_id(operation->block);
    if (block != NULL)
        graph_block_freed(block);
    pthread_mutex_unlock(&state.lock);
    return block == NULL ? ILLEGAL_ADDRESS : SUCCESS;
}

static const struct kind map_kind = {.node = 10, .run = run_map}, unmap_kind = {.node = 11, .run = run_unmap};

/* A launch allocates what it does not free for the caller, who has to free it before the next one. */
static CUresult graph_memory_launched(const struct program *program, bool auto_free) {
    for (int apply = 0; apply < 2; apply++) {
        for (size_t i = 0; i < program->count; i++) {
            const struct operation *operation = program->nodes[i].operation;
            struct block *block = operation->kind == &map_kind || operation->kind == &unmap_kind ? block_by_id(operation->block) : NULL;
            if (block == NULL)
                continue;
            bool maps = operation->kind == &map_kind, own = block->program == program;
            if (apply && maps)
                block->held = !frees(program, block->id);
            else if (apply && !own)
                block->held = false;
            else if (!apply && (maps ? block->held && !auto_free : !own && !block->held))
                return INVALID_VALUE;
        }
    }
    return SUCCESS;
}

/* What the caller has not freed outlives the graph. */
static void graph_memory_drop(const struct program *program) {
    for (size_t i = block_count; i-- > 0;) {
        struct block *block = blocks[i];
        if (block->program != program)
            continue;
        block->program = NULL;
        if (!block->held && block->frees == 0)
            release(block);
    }
}

static void graph_memory_clear(void) {
    memset(high, 0, sizeof high);
}

/* ---- Nodes ---- */

struct alloc_params {
    struct { int kind, handles, location, device; char rest[72]; } pool;
    const struct { int location, device, flags; } *access;
    size_t access_count, size;
    CUdeviceptr address;
};

API cuGraphAddMemAllocNode(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count,
                           struct alloc_params *params) {
    BEGIN(cuGraphAddMemAllocNode, 0);
    struct node_maker m;
    if (params == NULL || params->pool.kind != 1 || params->pool.location != 1)
        return end(INVALID_VALUE);
    if (params->pool.device < 0 || params->pool.device >= device_count)
        return end(INVALID_VALUE);
    struct context *context = devices[params->pool.device].context;
    if (context == NULL)
        return end(INVALID_CONTEXT);
    for (size_t i = 0; i < params->access_count; i++)
        if (params->access[i].device != params->pool.device)
            return end(NOT_SUPPORTED);
    TRY(node_begin(&m, node, graph, after, count, 0));
    return end(node_end(&m, graph_allocate(m.stream, context, params->size, &params->address)));
}

API cuGraphAddMemFreeNode(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count, CUdeviceptr address) {
    BEGIN(cuGraphAddMemFreeNode, 0);
    struct node_maker m;
    const struct block *block = address == 0 ? NULL : find_block(address, 1);
    if (block == NULL || block->address != address || !block->of_graph)
        return end(INVALID_VALUE);
    TRY(node_begin(&m, node, graph, after, count, 0));
    return end(node_end(&m, m.capture->program->body ? NOT_SUPPORTED : graph_free_node(m.stream, block)));
}

static CUresult block_of_node(uint64_t node, const struct kind *kind, const struct block **block) {
    const struct operation *operation = operation_of_node(node);
    *block = operation == NULL || operation->kind != kind ? NULL : block_by_id(operation->block);
    return *block == NULL ? INVALID_VALUE : SUCCESS;
}

API cuGraphMemAllocNodeGetParams(uint64_t node, struct alloc_params *params) {
    BEGIN(cuGraphMemAllocNodeGetParams, 0);
    const struct block *block;
    TRY(block_of_node(node, &map_kind, &block));
    if (params == NULL)
        return end(INVALID_VALUE);
    *params = (struct alloc_params){
        .pool = {.kind = 1, .location = 1, .device = block->device}, .size = block->asked, .address = block->address};
    return end(SUCCESS);
}

API cuGraphMemFreeNodeGetParams(uint64_t node, CUdeviceptr *address) {
    BEGIN(cuGraphMemFreeNodeGetParams, 0);
    const struct block *block;
    TRY(block_of_node(node, &unmap_kind, &block));
    if (address == NULL)
        return end(INVALID_VALUE);
    *address = block->address;
    return end(SUCCESS);
}

/* ---- Devices ---- */

API cuDeviceGraphMemTrim(CUdevice device) {
    BEGIN(cuDeviceGraphMemTrim, 0);
    TRY(check_device(device));
    for (size_t i = 0; i < block_count; i++)
        if (blocks[i]->device == device && blocks[i]->unmapped)
            blocks[i]->backed = false;
    return end(SUCCESS);
}

API cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, uint64_t *value) {
    BEGIN(cuDeviceGetGraphMemAttribute, 0);
    TRY(check_device(device));
    if (value == NULL || attribute < USED || attribute > RESERVED_HIGH)
        return end(INVALID_VALUE);
    if (attribute == USED || attribute == RESERVED)
        *value = figure(device);
    else
        *value = attribute == USED_HIGH ? high[device].used : high[device].reserved;
    return end(SUCCESS);
}

/* Only the highest figures can be set, to 0: they are then the present ones. */
API cuDeviceSetGraphMemAttribute(CUdevice device, int attribute, const uint64_t *value) {
    BEGIN(cuDeviceSetGraphMemAttribute, 0);
    TRY(check_device(device));
    if (value == NULL || *value != 0 || (attribute != USED_HIGH && attribute != RESERVED_HIGH))
        return end(INVALID_VALUE);
    if (attribute == USED_HIGH)
        high[device].used = figure(device);
    else
        high[device].reserved = figure(device);
    return end(SUCCESS);
}

/* ---- What captures add ---- */

/* Takes an operation that was enqueued on a stream that captures, and its ownership. A
 * record is no node: it keeps the place for those who wait. */
static CUresult program_take(struct stream *stream, struct operation *operation) {
    struct program *program = stream->capture->program;
    if (stream->capture->invalid) {
        operation_free(operation);
        return CAPTURE_INVALIDATED;
    }
    if (operation->kind == &record_kind) {
        set_tips(&operation->event->tips, &operation->event->tip_count, stream->tips, stream->tip_count);
        operation_free(operation);
        return SUCCESS;
    }
    if (operation->kind == &free_kind) /* of memory that is no graph's: such a node does nothing */
        operation->kind = &wait_kind;
    CUresult code = program_add(program, operation, stream->tips, stream->tip_count);
    if (code == SUCCESS)
        set_tips(&stream->tips, &stream->tip_count, &(size_t){program->count - 1}, 1);
    return code;
}

const struct recorder graph_recorder = {.take = program_take, .allocate = graph_allocate, .free = graph_free_node};
