// What the kernels of ElementwiseKernel and ReductionKernel use where cupy's wheel, which has headers of the same names, is
// not installed: arrays and indices, complex numbers, 16-bit floats, constants. NVRTC compiles it, without further headers.

#define M_PI 3.14159265358979323846
#define CUDART_INF_F __int_as_float(0x7f800000)
#define CUDART_NAN_F __int_as_float(0x7fffffff)
#define CUDART_INF __longlong_as_double(0x7ff0000000000000LL)
#define CUDART_NAN __longlong_as_double(0xfff8000000000000LL)

// A loop over all elements, of which each thread of the grid does every so many.
#define CUPY_FOR(i, n) \
    for (ptrdiff_t i = (ptrdiff_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (ptrdiff_t)blockDim.x * gridDim.x)

template <bool narrow> struct halstream_index { typedef ptrdiff_t type; };
template <> struct halstream_index<true> { typedef int type; };

// An array: contiguous in C order or not, less than 2 GiB (narrow) or not.
template <typename T, int dimensions, bool contiguous = false, bool narrow = false> class CArray {
    T *data_;
    ptrdiff_t size_, shape_[dimensions], strides_[dimensions];

public:
    static const int ndim = dimensions;
    static const bool c_contiguous = contiguous;
    typedef typename halstream_index<narrow>::type index_t;

    CArray(T *data, const ptrdiff_t *shape, const ptrdiff_t *strides) : data_(data), size_(1) {
        for (int i = 0; i < ndim; i++) {
            size_ *= shape_[i] = shape[i];
            strides_[i] = strides[i];
        }
    }
    CArray(T *data, const ptrdiff_t *shape) : data_(data), size_(1) {
        for (int i = ndim - 1; i >= 0; i--) {
            strides_[i] = size_ * sizeof(T);
            size_ *= shape_[i] = shape[i];
        }
    }
    ptrdiff_t size() const { return size_; }
    const ptrdiff_t *shape() const { return shape_; }
    const ptrdiff_t *strides() const { return strides_; }

    template <typename Int> const T &operator[](const Int (&index)[dimensions]) const {
        index_t at = 0;
        for (int i = 0; i < ndim; i++) at += (index_t)strides_[i] * (index_t)index[i];
        return *(const T *)((const char *)data_ + at);
    }
    template <typename Int> T &operator[](const Int (&index)[dimensions]) {
        return const_cast<T &>(static_cast<const CArray &>(*this)[index]);
    }
    // The element of a number in C order.
    const T &operator[](ptrdiff_t number) const {
        if (contiguous) return data_[number];
        index_t at = 0, rest = (index_t)number;
        for (int i = ndim - 1; i > 0; i--) {
            at += (index_t)strides_[i] * (rest % (index_t)shape_[i]);
            rest /= (index_t)shape_[i];
        }
        return *(const T *)((const char *)data_ + at + (index_t)strides_[0] * rest);
    }
    T &operator[](ptrdiff_t number) { return const_cast<T &>(static_cast<const CArray &>(*this)[number]); }
};

template <typename T, bool contiguous, bool narrow> class CArray<T, 0, contiguous, narrow> {
    T *data_;

public:
    static const int ndim = 0;
    static const bool c_contiguous = true;
    typedef typename halstream_index<narrow>::type index_t;

    explicit CArray(T *data) : data_(data) {}
    ptrdiff_t size() const { return 1; }
    const ptrdiff_t *shape() const { return nullptr; }
    const ptrdiff_t *strides() const { return nullptr; }
    template <typename Index> const T &operator[](const Index &) const { return *data_; }
    template <typename Index> T &operator[](const Index &) { return *data_; }
};

// The shape of a loop, and the index of one of its elements.
template <int dimensions, bool narrow = false> class CIndexer {
    ptrdiff_t size_, shape_[dimensions], index_[dimensions];

public:
    static const int ndim = dimensions;

    explicit CIndexer(const ptrdiff_t *shape) : size_(1) {
        for (int i = 0; i < ndim; i++) {
            size_ *= shape_[i] = shape[i];
            index_[i] = 0;
        }
    }
    ptrdiff_t size() const { return size_; }
    const ptrdiff_t (&get() const)[dimensions] { return index_; }
    void set(ptrdiff_t number) {
        typename halstream_index<narrow>::type rest = number;
        for (int i = ndim - 1; i > 0; i--) {
            index_[i] = rest % shape_[i];
            rest /= shape_[i];
        }
        index_[0] = rest;
    }
};

template <bool narrow> class CIndexer<0, narrow> {
public:
    static const int ndim = 0;

    ptrdiff_t size() const { return 1; }
    const ptrdiff_t *get() const { return nullptr; }
    void set(ptrdiff_t) {}
};

namespace thrust {
template <typename T> class complex {
    T real_, imag_;

public:
    typedef T value_type;

    complex(const T &real = T(), const T &imag = T()) : real_(real), imag_(imag) {}
    template <typename U> complex(const complex<U> &z) : real_(z.real()), imag_(z.imag()) {}
    T real() const { return real_; }
    T imag() const { return imag_; }
    void real(T value) { real_ = value; }
    void imag(T value) { imag_ = value; }
    complex operator-() const { return complex(-real_, -imag_); }
    complex operator+() const { return *this; }
    complex &operator+=(const complex &z) { return *this = complex(real_ + z.real_, imag_ + z.imag_); }
    complex &operator-=(const complex &z) { return *this = complex(real_ - z.real_, imag_ - z.imag_); }
    complex &operator*=(const complex &z) {
        return *this = complex(real_ * z.real_ - imag_ * z.imag_, real_ * z.imag_ + imag_ * z.real_);
    }
    complex &operator/=(const complex &z) {  // scaled, so that squares do not leave the range of T
        T scale = fmax(fabs(z.real_), fabs(z.imag_)), c = z.real_ / scale, d = z.imag_ / scale, n = (c * c + d * d) * scale;
        return *this = complex((real_ * c + imag_ * d) / n, (imag_ * c - real_ * d) / n);
    }
    // As friends they take numbers on either side.
    friend complex operator+(complex a, const complex &b) { return a += b; }
    friend complex operator-(complex a, const complex &b) { return a -= b; }
    friend complex operator*(complex a, const complex &b) { return a *= b; }
    friend complex operator/(complex a, const complex &b) { return a /= b; }
    friend bool operator==(const complex &a, const complex &b) { return a.real_ == b.real_ && a.imag_ == b.imag_; }
    friend bool operator!=(const complex &a, const complex &b) { return !(a == b); }
};

template <typename T> T real(const complex<T> &z) { return z.real(); }
template <typename T> T imag(const complex<T> &z) { return z.imag(); }
template <typename T> complex<T> conj(const complex<T> &z) { return complex<T>(z.real(), -z.imag()); }
template <typename T> T norm(const complex<T> &z) { return z.real() * z.real() + z.imag() * z.imag(); }
template <typename T> T abs(const complex<T> &z) { return hypot(z.real(), z.imag()); }
template <typename T> T arg(const complex<T> &z) { return atan2(z.imag(), z.real()); }
template <typename T> complex<T> polar(const T &length, const T &angle) {
    return complex<T>(length * cos(angle), length * sin(angle));
}
template <typename T> complex<T> exp(const complex<T> &z) { return polar(T(::exp(z.real())), z.imag()); }
template <typename T> complex<T> log(const complex<T> &z) { return complex<T>(::log(abs(z)), arg(z)); }
template <typename T> complex<T> sqrt(const complex<T> &z) {
    T length = abs(z), real = ::sqrt((length + fabs(z.real())) / 2);
    if (length == 0) return complex<T>();
    T imag = fabs(z.imag()) / (2 * real);
    if (z.real() < 0) {
        T swapped = real;
        real = imag;
        imag = swapped;
    }
    return complex<T>(real, copysign(imag, z.imag()));
}
}  // namespace thrust

using thrust::complex;
using thrust::arg;
using thrust::conj;
using thrust::exp;
using thrust::imag;
using thrust::log;
using thrust::real;

// A float of 16 bits: all arithmetic is that of float.
class float16 {
    unsigned short bits_;

public:
    float16() {}
    float16(float value) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits_) : "f"(value)); }
    template <typename U> explicit float16(const U &value) : float16((float)value) {}
    template <typename U> float16 &operator=(const U &value) { return *this = float16((float)value); }
    operator float() const {
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits_));
        return value;
    }
    float16 &operator+=(float value) { return *this = float16(*this + value); }
    float16 &operator-=(float value) { return *this = float16(*this - value); }
    float16 &operator*=(float value) { return *this = float16(*this * value); }
    float16 &operator/=(float value) { return *this = float16(*this / value); }
};
