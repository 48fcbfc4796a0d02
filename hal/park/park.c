#include "park.h"

_Thread_local int hs_park_signals;

int hs_park_end_on_signal(int on)
{
	int before = hs_park_signals;
	hs_park_signals = on;
	return before;
}
