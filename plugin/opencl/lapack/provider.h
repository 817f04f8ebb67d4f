// The provider of algorithms that run LAPACK on the host, and its algorithms.
#pragma once

#include "call/algorithm.h"
#include "call/providers.h"
#include "ops/linalg/eig.h"
#include "ops/linalg/eigh.h"
#include "ops/linalg/lu.h"
#include "ops/linalg/svd.h"

namespace ocltensor::opencl {

extern const Provider kLapack;

namespace lapack {

extern const AlgorithmFor<linalg::EigProblem> kEig;
extern const AlgorithmFor<linalg::EighProblem> kEigh;
extern const AlgorithmFor<linalg::LuProblem> kLu;
extern const AlgorithmFor<linalg::SvdProblem> kSvd;

}  // namespace lapack
}  // namespace ocltensor::opencl
