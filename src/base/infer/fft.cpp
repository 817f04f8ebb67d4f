// Inference for Fourier transforms: of float16, float32, float64 and complex numbers of such parts.
#include "common.h"

namespace ocltensor::infer {
namespace {

// The dimensions `dim`, which must be distinct and not empty. A transform of real numbers needs at
// least one.
Dims fft_dims(const Args& args, bool may_be_none) {
  const TensorView self = args.tensor(Arg::self);
  Dims dims;
  for (const int64_t given : args.ints(Arg::dim)) {
    const int64_t d = wrap_dim(given, self.ndim());
    check(std::find(dims.begin(), dims.end(), d) == dims.end(), "{}: dimension {} appears twice",
          args.schema().full_name(), given);
    check(self.size(d) > 0, "{}: dimension {} of shape {} has no points", args.schema().full_name(),
          given, to_string(self.sizes()));
    dims.push_back(d);
  }
  check(may_be_none || !dims.empty(), "{} needs a dimension", args.schema().full_name());
  return dims;
}
DType checked_type(const Args& args, bool complex) {
  const DType type = args.tensor(Arg::self).dtype();
  const bool real = is_floating(type) && type != DType::BFloat16;
  if (complex ? !is_complex(type) : !real)
    unsupported(TB_REASON_DTYPE, "{} takes {}, got {}", args.schema().full_name(),
                complex ? "complex numbers" : "float16, float32 or float64", name(type));
  return type;
}

}  // namespace

Specs fft_c2c(const Args& args) {
  const DType type = checked_type(args, true);
  (void)fft_dims(args, true);
  return {spec(type, args.tensor(Arg::self).sizes())};
}

Specs fft_r2c(const Args& args) {
  const DType type = checked_type(args, false);
  const Dims dims = fft_dims(args, false);
  Dims sizes(args.tensor(Arg::self).sizes());
  int64_t& last = sizes[static_cast<size_t>(dims.back())];
  if (args.boolean(Arg::onesided)) last = last / 2 + 1;
  return {spec(complex_type(type), sizes)};
}

Specs fft_c2r(const Args& args) {
  const DType type = checked_type(args, true);
  const Dims dims = fft_dims(args, false);
  Dims sizes(args.tensor(Arg::self).sizes());
  int64_t& last = sizes[static_cast<size_t>(dims.back())];
  const int64_t length = args.integer(Arg::last_dim_size);
  check(length > 0 && length / 2 + 1 == last,
        "{}: a spectrum of {} points does not belong to {} real ones", args.schema().full_name(),
        last, length);
  last = length;
  return {spec(real_type(type), sizes)};
}

}  // namespace ocltensor::infer
