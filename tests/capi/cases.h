/* What the parts of the module capi_cases share: checks, and functions that run on streams. */
#ifndef CAPI_CASES_H
#define CAPI_CASES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <halstream.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern const halstream_api *api;

static const int64_t LIMIT = 20000000000; /* a wait that takes longer never ends */

const char *wrong(const char *format, ...);

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) return wrong("line %d: %s", __LINE__, #condition);                                           \
    } while (0)
/* Checks the code of a call, and that an error has a text. */
#define CODE(want, call)                                                                                               \
    do {                                                                                                               \
        int code_ = (call);                                                                                            \
        if (code_ != (want))                                                                                           \
            return wrong("line %d: %s is %d, not %s: %s", __LINE__, #call, code_, #want, api->error_text());           \
        if (code_ != HALSTREAM_OK && api->error_text()[0] == 0) return wrong("line %d: no text", __LINE__);            \
    } while (0)
#define OK(call) CODE(HALSTREAM_OK, call)
#define TEXT(part)                                                                                                     \
    do {                                                                                                               \
        if (strstr(api->error_text(), part) == NULL)                                                                   \
            return wrong("line %d: '%s' is not in '%s'", __LINE__, part, api->error_text());                           \
    } while (0)

/* What functions on streams did: a number that the order changes, and counts. */
typedef struct {
    atomic_int value, runs, releases;
    halstream_id close; /* closed by the release */
    halstream_id idle;  /* a stream that a call inside a function queries */
    int code;           /* that a call inside a function returned */
} record;

int add(void *argument, char *text, size_t room);
int twice(void *argument, char *text, size_t room);
int fail(void *argument, char *text, size_t room);
int call_inside(void *argument, char *text, size_t room);
void release(void *argument);
void release_and_close(void *argument);
halstream_operation operation(int (*run)(void *, char *, size_t), record *r);
const char *new_stream(halstream_id *stream);

#define STREAM(name)                                                                                                   \
    halstream_id name;                                                                                                 \
    do {                                                                                                               \
        const char *problem_ = new_stream(&name);                                                                      \
        if (problem_) return problem_;                                                                                 \
    } while (0)

/* The cases; each returns NULL or what is wrong. */
const char *S1_functions_run_in_order(void);
const char *E2_streams_wait_for_events_and_streams(void);
const char *E4_records_with_and_without_the_core(void);
const char *E5_elapsed_time(void);
const char *C2_a_function_that_fails(void);
const char *C3_releases(void);
const char *C5_what_is_no_number_of_an_object(void);
const char *C8_blocks_of_streams(void);
const char *M3_copies_and_kinds_of_memory(void);
const char *C9_versions_and_sizes(void);
const char *D1_devices(void);
const char *C4_sites_are_numbers(void);

#endif /* CAPI_CASES_H */
