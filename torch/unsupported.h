// Operators that this device refuses, and why.
#pragma once

#include <string>
#include <vector>

namespace halstream_torch {

struct Refusal {
  std::string name;     // "aten::cudnn_convolution"
  std::string reason;
  std::string instead;  // what a program can do
};

// The refusal that fits an operator which the CPU cannot run.
Refusal refusal_of(const std::string& name);

// Those that `install` has put in place.
std::vector<Refusal>& refusals();

}  // namespace halstream_torch
