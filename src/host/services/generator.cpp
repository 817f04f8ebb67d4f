// Random number generators: handles over the backend's.
#include "ocltensor/generator.h"

#include <random>

#include "base/log.h"
#include "host/core/backend.h"
#include "host/services/owned_handle.h"

namespace ocltensor {

struct Generator::Impl : OwnedHandle<tb_generator> {
  Impl(Device d, tb_generator h, bool owned)
      : OwnedHandle(d, h, owned ? backend(d).api->generator->destroy : nullptr, "generator",
                    "a generator") {}
};

Generator::Generator(Device device, uint64_t seed) {
  tb_generator handle = nullptr;
  invoke_api("creating a generator", backend(device).api->generator->create,
             static_cast<int32_t>(device.index()), seed, &handle);
  impl_ = std::make_shared<const Impl>(device, handle, true);
}

Generator Generator::default_of(Device device) {
  tb_generator handle = nullptr;
  invoke_api("default generator", backend(device).api->generator->default_generator,
             static_cast<int32_t>(device.index()), &handle);
  Generator g;
  g.impl_ = std::make_shared<const Impl>(device, handle, false);
  return g;
}

Device Generator::device() const { return impl_->device; }
tb_generator Generator::handle() const { return impl_->handle; }

void Generator::set_seed(uint64_t seed) const {
  invoke_api("set_seed", backend(device()).api->generator->set_seed, handle(), seed);
}

uint64_t Generator::seed() const {
  uint64_t seed = 0;
  invoke_api("seed", backend(device()).api->generator->get_seed, handle(), &seed);
  return seed;
}

Generator::State Generator::state() const {
  State state{};
  invoke_api("generator state", backend(device()).api->generator->get_state, handle(),
             static_cast<void*>(state.data()), uint64_t{state.size()});
  return state;
}

void Generator::set_state(std::span<const uint8_t> state) const {
  check(state.size() == TB_GENERATOR_STATE_BYTES, "a generator's state has {} bytes, got {}",
        TB_GENERATOR_STATE_BYTES, state.size());
  invoke_api("generator set_state", backend(device()).api->generator->set_state, handle(),
             static_cast<const void*>(state.data()), uint64_t{state.size()});
}

void manual_seed(uint64_t seed) noexcept {
  for (int b = 0; b < backend_count(); ++b) {
    try {
      const auto id = static_cast<uint8_t>(b);
      const int count = backend(id).device_count();
      for (int i = 0; i < count; ++i)
        Generator::default_of(Device::from_backend(id, i)).set_seed(seed);
    } catch (const std::exception& e) {
      logging::debug("generator", "manual_seed skipped a device: {}", e.what());
    }
  }
}

uint64_t seed() {
  std::random_device entropy;
  const uint64_t value = (uint64_t{entropy()} << 32) | entropy();
  manual_seed(value);
  return value;
}

Generator::State get_rng_state(Device device) { return Generator::default_of(device).state(); }

void set_rng_state(std::span<const uint8_t> state, Device device) {
  Generator::default_of(device).set_state(state);
}

}  // namespace ocltensor
