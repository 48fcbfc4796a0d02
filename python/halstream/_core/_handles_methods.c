/* Gives classes written in Python descriptors of their own for the methods in C that they inherit.
 *
 * CPython's interpreter (from 3.11 on) calls a method of C without any detour only where the
 * class of the object is the one that the method's descriptor was made for. A method that is
 * inherited is called the general way each time, which takes as long again as an empty method. */
#include "_handles.h"

/* The definition of a method in C by its name, NULL if the class has none of that name. */
static PyMethodDef *definition_of(PyTypeObject *type, PyObject *name)
{
    PyMethodDef *m = PyType_IsSubtype(type, handles_stream)  ? handles_stream_methods
                     : PyType_IsSubtype(type, handles_event) ? handles_event_methods
                     : PyType_IsSubtype(type, handles_guard) ? handles_guard_methods
                                                             : NULL;
    for (; m != NULL && m->ml_name != NULL; m++)
        if (PyUnicode_CompareWithASCIIString(name, m->ml_name) == 0) return m;
    return NULL;
}

/* The definition behind a descriptor, NULL if it is none of a method in C. Says whether a class has it from another one. */
static PyMethodDef *definition_behind(PyObject *value, PyTypeObject *type, bool *inherited)
{
    if (!Py_IS_TYPE(value, &PyMethodDescr_Type)) return NULL;
    PyObject *of = PyObject_GetAttrString(value, "__objclass__"), *name = PyObject_GetAttrString(value, "__name__");
    PyMethodDef *found = of == NULL || name == NULL ? NULL : definition_of((PyTypeObject *)of, name);
    *inherited = of != (PyObject *)type;
    Py_XDECREF(of);
    Py_XDECREF(name);
    return found;
}

/* Returns what a class has, or with `bases` what it inherits, by name; the first in the order of its bases wins. */
static PyObject *names_of(PyObject *class, bool bases)
{
    PyObject *order = PyObject_GetAttrString(class, "__mro__"), *all = PyDict_New();
    for (Py_ssize_t i = order == NULL ? -1 : PyTuple_Size(order) - 1; all != NULL && i >= bases; i--) {
        PyObject *names = PyObject_GetAttrString(PyTuple_GetItem(order, i), "__dict__");
        if (names == NULL || PyDict_Update(all, names) < 0) Py_CLEAR(all);
        Py_XDECREF(names);
    }
    if (order == NULL) Py_CLEAR(all);
    Py_XDECREF(order);
    return all;
}

/* Removes the descriptors that an earlier call gave a class, unless no base has the name. */
static int forget_own(PyObject *class)
{
    PyObject *all = names_of(class, false), *bases = names_of(class, true), *name, *value;
    int failed = all == NULL || bases == NULL;
    bool inherited;
    for (Py_ssize_t at = 0; !failed && PyDict_Next(all, &at, &name, &value);)
        if (definition_behind(value, (PyTypeObject *)class, &inherited) != NULL && !inherited &&
            PyDict_GetItemWithError(bases, name) != NULL)
            failed = PyObject_DelAttr(class, name) < 0;
    Py_XDECREF(all);
    Py_XDECREF(bases);
    return failed ? -1 : 0;
}

PyObject *methods_own(PyObject *module, PyObject *class)
{
    (void)module;
    if (!PyType_Check(class)) return PyErr_Format(PyExc_TypeError, "own() takes a class, not %R", class);
    PyObject *all = forget_own(class) < 0 ? NULL : names_of(class, false), *name, *value;
    int failed = all == NULL;
    for (Py_ssize_t at = 0; !failed && PyDict_Next(all, &at, &name, &value);) {
        bool inherited;
        PyMethodDef *method = definition_behind(value, (PyTypeObject *)class, &inherited);
        if (method == NULL || !inherited) continue;
        PyObject *own = PyDescr_NewMethod((PyTypeObject *)class, method);
        failed = own == NULL || PyObject_SetAttr(class, name, own) < 0;
        Py_XDECREF(own);
    }
    Py_XDECREF(all);
    if (failed) return NULL;
    Py_RETURN_NONE;
}
