// Inference for reductions.
#include "../promotion.h"
#include "common.h"

namespace ocltensor::infer {
namespace {

// The reduced shape; without dimensions, all are reduced.
Dims reduced(const Args& args) {
  const auto self = args.tensor(Arg::self);
  return reduced_sizes(self.sizes(), dim_mask(args.ints(Arg::dim), self.ndim()),
                       args.boolean(Arg::keepdim));
}

DType any_type(DType type) { return type == DType::UInt8 ? type : DType::Bool; }

Specs with_indices(const Args& args) {
  const auto self = args.tensor(Arg::self);
  check_reducible(args, self, dim_mask(args.ints(Arg::dim), self.ndim()));
  const Dims sizes = reduced(args);
  return {spec(self.dtype(), sizes), spec(DType::Int64, sizes)};
}

}  // namespace

Specs amax(const Args& args) {
  const auto self = args.tensor(Arg::self);
  check_reducible(args, self, dim_mask(args.ints(Arg::dim), self.ndim()));
  return {spec(self.dtype(), reduced(args))};
}

Specs aminmax(const Args& args) {
  const TensorSpec one = amax(args)[0];
  return {one, one};
}

Specs any_all(const Args& args) { return {spec(any_type(args.tensor(Arg::self).dtype()), Dims{})}; }

Specs any_dim(const Args& args) {
  return {spec(any_type(args.tensor(Arg::self).dtype()), reduced(args))};
}

Specs any_dims(const Args& args) {
  const auto self = args.tensor(Arg::self);
  // Unlike elsewhere, an empty list reduces nothing.
  const bool nothing = !args.is_none(Arg::dim) && args.ints(Arg::dim).empty();
  return {spec(any_type(self.dtype()), nothing ? Dims(self.sizes()) : reduced(args))};
}

Specs argmax(const Args& args) {
  TensorSpec one = amax(args)[0];
  one.dtype = DType::Int64;
  return {one};
}

Specs count_nonzero(const Args& args) {
  const auto self = args.tensor(Arg::self);
  return {spec(DType::Int64,
               reduced_sizes(self.sizes(), dim_mask(args.ints(Arg::dim), self.ndim()), false))};
}

Specs hash_tensor(const Args& args) {
  const auto self = args.tensor(Arg::self);
  check(args.integer(Arg::mode) == 0, "Unknown hash_tensor mode: {}", args.integer(Arg::mode));
  check_reducible(args, self, dim_mask(args.ints(Arg::dim), self.ndim()));
  return {spec(DType::UInt64, reduced(args))};
}

Specs linalg_vector_norm(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const bool complex = is_complex(self.dtype());
  if (!complex) check_floating(args, self);
  const DType type = args.optional_dtype(Arg::dtype).value_or(self.dtype());
  check(complex ? is_complex(type) : is_floating(type),
        "linalg_vector_norm: dtype must be {}, got {}", complex ? "complex" : "floating-point",
        name(type));
  check(promote(self.dtype(), type) == type,
        "linalg_vector_norm: {} does not convert to {} without narrowing", name(self.dtype()),
        name(type));
  const double ord = args.real(Arg::ord);
  if (ord < 0 || ord > 1.7976931348623157e308)
    check_reducible(args, self, dim_mask(args.ints(Arg::dim), self.ndim()));
  return {spec(real_type(type), reduced(args))};
}

Specs logsumexp(const Args& args) {
  const DType type = args.tensor(Arg::self).dtype();
  return {spec(is_integral(type, true) ? DType::Float32 : type, reduced(args))};
}

Specs max_dim(const Args& args) { return with_indices(args); }
Specs min_dim(const Args& args) { return with_indices(args); }

Specs mean(const Args& args) {
  const DType type = args.optional_dtype(Arg::dtype).value_or(args.tensor(Arg::self).dtype());
  check(is_floating(type) || is_complex(type),
        "mean needs a floating-point type, got {}: pass dtype for an integer tensor", name(type));
  return {spec(type, reduced(args))};
}

Specs nansum(const Args& args) { return sum(args); }

Specs prod(const Args& args) {
  return {spec(args.optional_dtype(Arg::dtype).value_or(sum_type(args.tensor(Arg::self).dtype())),
               Dims{})};
}

Specs prod_dim(const Args& args) { return sum(args); }

Specs reduce_all_same(const Args& args) {
  const auto self = args.tensor(Arg::self);
  check(self.numel() > 0, "{} of an empty tensor has no value", args.schema().full_name());
  return {spec(self.dtype(), Dims{})};
}

Specs sum(const Args& args) {
  const DType type =
      args.optional_dtype(Arg::dtype).value_or(sum_type(args.tensor(Arg::self).dtype()));
  return {spec(type, reduced(args))};
}

Specs var(const Args& args) {
  const auto self = args.tensor(Arg::self);
  if (!is_complex(self.dtype())) check_floating(args, self);
  return {spec(real_type(self.dtype()), reduced(args))};
}

Specs var_mean(const Args& args) {
  TensorSpec mean = var(args)[0];
  mean.dtype = args.tensor(Arg::self).dtype();
  return {var(args)[0], mean};
}

}  // namespace ocltensor::infer
