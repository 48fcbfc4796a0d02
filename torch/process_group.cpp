#include "process_group.h"

#include "alias.h"
#include "communication_work.h"
#include "private_pools.h"
#include "sites.h"

#include <pthread.h>

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <initializer_list>
#include <thread>

namespace halstream_torch {

// Sends that the peer did not receive yet: a thread waits for them, because gloo has no other way to let one end.
struct Communication::Sends {
  explicit Sends(std::shared_ptr<Abortion> of_group) : abortion(std::move(of_group)) {}

  std::shared_ptr<Abortion> abortion;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<WorkPointer> works;
  bool started = false, ended = false;

  void add(std::vector<WorkPointer> given, const std::shared_ptr<Sends>& self) {
    if (given.empty()) return;
    std::lock_guard<std::mutex> lock(mutex);
    for (auto& work : given) works.push_back(std::move(work));
    changed.notify_one();
    if (started) return;
    started = true;
    std::thread thread([self] { self->wait_for_all(); });
#ifdef __linux__
    pthread_setname_np(thread.native_handle(), "halstream_sends");  // stall reports know it by that
#endif
    thread.detach();
  }
  void end() {
    std::lock_guard<std::mutex> lock(mutex);
    ended = true;
    changed.notify_one();
  }
  void wait_for_all() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return ended || !works.empty(); });
      if (works.empty()) return;
      auto work = std::move(works.front());
      works.pop_front();
      lock.unlock();
      try {
        work->wait();
      } catch (const std::exception& error) {
        // The peer went away or never received. No value depends on a send: the group's next operation reports it.
        abortion->set(error.what());
      }
      work.reset();
      lock.lock();
    }
  }
};

namespace {

// An operation on its way; freed by the runtime.
struct Carried {
  std::vector<Step> steps;
  BackendPointer inner;
  std::shared_ptr<Outcome> outcome;
  std::shared_ptr<Abortion> abortion;
  RankGroupPointer group;
  CollectiveCall call;
  Terms terms;       // of a collective
  int size;
  std::string work;  // for errors; empty: the text of the error says all
  int rank;
  Milliseconds timeout;
  std::function<void(std::vector<WorkPointer>)> keep;
};

bool names_any(const std::string& text, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](const char* part) { return text.find(part) != std::string::npos; });
}

// NCCL's words in front of gloo's, where the peer has ended or cannot be reached.
std::string in_words_of_nccl(const std::string& text) {
  if (!names_any(text, {"onnection closed", "onnection reset", "onnection refused", "Broken pipe"})) return text;
  auto found = found_of_ranks();  // the peer may have ended because of that
  return "NCCL error: remote process exited or there was a network error\n"
         "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"
         "Last error:\n" + text + (found.empty() ? found : "\n" + found);
}

std::string error_text(const Carried& carried, Milliseconds elapsed, const std::string& text) {
  if (carried.work.empty()) return text;
  if (elapsed >= carried.timeout) {
    return c10::str(
        "[Rank ", carried.rank, "] Watchdog caught collective operation timeout: ", carried.work, " ran for ",
        elapsed.count(), " milliseconds before timing out.");
  }
  return c10::str(
      "[Rank ", carried.rank, "] Collective ", carried.work, " raised the following async exception: ",
      in_words_of_nccl(text));
}

// The first call counts.
void set_outcome(Outcome& outcome, std::string error) {
  std::lock_guard<std::mutex> lock(outcome.mutex);
  if (outcome.done) return;
  outcome.done = true;
  outcome.error = std::move(error);
}

int run_carried(void* argument, char* text, size_t room) {
  auto& carried = *static_cast<Carried*>(argument);
  auto began = std::chrono::steady_clock::now();
  std::vector<WorkPointer> sent;
  std::string error;
  RunningCollective here(carried.group, carried.call, carried.steps);
  try {
    at::AutoDispatchBelowADInplaceOrView without_autograd;
    c10::AutoGradMode without_gradients(false);
    if (carried.call.number != 0 && carried.size > 1) {
      agree(carried.inner.get(), {carried.rank, carried.size, carried.timeout}, carried.terms);
      here.all_arrived();
    }
    run_steps(carried.steps, carried.timeout, sent);
  } catch (const c10::Error& raised) {
    error = raised.what_without_backtrace();
  } catch (const std::exception& raised) {
    error = raised.what();
  }
  carried.keep(std::move(sent));
  if (!error.empty()) {
    auto elapsed = std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - began);
    error = error_text(carried, elapsed, error);
    snprintf(text, room, "%s", error.c_str());
    if (!carried.work.empty()) carried.abortion->set(error);
  }
  bool failed = !error.empty();
  set_outcome(*carried.outcome, std::move(error));
  return failed ? 1 : 0;
}

