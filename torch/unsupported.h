// Operators that this device refuses, and why.
#pragma once

#include <set>
#include <string>

namespace halstream_torch {

struct Refusal {
  std::string name;     // "aten::cudnn_convolution"
  std::string reason;
  std::string instead;  // what a program can do

  bool operator<(const Refusal& other) const { return name < other.name; }
};

// The refusal that fits an operator which the CPU cannot run.
Refusal refusal_of(const std::string& name);

// Those that `install` has put in place.
std::set<Refusal>& refusals();

}  // namespace halstream_torch
