/* The end of the process. */
#ifndef HS_PROGRAM_EXIT_H
#define HS_PROGRAM_EXIT_H

/* Makes the end of the process call halstreamProgramEnds. */
__attribute__((visibility("hidden"))) void hs_program_report_at_exit(void);

#endif
