/* acl_op.h: names of the part for single operators, which this library does not have. */
#ifndef ACL_LOOKALIKE_OP_H
#define ACL_LOOKALIKE_OP_H

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct aclopHandle aclopHandle;
typedef struct aclopAttr aclopAttr;

#define ACL_LOOKALIKE_OPERATORS \
    "the part for operators, which this look-alike of the runtime does not have; enqueue a function with aclrtLaunchHostFunc"

ACL_LOOKALIKE_ABSENT(aclopSetModelDir, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclopLoad, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclopCreateAttr, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclopDestroyAttr, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclopCreateHandle, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclopDestroyHandle, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclopExecute, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclopExecuteV2, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclopExecWithHandle, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclopCompile, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclopCompileAndExecute, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclopCast, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclCreateTensorDesc, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclDestroyTensorDesc, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclblasGemmEx, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclrtBinaryLoad, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclrtBinaryLoadFromFile, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclrtBinaryGetFunction, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclrtLaunchKernel, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclrtLaunchKernelWithConfig, ACL_LOOKALIKE_OPERATORS);
ACL_LOOKALIKE_ABSENT(aclrtLaunchKernelWithHostArgs, ACL_LOOKALIKE_OPERATORS);

#ifdef __cplusplus
}
#endif
#endif
