/* Nodes of graphs: what they are, and how they are added where no capture makes them. */
#include "graph.h"

#include <stdio.h>

/* Finds what a handle of a node names. */
static CUresult find_node(uint64_t handle, struct graph **graph, size_t *index) {
    for (size_t i = 0; i < graphs.count; i++) {
        *graph = graphs.items[i];
        if (*graph != NULL && node_index((*graph)->handle, handle, index) == SUCCESS)
            return SUCCESS;
    }
    return INVALID_VALUE;
}

const struct operation *operation_of_node(uint64_t handle) {
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
    node->operation = operation_new(WAIT);
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
    switch (graph->program->nodes[index].operation->kind) {
    case KERNEL: *type = 0; break;
    case COPY: *type = 1; break;
    case FILL: *type = 2; break;
    case HOST_FUNCTION: *type = 3; break;
    case GRAPH: *type = 4; break;
    case MAP: *type = 10; break;
    case UNMAP: *type = 11; break;
    case MEMORY_OPS: *type = 12; break;
    case CONDITIONAL: *type = 13; break;
    default: *type = 5;
    }
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
    if (operation->kind != GRAPH || operation->graph.child == 0)
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
        fprintf(file, "  n%zu [label=\"%d\"];\n", i, node->operation->kind);
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

/* ---- Nodes; those of copies, fills, kernels and memory operations are where streams have them ---- */

struct host_params {
    void (*function)(void *);
    void *argument;
};

API cuGraphAddHostNode(uint64_t *node, uint64_t graph, const uint64_t *after, size_t count,
                       const struct host_params *params) {
    BEGIN(cuGraphAddHostNode, 0);
    struct node_maker m;
    if (params == NULL || params->function == NULL)
        return end(INVALID_VALUE);
    TRY(node_begin(&m, node, graph, after, count, 0));
    struct operation *operation = operation_new(HOST_FUNCTION);
    if (operation == NULL)
        return end(node_end(&m, OUT_OF_MEMORY));
    operation->job.function = params->function;
    operation->job.argument = params->argument;
    return end(node_end(&m, submit(m.stream, operation, false)));
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
    struct operation *operation = operation_new(GRAPH);
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
    struct operation *operation = operation_new(WAIT);
    return end(node_end(&m, operation == NULL ? OUT_OF_MEMORY : submit(m.stream, operation, false)));
}
