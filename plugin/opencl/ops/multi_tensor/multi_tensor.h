// Operators over lists of tensors: few launches, each over as many tensors as their driver buffers
// allow.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "call/algorithms.h"
#include "call/op_call.h"
#include "kernels/multi_tensor.h"
#include "multi_tensor_params.h"

namespace ocltensor::opencl::multi_tensor {

// The memory of one tensor of one list.
struct Memory {
  tb_address address;
  uint64_t bytes;
};

// One tensor of one list, and how the kernel uses it.
struct Role {
  TensorView tensor;
  bool read;
  bool written;
  bool single = false;  // one element, used with every element of the others
};

using ListKernel = std::remove_const_t<decltype(kernels::multi_tensor::foreach::foreach)>;
using PartialKernel = std::remove_const_t<decltype(kernels::multi_tensor::foreach_norm::norm)>;

class TensorLists;
// The kernels of a run over lists: one, or one that writes a number per chunk and one that joins
// those.
struct Sweep {
  TensorLists& lists;
  const Defines& defines;
  const ListKernel* whole;
  const PartialKernel *partial, *finish;
};

// Collects tensors with their roles, and enqueues a kernel of kernels/multi_tensor over them.
class TensorLists {
 public:
  // `roles`: tensors in each position of the lists; `expected`: about how many positions there will
  // be.
  TensorLists(const OpCall& call, DType compute, size_t roles, size_t expected = 0);

  // Adds the tensors of one position in the lists, in the order of the kernel's roles.
  void add(std::span<const Role> roles, Scalar number = 0);
  // Adds a tensor of one element that is used with all tensors.
  void share(size_t slot, TensorView tensor);
  void set_number(size_t slot, double value);

  // To be called before OpCall::accept(). Declines with TB_REASON_LAYOUT where the result would
  // depend on the order of tensors, because memory that is written belongs to another tensor, too.
  void check_disjoint() const;
  // To be called after accept().
  void run(const ListKernel& kernel, const Defines& defines);
  // `finish` combines the numbers that the first kernel wrote for each chunk.
  void run(const PartialKernel& kernel, const PartialKernel& finish, const Defines& defines);
  size_t count() const { return numbers_.size(); }
  // The algorithm that run() chooses (tensor_lists.cpp has the list).
  void run_chunks(const Sweep& sweep);

 private:
  struct Group;
  // A tensor with what its sizes and strides tell, examined once.
  struct Member {
    Role role;
    Memory memory;  // no bytes if the tensor has no elements
    int64_t elements;
    bool contiguous;
  };
  static Member member(const Role& role);
  static bool go_together(std::span<const Member> members);
  std::span<const Member> entry(size_t i) const {
    return std::span(members_).subspan(i * roles_, roles_);
  }
  void place_all();
  void copy_back();
  uint64_t bits(Scalar value) const;
  void launch(const Group& group, const Sweep& sweep, const Defines& defines);

  const OpCall& call_;
  DType compute_;
  size_t roles_;
  std::vector<Member> members_;                       // roles_ per position
  std::vector<uint64_t> numbers_;                     // one per position
  std::array<Memory, MULTI_TENSOR_SHARED> shared_{};  // no bytes: absent
  MultiTensorParams params_{};
  std::vector<Scratch> scratch_;
  struct Return {
    TensorView to;
    LocalTensor from;
  };
  std::vector<Return> returns_;
};

// Copies parts of one size each, all contiguous, of one type, in one launch (cat).
void copy_parts(const OpCall& call, std::span<const TensorView> to,
                std::span<const TensorView> from);

std::span<const OpEntry> cat_operators();
std::span<const OpEntry> foreach_operators();
std::span<const OpEntry> optimizer_operators();
std::span<const OpEntry> amp_operators();

const AlgorithmFamily& multi_tensor_algorithms();  // tensor_lists.cpp
const AlgorithmFamily& cat_algorithms();

}  // namespace ocltensor::opencl::multi_tensor
