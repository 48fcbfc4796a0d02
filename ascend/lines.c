/* Threads that run the callbacks of streams. They are this package's own and run nothing but the C code of
 * this file: neither Go nor Python, nor a function of the program. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "calls.h"
#include "frame.h"

struct na_inbox {
    pthread_mutex_t lock;
    pthread_cond_t posted;
    na_visit *head, **tail;
    int woken;
};

struct na_line {
    pthread_t thread;
    uintptr_t ctx, stream;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int subscribed; /* the thread may ask for reports; -1: it ends instead */
    atomic_int ended;
};

struct na_visit {
    na_visit *next; /* in the inbox */
    na_inbox *inbox;
    na_line *line;
    int what;
    uint64_t number;
    int64_t ns;
    atomic_int open, refs; /* references: the caller's, the callback's, the inbox's */
};

static void *allocate(size_t size)
{
    void *p = calloc(1, size);
    if (p == NULL) abort();
    return p;
}

/* A condition with the clock that the limits of waits are of. */
static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
#ifndef __APPLE__ /* it has no such call, and wait_until needs none there */
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Waits like pthread_cond_timedwait, until a time of the monotonic clock. */
static int wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *end)
{
#ifdef __APPLE__
    struct timespec now, left = *end;
    clock_gettime(CLOCK_MONOTONIC, &now);
    left.tv_sec -= now.tv_sec;
    if ((left.tv_nsec -= now.tv_nsec) < 0) left.tv_sec--, left.tv_nsec += 1000000000;
    return left.tv_sec < 0 ? ETIMEDOUT : pthread_cond_timedwait_relative_np(condition, lock, &left);
#else
    return pthread_cond_timedwait(condition, lock, end);
#endif
}

/* ---- The inbox ---- */

na_inbox *na_inbox_new(void)
{
    na_inbox *inbox = allocate(sizeof *inbox);
    pthread_mutex_init(&inbox->lock, NULL);
    init_condition(&inbox->posted);
    inbox->tail = &inbox->head;
    return inbox;
}

static void post(na_visit *visit)
{
    na_inbox *inbox = visit->inbox;
    atomic_fetch_add(&visit->refs, 1);
    pthread_mutex_lock(&inbox->lock);
    *inbox->tail = visit;
    inbox->tail = &visit->next;
    pthread_cond_signal(&inbox->posted);
    pthread_mutex_unlock(&inbox->lock);
}

uint64_t na_inbox_next(na_inbox *inbox, int64_t limit)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += limit / 1000000000;
    if ((end.tv_nsec += limit % 1000000000) >= 1000000000) end.tv_sec++, end.tv_nsec -= 1000000000;
    pthread_mutex_lock(&inbox->lock);
    while (inbox->head == NULL && !inbox->woken)
        if (wait_until(&inbox->posted, &inbox->lock, &end) == ETIMEDOUT) break;
    inbox->woken = 0;
    na_visit *visit = inbox->head;
    if (visit != NULL && (inbox->head = visit->next) == NULL) inbox->tail = &inbox->head;
    pthread_mutex_unlock(&inbox->lock);
    uint64_t number = visit != NULL ? visit->number : 0;
    if (visit != NULL) na_visit_drop(visit);
    return number;
}

void na_inbox_wake(na_inbox *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    inbox->woken = 1;
    pthread_cond_signal(&inbox->posted);
    pthread_mutex_unlock(&inbox->lock);
}

/* ---- Visits ---- */

na_visit *na_visit_new(na_inbox *inbox, na_line *line, int what, uint64_t number, int64_t ns)
{
    na_visit *visit = allocate(sizeof *visit);
    *visit = (na_visit){.inbox = inbox, .line = line, .what = what, .number = number, .ns = ns};
    atomic_init(&visit->refs, 1);
    return visit;
}

void na_visit_drop(na_visit *visit)
{
    if (atomic_fetch_sub(&visit->refs, 1) == 1) free(visit);
}

void na_visit_open(na_visit *visit)
{
    na_line *line = visit->line;
    pthread_mutex_lock(&line->lock);
    atomic_store(&visit->open, 1);
    pthread_cond_signal(&line->changed);
    pthread_mutex_unlock(&line->lock);
}

static void wait_until_open(na_visit *visit)
{
    na_line *line = visit->line;
    pthread_mutex_lock(&line->lock);
    while (!atomic_load(&visit->open)) pthread_cond_wait(&line->changed, &line->lock);
    pthread_mutex_unlock(&line->lock);
}

