#include "callplace.h"
#include "unstable.h"

#include <stdint.h>
#include <string.h>

extern void *PyThreadState_Get(void) __attribute__((weak));
extern object *PyThreadState_GetFrame(void *state) __attribute__((weak));
extern object *PyFrame_GetCode(object *frame) __attribute__((weak));
extern int PyFrame_GetLineNumber(object *frame) __attribute__((weak));
extern object *PyObject_GetAttrString(object *o, const char *name) __attribute__((weak));

static char *root;
static size_t root_length;

/* What is known of code objects, by their addresses: enough for the loops of a program.
 * Each entry holds a reference, so that no other code gets the address. */
enum { KNOWN = 256 };
static struct {
    object *code;
    int kind;
} known[KNOWN];

static int kind_of(const char *path)
{
    if (root != NULL && strncmp(path, root, root_length) == 0) return CODE_OWN;
    static const char *const installed[] = {"/site-packages/", "/dist-packages/", "/lib/python3", "<frozen "};
    for (size_t i = 0; i < sizeof installed / sizeof *installed; i++)
        if (strstr(path, installed[i]) != NULL) return CODE_INSTALLED;
    return CODE_PROGRAM;
}

int halstream_code_kind(object *code)
{
    size_t i = ((uintptr_t)code >> 5) % KNOWN;
    if (known[i].code == code) return known[i].kind;
    object *file = PyObject_GetAttrString(code, "co_filename");
    const char *path = file ? PyUnicode_AsUTF8AndSize(file, NULL) : NULL;
    int kind = path != NULL ? kind_of(path) : CODE_PROGRAM;
    if (path == NULL) PyErr_Clear();
    if (file != NULL) Py_DecRef(file);
    object *before = known[i].code;
    Py_IncRef(code);
    known[i].code = code;
    known[i].kind = kind;
    if (before != NULL) Py_DecRef(before);
    return kind;
}

callplace halstream_callplace(void)
{
    callplace at = {NULL, 0};
    if (root == NULL || !PyThreadState_GetFrame || !halstream_unstable.frame_back) return at;
    int (*numbered)(void *) = halstream_unstable.frame_instruction;
    object *frame = PyThreadState_GetFrame(PyThreadState_Get());
    while (frame != NULL) {
        object *code = PyFrame_GetCode(frame);
        if (halstream_code_kind(code) != CODE_OWN) {
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

void halstream_callplace_install(const char *folder)
{
    if (root != NULL || folder == NULL) return; /* it stays the same */
    root = strdup(folder);
    root_length = root ? strlen(root) : 0;
    for (size_t i = 0; i < KNOWN; i++) { /* what was looked at before was taken for the program's */
        if (known[i].code != NULL) Py_DecRef(known[i].code);
        known[i].code = NULL;
    }
}
