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
    struct condition *conditions; /* that were made for it */
    struct keep *kept;            /* objects of the caller */
    size_t executables;
    bool body;                    /* it is one of a node with a condition */
};

/* graph.c: called with the lock held. */
struct program *program_new(void);
void program_unref(struct program *program);
CUresult program_add(struct program *program, struct operation *operation, const size_t *after, size_t count);
bool program_joined(const struct program *program, size_t first, const size_t *tips, size_t count);
/* capture.c: whether a capture is adding nodes to a graph. */
bool captured_into(uint64_t graph);

/* The caller of the driver can destroy a graph only if it is not owned. */
CUresult graph_new(struct program *program, bool owned, uint64_t *handle);
void graph_give(uint64_t handle);
void graph_drop(uint64_t handle);
void drop_graphs(void);
size_t live_graphs(void);
size_t live_executables(void);

struct graph {
    uint64_t handle, id;
    struct program *program;
    bool owned; /* by a capture or a node */
};

struct executable {
    uint64_t handle, flags;
    struct program *program;
    struct point last; /* its latest launch: the next one waits for it */
};

extern struct table graphs, executables;

/* graph.c: finds what the caller of cuGraphAdd...Node names; and gives a node its handle. */
CUresult find_graph(uint64_t handle, struct program **program);
CUresult node_index(uint64_t graph, uint64_t node, size_t *index);
uint64_t node_handle(uint64_t graph, size_t index);

/* A capture that is in progress. Streams join it by waiting for its events. */
struct capture {
    struct capture *next;
    const struct thread *thread; /* that began it */
    struct stream *origin;
    uint64_t id;
    int mode;
    bool invalid;
    struct program *program;
    uint64_t graph; /* that it becomes; 0 for a node that is added to one */
    size_t first;   /* node of the capture in the graph */
    bool borrowed;  /* the graph is the caller's */
};

/* capture.c */
CUresult begin_capture(CUstream handle, uint64_t graph, int mode, struct stream **found);
void set_tips(size_t **tips, size_t *count, const size_t *from, size_t from_count);

/* capture.c: a node that is added to a graph is captured on a stream that exists only for it. */
struct node_maker {
    uint64_t graph, *node;
    struct stream *stream;
    struct capture *capture;
};
CUresult node_begin(struct node_maker *m, uint64_t *node, uint64_t graph, const uint64_t *after, size_t count,
                    CUcontext context);
CUresult node_end(struct node_maker *m, CUresult code);

/* condition.c: with the lock held; the last two without it, by the thread of a stream. */
void conditions_free(struct condition *list);
void conditions_clear(void);
void program_reset(const struct program *program);
bool program_has_conditions(const struct program *program);

/* userobject.c: with the lock held. */
void keep_release(struct keep *list);
void user_objects_clear(void);

/* run.c: called without the lock, by the thread of a stream. */
CUresult run_program(struct stream *stream, const struct program *program);

/* graphnode.c */
const struct operation *operation_of_node(uint64_t handle);

/* graphmem.c: with the lock held, but run_map. */
bool program_has_memory(const struct program *program);
CUresult graph_allocate(struct stream *stream, struct context *context, size_t size, CUdeviceptr *address);
CUresult graph_free_node(struct stream *stream, const struct block *block);
bool graph_memory_reached(uint64_t address, uint64_t size);
bool graph_block_leaves(struct block *block); /* at the call that frees it; false: it is not allocated */
void graph_block_freed(struct block *block);
CUresult graph_memory_launched(const struct program *program, bool auto_free);
void graph_memory_drop(const struct program *program);
void graph_memory_clear(void);

/* work.c: called with the lock held. */
void operation_free(struct operation *operation);

#endif
