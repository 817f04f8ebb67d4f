// c10d's calls as calls of the group: which memory they use, and what the engine does with it.
#include "backend.h"

#include <algorithm>
#include <torch/csrc/distributed/c10d/Utils.hpp>
#include <utility>

#include "checks.h"
#include "parts.h"

namespace torch_ocl::distributed {
using c10d::OpType;

namespace {

std::string from(int root) { return " with root " + std::to_string(root); }
std::string by(const c10d::ReduceOp& op) { return std::string(" by ") + name_of(op); }

}  // namespace

OclBackend::OclBackend(std::shared_ptr<Group> group, c10::intrusive_ptr<Options> options)
    : Backend(group->options().rank, group->options().size),
      group_(std::move(group)),
      options_(std::move(options)) {}

OclBackend::~OclBackend() = default;

OclBackend::Work OclBackend::submit(Call call) {
  Work work = group_->submit(std::move(call));
  const std::lock_guard lock(mutex_);
  if (coalescing_) coalescing_->push_back(work);
  return work;
}

bool OclBackend::on_device(const std::vector<Reduction>& reductions) const {
  const auto& engine = group_->options().device_engine;
  return engine && std::all_of(reductions.begin(), reductions.end(),
                               [&](const Reduction& each) { return each.is_of(*engine); });
}

OclBackend::Work OclBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const char* const what = "broadcast";
  check_lists(what, {tensors}, 1, 1);
  check_tensors(what, {tensors});
  check_rank(what, options.rootRank, size_);
  const int root = static_cast<int>(options.rootRank);
  const bool here = root == rank_;
  return submit({.op = OpType::BROADCAST,
                 .uses = here ? uses_of(tensors, {}) : uses_of({}, tensors),
                 .results = tensors,
                 .form = form_of(tensors, from(root)),
                 .limit = options.timeout,
                 .run =
                     [root, here](Running& call) {
                       if (call.memory[0].bytes == 0) return;
                       const Spans own{call.memory[0]}, none;
                       call.in_chunks(here ? own : none, here ? none : own,
                                      [&](const Spans& read, const Spans& written) {
                                        call.engine.broadcast(here ? read[0] : written[0], root,
                                                              call.limit);
                                      });
                     },
                 .in_chunks = true});
}

OclBackend::Work OclBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  c10d::AllreduceCoalescedOptions several;
  several.reduceOp = options.reduceOp;
  several.timeout = options.timeout;
  check_lists("allreduce", {tensors}, 1, 1);
  return allreduce_coalesced(tensors, several);
}

OclBackend::Work OclBackend::allreduce_sparse(Tensors&, const c10d::AllreduceOptions&) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "ocl: allreduce: tensors must be dense: make sparse gradients dense (sparse=False)");
}

OclBackend::Work OclBackend::allreduce_coalesced(Tensors& tensors,
                                                 const c10d::AllreduceCoalescedOptions& options) {
  check_tensors("allreduce", {tensors});
  std::vector<Use> uses;
  std::vector<Reduction> reductions;
  for (const at::Tensor& tensor : tensors) {
    uses.push_back({tensor, true, true});
    reductions.emplace_back(options.reduceOp, tensor.scalar_type(), rank_, size_);
  }
  const bool is_direct = on_device(reductions);
  return submit({.op = OpType::ALLREDUCE,
                 .uses = std::move(uses),
                 .results = tensors,
                 .form = form_of(tensors, by(options.reduceOp)),
                 .limit = options.timeout,
                 .run =
                     [reductions = std::move(reductions)](Running& call) {
                       for (size_t k = 0; k < reductions.size(); ++k) {
                         if (call.memory[k].bytes == 0) continue;
                         const Spans own{call.memory[k]};
                         call.in_chunks(own, own, [&](const Spans&, const Spans& sums) {
                           reductions[k].allreduce(call.engine, sums[0], call.limit);
                         });
                       }
                     },
                 .on_device = is_direct,
                 .in_chunks = true});
}