void release_carried(void* argument) {
  std::unique_ptr<Carried> carried(static_cast<Carried*>(argument));
  // Says something only where the operation was dropped: what it waited for has failed.
  set_outcome(*carried->outcome, c10::str("[Rank ", carried->rank, "] ", carried->work, " did not run: its device failed."));
}

// The name that a profile has for a collective: that of NCCL's backend.
std::string profiled_name(c10d::OpType type) {
  switch (type) {
    case c10d::OpType::ALLREDUCE: return "allreduce";
    case c10d::OpType::ALLGATHER: return "all_gather";
    case c10d::OpType::_ALLGATHER_BASE: return "_allgather_base";
    case c10d::OpType::ALLGATHER_COALESCED: return "allgather_coalesced";
    case c10d::OpType::REDUCE_SCATTER: return "reduce_scatter";
    case c10d::OpType::_REDUCE_SCATTER_BASE: return "_reduce_scatter_base";
    case c10d::OpType::ALLTOALL_BASE:
    case c10d::OpType::ALLTOALL: return "all_to_all";
    default: break;
  }
  auto name = c10d::opTypeToString(type);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

at::ScalarType profiled_type(const Launch& what) {
  for (auto* tensors : {&what.inputs, &what.outputs}) {
    if (!tensors->empty()) return tensors->front().scalar_type();
  }
  return at::kByte;
}

// NCCL's operation: torch calls it by several names.
std::string kind_in_reports(std::string operation) {
  for (const char* one : {"all_gather", "reduce_scatter"}) {
    if (operation == c10::str("_", one, "_base")) return one;
  }
  return operation;
}

// " (Float [4, 2], Long [3])"
std::string shapes_of(const Launch& what) {
  constexpr size_t most = 4;
  const auto& tensors = what.inputs.empty() ? what.outputs : what.inputs;
  std::string text;
  for (size_t i = 0; i < tensors.size() && i < most; i++) {
    text += c10::str(i == 0 ? " (" : ", ", tensors[i].scalar_type(), " ", tensors[i].sizes());
  }
  if (tensors.size() > most) text += ", ...";
  return text.empty() ? text : text + ")";
}

int64_t elements(const std::vector<at::Tensor>& tensors) {
  int64_t all = 0;
  for (const auto& tensor : tensors) all += tensor.numel();
  return all;
}

}  // namespace

Communication::Communication(
    BackendPointer inner, std::string name, Milliseconds timeout, bool high_priority, bool host_waits)
    : Backend(inner->getRank(), inner->getSize()), inner_(std::move(inner)), name_(std::move(name)), timeout_(timeout),
      high_priority_(high_priority), host_waits_(host_waits), ranks_of_machine_(meet(inner_.get(), timeout)),
      sends_(std::make_shared<Sends>(abortion_)) {}

Communication::~Communication() {
  sends_->end();
  if (finished()) return;
  for (auto& [key, stream] : streams_) core->stream_close(stream);
}

c10::intrusive_ptr<c10d::Backend::Options> Communication::getBackendOptions() {
  return c10::make_intrusive<Options>(name_, timeout_);
}

// A copy of the options of a backend: a group that is split from it changes them. Older torch has no copies.
template <class Options>
static auto copied(const c10::intrusive_ptr<Options>& options, int) -> decltype(options->clone()) {
  return options->clone();
}
template <class Options>
static auto copied(const c10::intrusive_ptr<Options>& options, long) {
  return options;
}

BackendPointer Communication::split(
    const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
    const c10::intrusive_ptr<Options>& options) {
  auto inner = inner_->split(store, ranks, copied(inner_->getBackendOptions(), 0));
  splits_++;
  if (!inner) return {};  // this rank is in no part
  auto timeout = options ? options->timeout : timeout_;
  auto made = part(std::move(inner), timeout, high_priority_of(options).value_or(high_priority_));
  if (options) made->name_ranks(options->global_ranks_in_group);
  return made;
}

