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

// What a refusal ends with: the way to the page that explains it.
inline constexpr const char* kExplanation = "\nexplain: halstream explain unsupported-operator";

// The refusal that fits an operator which the CPU cannot run.
Refusal refusal_of(const std::string& name);

// Those that `install` has put in place.
std::set<Refusal>& refusals();

}  // namespace halstream_torch
