/* Graphs: operations that were captured, and the edges between them. */
#ifndef FAKECUDA_GRAPH_H
#define FAKECUDA_GRAPH_H

#include "fakecuda.h"

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
};

/* graph.c: called with the lock held. */
struct program *program_new(void);
void program_unref(struct program *program);
CUresult program_add(struct program *program, struct operation *operation, const size_t *after, size_t count);
bool program_joined(const struct program *program, const size_t *tips, size_t count);
CUresult graph_new(struct program *program, uint64_t *handle);
void drop_graphs(void);
size_t live_graphs(void);
size_t live_executables(void);

/* graph.c: finds what the caller of cuGraphAdd...Node names; and gives a node its handle. */
CUresult find_graph(uint64_t handle, struct program **program);
CUresult node_index(uint64_t graph, uint64_t node, size_t *index);
uint64_t node_handle(uint64_t graph, size_t index);

/* capture.c: a node that is added to a graph is captured on a stream that exists only for it. */
struct node_maker {
    uint64_t graph, *node;
    struct stream *stream;
    struct capture *capture;
};
CUresult node_begin(struct node_maker *m, uint64_t *node, uint64_t graph, const uint64_t *after, size_t count,
                    CUcontext context);
CUresult node_end(struct node_maker *m, CUresult code);

/* run.c: called without the lock, by the thread of a stream. */
CUresult run_program(struct stream *stream, const struct program *program);

/* work.c: called with the lock held. */
void operation_free(struct operation *operation);

#endif
