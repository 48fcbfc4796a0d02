/* The lane loops for x86-64 with AVX2, FMA and F16C. */
#if defined(__x86_64__)
#define ISA avx2
#define TARGET __attribute__((target("avx2,fma,f16c,bmi,bmi2")))
#include "lanes.h"
#else
typedef int ptx_no_avx2;
#endif
