#include <stdlib.h>
#include <string.h>

#include "frame.h"

int hs_graphs(void)
{
    return hs_api.cuGraphCreate != NULL && hs_api.cuGraphDestroy != NULL && hs_api.cuGraphAddEmptyNode != NULL &&
           hs_api.cuGraphAddMemcpyNode != NULL && hs_api.cuGraphAddMemsetNode != NULL &&
           hs_api.cuGraphAddKernelNode_v2 != NULL && hs_api.cuGraphInstantiateWithFlags != NULL &&
           hs_api.cuGraphLaunch != NULL && hs_api.cuGraphExecDestroy != NULL;
}

hs_status hs_graph_new(CUcontext ctx, CUgraph *graph) { HS_ONE(ctx, cuGraphCreate, graph, 0); }

/* The functions that add a node are called in a frame. */
static CUresult add_copy(CUcontext ctx, CUgraph graph, const hs_copy *c, const CUgraphNode *after, size_t count,
                         CUgraphNode *node)
{
    CUDA_MEMCPY3D rows;
    memset(&rows, 0, sizeof rows);
    rows.srcMemoryType = c->direction == HS_HOST_TO_DEVICE ? HS_MEMORY_HOST : HS_MEMORY_DEVICE;
    rows.dstMemoryType = c->direction == HS_DEVICE_TO_HOST ? HS_MEMORY_HOST : HS_MEMORY_DEVICE;
    rows.srcHost = (const void *)(uintptr_t)c->src;
    rows.dstHost = (void *)(uintptr_t)c->dst;
    rows.srcDevice = c->src;
    rows.dstDevice = c->dst;
    rows.srcPitch = c->spitch;
    rows.dstPitch = c->dpitch;
    rows.srcHeight = rows.dstHeight = rows.Height = c->height;
    rows.WidthInBytes = c->width;
    rows.Depth = 1;
    return HS_CALL(cuGraphAddMemcpyNode, node, graph, after, count, &rows, ctx);
}

static CUresult add_fill(CUcontext ctx, CUgraph graph, const hs_memset *f, const CUgraphNode *after, size_t count,
                         CUgraphNode *node)
{
    CUDA_MEMSET_NODE_PARAMS fill = {.dst = f->dst, .value = f->value, .elementSize = f->size, .width = f->count, .height = 1};
    return HS_CALL(cuGraphAddMemsetNode, node, graph, after, count, &fill, ctx);
}

static CUresult add_launch(CUcontext ctx, CUgraph graph, const hs_launch *l, const char *args, int cell,
                           const CUgraphNode *after, size_t count, CUgraphNode *node)
{
    void *params[l->count + 1];
    for (int i = 0; i < l->count; i++) params[i] = (char *)args + (size_t)i * (size_t)cell;
    CUDA_KERNEL_NODE_PARAMS launch = {
        .func = l->function, .gridX = l->grid[0], .gridY = l->grid[1], .gridZ = l->grid[2],
        .blockX = l->block[0], .blockY = l->block[1], .blockZ = l->block[2],
        .sharedBytes = l->shared, .params = params, .ctx = ctx,
    };
    return HS_CALL(cuGraphAddKernelNode_v2, node, graph, after, count, &launch);
}

static hs_status add_node(CUcontext ctx, CUgraph graph, const hs_node *n, const char *args, int cell, const CUgraphNode *after,
                          CUgraphNode *node)
{
    CUresult code;
    switch (n->kind) {
    case HS_NODE_COPY:
        code = add_copy(ctx, graph, &n->work.copy, after, n->count, node);
        return code == 0 ? 0 : HS_STATUS(cuGraphAddMemcpyNode, code);
    case HS_NODE_FILL:
        code = add_fill(ctx, graph, &n->work.fill, after, n->count, node);
        return code == 0 ? 0 : HS_STATUS(cuGraphAddMemsetNode, code);
    case HS_NODE_LAUNCH:
        code = add_launch(ctx, graph, &n->work.launch, args + n->args, cell, after, n->count, node);
        return code == 0 ? 0 : HS_STATUS(cuGraphAddKernelNode_v2, code);
    default:
        code = HS_CALL(cuGraphAddEmptyNode, node, graph, after, n->count);
        return code == 0 ? 0 : HS_STATUS(cuGraphAddEmptyNode, code);
    }
}

hs_status hs_graph_add(CUcontext ctx, CUgraph graph, const hs_node *nodes, size_t n, const uint32_t *after, const void *args,
                       int cell, CUgraphNode *handles, size_t made)
{
    uint32_t most = 1;
    for (size_t i = 0; i < n; i++) most = nodes[i].count > most ? nodes[i].count : most;
    CUgraphNode few[16], *deps = most <= sizeof few / sizeof *few ? few : malloc(most * sizeof *deps);
    if (deps == NULL) return HS_STATUS(cuGraphAddEmptyNode, HS_OUT_OF_MEMORY);
    hs_frame frame;
    hs_status status = hs_enter(&frame, ctx);
    for (size_t i = 0; i < n && status == 0; i++) {
        for (uint32_t k = 0; k < nodes[i].count; k++) deps[k] = handles[after[nodes[i].after + k]];
        status = add_node(ctx, graph, &nodes[i], args, cell, deps, &handles[made + i]);
    }
    status = hs_leave(&frame, status);
    if (deps != few) free(deps);
    return status;
}

int hs_conditions(void)
{
    return hs_graphs() && hs_api.cuGraphConditionalHandleCreate != NULL && hs_api.cuGraphAddNode_v2 != NULL;
}

hs_status hs_graph_condition(CUcontext ctx, CUgraph graph, uint64_t *condition)
{
    HS_ONE(ctx, cuGraphConditionalHandleCreate, condition, graph, ctx, 0, 0);
}

hs_status hs_graph_add_condition(CUcontext ctx, CUgraph graph, uint64_t condition, int type, CUgraph *bodies, int count,
                                 CUgraphNode after, CUgraphNode *node)
{
    CUgraphNodeParams params;
    memset(&params, 0, sizeof params);
    params.type = HS_NODE_CONDITIONAL;
    params.conditional.handle = condition;
    params.conditional.type = type;
    params.conditional.size = (uint32_t)count;
    params.conditional.ctx = ctx;
    hs_frame frame;
    hs_status status = hs_enter(&frame, ctx);
    HS_STEP(status, cuGraphAddNode_v2, node, graph, &after, NULL, 1, &params);
    if (status == 0) memcpy(bodies, params.conditional.phGraph_out, (size_t)count * sizeof *bodies);
    return hs_leave(&frame, status);
}

hs_status hs_graph_exec(CUcontext ctx, CUgraph graph, CUgraphExec *exec)
{
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    HS_STEP(status, cuGraphInstantiateWithFlags, exec, graph, 0);
    HS_CALL(cuGraphDestroy, graph);
    return hs_leave(&frame, status);
}

void hs_graph_drop(CUcontext ctx, CUgraph graph)
{
    hs_frame frame;
    hs_status status = hs_enter_relaxed(&frame, ctx);
    if (status == 0) HS_CALL(cuGraphDestroy, graph);
    hs_leave(&frame, status);
}

hs_status hs_graph_launch(CUcontext ctx, CUgraphExec exec, CUstream stream) { HS_ONE(ctx, cuGraphLaunch, exec, stream); }

hs_status hs_graph_end(CUcontext ctx, CUgraphExec exec) { HS_RELAXED(ctx, cuGraphExecDestroy, exec); }
