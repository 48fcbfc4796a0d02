/* The end of the process. */
#ifndef HS_ACL_PROCESS_H
#define HS_ACL_PROCESS_H

/* Makes the end of the process call hsAclEnds. */
__attribute__((visibility("hidden"))) void hs_acl_report_at_exit(void);

#endif
