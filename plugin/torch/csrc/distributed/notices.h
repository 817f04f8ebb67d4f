// What the ranks of a group tell each other beside the engine, by the store that made the group.
#pragma once

#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

namespace torch_ocl::distributed {

// No function throws: a store that does not answer, as after the end of the process that has it,
// knows nothing.
class Notices {
 public:
  Notices(c10::intrusive_ptr<c10d::Store> store, int rank, int size);

  // This rank waits in, or has failed in, the group's call of this number.
  void came_to(uint64_t number);
  // Ranks that have not said so within a while, as a text; empty if all have.
  std::string missing(uint64_t number);
  // The first failure of any rank counts.
  void tell_failure(const std::string& text);
  std::optional<std::string> heard_failure();

 private:
  std::string key_of(uint64_t number, int rank) const;

  c10::intrusive_ptr<c10d::Store> store_;
  const int rank_, size_;
};

}  // namespace torch_ocl::distributed
