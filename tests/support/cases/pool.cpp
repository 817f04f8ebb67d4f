// Cases of the pool family.
#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool accepts(const Operator& op, DType dtype) {
  const bool max = op.schema.name == "max_pool2d_with_indices";
  if (dtype == DType::Int64 && op.schema.name == "avg_pool2d") return true;
  return is_floating(dtype) || (max && dtype != DType::Bool && !is_complex(dtype));
}

struct Window {
  int64_t kernel[2], stride[2], padding[2], dilation[2];
  bool ceil;
};

Window choose(Draw& draw, bool dilated) {
  auto& rng = draw.rng;
  Window w;
  for (int d = 0; d < 2; ++d) {
    w.kernel[d] = rng.range(1, 4);
    w.stride[d] = rng.range(1, 3);
    w.padding[d] = rng.range(0, w.kernel[d] / 2);
    w.dilation[d] = dilated ? rng.range(1, 2) : 1;
  }
  w.ceil = rng.chance(0.4);
  return w;
}

std::vector<int64_t> pair(const int64_t* v) { return {v[0], v[1]}; }

Dims image(Draw& draw) {
  const int64_t limit = draw.size_mode() == SizeMode::Small ? 12 : 33;
  Dims sizes{draw.rng.range(1, 5), draw.rng.range(8, limit), draw.rng.range(8, limit)};
  if (draw.rng.chance(0.2)) sizes[2] = draw.rng.range(60, 90);  // more than two vectors of results
  if (draw.rng.chance(0.75)) sizes.insert(0, draw.rng.range(1, 3));
  return sizes;
}

void set_window(Case& c, const Window& w, bool max) {
  c.set("kernel_size", pair(w.kernel));
  c.set("stride", pair(w.stride));
  c.set("padding", pair(w.padding));
  c.set("ceil_mode", Scalar(w.ceil));
  if (max) c.set("dilation", pair(w.dilation));
}

// For each result of a max pool, a position inside its window.
HostTensor positions(Draw& draw, const Window& w, const Dims& in, const Dims& out) {
  HostTensor t(DType::Int64, out);
  const size_t r = out.size();
  for (int64_t i = 0, n = t.numel(); i < n; ++i) {
    const int64_t at[2] = {i / out[r - 1] % out[r - 2], i % out[r - 1]};
    int64_t place[2];
    for (int d = 0; d < 2; ++d) {
      const int64_t size = in[r - 2 + static_cast<size_t>(d)];
      int64_t p;
      do {
        p = at[d] * w.stride[d] - w.padding[d] + draw.rng.range(0, w.kernel[d] - 1) * w.dilation[d];
      } while (p < 0 || p >= size);
      place[d] = p;
    }
    t.set_integer(i, place[0] * in[r - 1] + place[1]);
  }
  return t;
}

void windowed(Case& c, Draw& draw, bool max, bool backward) {
  const Dims in = image(draw);
  const Window w = choose(draw, max);
  set_window(c, w, max);
  c.set("self", draw.tensor(c.dtype, in, max ? Domain{-9, 9, 0.5, true, true} : Domain{}));
  if (!max) {
    c.set("count_include_pad", Scalar(draw.rng.chance(0.5)));
    if (draw.rng.chance(0.3)) c.set("divisor_override", Scalar(int64_t{5}));
  }
  if (!backward) return;
  const char* forward = max ? "max_pool2d_with_indices.out" : "avg_pool2d.out";
  Case f = make_case(*find_operator(forward), c.dtype);
  set_window(f, w, max);
  f.set("self", c.get("self"));
  const Dims out = infer(f)[0].sizes;
  c.set("grad_output", draw.tensor(c.dtype, out));
  if (max) c.set("indices", draw.place(positions(draw, w, in, out)));
}

void adaptive(Case& c, Draw& draw, bool backward, bool max) {
  const Dims in = image(draw);
  Dims out = in;
  for (size_t d = in.size() - 2; d < in.size(); ++d) out[d] = draw.rng.range(1, 9);
  c.set("self", draw.tensor(c.dtype, in, max ? Domain{-9, 9, 0.5, true, true} : Domain{}));
  if (backward)
    c.set("grad_output", draw.tensor(c.dtype, out));
  else
    c.set("output_size", std::vector<int64_t>{out[out.size() - 2], out[out.size() - 1]});
}

// Numbers in [0, 1) for each plane and dimension; windows as large as the results leave room for.
void fractional(Case& c, Draw& draw) {
  auto& rng = draw.rng;
  const size_t dims = c.op->schema.name.ends_with("2d") ? 2 : 3;
  Dims in = image(draw);
  if (dims == 3) in.insert(static_cast<int64_t>(in.size()) - 2, rng.range(4, 8));
  const size_t first = in.size() - dims;
  std::vector<int64_t> kernel, out;
  for (size_t d = 0; d < dims; ++d) {
    kernel.push_back(rng.range(1, 3));
    out.push_back(rng.range(1, in[first + d] - kernel[d] + (dims == 2 ? 1 : 0)));
  }
  const bool batch = first == 2;
  c.set("self", draw.tensor(c.dtype, in, {-9, 9, 0.5, true, true}));
  c.set("kernel_size", kernel);
  c.set("output_size", out);
  c.set("random_samples",
        draw.tensor(c.dtype, {batch ? in[0] : 1, batch ? in[1] : in[0], static_cast<int64_t>(dims)},
                    {0, 0.99}));
  c.same_type = true;  // the numbers are cut to places
  c.tolerance = {exact()};
}

Case make(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  if (op.schema.name.starts_with("fractional")) {
    fractional(c, draw);
    return c;
  }
  const std::string& n = op.schema.name;
  const bool max = n.starts_with("max_");
  const bool backward = n.ends_with("backward");
  const bool exactly = (max || n == "adaptive_max_pool2d") && !backward;
  if (n.starts_with("_adaptive") || n.starts_with("adaptive"))
    adaptive(c, draw, backward, exactly);
  else
    windowed(c, draw, max, backward);
  c.tolerance = {
      exactly ? exact()
              : Tolerance{Scale::Largest, 4, 32, 1, nullptr,
                          "a sum over the windows of one place, 32 at most in these shapes"}};
  return c;
}

}  // namespace

const FamilyCases& pool_cases() {
  static constexpr FamilyCases kCases = {"pool", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
