/* What needs a chip, another process or a model, and is not there: each call returns 207000. */
#include "_cgo_export.h"
#include "acl/acl_rt.h"
#include "thread.h"

#define ABSENT(function, ...)                                                                                          \
    aclError function(__VA_ARGS__)                                                                                     \
    {                                                                                                                  \
        CALL(hsAclUnsupported, ME);                                                                                    \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
ABSENT(aclrtStreamStop, aclrtStream stream)
ABSENT(aclrtCtxSetSysParamOpt, aclSysParamOpt opt, int64_t value)
ABSENT(aclrtCtxGetSysParamOpt, aclSysParamOpt opt, int64_t *value)
ABSENT(aclrtActiveStream, aclrtStream activeStream, aclrtStream stream)
ABSENT(aclrtSwitchStream, void *leftValue, aclrtCondition cond, void *rightValue, aclrtCompareDataType dataType,
       aclrtStream trueStream, aclrtStream falseStream, aclrtStream stream)
ABSENT(aclrtGetThreadLastTaskId, uint32_t *taskId)
ABSENT(aclrtSetStreamResLimit, aclrtStream stream, aclrtDevResLimitType type, uint32_t value)
ABSENT(aclrtGetStreamResLimit, aclrtStream stream, aclrtDevResLimitType type, uint32_t *value)
ABSENT(aclrtResetStreamResLimit, aclrtStream stream)
ABSENT(aclrtUseStreamResInCurrentThread, aclrtStream stream)
ABSENT(aclrtUnuseStreamResInCurrentThread, aclrtStream stream)
ABSENT(aclrtReduceAsync, void *dst, const void *src, uint64_t count, aclrtReduceKind kind, aclDataType type,
       aclrtStream stream, void *reserve)
ABSENT(aclrtMemPoolMallocAsync, void **ptr, size_t size, aclrtMemPool memPool, aclrtStream stream)
ABSENT(aclrtMemPoolFreeAsync, void *ptr, aclrtStream stream)
ABSENT(aclrtNotifyGetExportKey, aclrtNotify notify, char *key, size_t len, uint64_t flags)
ABSENT(aclrtNotifyImportByKey, aclrtNotify *notify, const char *key, uint64_t flags)
ABSENT(aclrtNotifySetImportPid, aclrtNotify notify, int32_t *pid, size_t num)
