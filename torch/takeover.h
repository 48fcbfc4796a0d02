// Puts this module's kernels where torch looks for those of CUDA tensors.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace halstream_torch {

// Registers the kernels; returns how many operators the one kernel serves.
size_t install_operators();
// The names of the operators that the one kernel serves.
const std::vector<std::string>& served_operators();
// Serves one more operator of any library, "mylib::op" or "mylib::op.overload", through its CPU kernel.
void serve_operator(const std::string& name);
// Refuses one.
void refuse_operator(const std::string& name);
// The kernels that are written by hand (factories, copies, sizes).
size_t install_special_kernels();

}  // namespace halstream_torch
