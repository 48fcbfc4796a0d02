/* What a way into the core with its entry in C asks of the extension: see calls.h. Calls come without Python's lock as a
 * rule, so the stack of Python's is looked at when they begin. */
#include "../calls/calls.h"

#include "_cgo_export.h"
#include "caller.h"
#include "sites.h"

static void look_at_stack(int holding)
{
    halstream_lock lock;
    if (holding) {
        halstream_call_site = halstream_site_of(0);
    } else if (halstream_take_lock(&lock)) {
        halstream_call_site = halstream_site_of(0);
        halstream_unseen = 0; /* the caller may hold locks of its own, for which Python code could wait */
        halstream_give_lock(&lock);
    }
}

uint32_t halstream_call_begins(halstream_call *call, void *here)
{
    (void)here;
    if (halstream_is_over()) return 0;
    call->holding = halstream_holds_lock();
    call->direct = halstream_self.direct;
    call->site = halstream_call_site;
    if (halstream_self.slot == 0) halstreamRegister();
    if (__atomic_load_n(&halstream_stacks, __ATOMIC_RELAXED)) look_at_stack(call->holding);
    if (call->holding) {
        halstream_caller = &halstream_self;
        halstream_self.direct = 1;
    } else {
        halstream_self.released++;
        halstream_self.unlocked++;
    }
    return (uint32_t)halstream_self.slot;
}

void halstream_call_waits(void) {}

void halstream_call_ends(const halstream_call *call)
{
    halstream_call_site = call->site;
    if (call->holding) {
        halstream_self.direct = call->direct;
        halstream_unseen = 0;
    } else {
        halstream_self.released--;
        halstream_self.unlocked--;
    }
}

void halstream_function_begins(uintptr_t function) { (void)function; }
void halstream_function_ends(void) {}
