// Used where cupy's wheel, which has a header of the same name, is not installed. NVRTC compiles it.
#pragma once

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