OclBackend::Work OclBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const char* const what = "reduce";
  check_lists(what, {tensors}, 1, 1);
  check_tensors(what, {tensors});
  check_rank(what, options.rootRank, size_);
  const int root = static_cast<int>(options.rootRank);
  const Reduction reduction(options.reduceOp, tensors[0].scalar_type(), rank_, size_);
  return submit({.op = OpType::REDUCE,
                 .uses = {{tensors[0], true, root == rank_}},
                 .results = tensors,
                 .form = form_of(tensors, by(options.reduceOp) + from(root)),
                 .limit = options.timeout,
                 .run =
                     [reduction, root](Running& call) {
                       if (call.memory[0].bytes != 0)
                         reduction.reduce(call.engine, call.memory[0], root, call.limit);
                     },
                 .on_device = on_device({reduction})});
}

OclBackend::Work OclBackend::gather_parts(const Tensors& inputs, const Lists& parts,
                                          Tensors results, std::chrono::milliseconds limit) {
  return submit({.op = OpType::ALLGATHER,
                 .uses = uses_of(inputs, joined(parts)),
                 .results = std::move(results),
                 .form = form_of(inputs),
                 .limit = limit,
                 .run =
                     [count = inputs.size(), tensors = parts.empty() ? 0 : parts[0].size(),
                      ranks = static_cast<size_t>(size_)](Running& call) {
                       for (size_t k = 0; k < count; ++k) {
                         if (call.memory[k].bytes == 0) continue;
                         call.in_chunks({call.memory[k]},
                                        parts_of(call.memory, count, k, tensors, ranks),
                                        [&](const Spans& own, const Spans& all) {
                                          call.engine.allgather(all, own[0], call.limit);
                                        });
                       }
                     },
                 .in_chunks = true});
}

OclBackend::Work OclBackend::scatter_sums(const Tensors& outputs, const Lists& parts,
                                          const c10d::ReduceScatterOptions& options) {
  std::vector<Reduction> reductions;
  for (const at::Tensor& output : outputs)
    reductions.emplace_back(options.reduceOp, output.scalar_type(), rank_, size_);
  const Tensors inputs = joined(parts);
  const bool is_direct = on_device(reductions);
  return submit({.op = OpType::REDUCE_SCATTER,
                 .uses = uses_of(inputs, outputs),
                 .results = outputs,
                 .form = form_of(outputs, by(options.reduceOp)),
                 .limit = options.timeout,
                 .run =
                     [reductions = std::move(reductions), count = inputs.size(),
                      tensors = parts.empty() ? 0 : parts[0].size(),
                      ranks = static_cast<size_t>(size_)](Running& call) {
                       for (size_t k = 0; k < reductions.size(); ++k) {
                         const Span result = call.memory[count + k];
                         if (result.bytes == 0) continue;
                         call.in_chunks(parts_of(call.memory, 0, k, tensors, ranks), {result},
                                        [&](const Spans& all, const Spans& sums) {
                                          reductions[k].reduce_scatter(call.engine, sums[0], all,
                                                                       call.limit);
                                        });
                       }
                     },
                 .on_device = is_direct,
                 .in_chunks = true});
}

OclBackend::Work OclBackend::allgather(Lists& outputs, Tensors& inputs,
                                       const c10d::AllgatherOptions& options) {
  const char* const what = "allgather";
  check_lists(what, {inputs}, 1, 1);
  check_lists(what, outputs, 1, static_cast<size_t>(size_));
  check_tensors(what, {inputs, outputs[0]});
  check_alike(what, joined({inputs, outputs[0]}));
  return gather_parts(inputs, outputs, outputs[0], options.timeout);
}

OclBackend::Work OclBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                             const c10d::AllgatherOptions& options) {
  Tensors outputs{output}, inputs{input};
  return allgather_into_tensor_coalesced(outputs, inputs, options);
}

OclBackend::Work OclBackend::allgather_coalesced(Lists& outputs, Tensors& inputs,
                                                 const c10d::AllgatherOptions& options) {
  const char* const what = "allgather_coalesced";
  check_lists(what, outputs, static_cast<size_t>(size_), inputs.size());
  check_tensors(what, {inputs, joined(outputs)});
  const Lists parts = turned(outputs);
  for (size_t k = 0; k < inputs.size(); ++k) check_alike(what, joined({{inputs[k]}, parts[k]}));
  return gather_parts(inputs, parts, joined(outputs), options.timeout);
}

OclBackend::Work OclBackend::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  const char* const what = "all_gather_into_tensor";
  check_lists(what, {outputs}, 1, inputs.size());
  check_tensors(what, {inputs, outputs});
  Lists parts;
  for (size_t k = 0; k < inputs.size(); ++k) {
    check_whole(what, outputs[k], inputs[k], size_);
    parts.push_back({outputs[k]});
  }
  return gather_parts(inputs, parts, outputs, options.timeout);
}

