// Used where cupy's wheel, which has a header of the same name, is not installed. NVRTC compiles it.
#pragma once

#ifndef M_PI
#define M_PI 3.14159265358979323846
#endif

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