/* The callback of every visit, on the thread of its line. */
static void arrive(void *data)
{
    na_visit *visit = data;
    if (visit->what == NA_HOLD || visit->what == NA_PASS) post(visit);
    if (visit->what == NA_HOLD || visit->what == NA_GATE) wait_until_open(visit);
    if (visit->what == NA_DELAY) {
        struct timespec left = {visit->ns / 1000000000, visit->ns % 1000000000};
        while (nanosleep(&left, &left) != 0 && errno == EINTR) {
        }
    }
    na_visit_drop(visit);
}

static na_status launch(uintptr_t ctx, uintptr_t stream, aclrtCallback function, void *data)
{
    NA_ONE(ctx, aclrtLaunchCallback, function, data, ACL_CALLBACK_BLOCK, (aclrtStream)stream);
}

/* All are blocking callbacks, a PASS, too, which returns at once: some chips refuse the others. */
na_status na_visit_launch(uintptr_t ctx, uintptr_t stream, na_visit *visit)
{
    atomic_fetch_add(&visit->refs, 1);
    na_status status = launch(ctx, stream, arrive, visit);
    if (status.code != 0) na_visit_drop(visit);
    return status;
}

/* ---- Lines ---- */

enum { REPORT_MS = 200 }; /* after which a thread looks whether its line was ended */

static void *serve(void *argument)
{
    na_line *line = argument;
    pthread_mutex_lock(&line->lock);
    while (line->subscribed == 0) pthread_cond_wait(&line->changed, &line->lock);
    int subscribed = line->subscribed;
    pthread_mutex_unlock(&line->lock);
    if (subscribed < 0) return NULL;
    int current = 0;
    while (!atomic_load(&line->ended)) {
        current = current || na_api.aclrtSetCurrentContext((aclrtContext)line->ctx) == ACL_SUCCESS;
        aclError code = na_api.aclrtProcessReport(REPORT_MS);
        if (code == ACL_SUCCESS || code == ACL_ERROR_RT_REPORT_TIMEOUT) continue;
        nanosleep(&(struct timespec){0, 1000000}, NULL); /* the device may be lost: nothing will come */
    }
    return NULL;
}

static int start(na_line *line)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes)) return 0;
    pthread_attr_setstacksize(&attributes, 256 << 10);
    /* Signals of the process are for the program's own threads. */
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (const int *s = (const int[]){SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGURG, SIGPROF, 0}; *s; s++)
        sigdelset(&blocked, *s);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    int failed = pthread_create(&line->thread, &attributes, serve, line);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return !failed;
}

static na_status subscribe(na_line *line)
{
    NA_ONE(line->ctx, aclrtSubscribeReport, (uint64_t)line->thread, (aclrtStream)line->stream);
}

na_status na_line_new(uintptr_t ctx, uintptr_t stream, na_line **made)
{
    na_line *line = allocate(sizeof *line);
    line->ctx = ctx;
    line->stream = stream;
    pthread_mutex_init(&line->lock, NULL);
    init_condition(&line->changed);
    if (!start(line)) {
        free(line);
        return (na_status){ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, NA_aclrtSubscribeReport, strdup("no thread can be started")};
    }
    na_status status = subscribe(line);
    pthread_mutex_lock(&line->lock);
    line->subscribed = status.code == 0 ? 1 : -1;
    pthread_cond_signal(&line->changed);
    pthread_mutex_unlock(&line->lock);
    if (status.code != 0) {
        pthread_join(line->thread, NULL);
        free(line);
    } else {
        *made = line;
    }
    return status;
}

/* The last callback of a line. */
static void finish(void *data)
{
    na_line *line = data;
    pthread_mutex_lock(&line->lock);
    atomic_store(&line->ended, 1);
    pthread_cond_signal(&line->changed);
    pthread_mutex_unlock(&line->lock);
}

static na_status unsubscribe(na_line *line)
{
    NA_ONE(line->ctx, aclrtUnSubscribeReport, (uint64_t)line->thread, (aclrtStream)line->stream);
}

/* The thread ends after its last callback, so that none is left on the stream; a lost device runs none. */
void na_line_end(na_line *line)
{
    enum { LONGEST_S = 2 };
    void *lock = na_unlock();
    na_status status = launch(line->ctx, line->stream, finish, line);
    free(status.text);
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += LONGEST_S;
    pthread_mutex_lock(&line->lock);
    while (status.code == 0 && !atomic_load(&line->ended))
        if (wait_until(&line->changed, &line->lock, &end) == ETIMEDOUT) break;
    atomic_store(&line->ended, 1);
    pthread_mutex_unlock(&line->lock);
    pthread_join(line->thread, NULL);
    free(unsubscribe(line).text);
    na_relock(lock);
    /* The line itself stays: a visit of a function that ends late may still be opened. */
}
