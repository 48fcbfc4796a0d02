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

hs_status hs_graph_add_copy(CUcontext ctx, CUgraph graph, const hs_copy *c, const CUgraphNode *after, size_t count,
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
    HS_ONE(ctx, cuGraphAddMemcpyNode, node, graph, after, count, &rows, ctx);
}

hs_status hs_graph_add_fill(CUcontext ctx, CUgraph graph, const hs_memset *f, const CUgraphNode *after, size_t count,
                            CUgraphNode *node)
{
    CUDA_MEMSET_NODE_PARAMS fill = {.dst = f->dst, .value = f->value, .elementSize = f->size, .width = f->count, .height = 1};
    HS_ONE(ctx, cuGraphAddMemsetNode, node, graph, after, count, &fill, ctx);
}

hs_status hs_graph_add_launch(CUcontext ctx, CUgraph graph, const hs_launch *l, const void *args, int cell,
                              const CUgraphNode *after, size_t count, CUgraphNode *node)
{
    void *params[l->count + 1];
    for (int i = 0; i < l->count; i++) params[i] = (char *)args + (size_t)i * (size_t)cell;
    CUDA_KERNEL_NODE_PARAMS launch = {
        .func = l->function, .gridX = l->grid[0], .gridY = l->grid[1], .gridZ = l->grid[2],
        .blockX = l->block[0], .blockY = l->block[1], .blockZ = l->block[2],
        .sharedBytes = l->shared, .params = params, .ctx = ctx,
    };
    HS_ONE(ctx, cuGraphAddKernelNode_v2, node, graph, after, count, &launch);
}

hs_status hs_graph_add_empty(CUcontext ctx, CUgraph graph, const CUgraphNode *after, size_t count, CUgraphNode *node)
{
    HS_ONE(ctx, cuGraphAddEmptyNode, node, graph, after, count);
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
