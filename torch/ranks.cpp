#include "ranks.h"

#ifdef __linux__
#include <sys/mman.h>
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <random>

namespace halstream_torch {

namespace {

struct Running {
  Waiting waiting;
  bool arrived = false;
};

// What this process has to say. Never destroyed: operations may still run when the process ends.
struct Ranks {
  std::mutex mutex;
  RankIdentity own{};
  int64_t groups_made = 0;
  std::vector<std::weak_ptr<RankGroup>> groups;
  std::map<uint64_t, Running> running;
  uint64_t next = 1, progress = 1;
  bool published = false;
  std::string found;

  // With the lock held.
  void go_on() {
    progress++;
    take_back();
  }
  void take_back() {
    found.clear();
    if (published && ftruncate(static_cast<int>(own.file), 0) == 0) published = false;
  }
};
Ranks& ranks() {
  static auto* one = new Ranks();
  return *one;
}

int64_t thread_number() {
#ifdef __linux__
  return syscall(SYS_gettid);
#else
  return 0;
#endif
}

// Other processes read the file by its number in /proc. It is gone as soon as this process is.
int file_in_memory() {
#ifdef __linux__
  return memfd_create("halstream-rank", MFD_CLOEXEC);
#else
  return -1;
#endif
}

std::string machine() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  char space[48] = "";
  if (boot.empty() || readlink("/proc/self/ns/pid", space, sizeof space - 1) <= 0) return {};
  return boot + " " + space;
}

// With the lock held. A process that was forked is another rank than its parent.
RankIdentity& own_identity(Ranks& all, int rank) {
  if (all.own.pid == getpid()) return all.own;
  all.groups_made = 0;
  all.published = false;
  auto& own = all.own;
  own = {};
  own.pid = getpid();
  own.file = file_in_memory();
  own.rank = rank;
  std::random_device random;
  own.token = (static_cast<uint64_t>(random()) << 32) | random();
  auto name = own.file < 0 ? std::string() : machine();
  snprintf(own.machine, sizeof own.machine, "%s", name.c_str());
  return own;
}

std::vector<RankIdentity> exchange_identities(c10d::Backend* inner, RankIdentity own, Milliseconds timeout) {
  std::vector<RankIdentity> members(inner->getSize());
  auto bytes = [](RankIdentity& one) {
    return at::from_blob(&one, {static_cast<int64_t>(sizeof one)}, at::TensorOptions().dtype(at::kByte));
  };
  std::vector<at::Tensor> inputs{bytes(own)};
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (auto& member : members) outputs[0].push_back(bytes(member));
  c10d::AllgatherOptions options;
  options.timeout = timeout;
  inner->allgather(outputs, inputs, options)->wait();
  return members;
}

}  // namespace

RankGroupPointer meet(c10d::Backend* inner, Milliseconds timeout) {
  if (inner->getSize() < 2) return {};
  auto& all = ranks();
  RankIdentity own;
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    own = own_identity(all, inner->getRank());
    own.group = all.groups_made++;
  }
  auto group = std::make_shared<RankGroup>();
  group->rank = inner->getRank();
  group->size = inner->getSize();
  group->members = exchange_identities(inner, own, timeout);
  group->key = c10::str(group->members[0].token, ":", group->members[0].group);
  std::lock_guard<std::mutex> lock(all.mutex);
  all.groups.erase(
      std::remove_if(all.groups.begin(), all.groups.end(), [](const auto& one) { return one.expired(); }),
      all.groups.end());
  all.groups.push_back(group);
  return group;
}

RunningCollective::RunningCollective(RankGroupPointer group, CollectiveCall call, const std::vector<Step>& steps) {
  if (!group) return;
  auto& all = ranks();
  std::lock_guard<std::mutex> lock(all.mutex);
  id_ = all.next++;
  auto& waiting = all.running[id_].waiting;
  waiting.thread = thread_number();
  if (call.number != 0) group->begun = call.number;
  for (const auto& step : steps) {
    if (step.peer < 0) continue;
    auto& count = (step.kind == Step::Kind::send ? group->sent : group->received)[{step.peer, step.tag}];
    count++;
    if (step.kind == Step::Kind::receive) waiting.receives.push_back({step.peer, step.tag, count});
  }
  waiting.group = std::move(group);
  waiting.call = std::move(call);
  all.go_on();
}

RunningCollective::~RunningCollective() {
  if (id_ == 0) return;
  auto& all = ranks();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.running.erase(id_);
  all.go_on();
}

void RunningCollective::all_arrived() {
  if (id_ == 0) return;
  auto& all = ranks();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.running[id_].arrived = true;
  all.go_on();
}

std::unique_ptr<RankState> rank_state() {
  auto& all = ranks();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (all.own.pid != getpid()) return {};
  auto state = std::make_unique<RankState>();
  state->progress = all.progress;
  state->own = all.own;
  for (const auto& one : all.groups) {
    if (auto group = one.lock()) state->groups.push_back(*group);
  }
  for (const auto& [id, one] : all.running) {
    state->threads.push_back(one.waiting.thread);
    bool waits = !one.arrived && (one.waiting.call.number != 0 || !one.waiting.receives.empty());
    if (waits) state->waiting.push_back(one.waiting);
  }
  return state;
}

bool publish_wait(uint64_t progress, const std::string& text, const std::string& found) {
  auto& all = ranks();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (all.progress != progress || all.own.pid != getpid() || all.own.file < 0) return false;
  auto file = static_cast<int>(all.own.file);
  all.published = true;
  all.found = found;
  // A reader in between sees a part, which is no text that it takes.
  return ftruncate(file, 0) == 0 && pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

void withdraw_wait() {
  auto& all = ranks();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (all.own.pid == getpid()) all.take_back();
}

std::string found_of_ranks() {
  auto& all = ranks();
  std::lock_guard<std::mutex> lock(all.mutex);
  return all.found;
}

}  // namespace halstream_torch
