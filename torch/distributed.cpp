#include "distributed.h"

#include "process_group.h"
#include "python_functions.h"

#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>
#include <torch/csrc/utils/pybind.h>

namespace halstream_torch {

namespace {

namespace py = pybind11;

// The host enqueues the work of a step: its clock is the only one that needs no wait for the stream.
class HostTimer final : public c10d::Timer {
 public:
  explicit HostTimer(c10::Device) {}
  std::optional<int64_t> measureDifference(Event start, Event end) override {
    auto from = getTimeRef(start), to = getTimeRef(end);
    if (from < 0 || to < 0 || to < from) return std::nullopt;
    return to - from;
  }
};

template <class T>
c10::intrusive_ptr<T> over(
    const py::object& inner, const std::string& name, Milliseconds timeout, bool high_priority, bool host_waits) {
  auto* backend = inner.cast<c10d::Backend*>();
  py::gil_scoped_release others_may_run;  // it waits for the other ranks
  return c10::make_intrusive<T>(BackendPointer::reclaim_copy(backend), name, timeout, high_priority, host_waits);
}

py::dict described(const RankIdentity& one) {
  py::dict to;
  to["machine"] = one.machine;
  to["token"] = one.token;
  to["pid"] = one.pid;
  to["file"] = one.file;
  to["rank"] = one.rank;
  return to;
}

py::list described(const Messages& messages) {
  py::list to;
  for (const auto& [with, count] : messages) to.append(py::make_tuple(with.first, with.second, count));
  return to;
}

py::dict described(const RankGroup& group) {
  py::dict to;
  py::list members;
  for (const auto& one : group.members) members.append(described(one));
  to["key"] = group.key;
  to["rank"] = group.rank;
  to["members"] = members;
  to["begun"] = group.begun;
  to["sent"] = described(group.sent);
  to["received"] = described(group.received);
  return to;
}

py::dict described(const Waiting& one) {
  py::dict to;
  py::list receives;
  for (const auto& message : one.receives) receives.append(py::make_tuple(message.peer, message.tag, message.number));
  to["thread"] = one.thread;
  to["group"] = one.group->key;
  to["title"] = one.call.title;
  to["place"] = one.call.place;
  to["number"] = one.call.number;
  to["receives"] = receives;
  return to;
}

}  // namespace

// torch's own class needs NCCL's headers, so Python is asked for the field.
std::optional<bool> high_priority_of(const c10::intrusive_ptr<c10d::Backend::Options>& options) {
  if (!options) return std::nullopt;
  py::gil_scoped_acquire held;
  auto given = py::cast(options);
  if (!py::hasattr(given, "is_high_priority_stream")) return std::nullopt;
  return given.attr("is_high_priority_stream").cast<bool>();
}

void install_reducer_timer() {
  static const c10::Registerer<c10::DeviceType, std::unique_ptr<c10d::Timer>, c10::Device> registered(
      c10::DeviceType::CUDA, c10::REGISTRY_PREFERRED, c10d::TimerRegistry(),
      c10::Registerer<c10::DeviceType, std::unique_ptr<c10d::Timer>, c10::Device>::DefaultCreator<HostTimer>);
}

PyObject* add_process_group_classes(PyObject* module, PyObject*) {
  return guarded([&]() -> PyObject* {
    auto target = py::reinterpret_borrow<py::object>(module);
    if (!py::hasattr(target, "Communication")) {
      py::module_::import("torch._C._distributed_c10d");
      py::class_<Communication, c10::intrusive_ptr<Communication>, c10d::Backend>(
          target, "Communication", "A backend of torch.distributed whose collectives are operations on streams.")
          .def(py::init(&over<Communication>))
          .def("_name_ranks", &Communication::name_ranks)
          .def("comm_split_count", &Communication::splits)
          .def_property_readonly("_limit", &Communication::timeout)
          .def_property_readonly("_high_priority", &Communication::high_priority);
      py::class_<NcclCommunication, c10::intrusive_ptr<NcclCommunication>, Communication>(
          target, "ProcessGroupNCCL", "NCCL's process group, for CUDA tensors that halstream has.")
          .def(py::init(&over<NcclCommunication>));
    }
    return py::make_tuple(target.attr("Communication"), target.attr("ProcessGroupNCCL")).release().ptr();
  });
}

PyObject* describe_ranks(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    auto state = rank_state();
    if (!state) Py_RETURN_NONE;
    py::list groups, waiting;
    for (const auto& group : state->groups) groups.append(described(group));
    for (const auto& one : state->waiting) waiting.append(described(one));
    py::dict to;
    to["progress"] = state->progress;
    to["own"] = described(state->own);
    to["groups"] = groups;
    to["waiting"] = waiting;
    to["threads"] = py::cast(state->threads);
    return to.release().ptr();
  });
}

PyObject* publish_wait_of_rank(PyObject*, PyObject* args) {
  unsigned long long progress = 0;
  const char *text = nullptr, *found = nullptr;
  if (!PyArg_ParseTuple(args, "Kss", &progress, &text, &found)) return nullptr;
  return guarded([&] { return PyBool_FromLong(publish_wait(progress, text, found)); });
}

PyObject* withdraw_wait_of_rank(PyObject*, PyObject*) {
  withdraw_wait();
  Py_RETURN_NONE;
}

}  // namespace halstream_torch
