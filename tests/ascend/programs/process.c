/* Versions, numbers of devices, limits of kernels, and functions that aclInit and aclFinalize call. */
#include "check.h"

#include <string.h>

static int begun, ended, refused;
static char seen[64];

static aclError begin(const char *settings, size_t length, void *data)
{
    ++*(int *)data;
    CHECK(strlen(settings) == length && length < sizeof seen);
    strcpy(seen, settings);
    return refused ? ACL_ERROR_FAILURE : ACL_SUCCESS;
}

static aclError end(void *data)
{
    uint64_t left;
    ++*(int *)data;
    RETURNS(ACL_ERROR_REPEAT_FINALIZE, aclFinalizeReference(&left)); /* it may call */
    return ACL_SUCCESS;
}

static aclError never(void *data)
{
    (void)data;
    exit(2);
}

static void hooks(const char *file)
{
    RETURNS(ACL_ERROR_INVALID_PARAM, aclInitCallbackRegister(ACL_REG_TYPE_OTHER, NULL, NULL));
    OK(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, begin, &begun));
    OK(aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, end, &ended));
    OK(aclFinalizeCallbackRegister(ACL_REG_TYPE_ACL_MODEL, never, NULL));
    CHECK(aclFinalizeCallbackRegister(ACL_REG_TYPE_ACL_MODEL, end, &ended) != ACL_SUCCESS); /* one of each */
    OK(aclFinalizeCallbackUnRegister(ACL_REG_TYPE_ACL_MODEL, never));
    CHECK(aclFinalizeCallbackUnRegister(ACL_REG_TYPE_ACL_MODEL, never) != ACL_SUCCESS);
    OK(aclInit(file));
    CHECK(begun == 1 && strcmp(seen, "{\"err_msg_mode\": \"1\"}") == 0);
    RETURNS(ACL_ERROR_REPEAT_INITIALIZE, aclInit(file));
    RETURNS(ACL_ERROR_INVALID_PARAM, aclInit(NULL)); /* with other settings */
    CHECK(begun == 1);
    OK(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, begin, &begun)); /* at once, as aclInit was called */
    CHECK(begun == 2);
    OK(aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, begin));
    uint64_t left;
    OK(aclFinalizeReference(&left));
    CHECK(left == 1 && ended == 0);
    OK(aclFinalize());
    CHECK(ended == 1);
    refused = 1;
    RETURNS(ACL_ERROR_FAILURE, aclInit(file));
    RETURNS(ACL_ERROR_REPEAT_FINALIZE, aclFinalize());
    refused = 0;
    OK(aclInit(NULL));
    CHECK(begun == 4 && seen[0] == 0);
}

static void versions(void)
{
    char package[] = "runtime", other[] = "hccl", text[ACL_PKG_VERSION_MAX_SIZE];
    int32_t number;
    OK(aclsysGetVersionStr(package, text));
    CHECK(strcmp(text, ACL_LOOKALIKE_VERSION) == 0);
    OK(aclsysGetVersionNum(package, &number));
    CHECK(number == 100000); /* 0.1.0 */
    CHECK(aclsysGetVersionStr(other, text) != ACL_SUCCESS);
}

static void devices(void)
{
    int32_t number, back, value = 9, active;
    uint32_t flags = 9;
    for (int32_t device = 0; device < 2; device++) {
        OK(aclrtGetLogicDevIdByUserDevId(device, &number));
        OK(aclrtGetUserDevIdByLogicDevId(number, &back));
        CHECK(back == device);
        OK(aclrtGetPhyDevIdByUserDevId(device, &number));
        OK(aclrtGetUserDevIdByPhyDevId(number, &back));
        CHECK(back == device);
    }
    RETURNS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtGetPhyDevIdByLogicDevId(2, &number));
    RETURNS(ACL_ERROR_INVALID_PARAM, aclrtGetLogicDevIdByPhyDevId(0, NULL));
    aclrtUuid first, again, second;
    char bus[13];
    OK(aclrtDeviceGetUuid(0, &first));
    OK(aclrtDeviceGetUuid(0, &again));
    OK(aclrtDeviceGetUuid(1, &second));
    CHECK(memcmp(&first, &again, 16) == 0 && memcmp(&first, &second, 16) != 0);
    RETURNS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtDeviceGetPCIBusId(0, bus, sizeof bus));
    OK(aclrtCheckArchCompatibility(aclrtGetSocName(), &value));
    CHECK(value == 1);
    OK(aclrtCheckArchCompatibility("another", &value));
    CHECK(value == 0);
    const aclCannAttr *attributes;
    size_t count;
    OK(aclGetCannAttributeList(&attributes, &count));
    for (size_t i = 0; i < count; i++) OK(aclGetCannAttribute(attributes[i], &value));
    OK(aclGetCannAttribute(ACL_CANN_ATTR_BF16, &value));
    CHECK(value == 0);
    OK(aclrtGetDeviceCapability(0, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, &value));
    CHECK(value == 0);
    OK(aclrtGetPrimaryCtxState(0, &flags, &active));
    CHECK(flags == 0 && active == 0);
    OK(aclrtSetDevice(0));
    OK(aclrtGetPrimaryCtxState(0, NULL, &active));
    CHECK(active == 1);
    uint32_t cores = 9;
    OK(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_VECTOR_CORE, &cores));
    CHECK(cores == 0);
    OK(aclrtResetDevice(0));
    OK(aclrtGetPrimaryCtxState(0, NULL, &active));
    CHECK(active == 0);
}

static void limits(void)
{
    uint64_t step, actual;
    uint32_t ms;
    OK(aclrtGetOpTimeOutInterval(&step));
    OK(aclrtSetOpExecuteTimeOutV2(step + 1, &actual));
    CHECK(actual == 2 * step);
    OK(aclrtSetOpExecuteTimeOut(3));
    OK(aclrtGetOpExecuteTimeout(&ms));
    CHECK(ms == 3000);
    OK(aclrtSetOpExecuteTimeOutWithMs(1));
    OK(aclrtGetOpExecuteTimeout(&ms));
    CHECK(ms == step / 1000);
    OK(aclrtSetOpExecuteTimeOutV2(UINT64_MAX, &actual));
    CHECK(actual == 254 * step);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    hooks(argv[1]);
    versions();
    devices();
    limits();
    OK(aclFinalize());
    return done();
}
