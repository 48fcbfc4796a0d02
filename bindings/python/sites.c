#include "sites.h"
#include "_cgo_export.h"
#include "caller.h"
#include "unstable.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CPython's functions, by name as in caller.go. */
typedef void object;
extern void *PyThreadState_Get(void) __attribute__((weak));
extern object *PyThreadState_GetFrame(void *state) __attribute__((weak));
extern object *PyFrame_GetCode(object *frame) __attribute__((weak));
extern int PyFrame_GetLineNumber(object *frame) __attribute__((weak));
extern object *PyObject_GetAttrString(object *o, const char *name) __attribute__((weak));
extern const char *PyUnicode_AsUTF8AndSize(object *o, intptr_t *size) __attribute__((weak));
extern void Py_IncRef(object *o) __attribute__((weak));
extern void Py_DecRef(object *o) __attribute__((weak));
extern void PyErr_Clear(void) __attribute__((weak));
extern object *PyErr_Occurred(void) __attribute__((weak));
extern unsigned long PyThread_get_thread_ident(void) __attribute__((weak));
extern int PyThreadState_SetAsyncExc(unsigned long thread, object *exception) __attribute__((weak));
extern object *PyLong_FromUnsignedLong(unsigned long value) __attribute__((weak));
extern object *PyObject_CallFunctionObjArgs(object *f, ...) __attribute__((weak));

static char *root; /* the folder of the package */
static size_t root_length;

/* Whose a code object is: the program's, this package's, or that of other packages and of Python's own library. */
enum { CODE_PROGRAM, CODE_OWN, CODE_INSTALLED };

/* What is known of code objects, by their addresses: enough for the loops of a program.
 * Each entry holds a reference, so that no other code gets the address. */
enum { CODES = 256 };
static struct {
    object *code;
    int kind;
} codes_seen[CODES];

static int kind_of_path(const char *path)
{
    if (root != NULL && strncmp(path, root, root_length) == 0) return CODE_OWN;
    static const char *const installed[] = {"/site-packages/", "/dist-packages/", "/lib/python3", "<frozen "};
    for (size_t i = 0; i < sizeof installed / sizeof *installed; i++)
        if (strstr(path, installed[i]) != NULL) return CODE_INSTALLED;
    return CODE_PROGRAM;
}

static int kind_of(object *code)
{
    size_t i = ((uintptr_t)code >> 5) % CODES;
    if (codes_seen[i].code == code) return codes_seen[i].kind;
    object *file = PyObject_GetAttrString(code, "co_filename");
    const char *path = file ? PyUnicode_AsUTF8AndSize(file, NULL) : NULL;
    int kind = path != NULL ? kind_of_path(path) : CODE_PROGRAM;
    if (path == NULL) PyErr_Clear();
    if (file != NULL) Py_DecRef(file);
    object *before = codes_seen[i].code;
    Py_IncRef(code);
    codes_seen[i].code = code;
    codes_seen[i].kind = kind;
    if (before != NULL) Py_DecRef(before);
    return kind;
}

void halstream_sites_install(const char *folder)
{
    if (root != NULL || folder == NULL) return; /* it stays the same */
    root = strdup(folder);
    root_length = root ? strlen(root) : 0;
    for (size_t i = 0; i < CODES; i++) { /* what was looked at before was taken for the program's */
        if (codes_seen[i].code != NULL) Py_DecRef(codes_seen[i].code);
        codes_seen[i].code = NULL;
    }
}

/* How many frames of a stack are kept, from the innermost on. */
enum { DEPTH = 64 };

typedef struct {
    uint64_t hash;
    uint32_t first; /* in frames */
    uint32_t count;
    uint32_t line; /* the innermost line of the program, as a site that was given: it can be read without Python's lock */
    uint32_t looks; /* how often the variables of its frames were looked at, in the round of looking... */
    uint32_t round; /* ...with this number */
} site;

typedef struct {
    object *code; /* a reference, so that no other code object gets this address */
    int instruction;    /* its number in the code, by which stacks differ */
    int line;
} frame;

/* All of it is guarded by Python's lock, and the list of sites also by `moving` where it moves: halstream_site_given reads
 * it without Python's lock. Site number n is sites[n - 1]; slots
 * holds numbers, 0 for none, and is a power of two long. */
static site *sites;
static uint32_t site_count, site_room;
static frame *frames;
static uint32_t frame_count, frame_room;
static uint32_t *slots;
static uint32_t slot_room;
static pthread_mutex_t moving = PTHREAD_MUTEX_INITIALIZER;

static object *outer_frame(object *f)
{
    if (halstream_unstable.frame_back) return halstream_unstable.frame_back(f);
    object *b = PyObject_GetAttrString(f, "f_back");
    if (b == NULL) PyErr_Clear();
    return b;
}

