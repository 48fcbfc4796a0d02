/* In front of NVRTC. Source: NVRTC's documentation. */
#include "front.h"

static const char variable[] = "HALSTREAM_NVRTC";
enum { INTERNAL_ERROR = 11 }; /* NVRTC_ERROR_INTERNAL_ERROR */

#define NVRTC(name) FORWARD(variable, name, INTERNAL_ERROR)
FORWARD(variable, nvrtcGetErrorString, (intptr_t) "NVRTC_ERROR_INTERNAL_ERROR")
NVRTC(nvrtcVersion)
NVRTC(nvrtcGetNumSupportedArchs)
NVRTC(nvrtcGetSupportedArchs)
NVRTC(nvrtcCreateProgram)
NVRTC(nvrtcDestroyProgram)
NVRTC(nvrtcGetPTXSize)
NVRTC(nvrtcGetPTX)
NVRTC(nvrtcGetNVVMSize)
NVRTC(nvrtcGetNVVM)
NVRTC(nvrtcGetLTOIRSize)
NVRTC(nvrtcGetLTOIR)
NVRTC(nvrtcGetOptiXIRSize)
NVRTC(nvrtcGetOptiXIR)
NVRTC(nvrtcGetProgramLogSize)
NVRTC(nvrtcGetProgramLog)
NVRTC(nvrtcAddNameExpression)
NVRTC(nvrtcGetLoweredName)
NVRTC(nvrtcGetPCHHeapSize)
NVRTC(nvrtcSetPCHHeapSize)
NVRTC(nvrtcGetPCHCreateStatus)
NVRTC(nvrtcGetPCHHeapSizeRequired)
NVRTC(nvrtcSetFlowCallback)

/* What is asked for as machine code is the program's PTX. */
EXPORTED intptr_t nvrtcGetCUBINSize(uint64_t program, uint64_t size) { return nvrtcGetPTXSize(program, size, 0, 0, 0, 0); }
EXPORTED intptr_t nvrtcGetCUBIN(uint64_t program, uint64_t text) { return nvrtcGetPTX(program, text, 0, 0, 0, 0); }

/* Options for an architecture of machine code become those for the one of PTX with the same number. */
EXPORTED int nvrtcCompileProgram(void *program, int count, const char *const *options)
{
    int (*compile)(void *, int, const char *const *);
    *(void **)&compile = real(variable, "nvrtcCompileProgram");
    char **own = calloc((size_t)count + 1, sizeof *own);
    if (compile == NULL || own == NULL) return INTERNAL_ERROR;
    for (int i = 0; i < count; i++) {
        const char *arch = strstr(options[i], "sm_");
        int replaced = arch != NULL && (arch == options[i] || arch[-1] == '=');
        if (replaced && asprintf(&own[i], "%.*scompute_%s", (int)(arch - options[i]), options[i], arch + 3) < 0) own[i] = NULL;
        if (!replaced) own[i] = strdup(options[i]);
    }
    int code = compile(program, count, (const char *const *)own);
    for (int i = 0; i < count; i++) free(own[i]);
    free(own);
    return code;
}
