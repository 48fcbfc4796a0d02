/* Memory of devices, pinned memory, and pools. */
#ifndef FAKECUDA_MEMORY_H
#define FAKECUDA_MEMORY_H

#include "work.h"

#define GRANULE 512 /* bytes, of which device memory is a multiple */

enum where { UNKNOWN_MEMORY, DEVICE_MEMORY, PINNED_MEMORY, REGISTERED_MEMORY };

/* An allocation. The table of blocks is ordered by address. */
struct block {
    uint64_t address, size; /* of registered memory: as the caller gave them */
    uint64_t start, asked; /* as the caller gave them */
    uint64_t id;
    enum where where;
    int device;
    struct context *context;
    struct pool *pool;
    bool freeing; /* freed in stream order, and the stream has not reached the free */
    bool freed; /* free, in its pool */
    struct point freed_at;
    unsigned flags;
    bool managed; /* pinned memory that is freed as device memory is */
    struct program *program; /* whose memory it is; NULL once the graph is gone */
    bool of_graph, held; /* held: a launch has allocated it for the caller, who has not freed it */
    int frees; /* in stream order that have not run */
    bool unmapped, backed; /* no work reaches it now; its device holds memory for it */
};

extern struct block **blocks; /* by address */
extern size_t block_count;
extern struct live { size_t memory, pinned, registered; } live_blocks;
extern const struct kind free_kind;

/* Called with the lock held. */
CUresult open_devices(void);
void close_devices(void);
struct block *find_block(uint64_t address, uint64_t size);
struct block *block_by_id(uint64_t id);
enum where classify(uint64_t address, uint64_t size, bool *bad);
void *reach(struct context *context, uint64_t address, uint64_t size);
CUresult allocate(struct context *context, uint64_t size, struct pool *pool, struct block **block);
void release(struct block *block);
uint64_t bytes_in_use(void);
bool graph_memory_reached(uint64_t address, uint64_t size);
void graph_block_freed(struct block *block);

void pools_synchronized(int device);
void pools_reset(void);
size_t live_pools(void);

#endif
