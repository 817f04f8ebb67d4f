// Shifts of QR sweeps, found on the host.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace ocltensor::opencl::linalg {

// Two shifts, s0 + i im and s1 - i im. Of real matrices all three numbers are real, of complex ones
// im is zero.
struct ShiftPair {
  std::complex<double> s0, s1;
  double im = 0;
};

// The last rows of an active block in Hessenberg form: `rows` x `rows` numbers, by rows.
struct TrailingBlock {
  std::vector<std::complex<double>> h;
  int64_t rows;
  bool real;
};

// rows / 2 pairs: the eigenvalues of a block of an even number of rows, those of a conjugate pair
// together. Numbers that are not finite, or do not converge, give shifts of no use.
std::vector<ShiftPair> find_shifts(const TrailingBlock& block);
// The same number of pairs for a block whose eigenvalues did not lead to a deflation.
std::vector<ShiftPair> exceptional_shifts(const TrailingBlock& block);

}  // namespace ocltensor::opencl::linalg
