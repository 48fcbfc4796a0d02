#include "park.h"

_Thread_local int hs_park_signals;

int hs_park_end_on_signal(int on)
{
	int before = hs_park_signals;
	hs_park_signals = on;
	return before;
}

// Called right after a signal handler has ended a sleep outside of this package.
int hs_park_signaled(void)
{
	if (!hs_park_signals) return 0;
	hs_park_signals = 2;
	return 1;
}
