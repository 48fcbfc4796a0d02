/* The process: versions and settings, the functions of the program that aclInit and aclFinalize call, and the end
 * that a tool looks at. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "_cgo_export.h"
#include "acl/acl_rt.h"
#include "thread.h"

/* -- versions and settings -- */

aclError aclsysGetVersionStr(char *pkgName, char *versionStr)
{
    if (!pkgName || !versionStr) CALL(hsAclMissing, ME);
    if (strcmp(pkgName, "runtime") != 0) CALL(hsAclNoPackage, ME, pkgName);
    strcpy(versionStr, ACL_LOOKALIKE_VERSION);
    return ACL_SUCCESS;
}

aclError aclsysGetVersionNum(char *pkgName, int32_t *versionNum)
{
    int major = 0, minor = 0, patch = 0;
    if (!pkgName || !versionNum) CALL(hsAclMissing, ME);
    if (strcmp(pkgName, "runtime") != 0) CALL(hsAclNoPackage, ME, pkgName);
    sscanf(ACL_LOOKALIKE_VERSION, "%d.%d.%d", &major, &minor, &patch);
    *versionNum = major * 10000000 + minor * 100000 + patch * 1000;
    return ACL_SUCCESS;
}

aclError aclGetCannAttributeList(const aclCannAttr **cannAttrList, size_t *num)
{
    static const aclCannAttr none[1] = {ACL_CANN_ATTR_UNDEFINED};
    if (!cannAttrList || !num) CALL(hsAclMissing, ME);
    *cannAttrList = none;
    *num = 0;
    return ACL_SUCCESS;
}

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t *value)
{
    if (!value || cannAttr < ACL_CANN_ATTR_INF_NAN || cannAttr > ACL_CANN_ATTR_JIT_COMPILE) CALL(hsAclMissing, ME);
    *value = 0;
    return ACL_SUCCESS;
}

aclError aclrtCheckArchCompatibility(const char *socVersion, int32_t *canCompatible)
{
    if (!socVersion || !canCompatible) CALL(hsAclMissing, ME);
    const char *name = aclrtGetSocName();
    *canCompatible = name != NULL && strcmp(name, socVersion) == 0;
    return ACL_SUCCESS;
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version)
{
    if (!version || (unsigned)name > ACL_PKG_NAME_DRIVER) CALL(hsAclMissing, ME);
    CALL(hsAclNoPackage, ME, "CANN");
}

enum { OPTIONS = 4 };
static struct {
    pthread_mutex_t lock;
    int64_t values[OPTIONS];
    int given[OPTIONS];
} options = {.lock = PTHREAD_MUTEX_INITIALIZER};

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value)
{
    if ((unsigned)opt >= OPTIONS) CALL(hsAclMissing, ME);
    pthread_mutex_lock(&options.lock);
    options.values[opt] = value;
    options.given[opt] = 1;
    pthread_mutex_unlock(&options.lock);
    return ACL_SUCCESS;
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t *value)
{
    if ((unsigned)opt >= OPTIONS || !value) CALL(hsAclMissing, ME);
    pthread_mutex_lock(&options.lock);
    int given = options.given[opt];
    if (given) *value = options.values[opt];
    pthread_mutex_unlock(&options.lock);
    return given ? ACL_SUCCESS : ACL_ERROR_RT_SYSPARAMOPT_NOT_SET;
}

/* -- functions of the program at the beginning and at the end -- */

typedef struct hook {
    int32_t type;
    void *function, *data; /* an aclInitCallbackFunc or an aclFinalizeCallbackFunc */
} hook;
typedef struct hooks {
    hook *list;
    size_t count;
} hooks;
static hooks at_init, at_finalize;
static pthread_mutex_t hooks_lock = PTHREAD_MUTEX_INITIALIZER;
static char *settings; /* the text that aclInit was given; under the lock */
static int running;    /* between aclInit and aclFinalize; under the lock */

static aclError add_hook(hooks *all, int32_t type, void *function, void *data)
{
    aclError code = ACL_SUCCESS;
    pthread_mutex_lock(&hooks_lock);
    for (size_t i = 0; i < all->count; i++)
        if (type != ACL_REG_TYPE_OTHER && all->list[i].type == type) code = ACL_ERROR_INTERNAL_ERROR; /* one of each */
    hook *list = code ? NULL : realloc(all->list, (all->count + 1) * sizeof *list);
    if (list != NULL) {
        all->list = list;
        list[all->count++] = (hook){type, function, data};
    } else if (!code) {
        code = ACL_ERROR_BAD_ALLOC;
    }
    pthread_mutex_unlock(&hooks_lock);
    return code;
}

static aclError remove_hook(hooks *all, int32_t type, void *function)
{
    aclError code = ACL_ERROR_INTERNAL_ERROR;
    pthread_mutex_lock(&hooks_lock);
    for (size_t i = 0; code && i < all->count; i++) {
        if (all->list[i].type != type || all->list[i].function != function) continue;
        memmove(&all->list[i], &all->list[i + 1], (--all->count - i) * sizeof *all->list);
        code = ACL_SUCCESS;
    }
    pthread_mutex_unlock(&hooks_lock);
    return code;
}

