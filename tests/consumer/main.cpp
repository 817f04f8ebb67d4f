// Uses the installed headers and library: views, an operator, an error, a device that is missing.
#include <ocltensor/ocltensor.h>

#include <iostream>

// Any one member may be named, without a warning about the others.
void name_options() {
  using namespace ocltensor;
  const nn::Linear linear(2, 3, {.bias = false});
  const nn::Linear computed(2, 3, {.compute = DType::BFloat16});
  const nn::Conv2d padded(1, 1, {3}, {.padding = {1}}), grouped(2, 2, {3}, {.groups = 2});
  const nn::SGD sgd(linear.parameters(), {.momentum = 0.9});
  const nn::Adam adam(linear.parameters(), {.beta2 = 0.99});
  const nn::AdamW adamw(linear.parameters(), {.weight_decay = 0.1});
  set_print_options({.precision = 6});
  (void)CallOptions{.in_place = true};
  (void)CallOptions{.dtype = DType::Int64};
  (void)backends::flags({.deterministic = true});
  (void)backends::flags({.fp16 = backends::SixteenBit{.split = true}});
}

int main() {
  using namespace ocltensor;
  name_options();
  const Tensor a = tensor<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const std::vector<float> sum = add(a.t(), 0.5).to_vector<float>();
  if (sum != std::vector<float>{1.5f, 4.5f, 2.5f, 5.5f, 3.5f, 6.5f}) return 1;
  try {
    a.view({4});
    return 2;
  } catch (const Error& e) {
    if (e.status() != TB_E_INVALID) return 3;
  }
  if (!is_available("ocl") && unavailable_reason("ocl").empty()) return 4;
  std::cout << a << "\n";
  return 0;
}
