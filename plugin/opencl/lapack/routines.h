// LAPACK's routines that the algorithms call, with one signature each for all four types.
// Names and arguments are those of the LAPACK Users' Guide (Anderson et al., 1999).
#pragma once

#include <algorithm>
#include <complex>
#include <string>
#include <type_traits>
#include <vector>

#include "library.h"
#include "ocltensor/dtype.h"

namespace ocltensor::opencl::lapack {

template <typename T>
struct PartOf {
  using Type = T;
};
template <typename T>
struct PartOf<std::complex<T>> {
  using Type = T;
};
template <typename T>
using Part = typename PartOf<T>::Type;
template <typename T>
inline constexpr bool kComplex = !std::is_same_v<T, Part<T>>;

// "geev" as "dgeev_".
template <typename T>
std::string routine_name(const char* name) {
  constexpr bool kDouble = std::is_same_v<Part<T>, double>;
  return std::string(1, kComplex<T> ? (kDouble ? 'z' : 'c') : (kDouble ? 'd' : 's')) + name + "_";
}

// Calls `f` with a null pointer to the C++ type of a dtype.
template <typename F>
auto with_type(DType type, F&& f) {
  switch (type) {
    case DType::Float32: return f(static_cast<float*>(nullptr));
    case DType::Float64: return f(static_cast<double*>(nullptr));
    case DType::Complex64: return f(static_cast<std::complex<float>*>(nullptr));
    default: return f(static_cast<std::complex<double>*>(nullptr));
  }
}

// The size of a workspace that a routine asked for, as a number of its type.
template <typename T>
int workspace(T asked) {
  return std::max(1, static_cast<int>(std::real(asked)));
}

// Eigenvalues and right eigenvectors of general matrices.
template <typename T>
class Geev {
 public:
  explicit Geev(const Library& library)
      : routine_(library.find<Routine>(routine_name<T>("geev"))) {}
  bool exists() const { return routine_ != nullptr; }
  // a [n, n] is destroyed; values [n], vectors [n, n] or nullptr. Returns whether it converged.
  bool operator()(int n, T* a, std::complex<Part<T>>* values,
                  std::complex<Part<T>>* vectors) const {
    const char none = 'N', job = vectors == nullptr ? 'N' : 'V';
    const int one = 1, query = -1;
    int info = 0;
    if constexpr (kComplex<T>) {
      std::vector<Part<T>> reals(static_cast<size_t>(2 * n));
      const auto call = [&](T* work, const int* size) {
        routine_(&none, &job, &n, a, &n, values, nullptr, &one, vectors, vectors ? &n : &one, work,
                 size, reals.data(), &info);
      };
      with_workspace(call, &query);
    } else {
      std::vector<T> re(static_cast<size_t>(n)), im(static_cast<size_t>(n));
      std::vector<T> packed(vectors == nullptr ? 1 : static_cast<size_t>(n) * n);
      const auto call = [&](T* work, const int* size) {
        routine_(&none, &job, &n, a, &n, re.data(), im.data(), nullptr, &one, packed.data(),
                 vectors ? &n : &one, work, size, &info);
      };
      with_workspace(call, &query);
      for (int k = 0; k < n; ++k) values[k] = {re[k], im[k]};
      if (vectors != nullptr) unpack(n, im.data(), packed.data(), vectors);
    }
    return info == 0;
  }

 private:
  template <typename Call>
  void with_workspace(Call&& call, const int* query) const {
    T asked{};
    call(&asked, query);
    const int size = workspace(asked);
    std::vector<T> work(static_cast<size_t>(size));
    call(work.data(), &size);
  }
  // Columns of conjugate pairs hold the real parts, then the imaginary ones.
  static void unpack(int n, const T* im, const T* packed, std::complex<Part<T>>* vectors) {
    for (int k = 0; k < n; ++k) {
      const T* own = packed + static_cast<ptrdiff_t>(k) * n;
      auto* to = vectors + static_cast<ptrdiff_t>(k) * n;
      for (int i = 0; i < n; ++i)
        to[i] = im[k] == 0  ? std::complex<T>(own[i])
                : im[k] > 0 ? std::complex<T>(own[i], own[i + n])
                            : std::complex<T>(own[i - n], -own[i]);
    }
  }

