// dlprimitives' products and convolutions as C functions on a queue and buffers of somebody else's:
// what sides/dlprimitives.py loads, as dlprimitives has a C++ interface alone. All of it is
// float32.
#include <dlprim/core/conv.hpp>
#include <dlprim/gpu/gemm.hpp>
#include <functional>
#include <memory>
#include <string>

namespace {

namespace dp = dlprim;

enum Direction { kForward, kData, kWeight };

// `offset` in elements
struct Place {
  cl_mem memory;
  uint64_t offset;
};

// `numbers` of a product, in this order
struct Product {
  int m, k, n, transposed_a, transposed_b;
};

// `numbers` of a convolution, in this order: shapes are those of input and weight
struct Convolution {
  int direction, input[4], weight[4], stride[2], padding[2], dilation[2], groups;
};

// An operator with its operands; each call enqueues it once.
using Operation = std::function<void()>;

std::string& last_error() {
  static thread_local std::string text;
  return text;
}

// What `body` returns, or an empty value with its error kept for bench_dlprimitives_error.
template <typename Body>
auto guarded(const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& e) {
    last_error() = e.what();
    return {};
  }
}

cl::Buffer buffer_of(const Place& place) { return cl::Buffer(place.memory, true); }

dp::Tensor tensor_of(const Place& place, const dp::Shape& shape) {
  return dp::Tensor(buffer_of(place), place.offset, shape);
}

Operation product(const dp::ExecutionContext& queue, const Product& p, const Place* places) {
  dp::Context context(queue);
  std::shared_ptr<dp::gpu::GEMM> gemm = dp::gpu::GEMM::get_optimal_gemm(
      context, dp::float_data, p.transposed_a, p.transposed_b, p.m, p.n, p.k);
  return [=, a = buffer_of(places[0]), b = buffer_of(places[1]), c = buffer_of(places[2]),
          at = places[0].offset, bt = places[1].offset, ct = places[2].offset]() mutable {
    gemm->gemm(p.m, p.n, p.k, a, at, p.transposed_a ? p.m : p.k, b, bt, p.transposed_b ? p.k : p.n,
               c, ct, p.n, nullptr, 0, 0.0f, p.m * p.n, queue);
  };
}

dp::core::Conv2DSettings settings_of(const Convolution& c) {
  dp::Convolution2DConfigBase config;
  config.channels_in = c.input[1];
  config.channels_out = c.weight[0];
  config.groups = c.groups;
  for (int i = 0; i < 2; ++i) {
    config.kernel[i] = c.weight[2 + i];
    config.stride[i] = c.stride[i];
    config.pad[i] = c.padding[i];
    config.dilate[i] = c.dilation[i];
  }
  return {config, dp::Shape::from_range(c.input, c.input + 4), dp::float_data};
}

// `Kind` is one of dlprimitives' three classes; `enqueue` hands the operands to it in its order.
template <typename Kind, typename Enqueue>
Operation convolution_of(dp::Context& context, std::unique_ptr<Kind> made, Enqueue enqueue) {
  std::shared_ptr<Kind> kind = std::move(made);
  dp::Tensor scratch;
  if (const size_t bytes = kind->workspace())
    scratch = dp::Tensor(context, dp::Shape(bytes), dp::uint8_data);
  return [kind, scratch, enqueue]() mutable { enqueue(*kind, scratch); };
}

Operation convolution(const dp::ExecutionContext& queue, const Convolution& c,
                      const Place* places) {
  using namespace dp::core;
  dp::Context context(queue);
  const Conv2DSettings settings = settings_of(c);
  dp::Tensor x = tensor_of(places[0], settings.shape);
  dp::Tensor w = tensor_of(places[1], dp::Shape::from_range(c.weight, c.weight + 4));
  dp::Tensor y = tensor_of(places[2], Conv2DBase::get_output_shape(settings, settings.shape));
  switch (c.direction) {
    case kForward:
      return convolution_of(context, Conv2DForward::create(context, settings, false),
                            [=](Conv2DForward& kind, dp::Tensor& scratch) mutable {
                              kind.enqueue(x, w, nullptr, y, scratch, 0.0f, queue);
                            });
    case kData:
      return convolution_of(context, Conv2DBackwardData::create(context, settings),
                            [=](Conv2DBackwardData& kind, dp::Tensor& scratch) mutable {
                              kind.enqueue(x, w, y, scratch, 0.0f, queue);
                            });
    default:
      return convolution_of(context, Conv2DBackwardFilter::create(context, settings),
                            [=](Conv2DBackwardFilter& kind, dp::Tensor& scratch) mutable {
                              kind.enqueue(x, w, y, scratch, 0.0f, queue);
                            });
  }
}

dp::ExecutionContext context_of(cl_command_queue queue) {
  return dp::ExecutionContext(cl::CommandQueue(queue, true));
}

}  // namespace

extern "C" {

const char* bench_dlprimitives_error() { return last_error().c_str(); }

// Null for an error. Operands: a, b and their product.
Operation* bench_dlprimitives_product(cl_command_queue queue, const Product* numbers,
                                      const Place* places) {
  return guarded([&] { return new Operation(product(context_of(queue), *numbers, places)); });
}

// Null for an error. Operands: input, weight and output, or their gradients.
Operation* bench_dlprimitives_convolution(cl_command_queue queue, const Convolution* numbers,
                                          const Place* places) {
  return guarded([&] { return new Operation(convolution(context_of(queue), *numbers, places)); });
}

// Zero for an error.
int bench_dlprimitives_enqueue(Operation* operation) {
  return guarded([&] {
    (*operation)();
    return 1;
  });
}

void bench_dlprimitives_close(Operation* operation) { delete operation; }
}
