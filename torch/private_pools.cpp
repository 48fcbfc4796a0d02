#include "private_pools.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <thread>
#include <tuple>

namespace halstream_torch {

PoolMemory PrivatePool::take(halstream_id stream, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto& all = idle_[stream];
  auto found = all.lower_bound(bytes);
  // A much larger one is kept for those that need it.
  if (found == all.end() || found->first / 2 > bytes) return {};
  auto memory = found->second;
  all.erase(found);
  lent_++;
  return memory;
}

bool PrivatePool::take_at(halstream_id stream, void* address) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto& all = idle_[stream];
  auto idle = std::find_if(all.begin(), all.end(), [&](auto& one) { return one.second.address == address; });
  auto kept = std::find_if(kept_.begin(), kept_.end(), [&](auto& one) { return one.address == address; });
  if (idle != all.end()) {
    all.erase(idle);
  } else if (kept != kept_.end()) {
    kept_.erase(kept);
  } else {
    return false;
  }
  lent_++;
  return true;
}

halstream_id PrivatePool::owner(DeviceIndex device) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (owner_ == 0) check(core->stream_new(device, 0, HALSTREAM_STREAM_NON_BLOCKING, &owner_));
  return owner_;
}

void PrivatePool::lend() {
  std::lock_guard<std::mutex> lock(mutex_);
  lent_++;
}

void PrivatePool::give_back(halstream_id stream, const PoolMemory& memory, Reuse reuse) {
  std::vector<PoolMemory> unused;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    lent_--;
    switch (reuse) {
      case Reuse::on_same_stream:
        idle_[stream].emplace(memory.bytes, memory);
        break;
      case Reuse::after_recorded_streams:
        unused.push_back(memory);  // the runtime gives it out again for the owner, after that work
        break;
      case Reuse::never:
        kept_.push_back(memory);
        break;
    }
    if (users_ == 0) {
      for (auto& one : take_all()) unused.push_back(one);
    }
  }
  free(std::move(unused));
}

void PrivatePool::add_user() {
  std::lock_guard<std::mutex> lock(mutex_);
  users_++;
}

int PrivatePool::remove_user() {
  std::vector<PoolMemory> unused;
  int left = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    left = --users_;
    if (left == 0) unused = take_all();
  }
  free(std::move(unused));
  return left;
}

int PrivatePool::users() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return users_;
}

std::pair<halstream_id, std::vector<void*>> PrivatePool::idle() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<void*> addresses;
  for (const auto& [stream, memories] : idle_) {
    for (const auto& [bytes, memory] : memories) addresses.push_back(memory.address);
  }
  return {owner_, std::move(addresses)};
}

std::vector<PoolMemory> PrivatePool::take_all() {
  auto all = std::move(kept_);
  kept_.clear();
  for (auto& [stream, memories] : idle_) {
    for (auto& [bytes, memory] : memories) all.push_back(memory);
  }
  idle_.clear();
  return all;
}

void PrivatePool::free(std::vector<PoolMemory> all) {
  if (finished()) return;
  for (const auto& memory : all) core->block_free(memory.block);
  halstream_id owner = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (users_ == 0 && lent_ == 0) std::swap(owner, owner_);
  }
  if (owner != 0) core->stream_close(owner);
}

namespace {

struct Route {
  DeviceIndex device;
  uint64_t capture;  // 0: of the thread
  std::thread::id thread;
  MempoolId_t id;
  PoolPointer pool;
};

// Never destroyed: tensors are freed until the process ends.
struct Pools {
  std::mutex mutex;
  std::map<std::tuple<DeviceIndex, uint64_t, uint64_t>, PoolPointer> all;
  std::vector<Route> routes;
  std::atomic<size_t> count{0};  // of routes
};
Pools& pools() {
  static auto* one = new Pools();
  return *one;
}

void add_route(DeviceIndex device, uint64_t capture, MempoolId_t id) {
  auto pool = pool_with_id(device, id);
  pool->add_user();
  auto& of = pools();
  std::lock_guard<std::mutex> lock(of.mutex);
  of.routes.push_back({device, capture, std::this_thread::get_id(), id, std::move(pool)});
  of.count = of.routes.size();
}

template <class Matches>
void end_route(Matches matches) {
  auto& of = pools();
  std::lock_guard<std::mutex> lock(of.mutex);
  for (auto route = of.routes.rbegin(); route != of.routes.rend(); ++route) {
    if (!matches(*route)) continue;
    of.routes.erase(std::next(route).base());
    break;
  }
  of.count = of.routes.size();
}

}  // namespace

PoolPointer pool_with_id(DeviceIndex device, MempoolId_t id) {
  auto& of = pools();
  std::lock_guard<std::mutex> lock(of.mutex);
  auto& pool = of.all[{device, id.first, id.second}];
  if (!pool) pool = std::make_shared<PrivatePool>();
  return pool;
}

void release_pool(DeviceIndex device, MempoolId_t id) {
  auto& of = pools();
  PoolPointer pool;
  {
    std::lock_guard<std::mutex> lock(of.mutex);
    auto found = of.all.find({device, id.first, id.second});
    if (found == of.all.end()) return;
    pool = found->second;
    if (pool->users() == 1) of.all.erase(found);
  }
  pool->remove_user();
}

int pool_users(DeviceIndex device, MempoolId_t id) {
  auto& of = pools();
  std::lock_guard<std::mutex> lock(of.mutex);
  auto found = of.all.find({device, id.first, id.second});
  return found == of.all.end() ? 0 : found->second->users();
}

std::vector<PoolInUse> pools_in_use() {
  std::vector<PoolInUse> in_use;
  auto& of = pools();
  std::lock_guard<std::mutex> lock(of.mutex);
  for (const auto& [key, pool] : of.all) {
    auto [device, first, second] = key;
    in_use.push_back({device, {first, second}, pool});
  }
  return in_use;
}

void route_capture(DeviceIndex device, uint64_t capture, MempoolId_t id) { add_route(device, capture, id); }
void route_thread(DeviceIndex device, MempoolId_t id) { add_route(device, 0, id); }

void end_route_of_capture(uint64_t capture) {
  end_route([&](const Route& route) { return route.capture == capture; });
}
void end_route_of_thread(DeviceIndex device, MempoolId_t id) {
  end_route([&](const Route& route) {
    return route.capture == 0 && route.thread == std::this_thread::get_id() && route.device == device &&
        route.id == id;
  });
}

PoolPointer pool_for(DeviceIndex device, halstream_id stream) {
  auto& of = pools();
  if (of.count.load(std::memory_order_relaxed) == 0) return {};
  auto capture = capture_of(stream);
  std::lock_guard<std::mutex> lock(of.mutex);
  for (auto route = of.routes.rbegin(); route != of.routes.rend(); ++route) {
    bool matches = route->capture != 0 ? route->capture == capture : route->thread == std::this_thread::get_id();
    if (matches && route->device == device) return route->pool;
  }
  return {};
}

}  // namespace halstream_torch
