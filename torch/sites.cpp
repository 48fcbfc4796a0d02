#include "sites.h"

#include "backward_order.h"
#include "core.h"

#include <Python.h>

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>

#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace halstream_torch {

namespace {

// Autograd numbers its nodes on each thread, and a node keeps both numbers. The latest places are kept.
class ForwardSites {
 public:
  struct Entry {
    uint64_t sequence = UINT64_MAX;
    uint32_t site = 0;
    uint32_t module = 0;
  };
  void put(uint64_t thread, const Entry& entry) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto& ring = rings_[thread];
    if (ring.empty()) ring.resize(capacity);
    auto& kept = ring[entry.sequence % capacity];
    // What follows without a node of its own sees the same number.
    if (kept.sequence != entry.sequence) kept = entry;
  }
  Entry get(uint64_t thread, uint64_t sequence) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = rings_.find(thread);
    if (found == rings_.end()) return {};
    auto& entry = found->second[sequence % capacity];
    return entry.sequence == sequence ? entry : Entry{};
  }

 private:
  static constexpr size_t capacity = 1 << 16;
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::vector<Entry>> rings_;
};

ForwardSites& forward_sites() {
  static auto* all = new ForwardSites();
  return *all;
}

// Paths of modules by number; never destroyed, and none is forgotten: a program has few of them.
struct Modules {
  std::mutex mutex;
  std::unordered_map<std::string, uint32_t> numbers{{"", 0}};
  std::deque<std::string> paths{""};
};
Modules& modules() {
  static auto* all = new Modules();
  return *all;
}

// The whole stack, or the innermost line of the program only. A thread without Python's frames has no line.
uint32_t site_of_python(bool whole) {
  if (!Py_IsInitialized() || finished() || (!whole && PyGILState_GetThisThreadState() == nullptr)) return 0;
  auto state = PyGILState_Ensure();
  auto site = whole ? core->site_here() : core->line_here();
  PyGILState_Release(state);
  return site;
}

// Whether the node that runs on this thread has called Python: a hook, a `Function.backward`, or what computes
// values again for a checkpoint. The frames of a thread that calls the engine are not the node's.
bool node_runs_python() {
  if (!Py_IsInitialized() || finished() || PyGILState_GetThisThreadState() == nullptr) return false;
  auto state = PyGILState_Ensure();
  bool runs = false;
  if (auto* frame = PyEval_GetFrame()) {
    auto* code = PyFrame_GetCode(frame);
    auto* name = PyObject_GetAttrString(reinterpret_cast<PyObject*>(code), "co_name");
    runs = name == nullptr || PyUnicode_CompareWithASCIIString(name, "_engine_run_backward") != 0;
    if (name == nullptr) PyErr_Clear();
    Py_XDECREF(name);
    Py_DECREF(code);
  }
  PyGILState_Release(state);
  return runs;
}

thread_local ForwardSites::Entry latest_backward;
thread_local uint32_t module_of_thread = 0;
thread_local uint32_t latest_module = 0;
thread_local bool latest_is_forward_call = false;

}  // namespace

bool latest_site_is_of_forward_call() { return latest_is_forward_call; }

void set_running_module(const std::string& path) {
  auto& all = modules();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto [found, is_new] = all.numbers.try_emplace(path, static_cast<uint32_t>(all.paths.size()));
  if (is_new) all.paths.push_back(path);
  module_of_thread = found->second;
}

const std::string& module_of_latest_site() {
  auto& all = modules();
  std::lock_guard<std::mutex> lock(all.mutex);
  return all.paths[latest_module];
}

std::string text_of_site(uint32_t site) {
  static auto* known = new std::unordered_map<uint32_t, std::string>();  // used with the GIL
  if (site == 0 || !Py_IsInitialized() || finished()) return {};
  auto state = PyGILState_Ensure();
  auto found = known->find(site);
  if (found == known->end()) {
    PyObject* sites = PyImport_ImportModule("halstream._sites");
    PyObject* line = sites != nullptr ? PyObject_CallMethod(sites, "site_line", "I", static_cast<unsigned>(site)) : nullptr;
    const char* text = line != nullptr ? PyUnicode_AsUTF8(line) : nullptr;
    if (text == nullptr) PyErr_Clear();
    found = known->emplace(site, text != nullptr ? text : "").first;
    Py_XDECREF(line);
    Py_XDECREF(sites);
  }
  auto text = found->second;
  PyGILState_Release(state);
  return text;
}

uint32_t current_site() {
  if (!finished()) note_backward_operator();
  auto node = torch::autograd::get_current_node();
  latest_is_forward_call = node != nullptr && !node_runs_python();
  if (latest_is_forward_call) {
    auto forward = forward_sites().get(node->thread_id(), node->sequence_nr());
    // Nodes that accumulate gradients come from no forward call: they follow the one that computed the gradient.
    if (forward.site != 0) latest_backward = forward;
    latest_module = latest_backward.module;
    return latest_backward.site;
  }
  auto site = site_of_python(core->listening() != 0);
  latest_module = module_of_thread;
  auto next = at::sequence_number::peek();
  // The node of the running operator took its number just before the operator was dispatched to its kernel.
  if (site != 0 && next > 0) forward_sites().put(at::RecordFunction::currentThreadId(), {next - 1, site, latest_module});
  return site;
}

}  // namespace halstream_torch
