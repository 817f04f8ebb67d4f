// Operators of the BLAS backend: products by CBLAS, the others by loops that OpenMP divides.
#include <cblas.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <vector>

#include "blas.h"

namespace blas {
namespace {

__extension__ typedef __int128 Wide;  // NOLINT: sizes times strides times bytes never leave it

bool is_empty(const tb_tensor& t) {
  return std::find(t.sizes, t.sizes + t.ndim, 0) != t.sizes + t.ndim;
}
bool is_float(const tb_tensor& t) {
  return t.dtype.code == TB_DTYPE_FLOAT && t.dtype.lanes == 1 &&
         (t.dtype.bits == 32 || t.dtype.bits == 64);
}
bool same_type(const tb_tensor& a, const tb_tensor& b) {
  return a.dtype.code == b.dtype.code && a.dtype.bits == b.dtype.bits &&
         a.dtype.lanes == b.dtype.lanes;
}

// Where a tensor's elements are, along the dimensions of a result that it broadcasts to.
struct View {
  char* at = nullptr;
  std::array<int64_t, TB_MAX_RANK> strides{};  // bytes
  uint8_t bits = 0;

  char* element(const int64_t* index, uint32_t rank) const {
    char* p = at;
    for (uint32_t d = 0; d < rank; ++d) p += index[d] * strides[d];
    return p;
  }
  static double load(const char* p, uint8_t bits) {
    float single = 0;
    double value = 0;
    if (bits == 32) return std::memcpy(&single, p, 4), single;
    return std::memcpy(&value, p, 8), value;
  }
  static void store(char* p, uint8_t bits, double value) {
    const auto single = static_cast<float>(value);
    std::memcpy(p, bits == 32 ? static_cast<const void*>(&single) : &value, bits / 8);
  }
};

// Checks a tensor's bytes, and translates the address of its first element. A call that only asks
// (supports) has no addresses.
char* open(const tb_tensor& t, bool dry) {
  if (dry || is_empty(t)) return nullptr;
  Wide low = 0, high = t.dtype.bits / 8;
  for (uint32_t d = 0; d < t.ndim; ++d) {
    const Wide span = static_cast<Wide>(t.sizes[d] - 1) * t.strides[d] * (t.dtype.bits / 8);
    (span < 0 ? low : high) += span;
  }
  const Wide first = low + t.address, last = high + t.address;
  if (first < 0 || last > static_cast<Wide>(UINT64_MAX)) invalid("strides beyond all memory");
  if (t.base != 0 && (first < t.base || last > static_cast<Wide>(t.base) + t.base_bytes))
    invalid("a tensor reaches beyond its storage");
  return translate(static_cast<tb_address>(first), static_cast<uint64_t>(last - first)) -
         static_cast<int64_t>(low);
}

// The tensor as it is: dimensions in its own order.
View plain(const tb_tensor& t, bool dry) {
  View v{open(t, dry), {}, t.dtype.bits};
  for (uint32_t d = 0; d < t.ndim; ++d) v.strides[d] = t.strides[d] * (t.dtype.bits / 8);
  return v;
}
View broadcast(const tb_tensor& t, const tb_tensor& out, bool dry) {
  View v{open(t, dry), {}, t.dtype.bits};
  if (t.ndim > out.ndim) invalid("an operand has more dimensions than the result");
  for (uint32_t d = 0; d < t.ndim; ++d) {
    const uint32_t to = out.ndim - t.ndim + d;
    if (t.sizes[d] != 1 && t.sizes[d] != out.sizes[to]) invalid("the shapes do not broadcast");
    if (t.sizes[d] != 1) v.strides[to] = t.strides[d] * (t.dtype.bits / 8);
  }
  return v;
}

// Calls f(index) for each element of a result.
template <typename F>
void for_each(const tb_tensor& out, F f) {
  int64_t count = 1;
  for (uint32_t d = 0; d < out.ndim; ++d) count *= out.sizes[d];
#pragma omp parallel for if (count > 4096)
  for (int64_t n = 0; n < count; ++n) {
    int64_t index[TB_MAX_RANK] = {};
    int64_t rest = n;
    for (uint32_t d = out.ndim; d-- > 0; rest /= out.sizes[d]) index[d] = rest % out.sizes[d];
    f(static_cast<const int64_t*>(index));
  }
}

const tb_tensor& tensor(const tb_call& call, uint32_t i) {
  if (call.args[i].tag != TB_TENSOR) decline(TB_REASON_ARGUMENT, "an argument is no tensor");
  return *static_cast<const tb_tensor*>(call.args[i].as.p);
}
double number(const tb_value& v) {
  if (v.tag == TB_FLOAT) return v.as.f;
  if (v.tag != TB_INT && v.tag != TB_BOOL) decline(TB_REASON_ARGUMENT, "an argument is no number");
  return static_cast<double>(v.as.i);
}
void require_floats(const tb_tensor& out, std::initializer_list<const tb_tensor*> inputs) {
  bool good = is_float(out);
  for (const tb_tensor* t : inputs) good = good && same_type(out, *t);
  if (!good) decline(TB_REASON_DTYPE, "tensors that are not all float32, or all float64");
}

void copy(const tb_call& call, bool dry) {
  const tb_tensor& out = *call.outs[0];
  const tb_tensor& source = tensor(call, 1);
  const bool moves = same_type(out, source);
  if (!moves && (!is_float(out) || !is_float(source)))
    decline(TB_REASON_DTYPE, "copies that convert other types than float32 and float64");
  const View to = plain(out, dry), from = broadcast(source, out, dry);
  if (dry) return;
  for_each(out, [&](const int64_t* i) {
    char* target = to.element(i, out.ndim);
    const char* p = from.element(i, out.ndim);
    if (moves)
      std::memmove(target, p, out.dtype.bits / 8);
    else
      View::store(target, to.bits, View::load(p, from.bits));
  });
}

// add.out (three arguments) and mul.out.
void combine(const tb_call& call, bool dry) {
  const tb_tensor& out = *call.outs[0];
  const tb_tensor& a = tensor(call, 0);
  const tb_tensor* b = call.args[1].tag == TB_TENSOR ? &tensor(call, 1) : nullptr;
  const double constant = b != nullptr ? 0 : number(call.args[1]);
  const bool adds = call.arg_count == 3;
  const double alpha = adds ? number(call.args[2]) : 1;
  require_floats(out, {&a, b != nullptr ? b : &a});
  for (uint32_t d = 1; d <= out.ndim; ++d) {
    const auto size = [d](const tb_tensor* t) {
      return t != nullptr && d <= t->ndim ? t->sizes[t->ndim - d] : 1;
    };
    if (out.sizes[out.ndim - d] != (size(&a) == 1 ? size(b) : size(&a)))
      invalid("the result has another shape than the operands");
  }
  const View to = plain(out, dry), x = broadcast(a, out, dry);
  const View y = b != nullptr ? broadcast(*b, out, dry) : View();
  if (dry) return;
  for_each(out, [&](const int64_t* i) {
    const double p = View::load(x.element(i, out.ndim), x.bits);
    const double q = b != nullptr ? View::load(y.element(i, out.ndim), y.bits) : constant;
    View::store(to.element(i, out.ndim), to.bits, adds ? p + alpha * q : p * q);
  });
}

void gemm(int n, int m, int k, const float* a, const float* b, float* c) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, m, k, 1, a, std::max(k, 1), b,
              std::max(m, 1), 0, c, std::max(m, 1));
}
void gemm(int n, int m, int k, const double* a, const double* b, double* c) {
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, m, k, 1, a, std::max(k, 1), b,
              std::max(m, 1), 0, c, std::max(m, 1));
}

