// Element types: 16-bit conversion, promotion, casting.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/promotion.h"
#include "ocltensor/dtype.h"
#include "ocltensor/error.h"

namespace ocltensor {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Half, KnownBits) {
  EXPECT_EQ(float_to_half(1.0f), 0x3c00);
  EXPECT_EQ(float_to_half(-2.0f), 0xc000);
  EXPECT_EQ(float_to_half(65504.0f), 0x7bff);
  EXPECT_EQ(float_to_half(65519.0f), 0x7bff);  // below the midpoint to infinity
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(kInf), 0x7c00);
  EXPECT_EQ(float_to_half(-0.0f), 0x8000);
  EXPECT_EQ(float_to_half(std::ldexp(1.0f, -24)), 0x0001);  // the smallest subnormal
  EXPECT_EQ(float_to_half(std::ldexp(1.0f, -25)), 0x0000);  // a tie goes to even
  EXPECT_EQ(float_to_half(std::ldexp(1.5f, -25)), 0x0001);
  EXPECT_EQ(float_to_half(1.0f + std::ldexp(1.0f, -11)), 0x3c00);      // tie to even, down
  EXPECT_EQ(float_to_half(1.0f + 3 * std::ldexp(1.0f, -11)), 0x3c02);  // tie to even, up
  EXPECT_TRUE(std::isnan(half_to_float(float_to_half(std::nanf("")))));
}

TEST(Half, EveryBitPatternSurvives) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float wide = half_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(wide)) continue;
    ASSERT_EQ(float_to_half(wide), bits);
  }
}

TEST(BFloat16, KnownBitsAndRounding) {
  EXPECT_EQ(float_to_bfloat16(1.0f), 0x3f80);
  EXPECT_EQ(float_to_bfloat16(kInf), 0x7f80);
  EXPECT_EQ(float_to_bfloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(float_to_bfloat16(1.0f + std::ldexp(1.0f, -8)), 0x3f80);  // tie to even
  EXPECT_EQ(float_to_bfloat16(1.0f + 3 * std::ldexp(1.0f, -8)), 0x3f82);
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(std::nanf("")))));
}

// Every code survives, numbers between two codes go to the nearer one, ties to the even one.
TEST(Float8, CodesRoundTripAndTiesGoToEven) {
  for (const DType t :
       {DType::Float8E4M3FN, DType::Float8E5M2, DType::Float8E4M3FNUZ, DType::Float8E5M2FNUZ}) {
    for (int code = 0; code < 256; ++code) {
      const float value = float8_to_float(static_cast<uint8_t>(code), t);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(float8_to_float(float_to_float8(value, t), t))) << name(t) << code;
      else
        EXPECT_EQ(float_to_float8(value, t), code) << name(t);
    }
    for (int code = 0; code < 0x7b; ++code) {
      const float low = float8_to_float(static_cast<uint8_t>(code), t);
      const float high = float8_to_float(static_cast<uint8_t>(code + 1), t);
      EXPECT_EQ(float_to_float8((low + high) / 2, t), code + code % 2) << name(t);
    }
  }
  // The largest numbers and what lies beyond, by P. Micikevicius et al., 2022, table 1.
  EXPECT_EQ(float8_to_float(0x7e, DType::Float8E4M3FN), 448);
  EXPECT_EQ(float_to_float8(480, DType::Float8E4M3FN), 0x7e);
  EXPECT_EQ(float_to_float8(-HUGE_VALF, DType::Float8E4M3FN), 0xfe);
  EXPECT_EQ(float8_to_float(0x7b, DType::Float8E5M2), 57344);
  EXPECT_EQ(float_to_float8(61440, DType::Float8E5M2), 0x7c);
  EXPECT_EQ(float_to_float8(-0.0F, DType::Float8E4M3FNUZ), 0);
}

// Powers of two (OCP Microscaling Formats 1.0, 5.4.1), rounded as ATen does.
TEST(Float8, ScalesOfBlocksArePowersOfTwo) {
  const DType t = DType::Float8E8M0FNU;
  for (int code = 0; code < 255; ++code) {
    const float value = float8_to_float(static_cast<uint8_t>(code), t);
    EXPECT_EQ(value, std::ldexp(1.0F, code - 127));
    EXPECT_EQ(float_to_float8(value, t), code);
    EXPECT_EQ(float_to_float8(-value, t), code);  // there is no sign
    if (code > 0 && code < 254) {
      EXPECT_EQ(float_to_float8(value * 1.4999F, t), code);
      EXPECT_EQ(float_to_float8(value * 1.5F, t), code + 1);
    }
  }
  EXPECT_TRUE(std::isnan(float8_to_float(255, t)));
  EXPECT_EQ(float_to_float8(0, t), 0);
  EXPECT_EQ(float_to_float8(kInf, t), 255);
  EXPECT_EQ(float_to_float8(std::numeric_limits<float>::max(), t), 255);
  EXPECT_EQ(float_to_float8(std::ldexp(1.5F, -127), t), 1);
}

