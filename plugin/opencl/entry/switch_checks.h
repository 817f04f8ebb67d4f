// Lists in settings that only the plugin's own tables can check.
#pragma once

#include "tune/policy.h"

namespace ocltensor::opencl {

// Throws Error(TB_E_INVALID) where the policy's lists, which may come from the environment
// unchecked, name something that there is not. Done once for each policy.
void check_lists(const Policy& policy);

}  // namespace ocltensor::opencl
