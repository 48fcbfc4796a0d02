/* Host functions: those of a context run one after the other, on few threads. */
#include "fakecuda.h"

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
CUresult run_host_function(struct stream *stream, struct job *job) {
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

API cuLaunchHostFunc(CUstream handle, void (*function)(void *), void *argument) {
    BEGIN(cuLaunchHostFunc, handle > STREAM_PER_THREAD ? handle : 0);
    struct stream *stream;
    TRY(find_stream(handle, &stream));
    TRY(make_room(stream));
    if (function == NULL)
        return end(INVALID_VALUE);
    struct operation *operation = operation_new(HOST_FUNCTION);
    if (operation == NULL)
        return end(OUT_OF_MEMORY);
    operation->job.function = function;
    operation->job.argument = argument;
    return end(submit(stream, operation, false));
}
