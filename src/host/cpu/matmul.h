// Dense row-major matrix products for the families that are built on them.
#pragma once

#include <cstdint>

namespace ocltensor::cpu {

struct Layout {
  bool a_transposed = false;  // a is stored as [k, m]
  bool b_transposed = false;  // b is stored as [n, k]
  bool accumulate = false;    // c += a b
};

// c[m, n] = a[m, k] b[k, n]
void multiply(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k,
              Layout layout = {});
void multiply(const int64_t* a, const int64_t* b, int64_t* c, int64_t m, int64_t n, int64_t k,
              Layout layout = {});

}  // namespace ocltensor::cpu
