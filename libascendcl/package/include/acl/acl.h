/* acl.h: what programs include. It has all the other headers; see acl_base.h. */
#ifndef ACL_LOOKALIKE_ACL_H
#define ACL_LOOKALIKE_ACL_H

#include "acl_base.h"
#include "acl_mdl.h"
#include "acl_op.h"
#include "acl_rt.h"

#endif
