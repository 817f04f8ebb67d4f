// The provider object for x86 processors with AVX-512's bf16 instructions.
#include "provider.h"

#include "matmul/product.h"
#include "quantised/decode.h"
#include "quantised/dots.h"

namespace ocltensor::opencl {
namespace {

bool has_bf16_pairs() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

// PoCL hands inline assembly to LLVM's code generator; Intel's compiler refuses it.
bool suits(const Capabilities& caps) {
  return (caps.type & CL_DEVICE_TYPE_CPU) != 0 && caps.platform == "Portable Computing Language" &&
         has_bf16_pairs();
}

constexpr const Algorithm* kAlgorithms[] = {&x86_avx512::kProduct, &x86_avx512::kDots,
                                            &x86_avx512::kDecode};

}  // namespace

constinit const Provider kX86Avx512{
    .name = "x86_avx512",
    .library = nullptr,
    .what = "AVX-512's products of bf16 pairs and choices among 16 numbers, by inline assembly",
    .suits = suits,
    .lacking =
        "the device is not an x86 processor with AVX-512's bf16 instructions, driven by PoCL",
    .algorithms = kAlgorithms};

}  // namespace ocltensor::opencl
