// Which devices the process has used: on a GPU these have a context of the driver.
#pragma once

#include <c10/core/Device.h>

namespace halstream_torch {

// Work was enqueued on the device, it was waited for, or the program chose it.
void mark_used(c10::DeviceIndex device) noexcept;
bool is_used(c10::DeviceIndex device) noexcept;
bool any_is_used() noexcept;

}  // namespace halstream_torch
