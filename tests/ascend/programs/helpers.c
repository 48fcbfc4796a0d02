/* What needs no runtime: data buffers, sizes of elements, numbers of 16 bits, the log. */
#include "check.h"

static void numbers_of_16_bits(void)
{
    const struct {
        float value;
        aclFloat16 bits;
    } pairs[] = {{0.0f, 0x0000},     {-0.0f, 0x8000},     {1.0f, 0x3C00},      {-2.0f, 0xC000},
                 {65504.0f, 0x7BFF}, {0.000061035f, 0x0400}, {5.9604645e-8f, 0x0001}, {1.625f, 0x3E80}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) CHECK(aclFloatToFloat16(pairs[i].value) == pairs[i].bits);
    for (uint32_t bits = 0; bits < 0x7C00; bits++) { /* each one survives */
        CHECK(aclFloatToFloat16(aclFloat16ToFloat((aclFloat16)bits)) == bits);
        CHECK(aclFloatToFloat16(aclFloat16ToFloat((aclFloat16)(bits | 0x8000))) == (bits | 0x8000));
    }
    CHECK(aclFloatToFloat16(65536.0f) == 0x7C00 && aclFloatToFloat16(1e-10f) == 0);
    CHECK(aclFloatToFloat16(2049.0f) == 0x6800 && aclFloatToFloat16(2051.0f) == 0x6802); /* to the even one */
    float none = aclFloat16ToFloat(0x7E00);
    CHECK(none != none && (aclFloatToFloat16(none) & 0x7FFF) > 0x7C00);
}

int main(void)
{
    char bytes[16];
    numbers_of_16_bits();
    aclDataBuffer *buffer = aclCreateDataBuffer(bytes, 8);
    CHECK(aclGetDataBufferAddr(buffer) == bytes && aclGetDataBufferSizeV2(buffer) == 8);
    OK(aclUpdateDataBuffer(buffer, bytes + 8, 4));
    CHECK(aclGetDataBufferAddr(buffer) == bytes + 8 && aclGetDataBufferSize(buffer) == 4);
    OK(aclDestroyDataBuffer(buffer));
    CHECK(aclDestroyDataBuffer(NULL) == ACL_ERROR_INVALID_PARAM);
    CHECK(aclDataTypeSize(ACL_FLOAT16) == 2 && aclDataTypeSize(ACL_COMPLEX128) == 16 && aclDataTypeSize(ACL_STRING) == 0);
    ACL_APP_LOG(ACL_WARNING, "not shown");
    ACL_APP_LOG(ACL_ERROR, "shown: %d", 42);
    return done();
}
