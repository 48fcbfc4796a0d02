/* The checks of these programs; `expect` is that of the interface which a program calls. */
#ifndef CHECKS_H
#define CHECKS_H

#include <stdio.h>
#include <stdlib.h>

#define OK(call) expect(call, 0, #call, __LINE__)
#define FAILS(wanted, call) expect(call, wanted, #call, __LINE__)
#define IS(condition)                                                                                                  \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s is not so\n", __LINE__, #condition);                                          \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#endif
