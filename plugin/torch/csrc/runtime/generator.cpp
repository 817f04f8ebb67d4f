// Generators: seed and offset of the plugin's Philox generators, as PyTorch reads and writes them.
#include "generator.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <c10/core/GeneratorImpl.h>

#include <array>
#include <cstring>
#include <mutex>

#include "stream.h"

namespace torch_ocl {
namespace {

// The content of a generator's state: 16 bytes.
struct State {
  uint64_t seed;
  uint64_t offset;
};
static_assert(sizeof(State) == TB_GENERATOR_STATE_BYTES);

class Generator final : public c10::GeneratorImpl {
 public:
  // Owns `handle` if `owned`; the handle of a default generator is never destroyed.
  Generator(c10::DeviceIndex index, tb_generator handle, bool owned)
      : GeneratorImpl(c10::Device(kOcl, index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        handle_(handle),
        owned_(owned) {}
  ~Generator() override {
    if (owned_) call_api_noexcept("destroy generator", api().generator->destroy, handle_);
  }

  tb_generator handle() const { return handle_; }

  void set_current_seed(uint64_t seed) override {
    call_api("seed generator", api().generator->set_seed, handle_, seed);
  }
  uint64_t current_seed() const override { return read().seed; }
  uint64_t seed() override {
    const uint64_t seed = c10::detail::getNonDeterministicRandom();
    set_current_seed(seed);
    return seed;
  }
  void set_offset(uint64_t offset) override { write({read().seed, offset}); }
  uint64_t get_offset() const override { return read().offset; }

  void set_state(const c10::TensorImpl& from) override {
    at::detail::check_rng_state(from);
    TORCH_CHECK(from.numel() == sizeof(State), "RNG state is wrong size: a generator of ocl has ",
                sizeof(State), " bytes, got ", from.numel());
    State state;
    std::memcpy(&state, from.data(), sizeof state);
    write(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    // Not at::empty: modes of tensors without data (FakeTensorMode) would answer.
    const at::TensorBase tensor = at::detail::empty_cpu({sizeof(State)}, at::kByte);
    const State state = read();
    std::memcpy(tensor.mutable_data_ptr(), &state, sizeof state);
    return tensor.getIntrusivePtr();
  }

 private:
  Generator* clone_impl() const override {
    const State state = read();
    tb_generator made = nullptr;
    call_api("new generator", api().generator->create, device().index(), state.seed, &made);
    auto* clone = new Generator(device().index(), made, true);
    clone->write(state);
    return clone;
  }
  State read() const {
    State state{};
    call_api("generator state", api().generator->get_state, handle_, &state, sizeof state);
    return state;
  }
  void write(const State& state) {
    call_api("generator state", api().generator->set_state, handle_, &state, sizeof state);
  }

  const tb_generator handle_;
  const bool owned_;
};

struct Defaults {
  std::mutex mutex;
  std::array<at::Generator, kMaxDevices> generators;  // undefined: not used yet
  std::optional<uint64_t> seed;                       // the last one given to manual_seed()
};

Defaults& defaults() {
  static auto& instance = *new Defaults;  // leaked: Python may hold them until the end
  return instance;
}

}  // namespace

const at::Generator& default_generator(c10::DeviceIndex index) {
  index = checked_index(index);
  Defaults& all = defaults();
  const std::lock_guard lock(all.mutex);
  at::Generator& generator = all.generators[static_cast<size_t>(index)];
  if (generator.defined()) return generator;
  tb_generator handle = nullptr;
  call_api("default generator", api().generator->default_generator, index, &handle);
  auto made = at::make_generator<Generator>(index, handle, false);
  if (all.seed)
    made.set_current_seed(*all.seed);
  else
    made.seed();
  return generator = std::move(made);
}

void manual_seed(uint64_t seed) {
  Defaults& all = defaults();
  const std::lock_guard lock(all.mutex);
  all.seed = seed;
  for (at::Generator& generator : all.generators)
    if (generator.defined()) generator.set_current_seed(seed);
}

at::Generator make_generator(c10::DeviceIndex index) {
  index = checked_index(index);
  tb_generator handle = nullptr;
  call_api("new generator", api().generator->create, index, c10::default_rng_seed_val, &handle);
  return at::make_generator<Generator>(index, handle, true);
}

tb_generator generator_handle(const std::optional<at::Generator>& generator,
                              c10::DeviceIndex index) {
  const at::Generator& chosen =
      generator && generator->defined() ? *generator : default_generator(index);
  TORCH_CHECK(chosen.device().type() == kOcl, "Expected a '", kOcl,
              "' device type for generator but found '", chosen.device().type(), "'");
  TORCH_CHECK(chosen.device().index() == index,
              "Expected a generator of device ocl:", static_cast<int>(index), " but found one of ",
              chosen.device());
  return static_cast<const Generator*>(chosen.unsafeGetGeneratorImpl())->handle();
}

PhiloxNumbers take_numbers(c10::DeviceIndex index, uint64_t count) {
  at::Generator generator = default_generator(index);
  const std::lock_guard lock(generator.mutex());
  const uint64_t offset = generator.get_offset();
  generator.unsafeGetGeneratorImpl()->set_offset(offset + count);
  return {generator.current_seed(), offset};
}

}  // namespace torch_ocl
