/* Names of operations and places of the program, as numbers. Neither is ever freed, so
 * there is a bound for each. */
#define _GNU_SOURCE /* asprintf */
#include "api.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_NAMES = 1 << 16, MOST_SITES = 1 << 20 };

/* A set of texts, numbered from 1 in the order in which they came. */
typedef struct {
    pthread_rwlock_t lock;
    char **texts;
    uint32_t count, room, most;
    uint32_t *slots; /* numbers, 0 for none, by hash; a power of two long */
    uint32_t slot_room;
} interned;

static interned names = {.lock = PTHREAD_RWLOCK_INITIALIZER, .most = MOST_NAMES};
static interned places = {.lock = PTHREAD_RWLOCK_INITIALIZER, .most = MOST_SITES};

static uint32_t hash_of(const char *text, size_t size)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash ^ hash >> 15;
}

/* Texts may contain zero bytes: their size stands in front. */
typedef struct {
    uint32_t hash, size;
    char bytes[];
} text;

static text *text_at(const interned *set, uint32_t number) { return (text *)set->texts[number - 1]; }

static uint32_t look_up(const interned *set, const char *bytes, size_t size, uint32_t hash)
{
    if (set->slot_room == 0) return 0;
    for (uint32_t i = hash & (set->slot_room - 1); set->slots[i]; i = (i + 1) & (set->slot_room - 1)) {
        text *t = text_at(set, set->slots[i]);
        if (t->hash == hash && t->size == size && memcmp(t->bytes, bytes, size) == 0) return set->slots[i];
    }
    return 0;
}

static int make_room(interned *set)
{
    if (set->count == set->room) {
        uint32_t room = set->room ? set->room * 2 : 256;
        char **list = realloc(set->texts, room * sizeof *list);
        if (list == NULL) return 0;
        set->texts = list;
        set->room = room;
    }
    if (set->count * 2 >= set->slot_room) {
        uint32_t room = set->slot_room ? set->slot_room * 2 : 512;
        uint32_t *slots = calloc(room, sizeof *slots);
        if (slots == NULL) return 0;
        for (uint32_t n = 1; n <= set->count; n++) {
            uint32_t i = text_at(set, n)->hash & (room - 1);
            while (slots[i]) i = (i + 1) & (room - 1);
            slots[i] = n;
        }
        free(set->slots);
        set->slots = slots;
        set->slot_room = room;
    }
    return 1;
}

static uint32_t intern(interned *set, const char *bytes, size_t size)
{
    uint32_t hash = hash_of(bytes, size);
    pthread_rwlock_rdlock(&set->lock);
    uint32_t number = look_up(set, bytes, size, hash);
    pthread_rwlock_unlock(&set->lock);
    if (number) return number;
    pthread_rwlock_wrlock(&set->lock);
    number = look_up(set, bytes, size, hash);
    if (number == 0 && set->count < set->most && make_room(set)) {
        text *t = malloc(sizeof *t + size + 1);
        if (t != NULL) {
            t->hash = hash;
            t->size = (uint32_t)size;
            memcpy(t->bytes, bytes, size);
            t->bytes[size] = 0;
            set->texts[set->count++] = (char *)t;
            number = set->count;
            uint32_t i = hash & (set->slot_room - 1);
            while (set->slots[i]) i = (i + 1) & (set->slot_room - 1);
            set->slots[i] = number;
        }
    }
    pthread_rwlock_unlock(&set->lock);
    return number;
}

/* A caller mostly passes constants, so the address finds the number; the text at an
 * address may change, so it is compared. */
uint32_t halstream_name(const char *name)
{
    if (name == NULL || name[0] == 0) return 0;
    halstream_kept *kept = halstream_kept_here();
    uintptr_t at = (uintptr_t)name;
    unsigned i = (unsigned)((at >> 3 ^ at >> 11) % KEPT_NAMES);
    if (kept != NULL && kept->names[i].name == name && strcmp(kept->names[i].text, name) == 0)
        return kept->names[i].number;
    uint32_t number = intern(&names, name, strlen(name));
    if (number && kept != NULL) {
        kept->names[i].name = name;
        kept->names[i].text = halstream_name_text(number);
        kept->names[i].number = number;
    }
    return number;
}

const char *halstream_name_text(uint32_t number)
{
    pthread_rwlock_rdlock(&names.lock);
    const char *found = number == 0 || number > names.count ? NULL : text_at(&names, number)->bytes;
    pthread_rwlock_unlock(&names.lock);
    return found;
}

/* A site is the text "line\0file\0function". */
uint32_t halstream_given_site(const char *file, uint32_t line, const char *function)
{
    if (file == NULL || file[0] == 0) return 0;
    if (function == NULL) function = "";
    size_t files = strlen(file) + 1, functions = strlen(function);
    char number[16];
    size_t digits = (size_t)snprintf(number, sizeof number, "%u", line) + 1;
    char room[512], *all = room;
    size_t size = digits + files + functions;
    if (size > sizeof room && (all = malloc(size)) == NULL) return 0;
    memcpy(all, number, digits);
    memcpy(all + digits, file, files);
    memcpy(all + digits + files, function, functions);
    uint32_t site = intern(&places, all, size);
    if (all != room) free(all);
    return site ? site | SITE_GIVEN : 0;
}

static void write_json(FILE *out, const char *from)
{
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)from; *c; c++) {
        if (*c < 0x20) fprintf(out, "\\u%04x", *c);
        else {
            if (*c == '"' || *c == '\\') fputc('\\', out);
            fputc(*c, out);
        }
    }
    fputc('"', out);
}

/* The text of a site, NULL if it is unknown. Texts stay where they are. */
static const char *given(uint32_t site)
{
    site &= ~SITE_GIVEN;
    pthread_rwlock_rdlock(&places.lock);
    const text *t = site == 0 || site > places.count ? NULL : text_at(&places, site);
    pthread_rwlock_unlock(&places.lock);
    return t == NULL ? NULL : t->bytes;
}

char *halstream_given_site_line(uint32_t site)
{
    const char *line = given(site);
    if (line == NULL) return NULL;
    const char *file = line + strlen(line) + 1, *function = file + strlen(file) + 1;
    char folder[4096], *made = NULL;
    size_t length = getcwd(folder, sizeof folder) == NULL ? 0 : strlen(folder);
    if (length > 1 && strncmp(file, folder, length) == 0 && file[length] == '/') file += length + 1;
    if (asprintf(&made, "%s:%s%s%s", file, line, function[0] ? " in " : "", function) < 0) return NULL;
    return made;
}

char *halstream_given_site_text(uint32_t site)
{
    const char *line = given(site);
    if (line == NULL) return NULL;
    char *json = NULL;
    size_t size;
    FILE *out = open_memstream(&json, &size);
    if (out == NULL) return NULL;
    const char *file = line + strlen(line) + 1, *function = file + strlen(file) + 1;
    fputs("[{\"file\":", out);
    write_json(out, file);
    fprintf(out, ",\"line\":%s,\"function\":", line);
    write_json(out, function);
    fputs("}]", out);
    fclose(out);
    return json;
}