template <typename T>
std::vector<T> packed(const tb_tensor& t, const View& v) {
  int64_t count = 1;
  for (uint32_t d = 0; d < t.ndim; ++d) count *= t.sizes[d];
  std::vector<T> values(static_cast<size_t>(count));
  for_each(t, [&](const int64_t* i) {
    int64_t n = 0;
    for (uint32_t d = 0; d < t.ndim; ++d) n = n * t.sizes[d] + i[d];
    std::memcpy(&values[static_cast<size_t>(n)], v.element(i, t.ndim), sizeof(T));
  });
  return values;
}

// out = beta * self + alpha * (a x b), where `self` may be absent. The product is computed apart
// from its operands, so that the result may lie where they do.
struct Product {
  const tb_tensor &a, &b;
  const tb_tensor* self = nullptr;
  double beta = 0, alpha = 1;

  template <typename T>
  void compute(const tb_tensor& out) const {
    const uint32_t r = out.ndim;
    const auto n = a.sizes[r - 2], k = a.sizes[r - 1], m = b.sizes[r - 1];
    const int64_t batches = r == 3 ? a.sizes[0] : 1;
    const std::vector<T> x = packed<T>(a, plain(a, false)), y = packed<T>(b, plain(b, false));
    std::vector<T> z(static_cast<size_t>(batches * n * m));
    for (int64_t s = 0; s < batches && k > 0 && n > 0 && m > 0; ++s)
      gemm(static_cast<int>(n), static_cast<int>(m), static_cast<int>(k), x.data() + s * n * k,
           y.data() + s * k * m, z.data() + s * n * m);
    const View to = plain(out, false);
    const View added = self != nullptr ? broadcast(*self, out, false) : View();
    for_each(out, [&](const int64_t* i) {
      int64_t at = 0;
      for (uint32_t d = 0; d < r; ++d) at = at * out.sizes[d] + i[d];
      double value = z[static_cast<size_t>(at)];
      if (self != nullptr) value *= alpha;
      if (self != nullptr && beta != 0) value += beta * View::load(added.element(i, r), added.bits);
      View::store(to.element(i, r), to.bits, value);
    });
  }

