// The text of the error that a call raises, for tests of messages.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "ocltensor/error.h"

namespace ocltensor {

// "no error" if the body raises none; another status than `status` fails the test.
template <typename Body>
std::string error_of(Body&& body, tb_status status = TB_E_INVALID) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), status) << e.what();
    return e.what();
  }
  return "no error";
}

}  // namespace ocltensor
