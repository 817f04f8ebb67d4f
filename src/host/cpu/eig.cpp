// Eigenvalues and eigenvectors of general matrices by Eigen: a real or complex Schur form, in
// double.
#include <eigen3/Eigen/Eigenvalues>
#include <limits>

#include "complex.h"

namespace ocltensor::cpu {
namespace {

using RealMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic>;
using ComplexMatrix = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic>;

// Makes vectors of length 1 whose largest element is real, as LAPACK does.
void normalise(ComplexMatrix& vectors) {
  for (Eigen::Index k = 0; k < vectors.cols(); ++k) {
    auto column = vectors.col(k);
    Eigen::Index place = 0;
    column.cwiseAbs().maxCoeff(&place);
    const Number top = column(place);
    if (top == 0.0) continue;
    if (top.imag() != 0) column *= std::conj(top) / std::abs(top);
    column /= column.norm();
    column(place) = column(place).real();
  }
}

template <typename Solver, typename Matrix>
bool solve(const Matrix& a, bool wants_vectors, ComplexMatrix& values, ComplexMatrix& vectors) {
  if (!a.allFinite()) return false;
  const Solver solver(a, wants_vectors);
  if (solver.info() != Eigen::Success) return false;
  values = solver.eigenvalues();
  if (wants_vectors) vectors = solver.eigenvectors();
  return true;
}

void eig(const CpuCall& call) {
  const View self = call.args.tensor(Arg::self);
  const int64_t n = self.sizes.back();
  const bool wants_vectors = call.raw.out_count > 1;
  const auto elements = read_numbers(self);
  std::vector<Number> all_values, all_vectors;
  for (size_t first = 0; first < elements.size(); first += static_cast<size_t>(n * n)) {
    ComplexMatrix a(n, n), values, vectors;
    for (int64_t i = 0; i < n * n; ++i) a(i / n, i % n) = elements[first + static_cast<size_t>(i)];
    const bool done =
        is_complex(self.type)
            ? solve<Eigen::ComplexEigenSolver<ComplexMatrix>>(a, wants_vectors, values, vectors)
            : solve<Eigen::EigenSolver<RealMatrix>>(RealMatrix(a.real()), wants_vectors, values,
                                                    vectors);
    if (!done) {
      constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
      values = ComplexMatrix::Constant(n, 1, Number(kNan, kNan));
      vectors = ComplexMatrix::Constant(n, n, Number(kNan, kNan));
    } else if (wants_vectors) {
      normalise(vectors);
    }
    for (int64_t i = 0; i < n; ++i) all_values.push_back(values(i, 0));
    for (int64_t i = 0; wants_vectors && i < n * n; ++i)
      all_vectors.push_back(vectors(i / n, i % n));
  }
  write_numbers(call.out(0), all_values);
  if (wants_vectors) write_numbers(call.out(1), all_vectors);
}

constexpr CpuOperator kOperators[] = {{"linalg_eig.out", eig, eig},
                                      {"linalg_eigvals.out", eig, eig}};

}  // namespace

std::span<const CpuOperator> eig_operators() { return kOperators; }

}  // namespace ocltensor::cpu
