// The division of a plan's elements into work-items.
#pragma once

#include "plan.h"

namespace ocltensor::opencl::elementwise {

// Rows for each work-item, for CPUs; the parameters say how many.
void divide_rows(PointwisePlan& plan);
// Elements for each work-item, for GPUs; the defines say how many. `addresses` decide whether
// vectors are aligned.
void divide_elements(const Capabilities& caps, const Addresses& addresses, PointwisePlan& plan,
                     Defines& d);
// One element for each work-item, for GPUs.
void divide_single_elements(const Capabilities& caps, PointwisePlan& plan, Defines& d);
// The number of groups for what a group takes: again after set_count().
void divide_into_groups(PointwisePlan& plan);

}  // namespace ocltensor::opencl::elementwise
