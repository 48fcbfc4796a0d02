/* The machine's own floor: what two sleeping threads of C pay to hand over. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 60, PINGS = 4000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn; /* 0: the caller's; 1: the other thread's; guarded by lock */
static double woke;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void pass(int from) {
  pthread_mutex_lock(&lock);
  turn = !from;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&lock);
}

static void take(int own) {
  pthread_mutex_lock(&lock);
  while (turn != own)
    pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

/* Answers every pass; runs until the process ends. */
static void *answer(void *unused) {
  for (;;) {
    take(1);
    woke = now();
    pass(1);
  }
  return unused;
}

static int less(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, int count) {
  qsort(values, count, sizeof *values, less);
  return values[count / 2];
}

int main(void) {
  struct timespec pause = {0, 5000000};
  double wake[ROUNDS], call[ROUNDS], back[ROUNDS], ping[PINGS];
  pthread_t thread;
  if (pthread_create(&thread, NULL, answer, NULL))
    return 1;
  for (int i = 0; i < ROUNDS; i++) {
    nanosleep(&pause, NULL); /* both threads and both cores are asleep */
    double start = now();
    pass(0);
    call[i] = now() - start;
    take(0);
    back[i] = now() - start;
    wake[i] = woke - start;
  }
  for (int i = 0; i < PINGS; i++) {
    double start = now();
    pass(0);
    take(0);
    ping[i] = now() - start;
  }
  printf("%.3f %.3f %.3f %.3f\n", median(wake, ROUNDS), median(call, ROUNDS), median(back, ROUNDS), median(ping, PINGS));
  return 0;
}
