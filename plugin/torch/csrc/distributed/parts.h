// Tensors and memory of a call as parts, one a rank.
#pragma once

#include <string>

#include "checks.h"
#include "staging.h"

namespace torch_ocl::distributed {

// What all ranks must say alike of a collective, as a text: numbers of elements with their type,
// and `more`, which is the root or the reduction.
std::string form_of(const TensorList& tensors, const std::string& more = {});

std::vector<Use> uses_of(const TensorList& read, const TensorList& written);

// Memory that has equal parts, or rows in parts of these sizes, one behind the other.
Spans cut(Span whole, size_t ranks);
Spans cut(Span whole, const std::vector<int64_t>& sizes, size_t ranks);
Spans slice(const Spans& spans, size_t begin, size_t count);
// The parts of the k-th of several tensors, which follow `begin` others: one tensor for each rank,
// or one that has all parts one behind the other.
Spans parts_of(const Spans& memory, size_t begin, size_t k, size_t tensors, size_t ranks);

// Lists in which each rank has a list, as lists with a part of each rank.
std::vector<TensorList> turned(const std::vector<TensorList>& lists);
TensorList joined(const std::vector<TensorList>& lists);

}  // namespace torch_ocl::distributed
