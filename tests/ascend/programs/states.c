/* What a program is told of devices and streams, settings, and functions that need a chip. */
#include "check.h"

#include <string.h>

static char seen[64];

static void of_device(int32_t device, aclrtDeviceState state, void *argument)
{
    CHECK(device == 0 && argument == seen);
    strncat(seen, (const char *[]){"s", "S", "r", "R"}[state], 1);
}

static void of_stream(aclrtStream stream, aclrtStreamState state, void *argument)
{
    int32_t id;
    CHECK(argument == NULL);
    OK(aclrtStreamGetId(stream, &id)); /* it exists, and may be used */
    strncat(seen, state == ACL_RT_STREAM_STATE_CREATE_POST ? "+" : "-", 1);
}

int main(void)
{
    aclrtStream stream;
    aclrtEvent event;
    int64_t value = 0;
    aclrtFloatOverflowMode mode;
    aclCANNPackageVersion version;
    OK(aclInit(NULL));
    OK(aclrtRegDeviceStateCallback("program", of_device, seen));
    OK(aclrtRegStreamStateCallback("program", of_stream, NULL));
    OK(aclrtRegStreamStateCallback("again", of_stream, NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtRegStreamStateCallback("again", NULL, NULL));
    OK(aclrtDestroyStream(stream));
    OK(aclrtCreateStream(&stream));
    CHECK(strcmp(seen, "sS++-+") == 0);

    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtRecordEventWithFlag(event, stream, ACL_EVENT_RECORD_DEFAULT));
    OK(aclrtStreamWaitEventWithFlag(stream, event, 0, ACL_EVENT_WAIT_DEFAULT));
    OK(aclrtStreamWaitEventWithFlag(stream, event, 5, ACL_EVENT_WAIT_DEFAULT));
    RETURNS(ACL_ERROR_RT_STREAM_NOT_CAPTURED, aclrtRecordEventWithFlag(event, stream, ACL_EVENT_RECORD_EXTERNAL));
    RETURNS(ACL_ERROR_RT_STREAM_NOT_CAPTURED, aclrtStreamWaitEventWithFlag(stream, event, 0, ACL_EVENT_WAIT_EXTERNAL));
    RETURNS(ACL_ERROR_INVALID_PARAM, aclrtRecordEventWithFlag(event, stream, 7));
    OK(aclrtSynchronizeStream(stream));

    RETURNS(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
    OK(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
    OK(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
    OK(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN));
    OK(aclrtGetDeviceSatMode(&mode));
    CHECK(value == 1 && mode == ACL_RT_OVERFLOW_MODE_INFNAN);
    RETURNS(500000, aclsysGetCANNVersion(ACL_PKG_NAME_CANN, &version));
    RETURNS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtStreamStop(stream));
    CHECK(strstr(aclGetRecentErrMsg(), "aclrtStreamStop") != NULL);
    OK(aclrtDestroyEvent(event));
    OK(aclrtResetDevice(0));
    CHECK(strcmp(seen, "sS++-+rR") == 0);
    OK(aclFinalize());
    return done();
}
