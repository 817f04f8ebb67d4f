// The variables that list drivers outlive a loader that damages them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "runtime/driver/driver_files.h"

namespace ocltensor::opencl {
namespace {

std::string value() { return std::getenv("OCL_ICD_FILENAMES"); }

TEST(DriverVariables, AreWholeAfterALoaderHasCutThem) {
  setenv("OCL_ICD_FILENAMES", "liba.so:libb.so:libc.so", 1);
  {
    const DriverVariables kept;
    for (char* at = std::getenv("OCL_ICD_FILENAMES"); *at != '\0'; ++at)
      if (*at == ':') *at = '\0';
    EXPECT_EQ(value(), "liba.so");
  }
  EXPECT_EQ(value(), "liba.so:libb.so:libc.so");
}

TEST(DriverVariables, KeepWhatOthersHaveSetMeanwhile) {
  setenv("OCL_ICD_FILENAMES", "liba.so:libb.so", 1);
  {
    const DriverVariables kept;
    setenv("OCL_ICD_FILENAMES", "libc.so, which is longer than before, so that it moves", 1);
  }
  EXPECT_EQ(value(), "libc.so, which is longer than before, so that it moves");
  unsetenv("OCL_ICD_FILENAMES");
  { const DriverVariables kept; }
  EXPECT_EQ(std::getenv("OCL_ICD_FILENAMES"), nullptr);
}

}  // namespace
}  // namespace ocltensor::opencl