/* The lock is not held while the functions run, as they may call anything. */
static aclError run_hooks(hooks *all, int first)
{
    aclError code = ACL_SUCCESS;
    pthread_mutex_lock(&hooks_lock);
    size_t count = all->count;
    hook *list = malloc(count * sizeof *list + 1);
    char *text = strdup(settings ? settings : "");
    if (list != NULL && count) memcpy(list, all->list, count * sizeof *list);
    pthread_mutex_unlock(&hooks_lock);
    if (list == NULL || text == NULL) code = ACL_ERROR_BAD_ALLOC;
    for (size_t i = 0; !code && i < count; i++)
        code = first ? ((aclInitCallbackFunc)list[i].function)(text, strlen(text), list[i].data)
                     : ((aclFinalizeCallbackFunc)list[i].function)(list[i].data);
    free(list);
    free(text);
    return code;
}

static void set_running(int now, char *text)
{
    pthread_mutex_lock(&hooks_lock);
    free(settings);
    settings = text;
    running = now;
    pthread_mutex_unlock(&hooks_lock);
}

static aclError begun(char *text)
{
    set_running(1, text);
    return run_hooks(&at_init, 1);
}

static aclError ended(void)
{
    pthread_mutex_lock(&hooks_lock);
    int begun = running;
    pthread_mutex_unlock(&hooks_lock);
    aclError code = begun ? run_hooks(&at_finalize, 0) : ACL_SUCCESS;
    set_running(0, NULL);
    return code;
}

aclError aclInitCallbackRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc, void *userData)
{
    if (!cbFunc) CALL(hsAclMissing, ME);
    aclError code = add_hook(&at_init, (int32_t)type, (void *)cbFunc, userData);
    if (code) return code;
    pthread_mutex_lock(&hooks_lock);
    char *text = running ? strdup(settings ? settings : "") : NULL;
    pthread_mutex_unlock(&hooks_lock);
    if (text != NULL) cbFunc(text, strlen(text), userData); /* aclInit was called already */
    free(text);
    return ACL_SUCCESS;
}

aclError aclInitCallbackUnRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc)
{
    if (!cbFunc) CALL(hsAclMissing, ME);
    return remove_hook(&at_init, (int32_t)type, (void *)cbFunc);
}

aclError aclFinalizeCallbackRegister(aclRegisterCallbackType type, aclFinalizeCallbackFunc cbFunc, void *userData)
{
    if (!cbFunc) CALL(hsAclMissing, ME);
    return add_hook(&at_finalize, (int32_t)type, (void *)cbFunc, userData);
}

aclError aclFinalizeCallbackUnRegister(aclRegisterCallbackType type, aclFinalizeCallbackFunc cbFunc)
{
    if (!cbFunc) CALL(hsAclMissing, ME);
    return remove_hook(&at_finalize, (int32_t)type, (void *)cbFunc);
}

/* -- the beginning and the end -- */

aclError aclInit(const char *configPath)
{
    int code = hs_acl_enter(__func__, __builtin_return_address(0));
    if (!code) code = hsAclInit(ME, (char *)configPath);
    if (code) return code;
    hs_program_come_behind();
    code = begun(hsAclSettings());
    if (code) hsAclFinalize(ME);
    return code;
}

aclError aclFinalize(void)
{
    int code = hs_acl_enter(__func__, __builtin_return_address(0));
    if (!code) code = hsAclFinalize(ME);
    return code ? code : ended();
}

aclError aclFinalizeReference(uint64_t *refCount)
{
    int code = hs_acl_enter(__func__, __builtin_return_address(0));
    if (!code) code = hsAclFinalizeReference(ME, refCount);
    return code || *refCount > 0 ? code : ended();
}

const char *aclGetRecentErrMsg(void)
{
    if (halstream_forked)
        return "EE9999: error code is 507033.\n        this process was forked after the library was used, and the "
               "runtime's threads stayed in the parent; start other programs with exec instead";
    return hs_acl_enter(__func__, __builtin_return_address(0)) ? NULL : hsAclGetRecentErrMsg(ME);
}

aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion)
{
    if (!majorVersion || !minorVersion || !patchVersion) CALL(hsAclMissing, ME);
    *majorVersion = ACL_MAJOR_VERSION;
    *minorVersion = ACL_MINOR_VERSION;
    *patchVersion = ACL_PATCH_VERSION;
    return ACL_SUCCESS;
}

const char *aclrtGetSocName(void)
{
    return hs_acl_enter(__func__, __builtin_return_address(0)) ? NULL : hsAclGetSocName();
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) { CALL(hsAclLastError, ME, (int32_t)level, 0); }
aclError aclrtGetLastError(aclrtLastErrLevel level) { CALL(hsAclLastError, ME, (int32_t)level, 1); }
