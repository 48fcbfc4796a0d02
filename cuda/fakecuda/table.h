/* Objects by their handles. */
#ifndef FAKECUDA_TABLE_H
#define FAKECUDA_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* A table of objects. A handle consists of the table's kind and a slot; the slot freed
 * last is used next, so that handles of closed objects are reused as soon as possible. */
struct table {
    uint64_t kind;
    void **items;
    uint32_t *unused;
    size_t count, room, unused_count;
};

/* Handles are addresses that are reserved and not readable: a caller that dereferences one crashes. */
#define SLOT_SHIFT 6
#define KIND_SHIFT 40
#define RESERVED_HANDLES (1ul << 20)
uint64_t table_put(struct table *table, void *item);
void *table_get(const struct table *table, uint64_t handle);
void *table_find(const struct table *table, uint64_t handle);
void table_drop(struct table *table, uint64_t handle);
size_t table_live(const struct table *table);
void table_clear(struct table *table);

#endif
