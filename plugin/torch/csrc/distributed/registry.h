// The groups of this process that are alive, and the thread that looks after them.
#pragma once

#include <memory>

#include "torch_ocl/export.h"

namespace torch_ocl::distributed {

class Group;

// Has the thread call look_around() every second while the group lives.
void watch_over(const std::shared_ptr<Group>& group);

// For the end of the process: abandons all groups, so that no thread waits for other ranks.
TORCH_OCL_API void end_all_groups();

}  // namespace torch_ocl::distributed