OclBackend::Work OclBackend::gather(Lists& outputs, Tensors& inputs,
                                    const c10d::GatherOptions& options) {
  const char* const what = "gather";
  check_rank(what, options.rootRank, size_);
  const int root = static_cast<int>(options.rootRank);
  const bool here = root == rank_;
  check_lists(what, {inputs}, 1, 1);
  check_lists(what, outputs, here ? 1 : 0, static_cast<size_t>(size_));
  const Tensors all = joined(outputs);
  check_tensors(what, {inputs, all});
  check_alike(what, joined({inputs, all}));
  return submit({.op = OpType::GATHER,
                 .uses = uses_of(inputs, all),
                 .results = all,
                 .form = form_of(inputs, from(root)),
                 .limit = options.timeout,
                 .run = [root, count = all.size()](Running& call) {
                   if (call.memory[0].bytes != 0)
                     call.engine.gather(slice(call.memory, 1, count), call.memory[0], root,
                                        call.limit);
                 }});
}

OclBackend::Work OclBackend::scatter(Tensors& outputs, Lists& inputs,
                                     const c10d::ScatterOptions& options) {
  const char* const what = "scatter";
  check_rank(what, options.rootRank, size_);
  const int root = static_cast<int>(options.rootRank);
  const bool here = root == rank_;
  check_lists(what, {outputs}, 1, 1);
  check_lists(what, inputs, here ? 1 : 0, static_cast<size_t>(size_));
  const Tensors all = joined(inputs);
  check_tensors(what, {outputs, all});
  check_alike(what, joined({outputs, all}));
  return submit({.op = OpType::SCATTER,
                 .uses = uses_of(all, outputs),
                 .results = outputs,
                 .form = form_of(outputs, from(root)),
                 .limit = options.timeout,
                 .run = [root, count = all.size()](Running& call) {
                   if (call.memory[count].bytes != 0)
                     call.engine.scatter(call.memory[count], slice(call.memory, 0, count), root,
                                         call.limit);
                 }});
}

OclBackend::Work OclBackend::reduce_scatter(Tensors& outputs, Lists& inputs,
                                            const c10d::ReduceScatterOptions& options) {
  const char* const what = "reduce_scatter";
  check_lists(what, {outputs}, 1, 1);
  check_lists(what, inputs, 1, static_cast<size_t>(size_));
  check_tensors(what, {outputs, inputs[0]});
  check_alike(what, joined({outputs, inputs[0]}));
  return scatter_sums(outputs, inputs, options);
}

OclBackend::Work OclBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                  const c10d::ReduceScatterOptions& options) {
  Tensors outputs{output}, inputs{input};
  return reduce_scatter_tensor_coalesced(outputs, inputs, options);
}

OclBackend::Work OclBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  const char* const what = "reduce_scatter_tensor";
  check_lists(what, {inputs}, 1, outputs.size());
  check_tensors(what, {outputs, inputs});
  Lists parts;
  for (size_t k = 0; k < inputs.size(); ++k) {
    check_whole(what, inputs[k], outputs[k], size_);
    parts.push_back({inputs[k]});
  }
  return scatter_sums(outputs, parts, options);
}

OclBackend::Work OclBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                           Sizes& output_sizes, Sizes& input_sizes,
                                           const c10d::AllToAllOptions& options) {
  const char* const what = "alltoall_base";
  check_tensors(what, {{output, input}});
  TORCH_CHECK_TYPE(output.scalar_type() == input.scalar_type(), "ocl: ", what,
                   ": tensors must have identical type");
  TORCH_CHECK_VALUE(output.is_contiguous() && input.is_contiguous(), "ocl: ", what,
                    ": tensors must be contiguous");
  c10d::checkSplitSizes(output_sizes, output, size_);
  c10d::checkSplitSizes(input_sizes, input, size_);
  return submit(
      {.op = OpType::ALLTOALL_BASE,
       .uses = uses_of({input}, {output}),
       .results = {output},
       .form = std::string(" of ") + c10::toString(input.scalar_type()),
       .limit = options.timeout,
       .run = [output_sizes, input_sizes, ranks = static_cast<size_t>(size_)](Running& call) {
         call.engine.alltoall(cut(call.memory[1], output_sizes, ranks),
                              cut(call.memory[0], input_sizes, ranks), call.limit);
       }});
}

