/* Memory that the program itself forgets, besides what the library keeps. */
#include "check.h"

int main(void)
{
    aclrtStream stream;
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtSynchronizeStream(stream));
    volatile char *forgotten = (char *)malloc(321);
    forgotten[0] = 1;
    forgotten = NULL;
    return done();
}
