// The forms of the product's kernel for each unit, and the choice among them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "matrix_units/units.h"
#include "runtime/driver/capabilities.h"

namespace ocltensor::opencl::matrix_units {

// A form of the kernel (unit_tile.h).
struct Form {
  int64_t fragment;                    // FRAGMENT, of units that have several
  int64_t fragments_m, fragments_n;    // of a sub-group
  int64_t sub_groups_m, sub_groups_n;  // of a work-group
  int64_t line_bytes;                  // along k, of a buffer
  int64_t buffers;
  bool ahead;
  // For the model: work-groups that a compute unit has room for, and the part of the unit's speed
  // that they reach together.
  int64_t together;
  double efficiency;

  int64_t rows(const Architecture& a) const;
  int64_t columns(const Architecture& a) const;
  int64_t items(const Architecture& a) const { return sub_groups_m * sub_groups_n * a.lanes; }
  int64_t step(Kind kind) const { return line_bytes / bytes_of(kind); }  // of k in a buffer
  int64_t local_memory(const Architecture& a) const;
};
inline constexpr size_t kMostForms = 4;
// Those of an architecture's unit, at most kMostForms.
std::span<const Form> forms(const Architecture& a);

// What the choice depends on. Bit i of `usable`: form i may be chosen.
struct Sizes {
  int64_t batch, m, n, k, compute_units;
  Kind kind;
  uint32_t usable;
  int64_t most_pieces;
};
struct Choice {
  size_t form;
  int64_t pieces;  // of k, none of them empty
  bool operator==(const Choice&) const = default;
};
inline constexpr int64_t kMostPieces = 32;

// The forms that a device can use.
uint32_t usable_forms(const Architecture& a, const Capabilities& caps);
// The cheapest of them, by a model; at least one must be usable.
Choice choose_form(const Architecture& a, const Sizes& sizes);

}  // namespace ocltensor::opencl::matrix_units
