// Cases of the linalg family for matrices that are not symmetric positive: eigenvalues of general
// matrices, LDL^T factorisations and solves with them.
#pragma once

#include "support/cases.h"

namespace ocltensor::testing {

bool is_general(const Operator& op);
Case make_general(const Operator& op, DType dtype, Draw& draw);

}  // namespace ocltensor::testing
