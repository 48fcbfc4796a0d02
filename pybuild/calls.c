/* What the C classes of streams and events read without a call. */
#include "calls.h"

#include "caller.h"

int64_t halstream_plain, halstream_devices;
int32_t halstream_running;
halstream_place halstream_recorded;
halstream_block halstream_found;

int halstream_inside(void) { return halstream_self.inside; }
