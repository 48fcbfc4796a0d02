// What Python calls for torch.cuda.CUDAGraph and torch.cuda.MemPool.
#include "captures.h"
#include "generator.h"
#include "guard.h"
#include "private_pools.h"
#include "python_functions.h"

#include <c10/util/Exception.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/pybind.h>

namespace halstream_torch {

namespace {

struct PoolArguments {
  int device = 0;
  unsigned long long first = 0, second = 0;
  MempoolId_t id() const { return {first, second}; }
  DeviceIndex index() const { return resolve_device(static_cast<DeviceIndex>(device)); }
};

// device, (first, second)
bool parse(PyObject* args, PoolArguments& pool) {
  return PyArg_ParseTuple(args, "i(KK)", &pool.device, &pool.first, &pool.second) != 0;
}

template <class Action>
PyObject* with_pool(PyObject* args, Action action) {
  PoolArguments pool;
  if (!parse(args, pool)) return nullptr;
  return guarded([&]() -> PyObject* {
    action(pool.index(), pool.id());
    Py_RETURN_NONE;
  });
}

PyObject* pool_add_user(PyObject*, PyObject* args) {
  return with_pool(args, [](DeviceIndex device, MempoolId_t id) { pool_with_id(device, id)->add_user(); });
}
PyObject* pool_release(PyObject*, PyObject* args) { return with_pool(args, release_pool); }
PyObject* pool_begin(PyObject*, PyObject* args) { return with_pool(args, route_thread); }
PyObject* pool_end(PyObject*, PyObject* args) { return with_pool(args, end_route_of_thread); }

PyObject* pool_user_count(PyObject*, PyObject* args) {
  PoolArguments pool;
  if (!parse(args, pool)) return nullptr;
  return guarded([&] { return PyLong_FromLong(pool_users(pool.index(), pool.id())); });
}

PyObject* private_pools(PyObject*, PyObject*) {
  return guarded([] {
    py::list all;
    for (const auto& [device, id, pool] : pools_in_use()) {
      auto [owner, idle] = pool->idle();
      if (owner == 0) continue;
      py::set addresses;
      for (auto* address : idle) addresses.add(reinterpret_cast<uintptr_t>(address));
      all.append(py::make_tuple(
          static_cast<int>(device), stream_handle(device, owner), py::make_tuple(id.first, id.second), addresses));
    }
    return all.release().ptr();
  });
}

PyObject* runtime_stream_of(PyObject*, PyObject* args) {
  int device = -1;
  long long id = -1;
  if (!PyArg_ParseTuple(args, "|iL", &device, &id)) return nullptr;
  return guarded([&] {
    auto index = resolve_device(static_cast<DeviceIndex>(device));
    return PyLong_FromLongLong(id < 0 ? current_stream(index) : runtime_stream(stream_of(index, id)));
  });
}

PyObject* others_record(PyObject*, PyObject* on) {
  let_others_record(on == Py_True);
  Py_RETURN_NONE;
}

PyObject* stream_capture(PyObject*, PyObject* args) {
  int device = 0;
  long long id = 0;
  if (!PyArg_ParseTuple(args, "iL", &device, &id)) return nullptr;
  return guarded([&] {
    auto stream = runtime_stream(stream_of(resolve_device(static_cast<DeviceIndex>(device)), id));
    return PyLong_FromUnsignedLongLong(capture_of(stream));
  });
}

PyObject* current_capture(PyObject*, PyObject*) {
  return guarded([] { return PyLong_FromUnsignedLongLong(capture_of(current_stream(current_device()))); });
}

// generators of a list, device, (first, second)
PyObject* capture_begun(PyObject*, PyObject* args) {
  PyObject* list = nullptr;
  PoolArguments pool;
  if (!PyArg_ParseTuple(args, "O!i(KK)", &PyList_Type, &list, &pool.device, &pool.first, &pool.second)) return nullptr;
  return guarded([&] {
    auto device = pool.index();
    std::vector<at::Generator> generators{default_generator(device)};
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
      PyObject* item = PyList_GetItem(list, i);
      TORCH_CHECK_TYPE(THPGenerator_Check(item), "register_generator_state takes a torch.Generator");
      generators.push_back(reinterpret_cast<THPGenerator*>(item)->cdata);
    }
    auto capture = capture_of(current_stream(device));
    begin_draws(capture, generators);
    route_capture(device, capture, pool.id());
    return PyLong_FromUnsignedLongLong(capture);
  });
}

template <class Action>
PyObject* with_capture(PyObject* number, Action action) {
  auto capture = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred()) return nullptr;
  return guarded([&]() -> PyObject* {
    action(capture);
    Py_RETURN_NONE;
  });
}

PyObject* capture_ended(PyObject*, PyObject* number) {
  return with_capture(number, [](uint64_t capture) {
    end_route_of_capture(capture);
    end_draws(capture);
  });
}
PyObject* capture_forgotten(PyObject*, PyObject* number) { return with_capture(number, forget_draws); }
PyObject* replay_draws(PyObject*, PyObject* number) {
  return with_capture(number, [](uint64_t capture) { draw_for_replay(capture, current_stream(current_device())); });
}

}  // namespace

PyMethodDef capture_functions[] = {
    {"runtime_stream", runtime_stream_of, METH_VARARGS, "The runtime's number of a stream, or of the current one."},
    {"others_record", others_record, METH_O, "Let records on this thread only make the event, or record it again."},
    {"stream_capture", stream_capture, METH_VARARGS, "The number of the capture that a stream takes part in, or 0."},
    {"current_capture", current_capture, METH_NOARGS, "The number of the capture of the current stream, or 0."},
    {"capture_begun", capture_begun, METH_VARARGS,
     "Give the capture of the current stream generators and a pool of memory; its number."},
    {"capture_ended", capture_ended, METH_O, "End the allocations and random numbers of a capture."},
    {"capture_forgotten", capture_forgotten, METH_O, "Give up the random numbers of a capture's replays."},
    {"replay_draws", replay_draws, METH_O, "Draw the random numbers of the replay that follows on the current stream."},
    {"pool_add_user", pool_add_user, METH_VARARGS, "Count one more user of a pool of memory, made if there is none."},
    {"pool_release", pool_release, METH_VARARGS, "Count one user less; the last one ends the pool."},
    {"pool_begin", pool_begin, METH_VARARGS, "Let this thread allocate from a pool, as one more user."},
    {"pool_end", pool_end, METH_VARARGS, "End that; the use of the pool stays."},
    {"pool_users", pool_user_count, METH_VARARGS, "How many users a pool has."},
    {"private_pools", private_pools, METH_NOARGS,
     "Of each private pool the device, the handle of the stream that has its blocks, its id, and idle addresses."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace halstream_torch
