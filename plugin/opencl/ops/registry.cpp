// Joining the families. A new family adds its line to kFamilies.
#include "registry.h"

#include <string>
#include <unordered_map>

#include "attention/attention.h"
#include "conv/conv.h"
#include "copy/copy.h"
#include "fft/fft.h"
#include "index/index.h"
#include "linalg/linalg.h"
#include "loss/loss.h"
#include "matmul/matmul.h"
#include "multi_tensor/multi_tensor.h"
#include "norm/norm.h"
#include "pointwise/pointwise.h"
#include "pool/pool.h"
#include "random/random.h"
#include "reduce/reduction.h"
#include "scan/scan.h"
#include "softmax/softmax.h"
#include "sort/sort.h"
#include "upsample/upsample.h"

namespace ocltensor::opencl {
namespace {

using FamilyFunction = std::span<const OpEntry> (*)();
constexpr FamilyFunction kFamilies[] = {
    copy_operators,      [] { return kCreateOperators; },
    pointwise_operators, matmul_operators,
    conv_operators,      pool_operators,
    move_operators,      scatter_operators,
    advanced_operators,  select_operators,
    random_operators,    permute_operators,
    sort_operators,      search_operators,
    upsample_operators,  attention_operators,
    reduce_operators,    softmax_operators,
    norm_operators,      loss_operators,
    scan_operators,      foreach_operators,
    optimizer_operators, amp_operators,
    cholesky_operators,  lu_operators,
    qr_operators,        fft_operators,
};

}  // namespace

std::span<const tb_op_s> registry() {
  static const auto& table = *new auto([] {
    std::vector<tb_op_s> list;
    for (const FamilyFunction family : kFamilies)
      for (const OpEntry& entry : family()) {
        const Operator* op = find_operator(entry.name);
        if (op == nullptr) fail(TB_E_INTERNAL, "{} is not declared in operators.def", entry.name);
        list.push_back({op, entry.run, entry.takes_complex});
      }
    return list;
  }());
  return table;
}

const tb_op_s* find_in_registry(std::string_view name) {
  static const auto& index = *new auto([] {
    std::unordered_map<std::string_view, const tb_op_s*> map;
    for (const tb_op_s& op : registry()) map.emplace(op.op->name, &op);
    return map;
  }());
  const auto it = index.find(name);
  return it == index.end() ? nullptr : it->second;
}

}  // namespace ocltensor::opencl
