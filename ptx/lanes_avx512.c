/* The lane loops for x86-64 with the AVX-512 of servers. */
#if defined(__x86_64__)
#define ISA avx512
#if defined(__clang__)
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c,bmi,bmi2")))
#else
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c,bmi,bmi2,prefer-vector-width=512")))
#endif
#include "lanes.h"
#else
typedef int ptx_no_avx512;
#endif