OclBackend::Work OclBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                      const c10d::AllToAllOptions& options) {
  const char* const what = "alltoall";
  const auto ranks = static_cast<size_t>(size_);
  check_lists(what, {outputs, inputs}, 2, ranks);
  check_tensors(what, {outputs, inputs});
  for (const at::Tensor& tensor : joined({outputs, inputs}))
    TORCH_CHECK_TYPE(tensor.scalar_type() == inputs[0].scalar_type() && tensor.is_contiguous(),
                     "ocl: ", what, ": tensors must be contiguous and have identical type");
  return submit({.op = OpType::ALLTOALL,
                 .uses = uses_of(inputs, outputs),
                 .results = outputs,
                 .form = std::string(" of ") + c10::toString(inputs[0].scalar_type()),
                 .limit = options.timeout,
                 .run = [ranks](Running& call) {
                   call.engine.alltoall(slice(call.memory, ranks, ranks),
                                        slice(call.memory, 0, ranks), call.limit);
                 }});
}

OclBackend::Work OclBackend::send(Tensors& tensors, int to, int tag) {
  const char* const what = "send";
  check_lists(what, {tensors}, 1, 1);
  check_tensors(what, {tensors});
  check_rank(what, to, size_);
  check_tag(what, tag);
  return submit(
      {.op = OpType::SEND,
       .uses = uses_of(tensors, {}),
       .run = [to, tag](Running& call) { call.engine.send(call.memory[0], to, tag, call.limit); },
       .peer = Call::Peer{to, tag}});
}

OclBackend::Work OclBackend::receive(Tensors& tensors, std::optional<int> from, int tag) {
  const char* const what = "recv";
  check_lists(what, {tensors}, 1, 1);
  check_tensors(what, {tensors});
  if (from) check_rank(what, *from, size_);
  check_tag(what, tag);
  return submit({.op = from ? OpType::RECV : OpType::RECVANYSOURCE,
                 .uses = uses_of({}, tensors),
                 .results = tensors,
                 .run =
                     [from, tag](Running& call) {
                       call.source = call.engine.receive(call.memory[0], from, tag, call.limit);
                     },
                 .peer = Call::Peer{from.value_or(-1), tag}});
}

OclBackend::Work OclBackend::recv(Tensors& tensors, int from, int tag) {
  return receive(tensors, from, tag);
}

OclBackend::Work OclBackend::recvAnysource(Tensors& tensors, int tag) {
  return receive(tensors, std::nullopt, tag);
}

OclBackend::Work OclBackend::barrier(const c10d::BarrierOptions& options) {
  return submit({.op = OpType::BARRIER, .limit = options.timeout, .run = [](Running& call) {
                   call.engine.barrier(call.limit);
                 }});
}

void OclBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool all) {
  const bool unset = options.timeout == c10d::kUnsetTimeout;
  group_->engine()->monitored_barrier(all, unset ? group_->limit() : options.timeout);
}

void OclBackend::startCoalescing() {
  const std::lock_guard lock(mutex_);
  coalescing_.emplace();
}

OclBackend::Work OclBackend::endCoalescing() {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(coalescing_.has_value(), "ocl: no block of coalesced calls has begun");
  return c10::make_intrusive<CoalescedWork>(rank_, *std::exchange(coalescing_, std::nullopt));
}

void OclBackend::setTimeout(std::chrono::milliseconds limit) {
  group_->set_limit(limit);
  options_->timeout = limit;
}

c10d::ErrorType OclBackend::getError() {
  return group_->has_failed() ? c10d::ErrorType::COMM_ERROR : c10d::ErrorType::SUCCESS;
}

void OclBackend::abort() { group_->abandon("it was aborted"); }

c10::intrusive_ptr<c10d::Backend> make_backend(std::shared_ptr<Engine> engine,
                                               c10::intrusive_ptr<c10d::Store> store,
                                               GroupOptions options) {
  auto shown = c10::make_intrusive<c10d::Backend::Options>("ocl", options.limit);
  shown->group_name = options.name;
  auto group = Group::make(std::move(engine), std::move(store), std::move(options));
  return c10::make_intrusive<OclBackend>(std::move(group), std::move(shown));
}

}  // namespace torch_ocl::distributed
