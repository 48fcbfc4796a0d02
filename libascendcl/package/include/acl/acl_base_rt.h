/* acl_base_rt.h: programs may include it for the types of acl_base.h. */
#ifndef ACL_LOOKALIKE_BASE_RT_H
#define ACL_LOOKALIKE_BASE_RT_H

#include "acl_base.h"

#endif
