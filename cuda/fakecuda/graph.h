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

/* graph.c: called without the lock, by the thread of a stream. */
CUresult run_program(struct stream *stream, const struct program *program);

/* work.c: called with the lock held. */
void operation_free(struct operation *operation);

#endif
