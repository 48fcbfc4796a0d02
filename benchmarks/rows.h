/* What the two programs share: how a call is timed. */
#ifndef ROWS_H
#define ROWS_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 15, CALLS = 20000, LAUNCHES = 2000 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Prints the least and the median of the rounds, in nanoseconds for one call, and the name of the row. */
#define ROW(name, count, before, call, after)                                  \
    do {                                                                       \
        double took[ROUNDS];                                                   \
        for (int round = 0; round < ROUNDS; round++) {                         \
            before;                                                            \
            double began = now();                                              \
            for (int i = 0; i < (count); i++) OK(call);                        \
            took[round] = (now() - began) / (count);                           \
            after;                                                             \
        }                                                                      \
        qsort(took, ROUNDS, sizeof *took, by_value);                           \
        printf("%.1f %.1f %s\n", took[0], took[ROUNDS / 2], name);             \
        fflush(stdout);                                                        \
    } while (0)

#endif
