/* The functions of the interface that name, number and show the models that captures make, as in calls.c. */
#include "_cgo_export.h"
#include "acl/acl_rt.h"
#include "thread.h"

#define HANDLE(pointer) ((uintptr_t)(pointer))

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

aclError aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback)
{
    CALL(hsAclExceptionCallback, ME, HANDLE(callback), 1);
}

aclError aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback)
{
    CALL(hsAclExceptionCallback, ME, HANDLE(callback), 0);
}
