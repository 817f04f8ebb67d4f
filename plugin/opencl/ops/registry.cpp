// Joins the families' tables. A new family adds its line to kFamilies.
#include "registry.h"

#include <string>
#include <unordered_map>

#include "attention/attention.h"
#include "call/providers.h"
#include "conv/conv.h"
#include "copy/copy.h"
#include "distance/distance.h"
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
#include "rnn/rnn.h"
#include "runtime/observe/verbose.h"
#include "sampling/sampling.h"
#include "scan/scan.h"
#include "softmax/softmax.h"
#include "sort/sort.h"
#include "sparse/sparse.h"
#include "upsample/upsample.h"
#include "vision/vision.h"

namespace ocltensor::opencl {
namespace {

using FamilyFunction = std::span<const OpEntry> (*)();
constexpr FamilyFunction kFamilies[] = {
    copy::copy_operators,
    multi_tensor::cat_operators,
    [] { return copy::kCreateOperators; },
    [] { return copy::kPadOperators; },
    pointwise::pointwise_operators,
    matmul::matmul_operators,
    matmul::matmul_int8_operators,
    matmul::matmul_grouped_operators,
    conv::conv_operators,
    pool::pool_operators,
    index::move_operators,
    index::scatter_operators,
    index::advanced_operators,
    index::select_operators,
    random::random_operators,
    random::permute_operators,
    random::rejection_operators,
    sort::sort_operators,
    sort::search_operators,
    upsample::upsample_operators,
    attention::attention_operators,
    reduce::reduce_operators,
    softmax::softmax_operators,
    norm::norm_operators,
    loss::loss_operators,
    scan::scan_operators,
    multi_tensor::foreach_operators,
    multi_tensor::optimizer_operators,
    multi_tensor::amp_operators,
    linalg::cholesky_operators,
    linalg::lu_operators,
    linalg::qr_operators,
    linalg::svd_operators,
    linalg::eigh_operators,
    linalg::eig_operators,
    linalg::ldl_operators,
    fft::fft_operators,
    sampling::sampling_operators,
    distance::distance_operators,
    upsample::resample_operators,
    sort::order_statistic_operators,
    [] { return index::kHistogramOperators; },
    [] { return pool::kFractionalOperators; },
    sparse::sparse_operators,
    [] { return rnn::kLstmOperators; },
    [] { return rnn::kGruOperators; },
    [] { return vision::kNmsOperators; },
    [] { return vision::kRoiOperators; },
    [] { return vision::kDeformOperators; },
};

}  // namespace

std::span<const tb_op_s> registry() {
  static const auto& table = *new auto([] {
    std::vector<tb_op_s> list;
    for (const FamilyFunction family : kFamilies)
      for (const OpEntry& entry : family()) {
        const Operator* op = find_operator(entry.name);
        if (op == nullptr) fail(TB_E_INTERNAL, "{} is not declared in operators.def", entry.name);
        list.push_back({entry, op});
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

namespace {

// The fallback of every other operator needs it.
constexpr std::string_view kNeverDisabled = "copy.out";

}  // namespace

void steer_operator(const Policy& policy, const tb_op_s& op, const Stream& stream) {
  const std::string& name = op.op->name;
  if (name == kNeverDisabled) return;
  if (!policy.is_enabled(kPortable))
    unsupported(TB_REASON_DISABLED,
                "the kernel provider 'portable' is disabled ({}), and {} needs its kernels",
                config::name(config::Knob::DisabledProviders), name);
  if (policy.operations.find_operator(name) != nullptr)
    unsupported(TB_REASON_DISABLED, "{} is disabled ({})", name,
                config::name(config::Knob::DisabledOperations));
  if (policy.verbose > 1)
    print_verbose("choice", fmt::format("operator {} on ocl:{}", name, stream.device().index()));
}

void check_operations(std::string_view list) {
  for (const std::string& pattern : split_names(list)) {
    check(!matches_operator(pattern, kNeverDisabled) || pattern.find('*') != std::string::npos,
          "copy cannot be disabled: the fallback of every operator needs it");
    bool found = false;
    std::vector<std::string> names;
    for (const tb_op_s& op : registry()) {
      found = found || matches_operator(pattern, op.op->name);
      names.push_back(op.op->name);
    }
    if (found) continue;
    std::string near;
    for (const std::string& name : near_names(pattern, names)) near += " " + name;
    fail(TB_E_INVALID, "no operator fits '{}'{}{}", pattern,
         near.empty() ? "" : "; near are:", near);
  }
}

}  // namespace ocltensor::opencl
