// The architectures that have matrix units, or dot products, for which there are kernels.
#include "units.h"

namespace ocltensor::opencl::matrix_units {
namespace {

constexpr Kinds kHalf = set_of(Kind::Half), kBFloat = set_of(Kind::BFloat);
constexpr Kinds kFloat = set_of(Kind::Float), kInt8 = set_of(Kind::Int8);
constexpr Kinds kDot = kHalf | kInt8;
constexpr Kinds kWmma = kHalf | kBFloat | kInt8, kXmx = kWmma;
constexpr Kinds kMfma = kHalf | kBFloat | kFloat | kInt8;
// MFMA of 16-bit numbers flushes subnormal factors and sums there: float16's begin at 6e-5, which
// gradients reach; bfloat16's are those of float32.
constexpr Kinds kMi200 = kMfma & ~kHalf;

// AMD's: LLVM's "User Guide for AMDGPU Backend", Processors; features of clang's built-ins
// (dot1-insts and dot10-insts, gfx11-insts, gfx12-insts, mai-insts). Intel's: the extension's
// text: lanes are the device's smallest sub-group.
constexpr Architecture kArchitectures[] = {
    {"gfx906", Unit::AmdDot, 1, 1, kDot},
    {"gfx1011", Unit::AmdDot, 1, 1, kDot},
    {"gfx1012", Unit::AmdDot, 1, 1, kDot},
    {"gfx1030", Unit::AmdDot, 1, 1, kDot},
    {"gfx1031", Unit::AmdDot, 1, 1, kDot},
    {"gfx1032", Unit::AmdDot, 1, 1, kDot},
    {"gfx1033", Unit::AmdDot, 1, 1, kDot},
    {"gfx1034", Unit::AmdDot, 1, 1, kDot},
    {"gfx1035", Unit::AmdDot, 1, 1, kDot},
    {"gfx1036", Unit::AmdDot, 1, 1, kDot},
    {"gfx908", Unit::AmdMfma, 1, 64, kMfma},
    {"gfx90a", Unit::AmdMfma, 2, 64, kMi200},
    {"gfx940", Unit::AmdMfma, 3, 64, kMfma},
    {"gfx941", Unit::AmdMfma, 3, 64, kMfma},
    {"gfx942", Unit::AmdMfma, 3, 64, kMfma},
    {"gfx950", Unit::AmdMfma, 4, 64, kMfma},
    {"gfx1100", Unit::AmdWmma, 11, 32, kWmma},
    {"gfx1101", Unit::AmdWmma, 11, 32, kWmma},
    {"gfx1102", Unit::AmdWmma, 11, 32, kWmma},
    {"gfx1103", Unit::AmdWmma, 11, 32, kWmma},
    {"gfx1150", Unit::AmdWmma, 11, 32, kWmma},
    {"gfx1151", Unit::AmdWmma, 11, 32, kWmma},
    {"gfx1152", Unit::AmdWmma, 11, 32, kWmma},
    {"gfx1153", Unit::AmdWmma, 11, 32, kWmma},
    {"gfx1200", Unit::AmdWmma, 12, 32, kWmma},
    {"gfx1201", Unit::AmdWmma, 12, 32, kWmma},
    {"xmx8", Unit::IntelXmx, 8, 8, kXmx, "Arc(TM) A", 16},
    {"xmx16", Unit::IntelXmx, 16, 16, kXmx, "Data Center GPU Max", 8},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

}  // namespace ocltensor::opencl::matrix_units
