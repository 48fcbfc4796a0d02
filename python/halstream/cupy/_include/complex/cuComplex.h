// Complex numbers as CUDA's header of this name has them, and with functions that take both types, as cupy translates
// them. Kernels get it that are to be translated, or that include it where no package of CUDA's has it.
#ifndef CU_COMPLEX_H_
#define CU_COMPLEX_H_

typedef float2 cuFloatComplex, cuComplex;
typedef double2 cuDoubleComplex;

#define HALSTREAM_COMPLEX(NAME, T, VECTOR, F)                                                                           \
    static __host__ __device__ inline T cuCreal##F(NAME x) { return x.x; }                                              \
    static __host__ __device__ inline T cuCimag##F(NAME x) { return x.y; }                                              \
    static __host__ __device__ inline T cuCabs##F(NAME x) { return hypot(x.x, x.y); }                                   \
    static __host__ __device__ inline NAME cuConj##F(NAME x) { return make_##VECTOR(x.x, -x.y); }                       \
    static __host__ __device__ inline NAME cuCadd##F(NAME x, NAME y) { return make_##VECTOR(x.x + y.x, x.y + y.y); }    \
    static __host__ __device__ inline NAME cuCsub##F(NAME x, NAME y) { return make_##VECTOR(x.x - y.x, x.y - y.y); }    \
    static __host__ __device__ inline NAME cuCmul##F(NAME x, NAME y) {                                                  \
        return make_##VECTOR(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);                                             \
    }                                                                                                                   \
    static __host__ __device__ inline NAME cuCdiv##F(NAME x, NAME y) {                                                  \
        T scale = fabs(y.x) + fabs(y.y), c = y.x / scale, d = y.y / scale, n = (c * c + d * d) * scale;                 \
        return make_##VECTOR((x.x * c + x.y * d) / n, (x.y * c - x.x * d) / n);                                         \
    }                                                                                                                   \
    static __host__ __device__ inline NAME cuCfma##F(NAME x, NAME y, NAME z) {                                          \
        return cuCadd##F(cuCmul##F(x, y), z);                                                                           \
    }

HALSTREAM_COMPLEX(cuFloatComplex, float, float2, f)
HALSTREAM_COMPLEX(cuFloatComplex, float, float2, )
HALSTREAM_COMPLEX(cuDoubleComplex, double, double2, )

static __host__ __device__ inline cuFloatComplex make_cuFloatComplex(float x, float y) { return make_float2(x, y); }
static __host__ __device__ inline cuComplex make_cuComplex(float x, float y) { return make_float2(x, y); }
static __host__ __device__ inline cuDoubleComplex make_cuDoubleComplex(double x, double y) { return make_double2(x, y); }
static __host__ __device__ inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex x) {
    return make_float2((float)x.x, (float)x.y);
}
static __host__ __device__ inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex x) {
    return make_double2(x.x, x.y);
}

#endif
