#include "ownthread.h"

#ifdef __linux__

#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The linker sends each pthread_create of this library to __wrap_pthread_create
 * (setup.py and the Makefile ask it to). Go tests are linked without that option. */
extern int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) __attribute__((weak));

typedef struct own_thread {
    struct own_thread *next;
    struct own_thread **link; /* the pointer to this one in the list */
    int32_t tid;
    void *(*run)(void *);
    void *argument;
} own_thread;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static own_thread *list;

static void unregister(void *value)
{
    own_thread *o = value;
    pthread_mutex_lock(&lock);
    *o->link = o->next;
    if (o->next) o->next->link = o->link;
    pthread_mutex_unlock(&lock);
    free(o);
}

static void *run_registered(void *value)
{
    own_thread *o = value;
    void *result;
    o->tid = (int32_t)syscall(SYS_gettid);
    pthread_mutex_lock(&lock);
    o->next = list;
    o->link = &list;
    if (list) list->link = &o->next;
    list = o;
    pthread_mutex_unlock(&lock);
    pthread_cleanup_push(unregister, o);
    result = o->run(o->argument);
    pthread_cleanup_pop(1);
    return result;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *argument)
{
    own_thread *o = malloc(sizeof *o);
    if (o == NULL) return __real_pthread_create(thread, attr, start, argument);
    o->run = start;
    o->argument = argument;
    int failed = __real_pthread_create(thread, attr, run_registered, o);
    if (failed) free(o);
    return failed;
}

int halstream_own_thread(int32_t tid)
{
    int found = 0;
    pthread_mutex_lock(&lock);
    for (own_thread *o = list; o && !found; o = o->next) found = o->tid == tid;
    pthread_mutex_unlock(&lock);
    return found;
}

#else /* linkers of other systems have no --wrap */

int halstream_own_thread(int32_t tid)
{
    (void)tid;
    return 0;
}

#endif
