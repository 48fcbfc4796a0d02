#include "sites.h"

#include "core.h"

#include <Python.h>

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>

#include <mutex>
#include <unordered_map>
#include <vector>

namespace halstream_torch {

namespace {

// Autograd numbers its nodes on each thread, and a node keeps both numbers. The latest places are kept.
class ForwardSites {
 public:
  void put(uint64_t thread, uint64_t sequence, uint32_t site) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto& ring = rings_[thread];
    if (ring.empty()) ring.resize(capacity);
    ring[sequence % capacity] = {sequence, site};
  }
  uint32_t get(uint64_t thread, uint64_t sequence) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = rings_.find(thread);
    if (found == rings_.end()) return 0;
    auto& entry = found->second[sequence % capacity];
    return entry.sequence == sequence ? entry.site : 0;
  }

 private:
  static constexpr size_t capacity = 1 << 16;
  struct Entry {
    uint64_t sequence = UINT64_MAX;
    uint32_t site = 0;
  };
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::vector<Entry>> rings_;
};

ForwardSites& forward_sites() {
  static auto* all = new ForwardSites();
  return *all;
}

uint32_t site_of_python() {
  if (!Py_IsInitialized()) return 0;
  auto state = PyGILState_Ensure();
  auto site = core->site_here();
  PyGILState_Release(state);
  return site;
}

thread_local uint32_t latest_backward_site = 0;

}  // namespace

bool in_backward() { return torch::autograd::get_current_node() != nullptr; }

uint32_t current_site() {
  if (core->listening() == 0) return 0;
  if (auto node = torch::autograd::get_current_node()) {
    auto site = forward_sites().get(node->thread_id(), node->sequence_nr());
    // Nodes that accumulate gradients come from no forward call: they follow the one that computed the gradient.
    if (site != 0) latest_backward_site = site;
    return latest_backward_site;
  }
  auto site = site_of_python();
  auto next = at::sequence_number::peek();
  // The node of the running operator took its number just before the operator was dispatched to its kernel.
  if (site != 0 && next > 0) forward_sites().put(at::RecordFunction::currentThreadId(), next - 1, site);
  return site;
}

}  // namespace halstream_torch