void Communication::name_ranks(const std::vector<uint64_t>& ranks) {
  ranks_ = {};
  if (ranks.empty()) return;
  ranks_.start = static_cast<int>(ranks[0]);
  if (ranks.size() < 2) return;
  ranks_.stride = static_cast<int>(ranks[1]) - ranks_.start;
  for (size_t i = 1; i < ranks.size(); i++) {
    if (static_cast<int>(ranks[i]) - static_cast<int>(ranks[i - 1]) != ranks_.stride) ranks_.stride = -1;
  }
}

c10::intrusive_ptr<Communication> Communication::part(BackendPointer inner, Milliseconds timeout, bool high_priority) const {
  return c10::make_intrusive<Communication>(std::move(inner), name_, timeout, high_priority, host_waits_);
}

c10::intrusive_ptr<Communication> NcclCommunication::part(BackendPointer inner, Milliseconds timeout, bool high_priority) const {
  return c10::make_intrusive<NcclCommunication>(std::move(inner), getBackendName(), timeout, high_priority, false);
}

void Communication::abort() {
  abortion_->set({});
  inner_->abort();
}

void Communication::shutdown() {
  std::map<StreamKey, halstream_id> streams;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    streams = streams_;
  }
  for (auto& [key, stream] : streams) {
    // What failed was reported where it was waited for, or is by the next synchronize of its device.
    core->stream_synchronize(stream, std::chrono::nanoseconds(timeout_).count());
  }
  inner_->shutdown();
}

Launch Communication::describe(const char* operation, c10d::OpType type, Milliseconds timeout, bool async) const {
  Launch what{};
  what.name = name_ + ":" + operation;
  what.terms.kind = kind_in_reports(operation);
  what.type = type;
  what.device = current_device();
  what.timeout = limit(timeout);
  what.async = async;
  if (is_nccl()) what.group = {getGroupUid(), getGroupDesc()};
  return what;
}

std::string Communication::describe_work(const Launch& what, uint64_t sequence) const {
  if (!is_nccl()) return {};
  return c10::str(
      work_of_nccl, "SeqNum=", sequence, ", OpType=", c10d::opTypeToString(what.type), ", NumelIn=",
      elements(what.inputs), ", NumelOut=", elements(what.outputs), ", Timeout(ms)=", what.timeout.count(), ")");
}

CollectiveCall Communication::describe_call(const Launch& what, uint64_t sequence, uint32_t site) const {
  auto group = getGroupDesc().empty() || getGroupDesc() == "undefined" ? getGroupUid() : getGroupDesc();
  auto title = c10::str(what.terms.kind, " ", sequence, " of group ", group);
  return {std::move(title), text_of_site(site), what.peer < 0 ? sequence : 0};
}

halstream_id Communication::stream_for(const StreamKey& key) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto& stream = streams_[key];
  if (stream == 0) {
    check(core->stream_new(key.first, high_priority_ ? -1 : 0, HALSTREAM_STREAM_NON_BLOCKING, &stream));
  }
  return stream;
}

// The stream of the operation, behind what the caller's stream has and behind the group's collective before it.
halstream_id Communication::synchronized_stream(const Launch& what) {
  auto stream = stream_for({what.device, what.peer});
  check(core->stream_wait_stream(stream, current_stream(what.device)));
  if (what.peer >= 0) return stream;
  DeviceIndex latest = latest_device_;
  if (latest >= 0 && latest != what.device) check(core->stream_wait_stream(stream, stream_for({latest, -1})));
  latest_device_ = what.device;
  return stream;
}

WorkPointer Communication::launch(Launch what, std::vector<Step> steps) {
  auto sequence = what.peer >= 0 ? ++messages_ : ++sequence_;
  if (!is_nccl() || !at::hasCallbacks()) return enqueue(std::move(what), std::move(steps), sequence);
  RECORD_PARAM_COMMS_DATA(
      std::make_tuple(static_cast<int64_t>(sequence), what.peer >= 0), what.group, what.inputs, what.outputs,
      what.peer >= 0 && what.peer < size_ ? what.peer : rank_, profiled_name(what.type),
      elements(what.inputs.empty() ? what.outputs : what.inputs),
      elements(what.outputs.empty() ? what.inputs : what.outputs), profiled_type(what),
      std::vector<int64_t>(), std::vector<int64_t>(), ranks_.start, ranks_.stride, size_);
  return enqueue(std::move(what), std::move(steps), sequence);
}

