#include "touched.h"
#include "_cgo_export.h"
#include "caller.h"
#include "sites.h"

/* CPython's function, by name as in caller.go. */
extern int Py_AddPendingCall(int (*call)(void *), void *argument) __attribute__((weak));

static int asked; /* 1 while the main thread is to report */

static int report(void *unused)
{
    (void)unused;
    __atomic_store_n(&asked, 0, __ATOMIC_SEQ_CST);
    if (halstream_is_over() || halstream_enter() || halstream_self.slot == 0) return 0;
    halstreamTouched();
    if (halstream_unseen) halstream_look_quietly();
    return 0;
}

void halstream_touched(void)
{
    if (!Py_AddPendingCall || __atomic_exchange_n(&asked, 1, __ATOMIC_SEQ_CST)) return;
    /* Where too many calls are pending the access is reported at the next call of the runtime. */
    if (Py_AddPendingCall(report, NULL) != 0) __atomic_store_n(&asked, 0, __ATOMIC_SEQ_CST);
}
