/* Times OpenCL's calls as acl_calls.c times those of AscendCL, on the platform whose name has the argument's words. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

static void check(cl_int code, const char *call)
{
    if (code == CL_SUCCESS) return;
    fprintf(stderr, "%s: %d\n", call, code);
    exit(1);
}
#define OK(call) check(call, #call)

static void CL_CALLBACK nothing(void *unused) { (void)unused; }

static cl_int enqueue(cl_command_queue queue)
{
    return clEnqueueNativeKernel(queue, nothing, NULL, 0, 0, NULL, NULL, 0, NULL, NULL);
}

static cl_int round_trip(cl_command_queue queue)
{
    cl_int code = enqueue(queue);
    return code == CL_SUCCESS ? clFinish(queue) : code;
}

static cl_int back_to_back(cl_command_queue queue, int last)
{
    cl_int code = enqueue(queue);
    return code == CL_SUCCESS && last ? clFinish(queue) : code;
}

/* A record of an event that was recorded before: the event before it is given back. */
static cl_int record(cl_command_queue queue, cl_event *event)
{
    if (*event != NULL) OK(clReleaseEvent(*event));
    return clEnqueueMarkerWithWaitList(queue, 0, NULL, event);
}

static cl_platform_id platform_with(const char *words)
{
    cl_platform_id found[16];
    cl_uint count = 0;
    char name[256];
    OK(clGetPlatformIDs(16, found, &count));
    for (cl_uint i = 0; i < count && i < 16; i++) {
        OK(clGetPlatformInfo(found[i], CL_PLATFORM_NAME, sizeof name, name, NULL));
        if (strstr(name, words) != NULL) return found[i];
    }
    fprintf(stderr, "there is no OpenCL platform %s\n", words);
    exit(2);
}

int main(int argc, char **argv)
{
    cl_platform_id platform = platform_with(argc > 1 ? argv[1] : "");
    cl_device_id device;
    cl_int code, status;
    cl_event event = NULL;
    OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    OK(code);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code), other;
    OK(code);
    other = clCreateCommandQueue(context, device, 0, &code);
    OK(code);
    OK(round_trip(queue));
    ROW("record an event, idle stream", CALLS / 10, , record(queue, &event), OK(clFinish(queue)));
    ROW("wait for an event that is done", CALLS / 10, , clEnqueueBarrierWithWaitList(other, 1, &event, NULL), OK(clFinish(other)));
    ROW("query an event", CALLS, , clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL), );
    ROW("synchronize an idle stream", CALLS / 10, , clFinish(queue), );
    ROW("enqueue a function", LAUNCHES, , enqueue(queue), OK(clFinish(queue)));
    ROW("function and synchronize", LAUNCHES, , round_trip(queue), );
    ROW("functions back to back, until all have run", LAUNCHES, , back_to_back(queue, i == LAUNCHES - 1), );
    OK(clReleaseEvent(event));
    OK(clReleaseCommandQueue(other));
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseContext(context));
    return 0;
}
