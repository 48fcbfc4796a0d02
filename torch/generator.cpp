#include "generator.h"

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
};

class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(DeviceIndex device, std::shared_ptr<Position> position = std::make_shared<Position>())
      : GeneratorImpl(c10::Device(c10::DeviceType::CUDA, device), c10::DispatchKeySet(c10::DispatchKey::CUDA)),
        position_(std::move(position)) {}

  void set_current_seed(uint64_t seed) override { set(seed, 0); }
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
  // torch counts Philox outputs in fours; one operator advances by one such step here.
  uint64_t draw() {
    std::lock_guard<std::mutex> lock(position_->mutex);
    auto offset = position_->offset;
    position_->offset += 4;
    return mix(position_->seed + 0x9E3779B97F4A7C15ull * (offset + 1));
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
  // The finalizer of SplitMix64: neighbouring inputs give unrelated seeds.
  static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
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

uint64_t draw_seed(const at::Generator& generator) {
  TORCH_CHECK(
      generator.device().is_cuda(), "Expected a 'cuda' device type for generator but found '",
      generator.device().type(), "'");
  return static_cast<Generator*>(generator.unsafeGetGeneratorImpl())->draw();
}

}  // namespace halstream_torch
