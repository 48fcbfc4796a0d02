// Used where cupy's wheel, which has a header of the same name, is not installed. NVRTC compiles it.
#pragma once

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
