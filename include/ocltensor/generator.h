// Random number generators: Philox4x32-10. Every device draws the same for the same seed: the same
// bits in float32, float16, bfloat16 and integers. In float64, what takes a logarithm, sine or
// cosine (normal_, exponential_) may differ by 2 ulps, as drivers' functions do.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "ocltensor/device.h"

namespace ocltensor {

// Shared handle of one generator of one device. Thread-safe.
class OCLTENSOR_API Generator {
 public:
  using State = std::array<uint8_t, TB_GENERATOR_STATE_BYTES>;  // seed, then offset, little-endian
  explicit Generator(Device device, uint64_t seed = 0);
  static Generator default_of(Device device);  // shared by all threads; never destroyed
  Device device() const;
  void set_seed(uint64_t seed) const;
  uint64_t seed() const;
  State state() const;
  void set_state(std::span<const uint8_t> state) const;  // TB_E_INVALID unless 16 bytes
  tb_generator handle() const;

 private:
  Generator() = default;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// Seeds the default generators of all devices of the loaded backends. A device that fails is
// skipped.
OCLTENSOR_API void manual_seed(uint64_t seed) noexcept;
// Does the same with a seed from the system's entropy, which it returns.
OCLTENSOR_API uint64_t seed();
OCLTENSOR_API Generator::State get_rng_state(Device device = "ocl");
OCLTENSOR_API void set_rng_state(std::span<const uint8_t> state, Device device = "ocl");

}  // namespace ocltensor
