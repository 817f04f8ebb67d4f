// torchvision's operators.
#pragma once

#include "call/algorithms.h"
#include "call/op_call.h"

namespace ocltensor::opencl::vision {

extern const std::span<const OpEntry> kNmsOperators;     // nms.cpp
extern const std::span<const OpEntry> kRoiOperators;     // roi.cpp
extern const std::span<const OpEntry> kDeformOperators;  // deform.cpp
const AlgorithmFamily& deform_algorithms();              // of results
const AlgorithmFamily& deform_backward_algorithms();     // of images' gradients
const AlgorithmFamily& nms_algorithms();
const AlgorithmFamily& roi_algorithms();
const AlgorithmFamily& roi_backward_algorithms();

}  // namespace ocltensor::opencl::vision
