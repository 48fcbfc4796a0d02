/* acl_mdl.h: names of the parts for models and media, which this library does not have. Captures
 * (aclmdlRI*) are in acl_rt.h. */
#ifndef ACL_LOOKALIKE_MDL_H
#define ACL_LOOKALIKE_MDL_H

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct aclmdlDesc aclmdlDesc;
typedef struct aclmdlDataset aclmdlDataset;
typedef struct aclmdlConfigHandle aclmdlConfigHandle;
typedef struct acldvppPicDesc acldvppPicDesc;
typedef struct acldvppChannelDesc acldvppChannelDesc;

#define ACL_LOOKALIKE_MODELS "the part for models, which this look-alike of the runtime does not have"
#define ACL_LOOKALIKE_MEDIA "the part for media, which this look-alike of the runtime does not have"

ACL_LOOKALIKE_ABSENT(aclmdlLoadFromFile, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlLoadFromFileWithMem, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlLoadFromMem, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlLoadWithConfig, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlUnload, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlExecute, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlExecuteAsync, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlQuerySize, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlCreateDesc, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlDestroyDesc, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlGetDesc, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlGetNumInputs, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlGetNumOutputs, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlGetInputSizeByIndex, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlGetOutputSizeByIndex, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlCreateDataset, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlDestroyDataset, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlAddDatasetBuffer, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlGetDatasetNumBuffers, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlGetDatasetBuffer, ACL_LOOKALIKE_MODELS);
ACL_LOOKALIKE_ABSENT(aclmdlSetDynamicBatchSize, ACL_LOOKALIKE_MODELS);

ACL_LOOKALIKE_ABSENT(acldvppMalloc, ACL_LOOKALIKE_MEDIA);
ACL_LOOKALIKE_ABSENT(acldvppFree, ACL_LOOKALIKE_MEDIA);
ACL_LOOKALIKE_ABSENT(acldvppCreateChannel, ACL_LOOKALIKE_MEDIA);
ACL_LOOKALIKE_ABSENT(acldvppCreateChannelDesc, ACL_LOOKALIKE_MEDIA);
ACL_LOOKALIKE_ABSENT(acldvppCreatePicDesc, ACL_LOOKALIKE_MEDIA);
ACL_LOOKALIKE_ABSENT(acldvppJpegDecodeAsync, ACL_LOOKALIKE_MEDIA);
ACL_LOOKALIKE_ABSENT(acldvppVpcResizeAsync, ACL_LOOKALIKE_MEDIA);

#ifdef __cplusplus
}
#endif
#endif
