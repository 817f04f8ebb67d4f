// torchvision::deform_conv2d: products over columns, as a convolution's, whose columns are
// interpolated.
#include "deform.h"

#include "call/divide_up.h"

namespace ocltensor::opencl::vision {

void make_columns(const OpCall& call, const Pass& pass) {
  const Deform& deform = pass.deform;
  const int64_t share = std::min<int64_t>(deform.p.group_channels, by_style<int64_t>(call, 64, 8));
  const auto [p, division] =
      pass.cut(call,
               pass.count * deform.p.groups * divide_up(deform.p.group_channels, share) *
                   deform.taps * deform.positions,
               share);
  call.launch(kernels::vision::deform::columns, deform.defines(pass.type),
              {.columns = pass.column_tensor(),
               .image = pass.image,
               .offset = pass.offset,
               .mask = pass.mask,
               .p = p})
      .run(division.global, division.local);
}

std::string describe(const OpCall& call, const Deform& d) {
  return fmt::format("{} {} images {}, {} x {} windows", call.name(), name(d.type),
                     to_string(d.input.sizes()), d.p.window[0], d.p.window[1]);
}

namespace {

void run_columns(const OpCall& call, const Deform& deform) {
  const Operand weight(call, deform.weight, deform.type), bias(call, deform.bias, deform.type);
  ContiguousOutput out(call, call.out(0));
  for_each_pass(call, deform, deform.type, [&](const Pass& pass) {
    make_columns(call, pass);
    const int64_t rows = deform.outputs / deform.groups;
    for (int64_t group = 0; group < deform.groups; ++group) {
      const Matrices m = matrices(pass, weight.address(), out.view().address(), group);
      matmul::run_matmul(
          call, {.types = pass.type,
                 .batch = pass.count,
                 .m = rows,
                 .n = deform.positions,
                 .k = deform.depth(),
                 .a = m.weight,
                 .b = m.columns,
                 .c = m.result,
                 .end = {.beta = 1,
                         .self = matmul::Matrix{moved(bias.address(), group * rows, pass.type), 0,
                                                1, 0}}});
    }
  });
  out.finish();
}

constinit const AlgorithmFor<Deform> kColumns({.id = "deform.columns",
                                               .description = "products over interpolated columns",
                                               .last_resort = true},
                                              Steps<takes_all<Deform>, run_columns>());

struct Traits {
  static std::string describe(const OpCall& call, const Deform& deform) {
    return vision::describe(call, deform);
  }
};
using Algorithms = AlgorithmList<Deform, Traits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms("deform", kDeformOperators, {&kColumns});  // leaked
  return list;
}

void forward(OpCall& call) {
  check_outputs(call);
  const Deform deform(call);
  call.accept();
  if (call.wants(0)) algorithms().run(call, deform);
}

constexpr OpEntry kOperators[] = {
    {"torchvision::deform_conv2d.out", forward},
    {"torchvision::_deform_conv2d_backward.out", deform_conv2d_backward},
};

}  // namespace

constinit const std::span<const OpEntry> kDeformOperators = kOperators;

const AlgorithmFamily& deform_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::vision
