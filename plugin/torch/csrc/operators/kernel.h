// ATen kernels made from the plugin's operators: the signature of at::_ops::X decides how arguments
// are packed and outputs returned. registration.def has what is not as usual.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <tuple>
#include <type_traits>

#include "operator.h"

namespace torch_ocl {

// The number of tensors in a return type: Tensor, Tensor&, or a tuple of them.
template <typename R>
struct OutputsOf : std::integral_constant<size_t, 1> {};
template <typename... T>
struct OutputsOf<std::tuple<T...>> : std::integral_constant<size_t, sizeof...(T)> {};

template <typename R, size_t... I>
R unpack(std::span<at::Tensor> outs, std::index_sequence<I...>) {
  if constexpr (sizeof...(I) == 1 && !std::is_same_v<R, std::tuple<at::Tensor>>)
    return std::move(outs[0]);
  else
    return R(std::move(outs[I])...);
}

// Collects the inputs, and the outputs that an output_mask asks for.
struct Packer {
  Arguments& in;
  size_t wanted_count = 0;
  std::array<bool, 8> wanted{};
  template <typename T>
  void add(const T& value) {
    in.add(value);
  }
  template <size_t N>
  void add(const std::array<bool, N>& mask) {  // output_mask
    std::copy(mask.begin(), mask.end(), wanted.begin());
    wanted_count = N;
    in.add(mask);
  }
};

template <typename Op, typename... A>
[[gnu::noinline]] torch::jit::Stack run_elsewhere(const char* reason, A&&... args) {
  static const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow(
      static_cast<const char*>(Op::name), static_cast<const char*>(Op::overload_name));
  torch::jit::Stack stack;
  torch::jit::push(stack, std::forward<A>(args)...);
  fall_back(op, stack, reason);
  return stack;
}

// x(...) returns new tensors.
template <typename Op, auto& plugin_op, typename Signature = typename Op::schema>
struct Functional;
template <typename Op, auto& plugin_op, typename R, typename... A>
struct Functional<Op, plugin_op, R(A...)> {
  static constexpr size_t kOuts = OutputsOf<R>::value;
  static R call(A... args) {
    at::Tensor outs[kOuts];
    try {
      Arguments in;
      Packer packer{in};
      (packer.add(args), ...);
      plugin_op.run_functional(in, outs);
      for (size_t i = 0; i < packer.wanted_count && i < kOuts; ++i)
        if (!packer.wanted[i]) outs[i] = at::Tensor();
    } catch (const Declined& declined) {
      torch::jit::Stack stack = run_elsewhere<Op>(declined.what(), args...);
      for (size_t i = 0; i < kOuts; ++i) outs[i] = stack[i].toTensor();
    }
    return unpack<R>(outs, std::make_index_sequence<kOuts>());
  }
};

// x.out(..., Tensor(a!) out) writes to its trailing tensor references.
template <typename Op, auto& plugin_op, typename Signature = typename Op::schema>
struct Out;
template <typename Op, auto& plugin_op, typename R, typename... A>
struct Out<Op, plugin_op, R(A...)> {
  static constexpr size_t kOuts = OutputsOf<R>::value;
  static constexpr size_t kInputs = sizeof...(A) - kOuts;
  static R call(A... args) {
    const std::tuple<A&...> all(args...);
    return run(all, std::make_index_sequence<kInputs>(), std::make_index_sequence<kOuts>(),
               args...);
  }
  template <size_t... I, size_t... O>
  static R run(const std::tuple<A&...>& all, std::index_sequence<I...>, std::index_sequence<O...>,
               A... args) {
    try {
      Arguments in;
      Packer packer{in};
      (packer.add(std::get<I>(all)), ...);
      at::Tensor outs[kOuts] = {std::get<kInputs + O>(all)...};
      plugin_op.run_out(in, outs);
    } catch (const Declined& declined) {
      run_elsewhere<Op>(declined.what(), args...);
    }
    if constexpr (kOuts == 1)
      return std::get<kInputs>(all);
    else
      return R(std::get<kInputs + O>(all)...);
  }
};

// x_(Tensor(a!) self, ...) changes its first argument in place.
template <typename Op, auto& plugin_op, typename Signature = typename Op::schema>
struct InPlace;
template <typename Op, auto& plugin_op, typename S, typename... A>
struct InPlace<Op, plugin_op, S&(S&, A...)> {
  static S& call(S& self, A... args) {
    try {
      Arguments in;
      Packer packer{in};
      packer.add(static_cast<const at::Tensor&>(self));
      (packer.add(args), ...);
      at::Tensor outs[] = {self};
      plugin_op.run_in_place(in, outs);
    } catch (const Declined& declined) {
      run_elsewhere<Op>(declined.what(), self, args...);
    }
    return self;
  }
};

}  // namespace torch_ocl
