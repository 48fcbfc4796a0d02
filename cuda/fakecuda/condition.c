/* Nodes with conditions: which of their graphs run is decided when they run. A condition is a number
 * that a kernel sets; each launch may begin with its default. */
#include "graph.h"

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

static struct table conditions = {.kind = 0x5c};

void conditions_free(struct condition *list) {
    while (list != NULL) {
        struct condition *next = list->next;
        table_drop(&conditions, list->handle);
        free(list);
        list = next;
    }
}

void conditions_clear(void) {
    table_clear(&conditions);
}

void conditional_free(struct conditional *conditional) {
    for (uint32_t i = 0; i < conditional->size && conditional->graphs[i] != 0; i++)
        graph_drop(conditional->graphs[i]);
    free(conditional->graphs);
    free(conditional->programs);
    free(conditional);
}

bool program_has_conditions(const struct program *program) {
    for (size_t i = 0; i < program->count; i++)
        if (program->nodes[i].operation->kind == CONDITIONAL)
            return true;
    return false;
}

void program_reset(const struct program *program) {
    for (struct condition *c = program->conditions; c != NULL; c = c->next)
        if (c->resets)
            atomic_store(&c->value, c->first);
    for (size_t i = 0; i < program->count; i++) {
        const struct operation *operation = program->nodes[i].operation;
        for (uint32_t k = 0; operation->kind == CONDITIONAL && k < operation->conditional->size; k++)
            program_reset(operation->conditional->programs[k]);
    }
}

/* Returns the graph that a value selects, NULL for none. */
static const struct program *selected(const struct conditional *c, uint32_t value) {
    uint32_t i = c->type == SWITCH ? value : value == 0;
    return i < c->size ? c->programs[i] : NULL;
}

CUresult run_conditional(struct stream *stream, const struct conditional *conditional) {
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
    struct operation *operation = operation_new(CONDITIONAL);
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
