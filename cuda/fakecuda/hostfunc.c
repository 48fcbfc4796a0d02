/* Host functions: those of a context run one after the other, on few threads. */
#include "graph.h"

static void *host_thread(void *argument) {
    struct context *context = argument;
    struct thread *thread = this_thread();
    pthread_mutex_lock(&state.lock);
    while (atomic_load(&context->error) == SUCCESS) {
        struct job *job = context->jobs;
        if (job == NULL) {
            context->idle_host_threads++;
            pthread_cond_wait(&context->job_added, &state.lock);
            context->idle_host_threads--;
            continue;
        }
        context->jobs = job->next;
        if (context->jobs == NULL)
            context->last_job = NULL;
        job->started = true;
        pthread_mutex_unlock(&state.lock);
        if (!atomic_load(&ended)) {
            thread->hosting = true;
            job->function(job->argument);
            thread->hosting = false;
        }
        pthread_mutex_lock(&state.lock);
        job->done = true;
        pthread_cond_signal(&job->stream->work);
    }
    context->host_threads--;
    context_unref(context);
    pthread_mutex_unlock(&state.lock);
    return NULL;
}

static void unlist(struct context *context, struct job *job) {
    struct job *previous = NULL;
    for (struct job *j = context->jobs; j != NULL; previous = j, j = j->next) {
        if (j != job)
            continue;
        if (previous != NULL)
            previous->next = j->next;
        else
            context->jobs = j->next;
        if (context->last_job == j)
            context->last_job = previous;
        return;
    }
}

/* Called by the thread of a stream, and returns when the function has ended. A function
 * that has not started when the context is poisoned never does. */
static CUresult run(struct stream *stream, struct operation *operation) {
    struct job *job = &operation->job;
    struct context *context = stream->context;
    pthread_mutex_lock(&state.lock);
    if (atomic_load(&context->error) != SUCCESS)
        return end(SUCCESS);
    job->stream = stream;
    if (context->last_job != NULL)
        context->last_job->next = job;
    else
        context->jobs = job;
    context->last_job = job;
    int waiting = 0; /* an idle thread counts as idle until it has taken its job */
    for (struct job *j = context->jobs; j != NULL; j = j->next)
        waiting++;
    if (context->idle_host_threads < waiting && context->host_threads < state.settings.host_threads) {
        context->refs++;
        if (start_thread(host_thread, context, 0) == 0)
            context->host_threads++;
        else
            context->refs--;
    }
    pthread_cond_signal(&context->job_added);
    while (!job->done && (job->started || atomic_load(&context->error) == SUCCESS))
        pthread_cond_wait(&stream->work, &state.lock);
    if (!job->started)
        unlist(context, job);
    return end(SUCCESS);
}

static const struct kind host_kind = {.node = 3, .of_host = true, .not_in_bodies = true, .run = run};

API cuLaunchHostFunc(CUstream handle, void (*function)(void *), void *argument) {
    BEGIN(cuLaunchHostFunc, handle > STREAM_PER_THREAD ? handle : 0);
    struct stream *stream;
    TRY(find_stream(handle, &stream));
    TRY(make_room(stream));
    if (function == NULL)
        return end(INVALID_VALUE);
    struct operation *operation = operation_new(&host_kind);
    if (operation == NULL)
        return end(OUT_OF_MEMORY);
    operation->job.function = function;
    operation->job.argument = argument;
    return end(submit(stream, operation, false));
}

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
    struct operation *operation = operation_new(&host_kind);
    if (operation == NULL)
        return end(node_end(&m, OUT_OF_MEMORY));
    operation->job.function = params->function;
    operation->job.argument = params->argument;
    return end(node_end(&m, submit(m.stream, operation, false)));
}
