// Inference functions of operators.def and multi_tensor.def, in a file for each family: the outputs
// of a call that is described by its arguments.
#pragma once

#include "../operators.h"

namespace ocltensor::infer {

using Specs = std::vector<TensorSpec>;

#define OCLTENSOR_OPERATOR(family, inference, ...) Specs inference(const Args& args);
#include "base/multi_tensor.def"
#include "base/operators.def"
#undef OCLTENSOR_OPERATOR

// multi_tensor.cpp: the arguments of a foreach operator alone; the list that its outputs are like.
TensorViews check_foreach(const Args& args);

}  // namespace ocltensor::infer
