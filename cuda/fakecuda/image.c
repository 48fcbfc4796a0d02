/* Parses PTX and binaries as far as their functions require. */
#include "kernels.h"

#include <ctype.h>
#include <stdio.h>

static bool add_function(struct module *module, const char *name, size_t length) {
    struct function *function = calloc(1, sizeof *function);
    if (function == NULL || length >= sizeof function->name) {
        free(function);
        return false;
    }
    memcpy(function->name, name, length);
    function->module = module;
    function->context = module->context;
    function->kernel = find_kernel(function->name);
    function->dynamic_shared = 48 << 10;
    function->parameter_count = -1;
    function->next = module->functions;
    module->functions = function;
    return true;
}

/* ---- PTX ---- */

static bool is_name(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* Returns the size of a type such as ".u64", 0 for any other text. */
static unsigned size_of_type(const char *type) {
    if (type[0] != '.' || strchr("usbf", type[1]) == NULL)
        return 0;
    int bits = atoi(type + 2);
    return bits == 8 || bits == 16 || bits == 32 || bits == 64 ? (unsigned)bits / 8 : 0;
}

/* Reads ".param .u64 x, .param .u32 y, .param .align 8 .b8 z[24]" up to ")". */
static void read_parameters(struct function *function, const char *text, const char *stop) {
    function->parameter_count = 0;
    while (text < stop && function->parameter_count < (int)sizeof function->sizes) {
        const char *next = memchr(text, ',', (size_t)(stop - text));
        if (next == NULL)
            next = stop;
        unsigned size = 0;
        for (const char *c = text; c < next; c++) {
            if (*c == '.' && size_of_type(c) > 0)
                size = size_of_type(c);
            if (*c == '[' && size > 0)
                size *= (unsigned)atoi(c + 1);
        }
        if (size > 0)
            function->sizes[function->parameter_count++] = (unsigned char)size;
        text = next + 1;
    }
}

static CUresult complain(const char *text, const char *at, const char *what, char *words, size_t length) {
    int line = 1;
    for (const char *c = text; c < at; c++)
        line += *c == '\n';
    snprintf(words, length, "ptxas input, line %d; error : %s\n", line, what);
    return INVALID_PTX;
}

/* Ten times the version of the newest PTX that a driver accepts. */
static int newest_ptx(int version) {
    static const struct { int driver, ptx; } newest[] = {
        {13020, 92}, {13010, 91}, {13000, 90}, {12090, 88}, {12080, 87}, {12050, 85},
        {12040, 84}, {12030, 83}, {12020, 82}, {12010, 81}, {12000, 80},
    };
    for (size_t i = 0; i < sizeof newest / sizeof *newest; i++)
        if (version >= newest[i].driver)
            return newest[i].ptx;
    return 70 + version % 1000 / 10;
}

static CUresult read_ptx(struct module *module, const char *text, char *words, size_t length) {
    const char *version = strstr(text, ".version"), *target = strstr(text, ".target sm_");
    const char *mistake = strstr(text, "syntax_error_here"), *last = text + strlen(text);
    int major = 0, minor = 0;
    if (version == NULL) {
        complain(text, text, "Missing .version directive", words, length);
        return INVALID_IMAGE;
    }
    if (sscanf(version, ".version %d.%d", &major, &minor) != 2)
        return complain(text, version, "Parsing error near '.version'", words, length);
    if (10 * major + minor > newest_ptx(state.settings.version)) {
        snprintf(words, length, "ptxas fatal : Unsupported .version %d.%d\n", major, minor);
        return UNSUPPORTED_PTX_VERSION;
    }
    if (target == NULL)
        return complain(text, version, "Missing .target directive", words, length);
    if (mistake != NULL)
        return complain(text, mistake, "Parsing error near 'syntax_error_here': syntax error", words, length);
    if (strchr(text, '}') == NULL)
        return complain(text, last, "Parsing error near end of file: missing '}'", words, length);
    if (atoi(target + 11) > 90)
        return complain(text, target, "Unsupported .target", words, length);
    for (const char *entry = text; (entry = strstr(entry, ".entry")) != NULL;) {
        const char *name = entry + 6 + strspn(entry + 6, " \t\r\n"), *stop = name;
        while (is_name(*stop))
            stop++;
        if (stop == name || !add_function(module, name, (size_t)(stop - name)))
            return complain(text, entry, "Parsing error near '.entry'", words, length);
        const char *list = stop + strspn(stop, " \t\r\n"), *closing;
        if (*list == '(' && (closing = strchr(list, ')')) != NULL)
            read_parameters(module->functions, list + 1, closing);
        entry = stop;
    }
    return SUCCESS;
}

/* ---- Binaries ---- */

static bool contains(const char *bytes, size_t size, const char *what) {
    return memmem(bytes, size, what, strlen(what)) != NULL;
}

/* The size by the header, with the text that may follow in an image made for tests. */
static size_t size_of_binary(const char *bytes) {
    uint64_t sections;
    uint16_t section_size, section_count;
    if (bytes[4] != 2)
        return strlen(bytes);
    memcpy(&sections, bytes + 40, sizeof sections);
    memcpy(&section_size, bytes + 58, sizeof section_size);
    memcpy(&section_count, bytes + 60, sizeof section_count);
    if (sections > 1 << 30)
        return 64;
    size_t size = sections + (size_t)section_size * section_count;
    return size > 64 ? size : 64 + strlen(bytes + 64);
}

/* Whether the device can run it. The architecture is in the flags of the header, in the
 * second byte from version 8 of the format on; an image made for tests has it as text. */
static bool fits_device(const char *bytes, size_t size) {
    uint16_t machine = 0;
    uint32_t flags = 0;
    if (bytes[4] == 2) {
        memcpy(&machine, bytes + 18, sizeof machine);
        memcpy(&flags, bytes + 48, sizeof flags);
    }
    if (machine != 190)
        return contains(bytes, size, "sm_90");
    return (bytes[8] >= 8 ? flags >> 8 & 0xff : flags & 0xff) == 90;
}

/* Sections named ".text.NAME" hold the functions. */
static CUresult read_binary(struct module *module, const char *bytes) {
    static const char section[] = ".text.";
    size_t size = size_of_binary(bytes);
    if (!fits_device(bytes, size))
        return NO_BINARY_FOR_GPU;
    const char *stop = bytes + size;
    for (const char *at = bytes; (at = memmem(at, (size_t)(stop - at), section, 6)) != NULL;) {
        const char *name = at += 6;
        while (at < stop && is_name(*at))
            at++;
        if (at > name && !add_function(module, name, (size_t)(at - name)))
            return INVALID_IMAGE;
    }
    return SUCCESS;
}

CUresult read_image(struct module *module, const void *image, char *words, size_t length) {
    const unsigned char *bytes = image;
    if (memcmp(bytes, "\x7f" "ELF", 4) == 0)
        return read_binary(module, image);
    if (bytes[0] == 0 || bytes[0] >= 0x80)
        return INVALID_IMAGE;
    return read_ptx(module, image, words, length);
}
