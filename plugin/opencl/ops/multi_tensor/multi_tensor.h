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

// Where one tensor of one list lies.
struct Part {
  tb_address address;
  uint64_t bytes;
};

// One tensor of one list, and what the kernel does to it.
struct Role {
  TensorView tensor;
  bool read;
  bool written;
  bool single = false;  // one element that all elements of the others go with
};

using ListKernel = std::remove_const_t<decltype(kernels::multi_tensor::foreach::foreach)>;
using PartialKernel = std::remove_const_t<decltype(kernels::multi_tensor::foreach_norm::norm)>;

class TensorLists;
// What runs over lists: one kernel, or one that leaves numbers per chunk and one that joins them.
struct Sweep {
  TensorLists& lists;
  const Defines& defines;
  const ListKernel* whole;
  const PartialKernel *partial, *finish;
};

// Collects tensors with their roles, and enqueues a kernel of kernels/multi_tensor over them.
class TensorLists {
 public:
  // `roles` of each of about `expected` positions.
  TensorLists(const OpCall& call, DType compute, size_t roles, size_t expected = 0);

  // The tensors of one position in the lists, in the order of the kernel's roles.
  void add(std::span<const Role> roles, Scalar number = 0);
  // A tensor of one element for all tensors.
  void share(size_t slot, TensorView tensor);
  void set_number(size_t slot, double value);

  // To be called before OpCall::accept(). TB_REASON_LAYOUT where the result would depend on the
  // order of tensors: memory that is written and belongs to another tensor, too.
  void check_apart() const;
  // After accept().
  void run(const ListKernel& kernel, const Defines& defines);
  // `finish` combines what the first kernel left per chunk.
  void run(const PartialKernel& kernel, const PartialKernel& finish, const Defines& defines);
  size_t count() const { return numbers_.size(); }
  // What run() chooses among (the list's, tensor_lists.cpp).
  void run_chunks(const Sweep& sweep);

 private:
  struct Group;
  // A tensor, and what one look at its sizes and strides tells.
  struct Member {
    Role role;
    Part part;  // no bytes where it has no elements
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
  std::vector<Member> members_;                     // roles_ per entry
  std::vector<uint64_t> numbers_;                   // one per entry
  std::array<Part, MULTI_TENSOR_SHARED> shared_{};  // none: no bytes
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