static int instruction_of(object *f)
{
    int (*numbered)(void *) = halstream_unstable.frame_instruction;
    return numbered ? numbered(f) : PyFrame_GetLineNumber(f);
}

/* A number for the call that a frame is in, by its place in the source where instructions do not tell. */
static int call_of(object *code, object *f)
{
    int at = instruction_of(f), line, column, last_line, last_column;
    if (halstream_unstable.code_location == NULL) return at;
    if (!halstream_unstable.code_location(code, at, &line, &column, &last_line, &last_column) || column < 0) return at;
    return (int)(((unsigned)line * 31 + (unsigned)column) * 1031 + ((unsigned)last_line * 31 + (unsigned)last_column));
}

static int grow(void **list, uint32_t *room, uint32_t need, size_t size)
{
    if (need <= *room) return 1;
    uint32_t more = *room ? *room * 2 : 256;
    while (more < need) more *= 2;
    void *moved = realloc(*list, more * size);
    if (moved == NULL) return 0;
    *list = moved;
    *room = more;
    return 1;
}

/* Makes room in the hash table for one more site; returns 0 without memory. */
static int grow_slots(void)
{
    if (slot_room && site_count * 2 < slot_room) return 1;
    uint32_t more = slot_room ? slot_room * 2 : 512;
    uint32_t *fresh = calloc(more, sizeof *fresh);
    if (fresh == NULL) return 0;
    for (uint32_t n = 1; n <= site_count; n++) {
        uint32_t i = (uint32_t)sites[n - 1].hash & (more - 1);
        while (fresh[i]) i = (i + 1) & (more - 1);
        fresh[i] = n;
    }
    free(slots);
    slots = fresh;
    slot_room = more;
    return 1;
}

static object *attribute(object *code, const char *name, const char *other)
{
    object *value = PyObject_GetAttrString(code, name);
    if (value == NULL) PyErr_Clear();
    if (value == NULL && other != NULL) return attribute(code, other, NULL);
    return value;
}

/* The site of one line, as halstream.h's site_new makes it: given.go. */
static uint32_t site_of_line(object *code, int line)
{
    object *file = attribute(code, "co_filename", NULL), *function = attribute(code, "co_qualname", "co_name");
    const char *path = file ? PyUnicode_AsUTF8AndSize(file, NULL) : NULL;
    const char *name = function ? PyUnicode_AsUTF8AndSize(function, NULL) : NULL;
    if (path == NULL || name == NULL) PyErr_Clear();
    uint32_t number = path != NULL ? halstreamGivenSite((char *)path, (uint32_t)(line > 0 ? line : 0), (char *)name) : 0;
    if (file) Py_DecRef(file);
    if (function) Py_DecRef(function);
    return number;
}

/* Adds a stack, with references to its code objects, and returns its number; 0 without memory. */
static uint32_t add_site(uint64_t hash, object **stack, object **codes, int *instructions, int n)
{
    if (!grow_slots() || !grow((void **)&frames, &frame_room, frame_count + (uint32_t)n, sizeof *frames)) return 0;
    pthread_mutex_lock(&moving);
    int has_room = grow((void **)&sites, &site_room, site_count + 1, sizeof *sites);
    pthread_mutex_unlock(&moving);
    if (!has_room) return 0;
    site s = {hash, frame_count, (uint32_t)n, 0, 0, 0};
    int innermost = 0;
    while (innermost < n && kind_of(codes[innermost]) != CODE_PROGRAM) innermost++;
    if (innermost < n) s.line = site_of_line(codes[innermost], PyFrame_GetLineNumber(stack[innermost]));
    for (int i = 0; i < n; i++) {
        Py_IncRef(codes[i]);
        frames[frame_count++] = (frame){codes[i], instructions[i], PyFrame_GetLineNumber(stack[i])};
    }
    pthread_mutex_lock(&moving);
    sites[site_count++] = s;
    pthread_mutex_unlock(&moving);
    uint32_t i = (uint32_t)hash & (slot_room - 1);
    while (slots[i]) i = (i + 1) & (slot_room - 1);
    slots[i] = site_count;
    return site_count;
}

/* `from`: the first frame whose instruction counts. */
static int same(const site *s, object **codes, const int *instructions, int n)
{
    if (s->count != (uint32_t)n) return 0;
    for (int i = 0; i < n; i++) {
        const frame *f = &frames[s->first + (uint32_t)i];
        if (f->code != codes[i] || f->instruction != instructions[i]) return 0;
    }
    return 1;
}

/* Python's function that looks at the variables of the frames of a call, NULL while nobody wants that; how often it does
 * for each site; and its present round. */
static object *looker;
enum { LOOKS = 4 };
static uint32_t looking_round;
_Thread_local uint32_t halstream_unseen;
static _Thread_local int looking;

