/* The available kernels. They run on the thread of the stream. */
#include "kernels.h"

#include <time.h>

/* Returns the bytes of an array for a kernel of the context; NULL is a fault. */
static void *array(struct context *context, uint64_t address, uint64_t count, uint64_t width) {
    if (address % width != 0)
        return NULL;
    pthread_mutex_lock(&state.lock);
    void *bytes = reach(context, address, count * width);
    pthread_mutex_unlock(&state.lock);
    return bytes;
}

static float float_of(uint64_t argument) {
    uint32_t bits = (uint32_t)argument;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Lasts for a number of nanoseconds, or until the context is poisoned. */
static CUresult run_delay(struct context *context, const uint64_t *arguments) {
    uint64_t start = now();
    while (now() - start < arguments[0] && atomic_load(&context->error) == SUCCESS) {
        uint64_t left = arguments[0] - (now() - start);
        if (left > 1000000)
            left = 1000000;
        if (left > 50000)
            nanosleep(&(struct timespec){0, (long)left - 50000}, NULL);
    }
    return SUCCESS;
}

/* x[i] *= a */
static CUresult run_scale(struct context *context, const uint64_t *arguments) {
    uint32_t n = (uint32_t)arguments[2];
    float *x = array(context, arguments[0], n, 4), a = float_of(arguments[1]);
    if (n > 0 && x == NULL)
        return ILLEGAL_ADDRESS;
    for (uint32_t i = 0; i < n; i++)
        x[i] *= a;
    return SUCCESS;
}

/* out[i] = a[i] + b[i] */
static CUresult run_add(struct context *context, const uint64_t *arguments) {
    uint32_t n = (uint32_t)arguments[3];
    float *out = array(context, arguments[0], n, 4);
    const float *a = array(context, arguments[1], n, 4), *b = array(context, arguments[2], n, 4);
    if (n > 0 && (out == NULL || a == NULL || b == NULL))
        return ILLEGAL_ADDRESS;
    for (uint32_t i = 0; i < n; i++)
        out[i] = a[i] + b[i];
    return SUCCESS;
}

/* x[i] = v */
static CUresult run_fill(struct context *context, const uint64_t *arguments) {
    uint32_t n = (uint32_t)arguments[2];
    uint32_t *x = array(context, arguments[0], n, 4);
    if (n > 0 && x == NULL)
        return ILLEGAL_ADDRESS;
    for (uint32_t i = 0; i < n; i++)
        x[i] = (uint32_t)arguments[1];
    return SUCCESS;
}

/* y[i] += a * x[i] */
static CUresult run_saxpy(struct context *context, const uint64_t *arguments) {
    uint32_t n = (uint32_t)arguments[3];
    float a = float_of(arguments[0]), *y = array(context, arguments[2], n, 4);
    const float *x = array(context, arguments[1], n, 4);
    if (n > 0 && (x == NULL || y == NULL))
        return ILLEGAL_ADDRESS;
    for (uint32_t i = 0; i < n; i++)
        y[i] += a * x[i];
    return SUCCESS;
}

/* Fails like a defective kernel, with the code of its argument. */
static CUresult run_fault(struct context *context, const uint64_t *arguments) {
    (void)context;
    return (CUresult)(uint32_t)arguments[0];
}

static CUresult run_nothing(struct context *context, const uint64_t *arguments) {
    (void)context;
    (void)arguments;
    return SUCCESS;
}

/* Sets the condition of nodes of graphs, as cudaGraphSetConditional does. */
static CUresult run_set_condition(struct context *context, const uint64_t *arguments) {
    (void)context;
    return condition_set(arguments[0], (uint32_t)arguments[1]);
}

/* The same with the value of a word in memory. */
static CUresult run_read_condition(struct context *context, const uint64_t *arguments) {
    const uint32_t *word = array(context, arguments[1], 1, 4);
    return word == NULL ? ILLEGAL_ADDRESS : condition_set(arguments[0], *word);
}

static const struct kernel kernels[] = {
    {"halstream_delay", "8", run_delay},
    {"scale_f32", "844", run_scale},
    {"add_f32", "8884", run_add},
    {"fill_u32", "844", run_fill},
    {"saxpy", "4884", run_saxpy},
    {"fault", "4", run_fault},
    {"nothing", "", run_nothing},
    {"set_condition", "84", run_set_condition},
    {"halstream_condition", "88", run_read_condition},
};

const struct kernel *find_kernel(const char *name) {
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    return NULL;
}

/* Called by the thread of a stream. */
CUresult run_kernel(struct stream *stream, const struct launch *launch) {
    return launch->kernel->run(stream->context, launch->arguments);
}
