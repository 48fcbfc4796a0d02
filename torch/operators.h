// What the module knows about an operator from its schema, worked out once when CUDA's kernels are replaced.
#pragma once

#include "metadata.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace halstream_torch {

using torch::jit::Stack;

// How the index of an operator names parts of its first argument.
enum class Indexing : uint8_t {
  none,
  lists,     // a tensor, or none, for each dimension, as in x[i, :, j]
  slices,    // a list of places in one dimension
  rows,      // a list of places in the first dimension
  elements,  // one element for each element of the index, along one dimension
  flat,      // elements by their place in the whole tensor
  mask,      // the elements for which a mask is true
};

struct ArgumentFacts {
  enum class Kind : uint8_t { tensor, tensors, generator, device, number, other };
  Kind kind;
  bool writes;  // the schema marks it with "!"
  bool out;     // an `out=` argument: written, not read
};

struct ReturnFacts {
  enum class Kind : uint8_t { tensor, tensors, other };
  Kind kind;
  int argument;  // the argument that is returned, or -1 for a new value
};

struct Operator {
  explicit Operator(const c10::OperatorHandle& handle);

  c10::OperatorHandle handle;
  std::string name;  // "aten::addmm": what reports show
  std::vector<ArgumentFacts> arguments;
  std::vector<ReturnFacts> returns;
  int generator = -1;        // index of the generator's argument
  bool writes = false;       // changes an argument
  bool has_out = false;      // has an `out=` argument
  bool makes = false;        // returns a new tensor
  bool pointwise = false;    // torch's tag: numbers never change the result's shape
  bool random = false;       // draws random numbers
  bool needs_values = false; // the result's shape or value depends on what the tensors hold: the host must wait
  bool indexes = false;      // takes index tensors that may lie on the CPU
  bool takes_one_value = false;  // a tensor of one number, whatever its shape
  bool makes_other_layout = false;  // a nested or quantized tensor, from strided ones
  bool lengths_on_host = false;  // takes lengths of sequences, which lie on the CPU
  // The meta kernel describes CUDA's results, which differ from those of the CPU's kernel: shapes come from a run
  // of the CPU's kernel on zeros.
  bool shapes_from_cpu = false;
  // The kernel that writes into given tensors, if the CPU has a real one: it saves a copy of the result.
  std::optional<c10::OperatorHandle> out_variant;
  // What runs instead of the operator's CPU kernel, for operators that only CUDA has.
  void (*substitute)(Stack&, uint64_t seed) = nullptr;
  // Runs where the results have their memory already, and writes there.
  void (*direct)(Stack& arguments, c10::SmallVector<at::Tensor, 2>& results, uint64_t seed) = nullptr;
  mutable MetadataCache metadata;
  // It accesses the parts of its first argument that an index names.
  Indexing indexing = Indexing::none;
};

// Whether the operator's result is a view of an argument: it touches no data.
bool makes_view(const c10::FunctionSchema& schema);

}  // namespace halstream_torch
