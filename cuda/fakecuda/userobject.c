/* Objects of the caller that graphs keep. The function of an object is called once, when nobody refers to it. */
#include "graph.h"

struct user_object {
    uint64_t handle;
    unsigned refs;
    void *object;
    void (*destroy)(void *);
};

/* References of a graph to an object. */
struct keep {
    struct keep *next;
    struct user_object *object;
    unsigned refs;
};

static struct table objects = {.kind = 0x5d};

static void *destroy(void *argument) {
    struct user_object *object = argument;
    object->destroy(object->object);
    free(object);
    return NULL;
}

/* The function is called on a thread of the driver, and without the lock. */
static void let_go(struct user_object *object, unsigned count) {
    object->refs -= count;
    if (object->refs > 0)
        return;
    table_drop(&objects, object->handle);
    if (start_thread(destroy, object, 256 << 10) != 0)
        abort();
}

void keep_release(struct keep *list) {
    while (list != NULL) {
        struct keep *next = list->next;
        let_go(list->object, list->refs);
        free(list);
        list = next;
    }
}

void user_objects_clear(void) {
    for (size_t i = 0; i < objects.count; i++)
        free(objects.items[i]);
    table_clear(&objects);
}

API cuUserObjectCreate(uint64_t *handle, void *object, void (*function)(void *), unsigned count, unsigned flags) {
    BEGIN(cuUserObjectCreate, 0);
    if (handle == NULL || function == NULL || count == 0 || flags != 1)
        return end(INVALID_VALUE);
    struct user_object *made = calloc(1, sizeof *made);
    if (made == NULL)
        return end(OUT_OF_MEMORY);
    *made = (struct user_object){0, count, object, function};
    *handle = made->handle = table_put(&objects, made);
    return end(SUCCESS);
}

API cuUserObjectRetain(uint64_t handle, unsigned count) {
    BEGIN(cuUserObjectRetain, 0);
    struct user_object *object = table_get(&objects, handle);
    if (object == NULL || count == 0)
        return end(INVALID_VALUE);
    object->refs += count;
    return end(SUCCESS);
}

API cuUserObjectRelease(uint64_t handle, unsigned count) {
    BEGIN(cuUserObjectRelease, 0);
    struct user_object *object = table_get(&objects, handle);
    if (object == NULL || count == 0 || count > object->refs)
        return end(INVALID_VALUE);
    let_go(object, count);
    return end(SUCCESS);
}

/* With the flag the caller's references become the graph's. */
API cuGraphRetainUserObject(uint64_t graph, uint64_t handle, unsigned count, unsigned flags) {
    BEGIN(cuGraphRetainUserObject, 0);
    struct program *program;
    struct user_object *object = table_get(&objects, handle);
    if (object == NULL || count == 0 || flags > 1)
        return end(INVALID_VALUE);
    TRY(find_graph(graph, &program));
    struct keep *kept = calloc(1, sizeof *kept);
    if (kept == NULL)
        return end(OUT_OF_MEMORY);
    if (flags == 0)
        object->refs += count;
    *kept = (struct keep){program->kept, object, count};
    program->kept = kept;
    return end(SUCCESS);
}

API cuGraphReleaseUserObject(uint64_t graph, uint64_t handle, unsigned count) {
    BEGIN(cuGraphReleaseUserObject, 0);
    struct program *program;
    struct user_object *object = table_get(&objects, handle);
    TRY(find_graph(graph, &program));
    for (struct keep **k = &program->kept; object != NULL && *k != NULL; k = &(*k)->next) {
        struct keep *kept = *k;
        if (kept->object != object || kept->refs < count)
            continue;
        kept->refs -= count;
        if (kept->refs == 0) {
            *k = kept->next;
            free(kept);
        }
        let_go(object, count);
        return end(SUCCESS);
    }
    return end(INVALID_VALUE);
}
