// What a unit's header says of its lanes.
#pragma once

namespace ocltensor::opencl::matrix_units {

struct Layout {
  int (*line)(int lane);
  int (*row)(int lane, int sum);
  int (*column)(int lane, int sum);
  int (*holder)(int line, int word, int lane);
  int lanes, fragment, sums;
};

}  // namespace ocltensor::opencl::matrix_units
