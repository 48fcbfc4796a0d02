// Where memory cannot be watched, areas cannot be had either; see touch.c.
#include "touch.h"

#if !(defined(__linux__) && defined(__x86_64__))
int hs_touch_start(void) { return HS_TOUCH_ABSENT; }
void hs_touch_stop(void) {}
int hs_touch_area(uint64_t size, uint64_t *base, uint64_t *alias) { return (void)size, (void)base, (void)alias, -1; }
void hs_touch_unmap(int area) { (void)area; }
int hs_touch_provide(int area, uint64_t offset, uint64_t size) { return (void)area, (void)offset, (void)size, 0; }
void hs_touch_return(int area, uint64_t offset, uint64_t size) { (void)area, (void)offset, (void)size; }
void hs_touch_begin(uint32_t op) { (void)op; }
void hs_touch_patience(int64_t ns) { (void)ns; }
int hs_touch_end(uint32_t op) { return (void)op, 0; }
int hs_touch_take(uint32_t op, struct hs_touched *list, int room) { return (void)op, (void)list, (void)room, 0; }
const char *hs_touch_former(int32_t before) { return (void)before, (const char *)0; }
void hs_touch_drop(int32_t before) { (void)before; }
void hs_touch_known(void) {}
void hs_touch_tell(void (*told)(void)) { (void)told; }
uint64_t hs_touch_lost(void) { return 0; }
#endif
