/* What Paddle and a plug-in of a device type agree on: the parts that all supported versions share.
 *
 * Paddle's own header (phi/backends/device_ext.h) is C++ and grows at the end with each version, while the
 * functions up to device_realloc_size have the same places in 3.0 to 3.3; tests/paddle_real compares the offsets
 * with the header of the installed version. `size` is what Paddle allocated: nothing behind it is written. */
#ifndef HALSTREAM_PADDLE_INTERFACE_H
#define HALSTREAM_PADDLE_INTERFACE_H

#include <stddef.h>

/* Results of the functions. Anything but PADDLE_SUCCESS of a query is "not yet", of other functions an error. */
enum { PADDLE_SUCCESS = 0, PADDLE_FAILED = 2 };

struct paddle_ordinal {
    int id;
};
typedef struct paddle_ordinal *paddle_device;

/* Streams and events are numbers of the core's, never 0: Paddle takes a stream of 0 as none. */
typedef void *paddle_stream;
typedef void *paddle_event;
typedef void (*paddle_callback)(paddle_device device, paddle_stream stream, void *argument, int *status);

struct paddle_hooks {
    size_t size;
    int (*initialize)(void);
    int (*finalize)(void);
    int (*init_device)(paddle_device device);
    int (*set_device)(paddle_device device);
    int (*get_device)(paddle_device device);
    int (*deinit_device)(paddle_device device);
    int (*create_stream)(paddle_device device, paddle_stream *stream);
    int (*destroy_stream)(paddle_device device, paddle_stream stream);
    int (*query_stream)(paddle_device device, paddle_stream stream);
    int (*stream_add_callback)(paddle_device device, paddle_stream stream, paddle_callback callback, void *argument);
    int (*create_event)(paddle_device device, paddle_event *event);
    int (*record_event)(paddle_device device, paddle_stream stream, paddle_event event);
    int (*destroy_event)(paddle_device device, paddle_event event);
    int (*query_event)(paddle_device device, paddle_event event);
    int (*synchronize_device)(paddle_device device);
    int (*synchronize_stream)(paddle_device device, paddle_stream stream);
    int (*synchronize_event)(paddle_device device, paddle_event event);
    int (*stream_wait_event)(paddle_device device, paddle_stream stream, paddle_event event);
    void *unused_device[8];
    int (*device_memory_allocate)(paddle_device device, void **address, size_t size);
    int (*device_memory_deallocate)(paddle_device device, void *address, size_t size);
    int (*device_memory_set)(paddle_device device, void *address, unsigned char value, size_t size);
    int (*host_memory_allocate)(paddle_device device, void **address, size_t size);
    int (*host_memory_deallocate)(paddle_device device, void *address, size_t size);
    int (*unified_memory_allocate)(paddle_device device, void **address, size_t size);
    int (*unified_memory_deallocate)(paddle_device device, void *address, size_t size);
    int (*memory_copy_h2d)(paddle_device device, void *dst, const void *src, size_t size);
    int (*memory_copy_d2h)(paddle_device device, void *dst, const void *src, size_t size);
    int (*memory_copy_d2d)(paddle_device device, void *dst, const void *src, size_t size);
    int (*memory_copy_p2p)(paddle_device to, paddle_device from, void *dst, const void *src, size_t size);
    int (*async_memory_copy_h2d)(paddle_device device, paddle_stream stream, void *dst, const void *src, size_t size);
    int (*async_memory_copy_d2h)(paddle_device device, paddle_stream stream, void *dst, const void *src, size_t size);
    int (*async_memory_copy_d2d)(paddle_device device, paddle_stream stream, void *dst, const void *src, size_t size);
    int (*async_memory_copy_p2p)(paddle_device to, paddle_device from, paddle_stream stream, void *dst,
                                 const void *src, size_t size);
    void *unused_memory[8];
    int (*get_device_count)(size_t *count);
    int (*get_device_list)(size_t *devices);
    int (*device_memory_stats)(paddle_device device, size_t *total, size_t *free);
};

struct paddle_parameters {
    size_t size;
    struct paddle_hooks *hooks;
    size_t version[3];
    char *device_type;
    char *sub_device_type;
};

/* The version of the interface in Paddle 3.0 to 3.3; Paddle refuses a lower one. */
#define PADDLE_INTERFACE_VERSION {0, 1, 1}

#endif
