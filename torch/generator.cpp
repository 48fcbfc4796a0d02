#include "generator.h"

#include "private_pools.h"
#include "visible.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/TensorBase.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace halstream_torch {

namespace {

constexpr int64_t state_bytes = 16;  // seed and offset, the size that torch's CUDA generator has

// Where a sequence of numbers stands. Generators that graphsafe_get_state has made share one.
struct Position {
  std::mutex mutex;
  uint64_t seed = c10::default_rng_seed_val;
  uint64_t offset = 0;
  uint64_t capture = 0;  // that has the generator
  uint64_t before = 0;   // the offset where it began
};

class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(DeviceIndex device, std::shared_ptr<Position> position = std::make_shared<Position>())
      : GeneratorImpl(c10::Device(c10::DeviceType::CUDA, device), c10::DispatchKeySet(c10::DispatchKey::CUDA)),
        position_(std::move(position)) {}

  void set_current_seed(uint64_t seed) override {
    if (capture_of(current_stream(device().index())) != 0) {
      TORCH_CHECK(
          seed == current_seed(), "CUDAGeneratorImpl::set_current_seed can be called during stream capture only if "
          "the new seed is the same as the original seed");
      return;
    }
    set(seed, 0);
  }
  void set_offset(uint64_t offset) override { set(current_seed(), offset); }
  uint64_t get_offset() const override { return get().second; }
  uint64_t current_seed() const override { return get().first; }
  uint64_t seed() override {
    auto random = c10::detail::getNonDeterministicRandom(true);
    set_current_seed(random);
    return random;
  }
  void set_state(const c10::TensorImpl& state) override {
    TORCH_CHECK_TYPE(
        state.layout() == c10::kStrided && state.device_type() == c10::DeviceType::CPU &&
            state.dtype() == caffe2::TypeMeta::Make<uint8_t>(),
        "RNG state must be a torch.ByteTensor");
    TORCH_CHECK(
        state.numel() == state_bytes || state.numel() == 8, "RNG state is wrong size: ", state.numel(),
        " bytes, expected ", state_bytes);
    auto* words = static_cast<const char*>(state.data());
    uint64_t seed = 0, offset = 0;
    std::memcpy(&seed, words, sizeof seed);
    if (state.numel() == state_bytes) std::memcpy(&offset, words + sizeof seed, sizeof offset);
    set(seed, offset);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    auto state = at::detail::empty_cpu({state_bytes}, c10::ScalarType::Byte);
    auto* words = static_cast<char*>(state.mutable_data_ptr());
    auto [seed, offset] = get();
    std::memcpy(words, &seed, sizeof seed);
    std::memcpy(words + sizeof seed, &offset, sizeof offset);
    return state.getIntrusivePtr();
  }
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override {
    return c10::make_intrusive<Generator>(device().index(), position_);
  }
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& other) override {
    auto* generator = dynamic_cast<Generator*>(other.get());
    TORCH_CHECK(generator != nullptr, "Expected a CUDA Generator");
    position_ = generator->position_;
  }
  uint64_t draw() {
    std::lock_guard<std::mutex> lock(position_->mutex);
    TORCH_CHECK(
        position_->capture == 0, "Offset increment outside graph capture encountered unexpectedly: a capture has this "
        "generator; draw from another one meanwhile");
    return seed_at({position_->seed, take_step()});
  }
  bool draws_as(const Generator& other) const { return position_ == other.position_; }
  bool begin_capture(uint64_t capture) {
    std::lock_guard<std::mutex> lock(position_->mutex);
    if (position_->capture != 0) return false;
    position_->capture = capture;
    position_->before = position_->offset;
    return true;
  }
  uint64_t draw_captured(uint64_t capture) {
    std::lock_guard<std::mutex> lock(position_->mutex);
    TORCH_CHECK(
        position_->capture == capture, "Attempt to increase offset for a CUDA generator not in capture mode: the graph "
        "does not know this generator; call register_generator_state on the graph before the capture");
    return take_step() - position_->before;
  }
  uint64_t end_capture(uint64_t capture) {
    std::lock_guard<std::mutex> lock(position_->mutex);
    if (position_->capture != capture) return 0;
    position_->capture = 0;
    auto end = std::exchange(position_->offset, position_->before);
    return end - position_->before;
  }
  SequencePlace advance(uint64_t by) {
    std::lock_guard<std::mutex> lock(position_->mutex);
    SequencePlace place{position_->seed, position_->offset};
    position_->offset += by;
    return place;
  }

 private:
  Generator* clone_impl() const override {
    auto* copy = new Generator(device().index());
    auto [seed, offset] = get();
    copy->set(seed, offset);
    return copy;
  }
  void set(uint64_t seed, uint64_t offset) {
    std::lock_guard<std::mutex> lock(position_->mutex);
    position_->seed = seed;
    position_->offset = offset;
  }
  std::pair<uint64_t, uint64_t> get() const {
    std::lock_guard<std::mutex> lock(position_->mutex);
    return {position_->seed, position_->offset};
  }
  // torch counts Philox outputs in fours; one operator advances by one such step here. The caller holds the mutex.
  uint64_t take_step() {
    auto offset = position_->offset;
    position_->offset += 4;
    return offset;
  }

  std::shared_ptr<Position> position_;
};

std::vector<at::Generator>& generators() {
  static auto* all = new std::vector<at::Generator>();
  return *all;
}

}  // namespace

void prepare_generators() {
  for (DeviceIndex i = 0; i < runtime_devices(); i++) generators().push_back(at::make_generator<Generator>(i));
}

const at::Generator& default_generator(DeviceIndex device) { return generators().at(resolve_device(device)); }
at::Generator new_generator(DeviceIndex device) { return at::make_generator<Generator>(resolve_device(device)); }

static Generator* checked(const at::Generator& generator) {
  TORCH_CHECK(
      generator.device().is_cuda(), "Expected a 'cuda' device type for generator but found '",
      generator.device().type(), "'");
  return static_cast<Generator*>(generator.unsafeGetGeneratorImpl());
}

uint64_t draw_seed(const at::Generator& generator) { return checked(generator)->draw(); }

bool begin_captured_draws(const at::Generator& generator, uint64_t capture) {
  return checked(generator)->begin_capture(capture);
}
uint64_t draw_captured(const at::Generator& generator, uint64_t capture) {
  return checked(generator)->draw_captured(capture);
}
uint64_t end_captured_draws(const at::Generator& generator, uint64_t capture) {
  return checked(generator)->end_capture(capture);
}
bool same_numbers(const at::Generator& one, const at::Generator& other) {
  return checked(one)->draws_as(*checked(other));
}
SequencePlace advance(const at::Generator& generator, uint64_t by) { return checked(generator)->advance(by); }

// The finalizer of SplitMix64: neighbouring inputs give unrelated seeds.
uint64_t seed_at(SequencePlace place) {
  uint64_t x = place.seed + 0x9E3779B97F4A7C15ull * (place.offset + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace halstream_torch