  void run(const tb_tensor& out, uint32_t rank, bool dry) const {
    require_floats(out, {&a, &b, self != nullptr ? self : &a});
    if (a.ndim != rank || b.ndim != rank || out.ndim != rank) invalid("matrices of another rank");
    const auto size = [rank](const tb_tensor& t, uint32_t d) { return t.sizes[rank - 1 - d]; };
    if (size(a, 0) != size(b, 1) || size(out, 1) != size(a, 1) || size(out, 0) != size(b, 0) ||
        (rank == 3 && (size(a, 2) != size(b, 2) || size(out, 2) != size(a, 2))))
      invalid("the matrices' shapes do not fit");
    for (const tb_tensor* t : {&a, &b})
      for (uint32_t d = 0; d < rank; ++d)
        if (t->sizes[d] > INT_MAX) decline(TB_REASON_SIZE, "a dimension that no int of BLAS holds");
    for (const tb_tensor* t : {&a, &b, &out}) open(*t, dry);
    if (self != nullptr) broadcast(*self, out, dry);
    if (dry || is_empty(out)) return;
    if (out.dtype.bits == 32)
      compute<float>(out);
    else
      compute<double>(out);
  }
};

void mm(const tb_call& call, bool dry) {
  Product{tensor(call, 0), tensor(call, 1)}.run(*call.outs[0], 2, dry);
}
void bmm(const tb_call& call, bool dry) {
  Product{tensor(call, 0), tensor(call, 1)}.run(*call.outs[0], 3, dry);
}
void addmm(const tb_call& call, bool dry) {
  Product{tensor(call, 1), tensor(call, 2), &tensor(call, 0), number(call.args[3]),
          number(call.args[4])}
      .run(*call.outs[0], 2, dry);
}

}  // namespace
}  // namespace blas

struct tb_op_s {
  const char *name, *schema, *family;
  uint32_t arguments;
  void (*run)(const tb_call& call, bool dry);
};

namespace blas {
namespace {

const tb_op_s kOperators[] = {
    {"copy.out",
     "copy.out(Tensor self, Tensor src, bool non_blocking=False, *, Tensor(a!) out) -> Tensor(a!)",
     "copy", 3, copy},
    {"add.out",
     "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
     "pointwise", 3, combine},
    {"mul.out", "mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)", "pointwise",
     2, combine},
    {"mm.out", "mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)", "matmul", 2,
     mm},
    {"bmm.out", "bmm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)", "matmul", 2,
     bmm},
    {"addmm.out",
     "addmm.out(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, "
     "Tensor(a!) "
     "out) -> Tensor(a!)",
     "matmul", 5, addmm}};

// What can be wrong with any call, before its operator looks at it.
void check_call(const tb_call* call) {
  check_size(call, TB_CALL_SIZE_V1);
  if (call->op < kOperators || call->op >= std::end(kOperators)) invalid("no operator of BLAS");
  if (call->arg_count != call->op->arguments || call->out_count != 1)
    invalid("another number of arguments or outputs");
  const auto check_tensor = [](const tb_tensor* t) {
    check_size(t, TB_TENSOR_SIZE_V1);
    if (t->ndim > TB_MAX_RANK) decline(TB_REASON_RANK, "more than TB_MAX_RANK dimensions");
    for (uint32_t d = 0; d < t->ndim; ++d)
      if (t->sizes[d] < 0) invalid("a negative size");
  };
  check_tensor(call->outs[0]);
  for (uint32_t i = 0; i < call->arg_count; ++i)
    if (call->args[i].tag == TB_TENSOR)
      check_tensor(static_cast<const tb_tensor*>(call->args[i].as.p));
}

}  // namespace

void fill_operators(tb_operator_api& o) {
  o.count = [](uint32_t* count, tb_error* error) {
    return guarded(error, [&] { *count = std::size(kOperators); });
  };
  o.at = [](uint32_t index, tb_op* op, tb_op_info* info, tb_error* error) {
    return guarded(error, [&] {
      check_size(info, TB_OP_INFO_SIZE_V1);
      if (index >= std::size(kOperators)) invalid("no operator of that number");
      *op = &kOperators[index];
      info->flags = 0;
      info->name = (*op)->name;
      info->schema = (*op)->schema;
      info->family = (*op)->family;
    });
  };
  o.find = [](const char* name, tb_op* op, tb_error* error) {
    return guarded(error, [&] {
      for (const tb_op_s& known : kOperators)
        if (std::strcmp(known.name, name) == 0) return void(*op = &known);
      decline(TB_REASON_OPERATOR, std::string("no operator ") + name);
    });
  };
  o.supports = [](const tb_call* call, tb_error* error) {
    return guarded(error, [&] {
      check_call(call);
      call->op->run(*call, true);
    });
  };
  o.invoke = [](const tb_call* call, tb_error* error) {
    return guarded(error, [&] {
      check_call(call);
      const std::lock_guard lock(check_stream(call->stream).order);
      call->op->run(*call, false);
      ++counters.operators;
    });
  };
}

}  // namespace blas
