/* What the programs share: checks that end the program, and gates that hold a stream. */
#ifndef CHECK_H
#define CHECK_H

#include <acl/acl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                              \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* The call returns this code. */
#define RETURNS(wanted, call)                                                                                          \
    do {                                                                                                               \
        int code_ = (call);                                                                                            \
        if (code_ != (wanted)) {                                                                                       \
            const char *text_ = aclGetRecentErrMsg();                                                                  \
            fprintf(stderr, "%s:%d: %s returned %d, not %d\n%s\n", __FILE__, __LINE__, #call, code_, (int)(wanted),     \
                    text_ ? text_ : "");                                                                               \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define OK(call) RETURNS(ACL_SUCCESS, call)

/* A gate: the stream that gets hold() waits until open_gate(). */
typedef struct gate {
    sem_t entered, opened;
} gate;

static inline void pass_gate(void *pointer)
{
    gate *g = (gate *)pointer;
    sem_post(&g->entered);
    sem_wait(&g->opened);
}

static inline void hold(gate *g, aclrtStream stream)
{
    sem_init(&g->entered, 0, 0);
    sem_init(&g->opened, 0, 0);
    OK(aclrtLaunchHostFunc(stream, pass_gate, g));
}

static inline void open_gate(gate *g) { sem_post(&g->opened); }

static inline int stream_pending(aclrtStream stream)
{
    aclrtStreamStatus status;
    OK(aclrtStreamQuery(stream, &status));
    return status == ACL_STREAM_STATUS_NOT_READY;
}

static inline int event_complete(aclrtEvent event)
{
    aclrtEventRecordedStatus status;
    OK(aclrtQueryEventStatus(event, &status));
    return status == ACL_EVENT_RECORDED_STATUS_COMPLETE;
}

static inline int done(void)
{
    puts("done");
    return 0;
}

#endif