void halstream_look_with(void *function)
{
    object *before = looker;
    if (function != NULL) Py_IncRef(function);
    looker = function;
    looking_round++;
    if (before != NULL) Py_DecRef(before);
}

int halstream_look_at(void)
{
    uint32_t number = halstream_unseen;
    halstream_unseen = 0;
    if (looker == NULL || looking || PyErr_Occurred() != NULL) return 0;
    object *f = looker, *argument = PyLong_FromUnsignedLong(number);
    if (argument == NULL) return -1;
    looking = 1;
    Py_IncRef(f);
    object *out = PyObject_CallFunctionObjArgs(f, argument, (object *)NULL);
    Py_DecRef(f);
    Py_DecRef(argument);
    looking = 0;
    if (out == NULL) return -1;
    Py_DecRef(out);
    return 0;
}

void halstream_look_quietly(void)
{
    if (halstream_look_at() == 0) return;
    object *type = PyErr_Occurred();
    Py_IncRef(type);
    PyErr_Clear();
    PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), type);
    Py_DecRef(type);
}

/* Notes that the frames of a site are still to be looked at, once the call that it is of allows it. */
static void note_unseen(uint32_t number)
{
    site *s = &sites[number - 1];
    if (s->round != looking_round) {
        s->round = looking_round;
        s->looks = 0;
    }
    halstream_unseen = s->looks < LOOKS ? number : 0;
    if (halstream_unseen) s->looks++;
}

/* How far outward a site goes: all of the stack, up to the first frame of the program's own, or one frame. */
enum { WHOLE, TO_PROGRAM, ONE };

static uint32_t site_from(object *f, int own, int reach)
{
    object *stack[DEPTH], *codes[DEPTH];
    int instructions[DEPTH], n = 0, inner = 1;
    uint64_t hash = 14695981039346656037u;
    if (f != NULL) Py_IncRef(f);
    while (f != NULL && n < DEPTH) {
        stack[n] = f;
        codes[n] = PyFrame_GetCode(f);
        instructions[n] = instruction_of(f);
        hash = (hash ^ (uint64_t)(uintptr_t)codes[n]) * 1099511628211u;
        /* Of the package's own functions at the inner end the function is enough, and of the program's that calls
         * them the place of the call: specialized code is at other instructions. Of the innermost the line counts. */
        if (inner) {
            inner = kind_of(codes[n]) == CODE_OWN;
            if (inner && (own || n > 0)) instructions[n] = 0;
            else instructions[n] = n == 0 ? PyFrame_GetLineNumber(f) : call_of(codes[n], f);
        }
        hash = (hash ^ (uint64_t)(unsigned)instructions[n]) * 1099511628211u;
        n++;
        if (reach == ONE || (reach == TO_PROGRAM && kind_of(codes[n - 1]) == CODE_PROGRAM)) {
            f = NULL;
            break;
        }
        f = outer_frame(f);
    }
    if (f != NULL) Py_DecRef(f);
    hash ^= hash >> 32; /* the low bits choose the slot */
    uint32_t found = 0;
    if (slot_room) {
        for (uint32_t i = (uint32_t)hash & (slot_room - 1); slots[i]; i = (i + 1) & (slot_room - 1)) {
            const site *s = &sites[slots[i] - 1];
            if (s->hash == hash && same(s, codes, instructions, n)) {
                found = slots[i];
                break;
            }
        }
    }
    if (!found && n) found = add_site(hash, stack, codes, instructions, n);
    if (looker != NULL && reach == WHOLE && found && !looking) note_unseen(found);
    for (int i = 0; i < n; i++) {
        Py_DecRef(codes[i]);
        Py_DecRef(stack[i]);
    }
    return found;
}

static int known(void)
{
    return PyThreadState_GetFrame && PyObject_GetAttrString && !halstream_self.released && halstream_self.slot != 0;
}

int32_t halstream_stacks;
_Thread_local uint32_t halstream_call_site;

uint32_t halstream_site(void)
{
    return halstream_call_site ? halstream_call_site : halstream_site_of(!halstream_self.direct);
}

/* The sites of single frames, by code and instruction: add_site keeps the code. A site is in one of the PROBES places
 * from its own on, so that a function with many calls does not ask for the lines of all of them again and again. */
enum { SINGLE = 1024, PROBES = 4 };
typedef struct {
    object *code;
    int instruction;
    uint32_t number; /* 0: nothing is known of them */
} single;
static single singles[SINGLE];

