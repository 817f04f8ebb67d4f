// Checks of random number generators: seeds, state, errors.
#include <cstring>

#include "../checks.h"

namespace ocltensor::conformance {
namespace {

struct State {
  unsigned char bytes[TB_GENERATOR_STATE_BYTES] = {};
  friend bool operator==(const State& a, const State& b) {
    return memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
  }
};

void state(Checker& c) {
  const auto& g = *c.api().generator;
  tb_generator one = nullptr, two = nullptr;
  ErrorBuffer error;
  const tb_status status = g.create(c.device(), 42, &one, error.get());
  if (c.declines("generators", status, error)) return;
  if (status == TB_OK) c.expect_status(TB_OK, "generator.destroy", g.destroy, one);
  c.expect_status(TB_OK, "generator.create", g.create, c.device(), uint64_t{42}, &one);
  c.expect_status(TB_OK, "generator.create", g.create, c.device(), uint64_t{43}, &two);
  uint64_t seed = 0;
  c.expect_status(TB_OK, "generator.get_seed", g.get_seed, one, &seed);
  c.expect(seed == 42, "a generator made with seed 42 has seed {}", seed);
  State a, b;
  c.expect_status(TB_OK, "generator.get_state", g.get_state, one, static_cast<void*>(a.bytes),
                  uint64_t{sizeof a.bytes});
  State expected;  // seed then offset, little-endian
  expected.bytes[0] = 42;
  c.expect(a == expected, "the state after a seed is not (seed, 0)");
  c.expect_status(TB_OK, "generator.set_state", g.set_state, two, static_cast<const void*>(a.bytes),
                  uint64_t{sizeof a.bytes});
  c.expect_status(TB_OK, "generator.get_state", g.get_state, two, static_cast<void*>(b.bytes),
                  uint64_t{sizeof b.bytes});
  c.expect(a == b, "a state does not survive set_state and get_state");
  c.expect_status(TB_OK, "generator.get_seed", g.get_seed, two, &seed);
  c.expect(seed == 42, "set_state does not set the seed");
  for (const uint64_t bad : {0u, 8u, 15u, 17u, 32u}) {
    State wide[2];
    c.expect_status(TB_E_INVALID, "generator.get_state of a wrong size", g.get_state, one,
                    static_cast<void*>(wide), bad);
    c.expect_status(TB_E_INVALID, "generator.set_state of a wrong size", g.set_state, one,
                    static_cast<const void*>(wide), bad);
  }
  c.expect_status(TB_OK, "generator.destroy", g.destroy, one);
  c.expect_status(TB_OK, "generator.destroy", g.destroy, two);
}

void defaults(Checker& c) {
  const auto& g = *c.api().generator;
  tb_generator first = nullptr, second = nullptr;
  ErrorBuffer error;
  if (c.declines("generators", g.default_generator(c.device(), &first, error.get()), error)) return;
  c.expect_status(TB_OK, "generator.default_generator", g.default_generator, c.device(), &first);
  c.expect_status(TB_OK, "generator.default_generator", g.default_generator, c.device(), &second);
  c.expect(first != nullptr && first == second, "the default generator changes");
  tb_generator none = nullptr;
  c.expect(g.default_generator(99, &none, nullptr) < 0, "device 99 has a default generator");
  c.expect(g.create(99, 1, &none, nullptr) < 0, "a generator can be made on device 99");
}

constexpr AbiCheck kList[] = {{"generator state", state, rule::kGenerator},
                              {"default generator", defaults, rule::kGenerator}};

}  // namespace

const std::span<const AbiCheck> kGeneratorChecks = kList;

}  // namespace ocltensor::conformance
