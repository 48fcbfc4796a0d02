/* A launch of a graph: branches run at the same time, each on a thread of its own. */
#include "graph.h"

#include <stdlib.h>

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

CUresult run_program(struct stream *stream, const struct program *program) {
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
