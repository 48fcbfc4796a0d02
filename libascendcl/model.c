/* Captures and the models that they make, as in device.c. */
#include "_cgo_export.h"
#include "acl/acl_rt.h"
#include "thread.h"

aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode)
{
    CALL(hsAclCaptureBegin, ME, HANDLE(stream), (int32_t)mode);
}

aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI *modelRI)
{
    CALL(hsAclCaptureEnd, ME, HANDLE(stream), OUT(modelRI));
}

aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus *status, aclmdlRI *modelRI)
{
    if (modelRI) *modelRI = NULL;
    CALL(hsAclCaptureGetInfo, ME, HANDLE(stream), (int32_t *)status, (uintptr_t *)modelRI);
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode *mode)
{
    CALL(hsAclCaptureThreadExchangeMode, ME, (int32_t *)mode);
}

aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream)
{
    CALL(hsAclExecuteAsync, ME, HANDLE(modelRI), HANDLE(stream));
}

aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout) { WAIT(hsAclExecute, ME, HANDLE(modelRI), timeout); }
aclError aclmdlRIDestroy(aclmdlRI modelRI) { CALL(hsAclDestroyModel, ME, HANDLE(modelRI)); }

aclError aclmdlRISetName(aclmdlRI modelRI, const char *name)
{
    CALL(hsAclModelSetName, ME, HANDLE(modelRI), (char *)name);
}

aclError aclmdlRIGetName(aclmdlRI modelRI, uint32_t maxLen, char *name)
{
    CALL(hsAclModelGetName, ME, HANDLE(modelRI), maxLen, name);
}

aclError aclmdlRIGetId(aclmdlRI modelRI, uint32_t *modelRIId)
{
    CALL(hsAclModelGetId, ME, HANDLE(modelRI), modelRIId);
}

aclError aclmdlRIDebugPrint(aclmdlRI modelRI) { CALL(hsAclModelPrint, ME, HANDLE(modelRI)); }

aclError aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char *path, uint32_t flags)
{
    (void)flags; /* the file has all there is */
    CALL(hsAclModelWrite, ME, HANDLE(modelRI), (char *)path);
}

aclError aclmdlRIDestroyRegisterCallback(aclmdlRI modelRI, aclrtCallback function, void *userData)
{
    CALL(hsAclModelAtEnd, ME, HANDLE(modelRI), HANDLE(function), HANDLE(userData), 1);
}

aclError aclmdlRIDestroyUnregisterCallback(aclmdlRI modelRI, aclrtCallback function)
{
    CALL(hsAclModelAtEnd, ME, HANDLE(modelRI), HANDLE(function), 0, 0);
}
