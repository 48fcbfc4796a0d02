/* What only the look-alike has: declarations for its checks. A program that is to compile against CANN as well tests for
 * ACL_LOOKALIKE_VERSION, which acl/acl_rt_types.h defines, before it includes this header. */
#ifndef ACL_LOOKALIKE_H
#define ACL_LOOKALIKE_H

#include "acl/acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of memory that a function reads, or also or only writes. */
typedef struct aclLookalikeRange {
    const void *start;
    size_t size;
    int32_t write; /* 0: it reads them */
} aclLookalikeRange;

/* Does what aclrtLaunchHostFunc does, and says what the function accesses. The ranges are copied. */
ACL_FUNC_VISIBILITY aclError aclLookalikeLaunchHostFunc(aclrtStream stream, aclrtHostFunc function, void *args, const aclLookalikeRange *ranges, size_t count);

/* Says that the calling thread now reads, or with write writes, these bytes. */
ACL_FUNC_VISIBILITY aclError aclLookalikeHostAccess(const void *start, size_t size, int32_t write);

#ifdef __cplusplus
}
#endif
#endif
