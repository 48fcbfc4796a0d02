// Where the program made a call: for reports, traces and schedules.
#pragma once

#include <cstdint>
#include <string>

namespace halstream_torch {

// The place of the program's call that leads to the running operator; 0 while nobody listens. An operator of a
// backward pass that no Python code calls, such as a hook, gets the place of the forward call whose gradient it computes.
uint32_t current_site();

// The program's line of a place, as reports have it: "train.py:41 in main"; "" if it is not known.
std::string text_of_site(uint32_t site);

// Sets the path of the module whose forward runs on this thread, such as "layer.3"; "" for none.
void set_running_module(const std::string& path);

// The path of the module at the latest place that `current_site` gave to this thread; "" for none.
const std::string& module_of_latest_site();

// Whether the latest place that `current_site` gave to this thread is that of a forward call.
bool latest_site_is_of_forward_call();

}  // namespace halstream_torch
