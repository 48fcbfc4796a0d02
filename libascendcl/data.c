/* Data buffers, sizes of elements, numbers of 16 bits and the log: what needs no runtime. */
#include "acl/acl_base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct aclDataBuffer {
    void *data;
    size_t size;
};

aclDataBuffer *aclCreateDataBuffer(void *data, size_t size)
{
    aclDataBuffer *made = malloc(sizeof *made);
    if (made != NULL) *made = (aclDataBuffer){data, size};
    return made;
}

aclError aclDestroyDataBuffer(const aclDataBuffer *buffer)
{
    if (buffer == NULL) return ACL_ERROR_INVALID_PARAM;
    free((void *)buffer);
    return ACL_SUCCESS;
}

aclError aclUpdateDataBuffer(aclDataBuffer *buffer, void *data, size_t size)
{
    if (buffer == NULL) return ACL_ERROR_INVALID_PARAM;
    *buffer = (aclDataBuffer){data, size};
    return ACL_SUCCESS;
}

void *aclGetDataBufferAddr(const aclDataBuffer *buffer) { return buffer ? buffer->data : NULL; }
uint32_t aclGetDataBufferSize(const aclDataBuffer *buffer) { return buffer ? (uint32_t)buffer->size : 0; }
size_t aclGetDataBufferSizeV2(const aclDataBuffer *buffer) { return buffer ? buffer->size : 0; }

size_t aclDataTypeSize(aclDataType type)
{
    switch (type) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL: return 1;
    case ACL_FLOAT16:
    case ACL_INT16:
    case ACL_UINT16:
    case ACL_BF16: return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32: return 4;
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_DOUBLE:
    case ACL_COMPLEX64: return 8;
    case ACL_COMPLEX128: return 16;
    default: return 0;
    }
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float number_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float aclFloat16ToFloat(aclFloat16 value)
{
    uint32_t sign = (uint32_t)(value >> 15) << 31, exponent = value >> 10 & 31, fraction = value & 1023;
    if (exponent == 31) return number_of(sign | 255u << 23 | fraction << 13);
    if (exponent > 0) return number_of(sign | (exponent + 112) << 23 | fraction << 13);
    float tiny = (float)fraction / 16777216.0f; /* a multiple of 2 to the power of -24 */
    return sign ? -tiny : tiny;
}

/* Rounds to the nearest, to the even one between two. */
aclFloat16 aclFloatToFloat16(float value)
{
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, exponent = bits >> 23 & 255, fraction = bits & 0x7FFFFF;
    if (exponent == 255) return (aclFloat16)(sign | 0x7C00 | (fraction ? 0x200 | fraction >> 13 : 0));
    int32_t scaled = (int32_t)exponent - 112;
    if (scaled >= 31) return (aclFloat16)(sign | 0x7C00);
    uint32_t shift = 13, full = fraction;
    if (scaled <= 0) {
        if (scaled < -10) return (aclFloat16)sign;
        full |= 0x800000;
        shift = (uint32_t)(14 - scaled);
        scaled = 0;
    }
    uint32_t kept = full >> shift, rest = full & ((1u << shift) - 1), half = 1u << (shift - 1);
    uint32_t result = ((uint32_t)scaled << 10) + kept;
    if (rest > half || (rest == half && (result & 1))) result++; /* may carry into the exponent */
    return (aclFloat16)(sign | result);
}

void aclAppLog(aclLogLevel level, const char *function, const char *file, uint32_t line, const char *format, ...)
{
    static const char *const names[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
    const char *least = getenv("ASCEND_GLOBAL_LOG_LEVEL");
    if ((int)level < (least ? atoi(least) : ACL_ERROR)) return;
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *name = (unsigned)level < 4 ? names[level] : "?";
    fprintf(stderr, "[%s] %s:%u %s: %s\n", name, file ? file : "", line, function ? function : "", text);
}