TEST(DTypes, NamesAndAbiRoundTrip) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    EXPECT_EQ(from_abi(to_abi(t)), t);
    EXPECT_EQ(dtype_from_name(name(t)), t);
  }
  EXPECT_THROW(dtype_from_name("float8"), Error);
  EXPECT_THROW(from_abi({TB_DTYPE_FLOAT, 8, 1}), Error);
}

// Whatever a caller writes into the three numbers: found where a row of the table is equal, refused
// everywhere else.
TEST(DTypes, EveryAbiTypeIsInTheTableOrRefused) {
  for (int code = 0; code < 256; ++code)
    for (const int bits : {0, 1, 4, 8, 9, 16, 24, 32, 48, 63, 64, 65, 72, 128, 255})
      for (const int lanes : {0, 1, 2, 257}) {
        const tb_dtype type{static_cast<uint8_t>(code), static_cast<uint8_t>(bits),
                            static_cast<uint16_t>(lanes)};
        const auto row = std::find_if(std::begin(kDTypeInfo), std::end(kDTypeInfo), [&](auto& r) {
          return r.abi.code == code && r.abi.bits == bits && r.abi.lanes == lanes;
        });
        if (row == std::end(kDTypeInfo)) {
          EXPECT_THROW(from_abi(type), Error) << code << " " << bits << " " << lanes;
        } else {
          EXPECT_EQ(from_abi(type), static_cast<DType>(row - kDTypeInfo));
        }
      }
}

// ATen's promoteTypes (torch.promote_types), one row per type in the enumeration's order:
// b = bool, u = uint8, i j k l = int8..int64, h = float16, t = bfloat16, f = float32, g = float64,
// z = complex64, Z = complex128, c = complex32, v w x = uint16..uint64, 1..5 = float8, - = refused.
TEST(Promotion, Table) {
  const std::string types = "buijklhtfgzZcvwx12345";
  const std::string rows[] = {
      "buijklhtfgzZc--------",  // bool
      "uujjklhtfgzZc--------",  // uint8
      "ijijklhtfgzZc--------",  // int8
      "jjjjklhtfgzZc--------",  // int16
      "kkkkklhtfgzZc--------",  // int32
      "llllllhtfgzZc--------",  // int64
      "hhhhhhhffgzZchhh-----",  // float16
      "ttttttftfgzZzttt-----",  // bfloat16
      "fffffffffgzZzfff-----",  // float32
      "ggggggggggZZZggg-----",  // float64
      "zzzzzzzzzZzZz--------",  // complex64
      "ZZZZZZZZZZZZZ--------",  // complex128
      "ccccccczzZzZc--------",  // complex32
      "------htfg---v-------",  // uint16
      "------htfg----w------",  // uint32
      "------htfg-----x-----",  // uint64
      "----------------1----",  // float8_e4m3fn
      "-----------------2---",  // float8_e5m2
      "------------------3--",  // float8_e4m3fnuz
      "-------------------4-",  // float8_e5m2fnuz
      "--------------------5",  // float8_e8m0fnu
  };
  for (int a = 0; a < kDTypeCount; ++a)
    for (int b = 0; b < kDTypeCount; ++b) {
      const char want = rows[a][static_cast<size_t>(b)];
      if (want == '-')
        EXPECT_THROW(promote(static_cast<DType>(a), static_cast<DType>(b)), Error);
      else
        EXPECT_EQ(static_cast<size_t>(promote(static_cast<DType>(a), static_cast<DType>(b))),
                  types.find(want))
            << a << " with " << b;
    }
}

TEST(Promotion, CastsThatLoseACategoryAreRefused) {
  EXPECT_TRUE(can_cast(DType::Float64, DType::Float16));
  EXPECT_TRUE(can_cast(DType::Int64, DType::Int8));
  EXPECT_TRUE(can_cast(DType::Bool, DType::Float32));
  EXPECT_FALSE(can_cast(DType::Float32, DType::Int64));
  EXPECT_FALSE(can_cast(DType::Int32, DType::Bool));
  EXPECT_FALSE(can_cast(DType::Complex64, DType::Float32));
}

}  // namespace
}  // namespace ocltensor
