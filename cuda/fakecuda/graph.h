/* Graphs: operations and the edges between them. */
#ifndef FAKECUDA_GRAPH_H
#define FAKECUDA_GRAPH_H

#include "work.h"

/* One node. The nodes it waits for have lower indices, so their order is one in which
 * they can run. */
struct node {
    struct operation *operation;
    size_t *after, after_count;
};

/* What a graph, its executables, and pending launches share. It does not change once the
 * capture has ended. */
struct program {
    struct node *nodes;
    size_t count, room;
    int refs;
    struct condition *conditions; /* that were made for it */
    struct keep *kept;            /* objects of the caller */
    size_t executables;
    bool body;                    /* it is one of a node with a condition */
};

/* Called with the lock held. */
struct program *program_new(void);
bool program_joined(const struct program *program, size_t first, const size_t *tips, size_t count);

/* The caller of the driver can destroy a graph only if it is not owned. */
CUresult graph_new(struct program *program, bool owned, uint64_t *handle);
void graph_give(uint64_t handle);
void graph_drop(uint64_t handle);
void graph_captures(uint64_t handle, int more); /* that add nodes to it begin or end: nobody can destroy it then */
CUresult find_graph(uint64_t handle, struct program **program);
CUresult node_index(uint64_t graph, uint64_t node, size_t *index);
uint64_t node_handle(uint64_t graph, size_t index);
extern const struct recorder graph_recorder;

/* A node that is added to a graph is captured on a stream that exists only for it. */
struct node_maker {
    uint64_t graph, *node;
    struct stream *stream;
    struct capture *capture;
};
CUresult node_begin(struct node_maker *m, uint64_t *node, uint64_t graph, const uint64_t *after, size_t count,
                    CUcontext context);
CUresult node_end(struct node_maker *m, CUresult code);

CUresult condition_set(uint64_t handle, uint32_t value); /* without the lock */

void drop_graphs(void);
size_t live_graphs(void);
size_t live_executables(void);

#endif