WorkPointer Communication::enqueue(Launch what, std::vector<Step> steps, uint64_t sequence) {
  DeviceScope scope(what.device);
  TORCH_CHECK_NOT_IMPLEMENTED(
      capture_of(current_stream(what.device)) == 0, what.name,
      " cannot be captured: halstream's collectives run once; leave it out of the graph");
  auto work = c10::make_intrusive<CommunicationWork>(
      rank_, what, what.name.c_str(), describe_work(what, sequence), sequence, host_waits_);
  auto stream = synchronized_stream(what);  // raises if the device is lost
  if (is_nccl()) abortion_->check(rank_);
  Ranges ranges;
  bool listening = core->listening() != 0;
  if (listening) {
    for (auto* read : {&what.inputs, &what.also_read}) {
      for (const auto& tensor : *read) add_ranges(ranges, tensor, HALSTREAM_READ);
    }
    for (const auto& tensor : what.outputs) add_ranges(ranges, tensor, HALSTREAM_WRITE);
  }
  auto outcome = std::make_shared<Outcome>();
  auto sends = sends_;
  auto site = current_site();
  auto carried = std::make_unique<Carried>();
  carried->group = ranks_of_machine_;
  carried->call = describe_call(what, sequence, site);
  carried->terms = std::move(what.terms);
  carried->terms.text = carried->call.title + shapes_of(what) + (carried->call.place.empty() ? "" : ", at ") + carried->call.place;
  carried->size = size_;
  carried->steps = std::move(steps);
  carried->inner = inner_;
  carried->outcome = outcome;
  carried->abortion = abortion_;
  carried->keep = [sends](std::vector<WorkPointer> works) { sends->add(std::move(works), sends); };
  carried->work = describe_work(what, sequence);
  carried->rank = rank_;
  carried->timeout = what.timeout;
  halstream_operation operation{};
  operation.size = sizeof operation;
  operation.name = what.name.c_str();
  operation.site = site;
  // With gloo by name the host waits for each collective and raises its error, as torch's gloo does.
  operation.flags = HALSTREAM_AWAITS_OTHERS | (is_nccl() ? HALSTREAM_LOSES_DEVICE : 0);
  operation.ranges = ranges.data();
  operation.count = ranges.size();
  operation.run = &run_carried;
  operation.argument = carried.get();
  operation.release = &release_carried;
  check(core->enqueue(stream, &operation));
  carried.release();
  work->launched(stream, outcome);
  if (!what.async) check(core->stream_wait_stream(current_stream(what.device), stream));
  return work;
}

WorkPointer Communication::launch_or_collect(Launch what, std::vector<Step> steps) {
  if (coalescing_ == 0) return launch(std::move(what), std::move(steps));
  auto work = c10::make_intrusive<CommunicationWork>(
      rank_, what, nullptr, std::string(), (what.peer >= 0 ? messages_ : sequence_) + 1, host_waits_);
  if (!collected_) {
    collected_ = what;
  } else {
    auto append = [](std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(collected_->inputs, what.inputs);
    append(collected_->outputs, what.outputs);
    append(collected_->also_read, what.also_read);
    collected_->terms.add(what.terms);
  }
  for (auto& step : steps) collected_steps_.push_back(std::move(step));
  return work;
}

void Communication::startCoalescing() {
  coalescing_++;
  collected_.reset();
  collected_steps_.clear();
}

WorkPointer Communication::endCoalescing() {
  TORCH_CHECK(coalescing_ > 0, "end of coalescing without its start");
  coalescing_--;
  if (!collected_) return {};
  auto what = std::move(*collected_);
  collected_.reset();
  what.name = name_ + ":coalesced";
  what.type = c10d::OpType::COALESCED;
  what.terms.kind = "coalesced " + what.terms.kind;
  // A group of sends and receives is one operation, for all peers together.
  what.peer = what.peer >= 0 ? size_ : -1;
  return launch(std::move(what), std::move(collected_steps_));
}

}  // namespace halstream_torch
