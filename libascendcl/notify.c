/* Notifies, as in device.c. */
#include "_cgo_export.h"
#include "acl/acl_rt.h"
#include "thread.h"

aclError aclrtCreateNotify(aclrtNotify *notify, uint64_t flag) { CALL(hsAclCreateNotify, ME, OUT(notify), flag); }
aclError aclrtDestroyNotify(aclrtNotify notify) { CALL(hsAclDestroyNotify, ME, HANDLE(notify)); }

aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream)
{
    CALL(hsAclRecordNotify, ME, HANDLE(notify), HANDLE(stream));
}

aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout)
{
    CALL(hsAclWaitAndResetNotify, ME, HANDLE(notify), HANDLE(stream), timeout);
}

aclError aclrtNotifyBatchReset(aclrtNotify *notifies, size_t num)
{
    CALL(hsAclNotifyBatchReset, ME, OUT(notifies), num);
}

aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t *notifyId)
{
    CALL(hsAclGetNotifyId, ME, HANDLE(notify), notifyId);
}
