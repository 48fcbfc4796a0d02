/* Wrapper around CPython's Python.h, first on the include path of the
 * generated extension only (the packages hal, cuda and pybuild never see it).
 *
 * The extension is compiled with Py_LIMITED_API=0x030A0000, so that one file
 * serves CPython 3.10 and every later version. gopy's fixed preamble mentions
 * a few names that are not in the limited API, for features this project does
 * not use (complex numbers, Python callables as Go functions). They are given
 * here so that the text compiles; none of them is ever called. */
#ifndef HALSTREAM_PYTHON_H
#define HALSTREAM_PYTHON_H

#include_next <Python.h>

/* free() in the generated error paths; the limited Python.h of 3.11 and later
 * no longer includes it. */
#include <stdlib.h>
#include <stdint.h>

#ifdef Py_LIMITED_API

/* complex64PyToGo and complex128PyToGo read a Py_complex by value. */
typedef struct {
    double real;
    double imag;
} Py_complex;

static inline Py_complex PyComplex_AsCComplex(PyObject *o)
{
    Py_complex c = {PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)};
    return c;
}

/* gopy_method_check asks whether a callback is a bound method; there are no
 * callbacks here (Go never calls Python), hence "no". */
#define PyMethod_Check(o) ((void)(o), 0)

#endif /* Py_LIMITED_API */

/* The GIL: gopy's output saves and restores the Python thread around every
 * call. setup.py takes those lines out, so that a call keeps the GIL, and
 * pybuild releases it itself where it may block. Turning the two functions into
 * no-ops here would keep the GIL as well, but every call would still pay for
 * two transitions from Go to C (0.05 microseconds of 0.18). */

#endif /* HALSTREAM_PYTHON_H */
