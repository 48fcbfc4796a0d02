#include "fakecuda.h"

#include <stdio.h>

uint64_t table_put(struct table *table, void *item) {
    uint32_t slot;
    if (table->unused_count > 0) {
        slot = table->unused[--table->unused_count];
    } else {
        if (table->count == table->room) {
            table->room = table->room ? 2 * table->room : 64;
            table->items = realloc(table->items, table->room * sizeof *table->items);
            table->unused = realloc(table->unused, table->room * sizeof *table->unused);
            if (table->items == NULL || table->unused == NULL)
                abort();
        }
        slot = (uint32_t)table->count++;
    }
    table->items[slot] = item;
    return table->kind << KIND_SHIFT | ((uint64_t)slot + 1) << SLOT_SHIFT;
}

static size_t slot_of(const struct table *table, uint64_t handle) {
    uint64_t low = handle & ((1ull << KIND_SHIFT) - 1);
    if (handle >> KIND_SHIFT != table->kind || low & ((1 << SLOT_SHIFT) - 1) || low == 0)
        return table->count;
    return (low >> SLOT_SHIFT) - 1;
}

void *table_get(const struct table *table, uint64_t handle) {
    size_t slot = slot_of(table, handle);
    return slot < table->count ? table->items[slot] : NULL;
}

static const char *kind_of(const struct table *table) {
    static const char *const kinds[] = {"context", "stream", "event", "module", "function", "pool", "library", "kernel"};
    return kinds[table - &state.contexts];
}

/* The object of a handle that a caller passed. With an unknown handle or one of an object that was destroyed a
 * driver does anything; where the settings are strict this ends the process, so that no test passes by luck. */
void *table_find(const struct table *table, uint64_t handle) {
    void *item = table_get(table, handle);
    if (item == NULL && handle != 0)
        state.dead_handles++;
    if (item == NULL && handle != 0 && state.settings.strict) {
        fprintf(stderr, "fakecuda: %s: 0x%llx is no live %s; a driver may crash or corrupt memory\n",
                name_of(this_thread()->function), (unsigned long long)handle, kind_of(table));
        abort();
    }
    return item;
}

void table_drop(struct table *table, uint64_t handle) {
    size_t slot = slot_of(table, handle);
    if (slot >= table->count || table->items[slot] == NULL)
        return;
    table->items[slot] = NULL;
    table->unused[table->unused_count++] = (uint32_t)slot;
}

size_t table_live(const struct table *table) {
    return table->count - table->unused_count;
}

void table_clear(struct table *table) {
    table->count = table->unused_count = 0;
}
