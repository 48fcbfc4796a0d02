#include "native.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local hs_handed *running;

int hs_hand_in(const hs_access *list, size_t count)
{
	hs_handed *to = running;
	if (to == NULL) return 1;
	if (to->room - to->count < count) {
		size_t room = to->count + count > 2 * to->room ? to->count + count : 2 * to->room;
		hs_access *more = realloc(to->list, room * sizeof *more);
		if (more == NULL) return 2;
		to->list = more;
		to->room = room;
	}
	if (count > 0) memcpy(to->list + to->count, list, count * sizeof *list);
	to->count += count;
	to->some = 1;
	return 0;
}

int hs_call(uint64_t function, uint64_t argument, char *text, size_t room, hs_handed *handed)
{
	hs_handed *before = running;
	text[0] = 0;
	running = handed;
	int failed = ((int (*)(void *, char *, size_t))(uintptr_t)function)((void *)(uintptr_t)argument, text, room);
	running = before;
	text[room - 1] = 0;
	return failed;
}