/* The place of a site, and whether that is known; if not it is the one to note it in. */
static single *single_of(object *code, int instruction, int *known)
{
    uint64_t hash = ((uint64_t)(uintptr_t)code >> 5 ^ (uint64_t)(unsigned)instruction << 32) * 0x9e3779b97f4a7c15u;
    size_t own = (size_t)(hash >> 54) % SINGLE;
    single *unused = NULL;
    for (size_t i = 0; i < PROBES; i++) {
        single *at = &singles[(own + i) % SINGLE];
        *known = at->number != 0 && at->code == code && at->instruction == instruction;
        if (*known) return at;
        if (at->number == 0 && unused == NULL) unused = at;
    }
    return unused != NULL ? unused : &singles[own];
}

int32_t halstream_lines;

uint32_t halstream_line(void)
{
    if (!halstream_wants_lines() || !known()) return 0;
    object *f = PyThreadState_GetFrame(PyThreadState_Get());
    if (f == NULL) return 0;
    object *code = PyFrame_GetCode(f);
    uint32_t number;
    if (kind_of(code) == CODE_PROGRAM) {
        int instruction = instruction_of(f);
        int is_known;
        single *at = single_of(code, instruction, &is_known);
        number = is_known ? at->number : site_from(f, 0, TO_PROGRAM);
        if (!is_known && number != 0) *at = (single){code, instruction, number};
    } else {
        number = site_from(f, 1, TO_PROGRAM);
    }
    Py_DecRef(code);
    Py_DecRef(f);
    return number;
}

uint32_t halstream_program_line(void)
{
    if (!known()) return 0;
    object *f = PyThreadState_GetFrame(PyThreadState_Get());
    uint32_t number = 0;
    while (f != NULL) {
        object *code = PyFrame_GetCode(f);
        int of_program = kind_of(code) == CODE_PROGRAM;
        if (of_program) {
            int instruction = instruction_of(f), is_known;
            single *at = single_of(code, instruction, &is_known);
            number = is_known ? at->number : site_from(f, 0, ONE);
            if (!is_known && number != 0) *at = (single){code, instruction, number};
        }
        Py_DecRef(code);
        object *outer = of_program ? NULL : outer_frame(f);
        Py_DecRef(f);
        f = outer;
    }
    return number;
}

uint32_t halstream_here(void)
{
    if (root == NULL || !PyThreadState_GetFrame) return 0;
    uint32_t number = 0;
    object *f = PyThreadState_GetFrame(PyThreadState_Get());
    while (f != NULL && number == 0) {
        object *code = PyFrame_GetCode(f);
        int own = kind_of(code) == CODE_OWN;
        if (!own) {
            int instruction = instruction_of(f), is_known;
            single *at = single_of(code, instruction, &is_known);
            number = is_known ? at->number : site_from(f, 0, ONE);
            if (!is_known) *at = (single){code, instruction, number};
        }
        Py_DecRef(code);
        object *outer = own ? outer_frame(f) : NULL;
        Py_DecRef(f);
        f = outer;
    }
    return number;
}

uint32_t halstream_site_of(int own)
{
    if (!known()) return 0;
    object *f = PyThreadState_GetFrame(PyThreadState_Get());
    uint32_t number = site_from(f, own, WHOLE);
    if (f != NULL) Py_DecRef(f);
    return number;
}

/* Appends the text of an attribute as a JSON string, "?" if it has none. */
static void write_string(FILE *out, object *code, const char *name, const char *other)
{
    object *value = PyObject_GetAttrString(code, name);
    if (value == NULL && other != NULL) {
        PyErr_Clear();
        value = PyObject_GetAttrString(code, other);
    }
    intptr_t size;
    const char *text = value ? PyUnicode_AsUTF8AndSize(value, &size) : NULL;
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)(text ? text : "?"); *c; c++) {
        if (*c < 0x20) fprintf(out, "\\u%04x", *c);
        else {
            if (*c == '"' || *c == '\\') fputc('\\', out);
            fputc(*c, out);
        }
    }
    fputc('"', out);
    if (text == NULL) PyErr_Clear();
    if (value) Py_DecRef(value);
}

uint32_t halstream_site_given(uint32_t number)
{
    if (number & SITE_GIVEN) return number;
    pthread_mutex_lock(&moving);
    uint32_t line = number == 0 || number > site_count ? 0 : sites[number - 1].line;
    pthread_mutex_unlock(&moving);
    return line;
}

char *halstream_site_text(uint32_t number)
{
    if (number == 0 || number > site_count) return NULL;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) return NULL;
    site s = sites[number - 1]; /* a copy: Python code may run below and add sites */
    fputc('[', out);
    for (uint32_t i = 0; i < s.count; i++) {
        frame f = frames[s.first + i];
        fputs(i ? ",{\"file\":" : "{\"file\":", out);
        write_string(out, f.code, "co_filename", NULL);
        fprintf(out, ",\"line\":%d,\"function\":", f.line);
        write_string(out, f.code, "co_qualname", "co_name"); /* the first since 3.11 */
        fputc('}', out);
    }
    fputc(']', out);
    fclose(out);
    return text;
}
