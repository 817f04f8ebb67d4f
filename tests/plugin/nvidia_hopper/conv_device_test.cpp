// Every specialisation of convolution.cl passes its test, each by itself, on a device that has the
// matrix units; elsewhere they are skipped. On a new driver: a process and a time limit for each.
#include <gtest/gtest.h>

#include "nvidia_hopper/conv/convolution.h"
#include "nvidia_hopper/provider.h"
#include "plugin/any_call.h"

namespace ocltensor::opencl::nvidia_hopper {

static std::string name_of(const ConvHopperVariant& v) {
  constexpr const char* kNames[] = {"f16", "bf16", "tf32", "two_bf16_parts", "three_bf16_parts"};
  return std::string(kNames[static_cast<int>(v.kind)]) + "_" + std::to_string(v.columns) +
         (v.weight    ? "_weight"
          : v.partial ? "_pieces"
                      : "") +
         (v.bias ? "_bias" : "") + (v.channels_last ? "_channels_last" : "");
}
static void PrintTo(const ConvHopperVariant& v, std::ostream* out) {  // NOLINT: GoogleTest's name
  *out << name_of(v);
}

namespace {

using Kind = ConvHopperKind;

std::vector<ConvHopperVariant> variants() {
  std::vector<ConvHopperVariant> list;
  for (const Kind kind : {Kind::Half, Kind::BFloat, Kind::Tf32, Kind::Bf16x2, Kind::Bf16x3})
    for (const int64_t columns : {64, 128, 256}) {
      const bool half = kind == Kind::Half || kind == Kind::BFloat;
      if (columns == 256 && !half) continue;
      if (kind != Kind::Bf16x2)
        for (const bool bias : {false, true}) {
          list.push_back({kind, columns, false, false, bias, false});
          if (half) list.push_back({kind, columns, false, false, bias, true});
        }
      if (half) list.push_back({kind, columns, false, true});
      if (kind != Kind::Tf32 && columns != 64) list.push_back({kind, columns, true, false});
    }
  return list;
}
class ConvHopperDevice : public testing::TestWithParam<ConvHopperVariant> {};

TEST_P(ConvHopperDevice, IsRight) {
  if (device_list().devices.empty() || !kNvidiaHopper.suits(device(0).caps()))
    GTEST_SKIP() << "the first device has no matrix units of the Hopper generation";
  const AnyCall any;
  EXPECT_EQ(wrong_hopper_convolution(*any, &GetParam()), "");
}

INSTANTIATE_TEST_SUITE_P(Variants, ConvHopperDevice, testing::ValuesIn(variants()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace ocltensor::opencl::nvidia_hopper
