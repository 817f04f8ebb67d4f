// The table of forms, and the model by which they are chosen.
#include "forms.h"

#include <algorithm>
#include <array>
#include <limits>

#include "call/divide_up.h"

namespace ocltensor::opencl::matrix_units {
namespace {

// Registers and spills of all of them are in the compile farm's table; room and efficiency are
// guesses, as none has run on its device.
constexpr std::array<Form, 3> kDotForms{{
    {1, 8, 8, 16, 16, 64, 1, true, 2, 1.0},  // 128 x 128
    {1, 4, 4, 16, 16, 64, 2, true, 3, 0.7},  // 64 x 64
    {1, 1, 8, 16, 16, 64, 2, true, 3, 0.4},  // 16 x 128
}};
constexpr std::array<Form, 3> kMfmaForms{{
    {32, 2, 2, 2, 2, 64, 1, true, 2, 1.0},   // 128 x 128
    {32, 1, 1, 2, 2, 64, 2, true, 3, 0.6},   // 64 x 64
    {16, 1, 2, 1, 4, 64, 2, true, 3, 0.32},  // 16 x 128
}};
constexpr std::array<Form, 3> kWmmaForms{{
    {16, 4, 4, 2, 2, 64, 2, true, 2, 1.0},   // 128 x 128
    {16, 2, 2, 2, 2, 64, 2, true, 4, 0.6},   // 64 x 64
    {16, 1, 2, 1, 4, 64, 2, true, 4, 0.32},  // 16 x 128
}};
// Columns of 8 lanes, twice as many of 16.
constexpr std::array<Form, 3> kXmxForms{{
    {8, 2, 4, 8, 4, 64, 2, false, 2, 1.0},   // 128 x 128
    {8, 2, 2, 4, 4, 64, 2, false, 4, 0.6},   // 64 x 64
    {8, 1, 2, 2, 4, 64, 2, false, 8, 0.32},  // 16 x 64
}};

struct Fragment {
  int64_t rows, columns;
};
Fragment fragment_of(const Architecture& a, const Form& f) {
  switch (a.unit) {
    case Unit::IntelXmx: return {8, static_cast<int64_t>(a.lanes)};
    default: return {f.fragment, f.fragment};
  }
}

}  // namespace

int64_t Form::rows(const Architecture& a) const {
  return sub_groups_m * fragments_m * fragment_of(a, *this).rows;
}
int64_t Form::columns(const Architecture& a) const {
  return sub_groups_n * fragments_n * fragment_of(a, *this).columns;
}
int64_t Form::local_memory(const Architecture& a) const {
  constexpr int64_t kPadding = 16;  // PITCH of unit_tile.h
  return buffers * (rows(a) + columns(a)) * (line_bytes + kPadding);
}

std::span<const Form> forms(const Architecture& a) {
  switch (a.unit) {
    case Unit::AmdDot: return kDotForms;
    case Unit::AmdMfma: return kMfmaForms;
    case Unit::AmdWmma: return kWmmaForms;
    case Unit::IntelXmx: return kXmxForms;
  }
  return {};
}

uint32_t usable_forms(const Architecture& a, const Capabilities& caps) {
  uint32_t usable = 0;
  for (size_t i = 0; i < forms(a).size(); ++i) {
    const Form& f = forms(a)[i];
    if (f.local_memory(a) <= static_cast<int64_t>(caps.local_memory) &&
        f.items(a) <= static_cast<int64_t>(caps.max_work_group_size))
      usable |= 1u << i;
  }
  return usable;
}

// In units of the time that a compute unit needs for a buffer of 128 x 128 sums.
Choice choose_form(const Architecture& a, const Sizes& s) {
  constexpr int64_t kLeastBuffers = 4;  // of a piece
  // To begin and to end, and what pieces cost: another launch, and sums in memory.
  constexpr double kEnds = 6, kLaunch = 20, kSum = 1.0 / 4096;
  const int64_t units = std::max<int64_t>(s.compute_units / a.compute_units_together, 1);
  const auto results = static_cast<double>(s.batch * s.m) * static_cast<double>(s.n);
  double lowest = std::numeric_limits<double>::max();
  Choice best{0, 1};
  for (size_t i = 0; i < forms(a).size(); ++i) {
    if ((s.usable >> i & 1) == 0) continue;
    const Form& f = forms(a)[i];
    const auto tile = static_cast<double>(f.rows(a) * f.columns(a)) / (128 * 128) / f.efficiency;
    const int64_t tiles = s.batch * divide_up(s.m, f.rows(a)) * divide_up(s.n, f.columns(a));
    const int64_t buffers = divide_up(s.k, f.step(s.kind));
    const int64_t most = std::min(s.most_pieces, std::max<int64_t>(buffers / kLeastBuffers, 1));
    for (int64_t pieces = 1; pieces <= most; ++pieces) {
      if (pieces > 1 && tiles * pieces > 2 * units * f.together) break;  // full without
      const int64_t length = divide_up(buffers, pieces);
      if (divide_up(buffers, length) != pieces) continue;  // a piece would be empty
      const int64_t of_unit = divide_up(tiles * pieces, units);
      // A group alone is no faster than one of as many as there is room for.
      const auto rounds = static_cast<double>(std::max(of_unit, f.together));
      double cost = rounds * (static_cast<double>(length) * tile + kEnds * tile);
      if (pieces > 1)
        cost += kLaunch + static_cast<double>(pieces) * results * kSum / static_cast<double>(units);
      if (cost >= lowest) continue;
      lowest = cost;
      best = {i, pieces};
    }
  }
  return best;
}

}  // namespace ocltensor::opencl::matrix_units
