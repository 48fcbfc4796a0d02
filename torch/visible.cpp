#include "visible.h"

#include "c10/util/Exception.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace halstream_torch {

namespace {

DeviceIndex devices = 0;

struct Choice {
  std::mutex mutex;
  std::atomic<bool> made{false};
  std::vector<int> ordinals;
  std::vector<std::string> uuids;
};
// Never destroyed: threads may still ask while the process ends.
Choice& choice() {
  static auto* one = new Choice();
  return *one;
}

// The device whose uuid begins with `text`, -1 if none or more than one does.
int with_uuid(const std::string& text, const std::vector<std::string>& uuids) {
  int found = -1;
  for (size_t i = 0; i < uuids.size(); i++) {
    if (uuids[i].compare(0, text.size(), text) != 0) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(i);
  }
  return found;
}

// The first ordinal that does not exist ends the list; one that is named twice empties it.
std::vector<int> chosen(const char* text, const std::vector<std::string>& uuids) {
  std::vector<int> ordinals;
  for (const char* at = text;;) {
    const char* comma = std::strchr(at, ',');
    std::string word(at, comma != nullptr ? static_cast<size_t>(comma - at) : std::strlen(at));
    word.erase(0, word.find_first_not_of(" \t"));
    word.erase(word.find_last_not_of(" \t") + 1);
    char* end = nullptr;
    long ordinal = std::strtol(word.c_str(), &end, 10);
    if (end == word.c_str()) ordinal = word.size() > 4 ? with_uuid(word, uuids) : -1;
    if (ordinal < 0 || ordinal >= runtime_devices()) return ordinals;
    if (std::find(ordinals.begin(), ordinals.end(), ordinal) != ordinals.end()) return {};
    ordinals.push_back(static_cast<int>(ordinal));
    if (comma == nullptr) return ordinals;
    at = comma + 1;
  }
}

std::vector<int> read(const std::vector<std::string>& uuids) {
  const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (text != nullptr) return chosen(text, uuids);
  std::vector<int> all(runtime_devices());
  for (size_t i = 0; i < all.size(); i++) all[i] = static_cast<int>(i);
  return all;
}

}  // namespace

DeviceIndex runtime_devices() noexcept { return devices; }
void set_runtime_devices(DeviceIndex count) noexcept { devices = count; }

std::vector<int> visible_ordinals() {
  auto& one = choice();
  std::lock_guard<std::mutex> lock(one.mutex);
  return one.made.load(std::memory_order_relaxed) ? one.ordinals : read(one.uuids);
}

void choose_devices() {
  auto& one = choice();
  if (one.made.load(std::memory_order_acquire)) return;
  std::lock_guard<std::mutex> lock(one.mutex);
  if (one.made.load(std::memory_order_relaxed)) return;
  one.ordinals = read(one.uuids);
  one.made.store(true, std::memory_order_release);
}

void require_device() {
  choose_devices();
  TORCH_CHECK(device_count() > 0, "No CUDA GPUs are available");
}

void set_uuids(std::vector<std::string> uuids) {
  auto& one = choice();
  std::lock_guard<std::mutex> lock(one.mutex);
  one.uuids = std::move(uuids);
}

DeviceIndex device_count() noexcept {
  auto& one = choice();
  // After the choice nothing changes any more: no lock.
  if (one.made.load(std::memory_order_acquire)) return static_cast<DeviceIndex>(one.ordinals.size());
  return static_cast<DeviceIndex>(visible_ordinals().size());
}

}  // namespace halstream_torch
