/* Streams that Python's garbage collector has taken while a stream captures: the next call of the core that
 * finds out who calls ends their part in the capture, and does not wait until they are closed. */
#ifndef HALSTREAM_COLLECTED_H
#define HALSTREAM_COLLECTED_H

#include <stdint.h>

typedef struct halstream_note {
    struct halstream_note *next;
    int64_t id;
} halstream_note;

/* Not 0 while there may be notes. */
extern int32_t halstream_noted;

/* Notes the id of an object whose owner was collected, if a stream captures. A finalizer calls it, so it
 * may run anywhere, also inside another call of the extension: it takes no lock and does not enter Go. */
void halstream_collected(int64_t id);

/* Returns the notes so far, each for the caller to free. */
halstream_note *halstream_take_notes(void);

#endif /* HALSTREAM_COLLECTED_H */