  using RealRoutine = void(const char*, const char*, const int*, T*, const int*, T*, T*, T*,
                           const int*, T*, const int*, T*, const int*, int*);
  using ComplexRoutine = void(const char*, const char*, const int*, T*, const int*, T*, T*,
                              const int*, T*, const int*, T*, const int*, Part<T>*, int*);
  using Routine = std::conditional_t<kComplex<T>, ComplexRoutine, RealRoutine>;
  Routine* routine_;
};

// Eigenvalues and eigenvectors of symmetric or Hermitian matrices, by divide and conquer.
template <typename T>
class Heevd {
 public:
  explicit Heevd(const Library& library)
      : routine_(library.find<Routine>(routine_name<T>(kComplex<T> ? "heevd" : "syevd"))) {}
  bool exists() const { return routine_ != nullptr; }
  // a [n, n], of which one triangle is read, becomes the eigenvectors; values [n].
  bool operator()(int n, bool upper, bool vectors, T* a, Part<T>* values) const {
    const char job = vectors ? 'V' : 'N', triangle = upper ? 'U' : 'L';
    int info = 0, size = -1, real_size = -1, integer_size = -1, integer = 0;
    T asked{};
    Part<T> real{};
    const auto call = [&](T* work, Part<T>* reals, int* integers) {
      if constexpr (kComplex<T>)
        routine_(&job, &triangle, &n, a, &n, values, work, &size, reals, &real_size, integers,
                 &integer_size, &info);
      else
        routine_(&job, &triangle, &n, a, &n, values, work, &size, integers, &integer_size, &info);
    };
    call(&asked, &real, &integer);
    size = workspace(asked);
    real_size = workspace(real);
    integer_size = std::max(1, integer);
    std::vector<T> work(static_cast<size_t>(size));
    std::vector<Part<T>> reals(static_cast<size_t>(real_size));
    std::vector<int> integers(static_cast<size_t>(integer_size));
    call(work.data(), reals.data(), integers.data());
    return info == 0;
  }

 private:
  using RealRoutine = void(const char*, const char*, const int*, T*, const int*, T*, T*, const int*,
                           int*, const int*, int*);
  using ComplexRoutine = void(const char*, const char*, const int*, T*, const int*, Part<T>*, T*,
                              const int*, Part<T>*, const int*, int*, const int*, int*);
  using Routine = std::conditional_t<kComplex<T>, ComplexRoutine, RealRoutine>;
  Routine* routine_;
};

// Singular values and vectors, by divide and conquer.
template <typename T>
class Gesdd {
 public:
  // 'N' no vectors, 'S' as many as there are values, 'A' all
  enum class Job : char { Values = 'N', Some = 'S', All = 'A' };
  explicit Gesdd(const Library& library)
      : routine_(library.find<Routine>(routine_name<T>("gesdd"))) {}
  bool exists() const { return routine_ != nullptr; }
  // a [m, n] is destroyed; values [min(m, n)]; u and vt as the job wants them.
  bool operator()(Job vectors, int m, int n, T* a, Part<T>* values, T* u, T* vt) const {
    const char job = static_cast<char>(vectors);
    const int least = std::min(m, n), most = std::max(m, n);
    const int rows = vectors == Job::Some ? least : n;
    int info = 0, size = -1;
    std::vector<int> integers(static_cast<size_t>(8) * least);
    // The larger of the sizes that LAPACK 3.6 and later versions ask for.
    const size_t reals_size =
        kComplex<T> ? static_cast<size_t>(least) * (5 * least + 7 + 2 * most + 1) : 1;
    std::vector<Part<T>> reals(reals_size);
    const auto call = [&](T* work) {
      if constexpr (kComplex<T>)
        routine_(&job, &m, &n, a, &m, values, u, &m, vt, &rows, work, &size, reals.data(),
                 integers.data(), &info);
      else
        routine_(&job, &m, &n, a, &m, values, u, &m, vt, &rows, work, &size, integers.data(),
                 &info);
    };
    T asked{};
    call(&asked);
    size = workspace(asked);
    std::vector<T> work(static_cast<size_t>(size));
    call(work.data());
    return info == 0;
  }

 private:
  using RealRoutine = void(const char*, const int*, const int*, T*, const int*, T*, T*, const int*,
                           T*, const int*, T*, const int*, int*, int*);
  using ComplexRoutine = void(const char*, const int*, const int*, T*, const int*, Part<T>*, T*,
                              const int*, T*, const int*, T*, const int*, Part<T>*, int*, int*);
  using Routine = std::conditional_t<kComplex<T>, ComplexRoutine, RealRoutine>;
  Routine* routine_;
};

// LU factorisation with partial pivoting.
template <typename T>
class Getrf {
 public:
  explicit Getrf(const Library& library)
      : routine_(library.find<Routine>(routine_name<T>("getrf"))) {}
  bool exists() const { return routine_ != nullptr; }
  // a [m, n] becomes its factors; pivots [min(m, n)]. Returns the first pivot that is zero, from 1,
  // or 0.
  int operator()(int m, int n, T* a, int* pivots) const {
    int info = 0;
    routine_(&m, &n, a, &m, pivots, &info);
    return info;
  }

 private:
  using Routine = void(const int*, const int*, T*, const int*, int*, int*);
  Routine* routine_;
};

// Solutions of A X = B, or A^T X = B, from the factors.
template <typename T>
class Getrs {
 public:
  explicit Getrs(const Library& library)
      : routine_(library.find<Routine>(routine_name<T>("getrs"))) {}
  bool exists() const { return routine_ != nullptr; }
  // b [n, columns] becomes x.
  void operator()(bool transposed, int n, int columns, const T* lu, const int* pivots, T* b) const {
    const char form = transposed ? 'T' : 'N';
    int info = 0;
    routine_(&form, &n, &columns, lu, &n, pivots, b, &n, &info);
  }

 private:
  using Routine = void(const char*, const int*, const int*, const T*, const int*, const int*, T*,
                       const int*, int*);
  Routine* routine_;
};

}  // namespace ocltensor::opencl::lapack
