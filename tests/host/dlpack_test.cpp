// DLPack both ways.
#include "ocltensor/dlpack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ocltensor/ocltensor.h"

namespace ocltensor {
namespace {

using ::testing::HasSubstr;

TEST(Dlpack, GivesMemoryWithoutACopy) {
  DLManagedTensor* managed = nullptr;
  float* data = nullptr;
  {
    const Tensor a = arange(0, 12, 1, DType::Float32).view({3, 4}).t();
    managed = to_dlpack(a[1]);
    data = a.data<float>();
  }
  const DLTensor& t = managed->dl_tensor;
  EXPECT_EQ(t.data, data + 1);
  EXPECT_EQ(t.device.device_type, kDLCPU);
  EXPECT_EQ(t.ndim, 1);
  EXPECT_EQ(t.shape[0], 3);
  EXPECT_EQ(t.strides[0], 4);
  EXPECT_EQ(t.dtype.code, kDLFloat);
  EXPECT_EQ(t.dtype.bits, 32);
  EXPECT_EQ(static_cast<float*>(t.data)[8], 9);  // the tensor is gone, its memory is not
  managed->deleter(managed);
}

TEST(Dlpack, GoesThereAndBack) {
  for (const DType type : {DType::UInt8, DType::Int64, DType::Float16, DType::BFloat16,
                           DType::Float64, DType::Complex64}) {
    const Tensor a = (arange(6).view({2, 3}) - 2).to(type).t();
    const Tensor b = from_dlpack(to_dlpack(a));
    EXPECT_EQ(b.dtype(), type);
    EXPECT_TRUE(b.sizes() == a.sizes());
    EXPECT_TRUE(b.strides() == a.strides());
    EXPECT_EQ(b.address(), a.address());
    EXPECT_TRUE((a == b).all().item<bool>());
  }
  EXPECT_EQ(from_dlpack(to_dlpack(empty({0, 2}))).numel(), 0);
}

// Memory of another library.
struct Foreign {
  float numbers[6] = {1, 2, 3, 4, 5, 6};
  int64_t shape[2] = {2, 2};
  int deleted = 0;
  DLManagedTensor managed{};
  Foreign() {
    managed.dl_tensor = {numbers, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 8};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) {
      ++static_cast<Foreign*>(self->manager_ctx)->deleted;
    };
  }
};

TEST(Dlpack, TakesMemoryOfOthers) {
  Foreign f;
  {
    const Tensor t = from_dlpack(&f.managed);
    EXPECT_EQ(t.to_vector<float>(), (std::vector<float>{3, 4, 5, 6}));
    t.mul_(2);
    EXPECT_EQ(f.numbers[5], 12);
    EXPECT_EQ(f.deleted, 0);
  }
  EXPECT_EQ(f.deleted, 1);
}

TEST(Dlpack, RefusesWhatItCannotUse) {
  const auto error_of = [](Foreign& f) -> std::string {
    try {
      (void)from_dlpack(&f.managed);
    } catch (const Error& e) {
      EXPECT_EQ(f.deleted, 0);
      return e.what();
    }
    return "no error";
  };
  Foreign device, type, lanes, strides, offset;
  device.managed.dl_tensor.device.device_type = kDLCUDA;
  EXPECT_THAT(error_of(device), HasSubstr("device type 2"));
  type.managed.dl_tensor.dtype.bits = 24;
  EXPECT_NE(error_of(type), "no error");
  lanes.managed.dl_tensor.dtype.lanes = 2;
  EXPECT_NE(error_of(lanes), "no error");
  int64_t negative[] = {-2, 1};
  strides.managed.dl_tensor.strides = negative;
  EXPECT_THAT(error_of(strides), HasSubstr("negative"));
  offset.managed.dl_tensor.byte_offset = 2;
  EXPECT_THAT(error_of(offset), HasSubstr("aligned"));
}

}  // namespace
}  // namespace ocltensor
