/* Functions of the program that are told of the states of devices and streams. */
#include "states.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"
#include "acl/acl_rt.h"
#include "thread.h"

typedef struct watcher {
    struct watcher *next;
    char *name;
    void *function, *argument;
} watcher;
static pthread_mutex_t watchers_lock = PTHREAD_MUTEX_INITIALIZER;
static watcher *of_devices, *of_streams;

/* The one with this name takes the place of an earlier one. */
static aclError watch(watcher **list, const char *name, void *function, void *argument)
{
    aclError code = ACL_SUCCESS;
    pthread_mutex_lock(&watchers_lock);
    watcher **at = list;
    while (*at != NULL && strcmp((*at)->name, name) != 0) at = &(*at)->next;
    watcher *found = *at;
    if (found == NULL && function != NULL) {
        found = calloc(1, sizeof *found);
        if (found != NULL && (found->name = strdup(name)) == NULL) free(found), found = NULL;
        if (found != NULL) *at = found;
        else code = ACL_ERROR_BAD_ALLOC;
    } else if (found != NULL && function == NULL) {
        *at = found->next;
        free(found->name);
        free(found);
        found = NULL;
    }
    if (found != NULL) found->function = function, found->argument = argument;
    pthread_mutex_unlock(&watchers_lock);
    return code;
}

aclError aclrtRegDeviceStateCallback(const char *regName, aclrtDeviceStateCallback callback, void *args)
{
    if (!regName) CALL(hsAclMissing, ME);
    return watch(&of_devices, regName, (void *)callback, args);
}

aclError aclrtRegStreamStateCallback(const char *regName, aclrtStreamStateCallback callback, void *args)
{
    if (!regName) CALL(hsAclMissing, ME);
    return watch(&of_streams, regName, (void *)callback, args);
}

/* A copy of a list without names, so that the functions run without the lock; NULL if it is empty. */
static watcher *copy_of(watcher *const *list)
{
    if (__atomic_load_n(list, __ATOMIC_ACQUIRE) == NULL) return NULL;
    watcher *first = NULL, **end = &first;
    pthread_mutex_lock(&watchers_lock);
    for (watcher *w = *list; w != NULL; w = w->next) {
        *end = malloc(sizeof **end);
        if (*end == NULL) break;
        **end = (watcher){.function = w->function, .argument = w->argument};
        end = &(*end)->next;
    }
    pthread_mutex_unlock(&watchers_lock);
    return first;
}

static watcher *dropped(watcher *w)
{
    watcher *next = w->next;
    free(w);
    return next;
}

void hs_acl_device_state(int32_t device, int state)
{
    for (watcher *w = copy_of(&of_devices); w != NULL; w = dropped(w))
        ((aclrtDeviceStateCallback)w->function)(device, (aclrtDeviceState)state, w->argument);
}

void hs_acl_stream_state(void *stream, int state)
{
    for (watcher *w = copy_of(&of_streams); w != NULL; w = dropped(w))
        ((aclrtStreamStateCallback)w->function)(stream, (aclrtStreamState)state, w->argument);
}
