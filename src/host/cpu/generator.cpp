// Generator states and their ABI.
#include "generator.h"

#include <cstring>

#include "memory.h"
#include "ocltensor/error.h"

namespace ocltensor::cpu {
namespace {

// PyTorch's default seed, so that a program without a seed gives the same numbers in every run.
constexpr uint64_t kDefaultSeed = 67280421310721;

tb_generator handle(Generator& g) {
  return reinterpret_cast<tb_generator>(&g);  // NOLINT: opaque by contract
}

tb_status default_generator(int32_t device, tb_generator* generator, tb_error* error) {
  return guarded(error, [&] {
    check_device(device);
    *generator = handle(generator_of(nullptr));
  });
}
tb_status create(int32_t device, uint64_t seed, tb_generator* generator, tb_error* error) {
  return guarded(error, [&] {
    check_device(device);
    *generator = handle(*new Generator(seed));
  });
}
tb_status destroy(tb_generator generator, tb_error* error) {
  return guarded(error, [&] {
    if (generator == nullptr) return;
    check(&generator_of(generator) != &generator_of(nullptr),
          "the default generator cannot be destroyed");
    delete &generator_of(generator);
  });
}
tb_status set_seed(tb_generator generator, uint64_t seed, tb_error* error) {
  return guarded(error, [&] { generator_of(generator).set({seed, 0}); });
}
tb_status get_seed(tb_generator generator, uint64_t* seed, tb_error* error) {
  return guarded(error, [&] { *seed = generator_of(generator).get().seed; });
}

void check_bytes(uint64_t bytes) {
  check(bytes == TB_GENERATOR_STATE_BYTES, "a generator's state has {} bytes, got {}",
        TB_GENERATOR_STATE_BYTES, bytes);
}
tb_status get_state(tb_generator generator, void* state, uint64_t bytes, tb_error* error) {
  return guarded(error, [&] {
    check_bytes(bytes);
    const Generator::State s = generator_of(generator).get();
    std::memcpy(state, &s, sizeof s);
  });
}
tb_status set_state(tb_generator generator, const void* state, uint64_t bytes, tb_error* error) {
  return guarded(error, [&] {
    check_bytes(bytes);
    Generator::State s;
    std::memcpy(&s, state, sizeof s);
    generator_of(generator).set(s);
  });
}

}  // namespace

Generator::State Generator::get() const {
  const std::lock_guard lock(mutex_);
  return state_;
}
void Generator::set(State state) {
  const std::lock_guard lock(mutex_);
  state_ = state;
}
Generator::State Generator::take(uint64_t words) {
  const std::lock_guard lock(mutex_);
  const State before = state_;
  state_.offset += (words + 3) / 4;
  return before;
}

Generator& generator_of(tb_generator generator) {
  static auto& standard = *new Generator(kDefaultSeed);  // leaked: used until the last thread ends
  return generator == nullptr ? standard
                              : *reinterpret_cast<Generator*>(generator);  // NOLINT: opaque
}

const tb_generator_api* generator_api() {
  static const tb_generator_api api = {
      .struct_size = sizeof(tb_generator_api),
      .default_generator = default_generator,
      .create = create,
      .destroy = destroy,
      .set_seed = set_seed,
      .get_seed = get_seed,
      .get_state = get_state,
      .set_state = set_state,
  };
  return &api;
}

}  // namespace ocltensor::cpu
