#include "callplace.h"
#include "unstable.h"

#include <stdint.h>
#include <string.h>

extern void *PyThreadState_Get(void) __attribute__((weak));
extern object *PyThreadState_GetFrame(void *state) __attribute__((weak));
extern object *PyFrame_GetCode(object *frame) __attribute__((weak));
extern int PyFrame_GetLineNumber(object *frame) __attribute__((weak));
extern object *PyObject_GetAttrString(object *o, const char *name) __attribute__((weak));

static const char *root;
static size_t root_length;

/* What is known of code objects, by their addresses: enough for the loops of a program.
 * Each entry holds a reference, so that no other code gets the address. */
enum { KNOWN = 256 };
static struct {
    object *code;
    int own;
} known[KNOWN];

/* Reports whether code is of a file of the package. */
static int is_own(object *code)
{
    size_t i = ((uintptr_t)code >> 5) % KNOWN;
    if (known[i].code == code) return known[i].own;
    object *file = PyObject_GetAttrString(code, "co_filename");
    const char *path = file ? PyUnicode_AsUTF8AndSize(file, NULL) : NULL;
    int own = path != NULL && strncmp(path, root, root_length) == 0;
    if (path == NULL) PyErr_Clear();
    if (file != NULL) Py_DecRef(file);
    object *before = known[i].code;
    Py_IncRef(code);
    known[i].code = code;
    known[i].own = own;
    if (before != NULL) Py_DecRef(before);
    return own;
}

callplace halstream_callplace(void)
{
    callplace at = {NULL, 0};
    if (root == NULL || !PyThreadState_GetFrame || !halstream_unstable.frame_back) return at;
    int (*numbered)(void *) = halstream_unstable.frame_instruction;
    object *frame = PyThreadState_GetFrame(PyThreadState_Get());
    while (frame != NULL) {
        object *code = PyFrame_GetCode(frame);
        if (!is_own(code)) {
            at.code = code;
            at.instruction = numbered ? numbered(frame) : PyFrame_GetLineNumber(frame);
            Py_DecRef(frame);
            return at;
        }
        Py_DecRef(code);
        object *outer = halstream_unstable.frame_back(frame);
        Py_DecRef(frame);
        frame = outer;
    }
    return at;
}

object *halstream_callplace_tuple(const callplace *at)
{
    if (at->code == NULL) return none();
    object *tuple = PyTuple_New(3);
    if (tuple == NULL) return NULL;
    Py_IncRef(at->code);
    PyTuple_SetItem(tuple, 0, at->code);
    PyTuple_SetItem(tuple, 1, PyLong_FromLongLong(halstream_unstable.frame_instruction ? at->instruction : -1));
    PyTuple_SetItem(tuple, 2, PyLong_FromLongLong(halstream_unstable.frame_instruction ? -1 : at->instruction));
    return tuple;
}

void halstream_callplace_install(object *folder)
{
    Py_IncRef(folder); /* for ever: root points into it */
    root = PyUnicode_AsUTF8AndSize(folder, NULL);
    root_length = root ? strlen(root) : 0;
}
