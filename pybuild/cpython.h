/* Functions and objects of CPython's that the C files of this package use, by name
 * as in caller.go: in Go's own tests there are none of them. */
#ifndef HALSTREAM_CPYTHON_H
#define HALSTREAM_CPYTHON_H

#include <stddef.h>
#include <stdint.h>

typedef void object;

/* CPython's table of methods, the same in every version. */
typedef struct {
    const char *name;
    void *function;
    int flags;
    const char *doc;
} method;

enum { METH_NOARGS = 4, METH_O = 8, METH_FASTCALL = 128 };

extern object *PyCFunction_NewEx(method *m, object *self, object *module) __attribute__((weak));
extern object *PyDict_GetItemString(object *d, const char *key) __attribute__((weak));
extern object *PyDict_New(void) __attribute__((weak));
extern int PyDict_SetItem(object *d, object *k, object *o) __attribute__((weak));
extern int PyDict_SetItemString(object *d, const char *key, object *o) __attribute__((weak));
extern void PyErr_Clear(void) __attribute__((weak));
extern void PyErr_Fetch(object **type, object **value, object **traceback) __attribute__((weak));
extern object *PyErr_Format(object *kind, const char *format, ...) __attribute__((weak));
extern object *PyErr_NoMemory(void) __attribute__((weak));
extern void PyErr_NormalizeException(object **type, object **value, object **traceback) __attribute__((weak));
extern object *PyErr_Occurred(void) __attribute__((weak));
extern void PyErr_WriteUnraisable(object *o) __attribute__((weak));
extern object *PyExc_TypeError __attribute__((weak));
extern int PyException_SetTraceback(object *exception, object *traceback) __attribute__((weak));
extern int PyList_Append(object *list, object *o) __attribute__((weak));
extern object *PyList_New(intptr_t n) __attribute__((weak));
extern long long PyLong_AsLongLong(object *o) __attribute__((weak));
extern object *PyLong_FromLongLong(long long n) __attribute__((weak));
extern object *PyLong_FromUnsignedLongLong(unsigned long long n) __attribute__((weak));
extern object *PyObject_Call(object *f, object *args, object *keywords) __attribute__((weak));
extern object *PyObject_CallFunctionObjArgs(object *f, ...) __attribute__((weak));
extern object *PyTuple_GetItem(object *t, intptr_t i) __attribute__((weak));
extern object *PyTuple_New(intptr_t n) __attribute__((weak));
extern int PyTuple_SetItem(object *t, intptr_t i, object *o) __attribute__((weak));
extern intptr_t PyTuple_Size(object *t) __attribute__((weak));
extern const char *PyUnicode_AsUTF8AndSize(object *o, intptr_t *size) __attribute__((weak));
extern void Py_DecRef(object *o) __attribute__((weak));
extern void Py_IncRef(object *o) __attribute__((weak));

/* Only their addresses are used. */
extern char _Py_NoneStruct[] __attribute__((weak));

#define none_object ((object *)_Py_NoneStruct)

/* Returns a new reference to None. */
static inline object *none(void)
{
    Py_IncRef(none_object);
    return none_object;
}

#endif /* HALSTREAM_CPYTHON_H */
