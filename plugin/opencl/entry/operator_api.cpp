// Operators and random number generators at the C boundary.
#include <atomic>
#include <cstring>
#include <optional>

#include "entry.h"
#include "handles.h"
#include "operator_count.h"
#include "operator_log.h"
#include "ops/registry.h"
#include "runtime/device/device.h"
#include "runtime/driver/process.h"
#include "runtime/observe/profiler.h"
#include "runtime/observe/recorder.h"

namespace ocltensor::opencl {

std::atomic<uint64_t>& operators_run() {
  static std::atomic<uint64_t> count{0};
  return count;
}

namespace {

tb_status count_operators(uint32_t* count, tb_error* error) {
  return guarded(error,
                 [&] { required(count, "count") = static_cast<uint32_t>(registry().size()); });
}

tb_status operator_at(uint32_t index, tb_op* op, tb_op_info* info, tb_error* error) {
  return guarded(error, [&] {
    check(index < registry().size(), "there is no operator {}", index);
    const tb_op_s& entry = registry()[index];
    required(op, "op") = &entry;
    if (info != nullptr)
      fill_struct(info,
                  {0, entry.op->flags, entry.op->name.c_str(), entry.op->text, entry.op->family},
                  TB_OP_INFO_SIZE_V1);
  });
}

tb_status find_op(const char* name, tb_op* op, tb_error* error) {
  return guarded(error, [&] {
    required(op, "op") = find_in_registry(&required(name, "name"));
    if (*op == nullptr)
      unsupported(TB_REASON_OPERATOR, "the OpenCL plugin has no operator {}", name);
  });
}

// Runs an operator with the profiler or a capture on.
void run_observed(const tb_op_s& entry, OpCall& call, const tb_call& raw) {
  std::optional<profiler::HostCall> traced;
  if (profiler::recording()) traced.emplace("operator", entry.op->name.c_str());
  std::optional<recorder::OperatorCall> recorded;
  if (recorder::recording()) recorded.emplace(entry.op->name.c_str());
  entry.run(call);
  if (recorded)
    for (size_t i = 0; i < call.out_count(); ++i) recorded->output(i, call.out(i).raw());
  if (!traced) return;
  log_operator(*traced, entry.op->name, {raw.args, raw.arg_count}, {raw.outs, raw.out_count});
  call.stream().finish_operator();
}

tb_status run(const tb_call* call, tb_error* error, bool check_only) {
  return guarded(error, [&] {
    check_process();
    const tb_call& c = required(call, "call");
    check(c.struct_size >= TB_CALL_SIZE_V1, "tb_call has struct_size {}", c.struct_size);
    const tb_op_s& entry = required(c.op, "op");
    const Policy& policy = opencl::policy();
    if (!policy.plain && (c.flags & TB_CALL_ALWAYS) == 0) [[unlikely]]
      steer_operator(policy, entry, stream_of(c.stream));
    OpCall op_call(c, *entry.op, stream_of(c.stream), check_only, entry, policy);
    try {
      if ((profiler::recording() || recorder::recording()) && !check_only) [[unlikely]]
        run_observed(entry, op_call, c);
      else
        entry.run(op_call);
    } catch (const AcceptedOnly&) {
      return;
    } catch (const Error& failure) {
      if (failure.status() == TB_E_STATE) op_call.stream().name_failure(entry.op->name);
      throw;
    }
    operators_run().fetch_add(1, std::memory_order_relaxed);
  });
}

tb_status supports(const tb_call* call, tb_error* error) { return run(call, error, true); }
tb_status invoke(const tb_call* call, tb_error* error) { return run(call, error, false); }

tb_status generator_default(int32_t index, tb_generator* out, tb_error* error) {
  return guarded(error, [&] {
    required(out, "generator") = reinterpret_cast<tb_generator>(&device(index).default_generator());
  });
}
tb_status generator_create(int32_t index, uint64_t seed, tb_generator* out, tb_error* error) {
  return guarded(error, [&] {
    required(out, "generator") = reinterpret_cast<tb_generator>(new Generator(device(index), seed));
  });
}
tb_status generator_destroy(tb_generator handle, tb_error* error) {
  return guarded(error, [&] {
    if (handle == nullptr) return;
    Generator& g = generator_of(handle);
    check(&g != &g.device().default_generator(), "the default generator cannot be destroyed");
    delete &g;
  });
}
tb_status generator_set_seed(tb_generator handle, uint64_t seed, tb_error* error) {
  return guarded(error, [&] { generator_of(handle).set({seed, 0}); });
}
tb_status generator_get_seed(tb_generator handle, uint64_t* seed, tb_error* error) {
  return guarded(error, [&] { required(seed, "seed") = generator_of(handle).get().seed; });
}
void check_state(const void* state, uint64_t bytes) {
  check(state != nullptr, "'state' must not be NULL");
  check(bytes == TB_GENERATOR_STATE_BYTES, "RNG state is wrong size: {} bytes, expected {}", bytes,
        TB_GENERATOR_STATE_BYTES);
}
tb_status generator_get_state(tb_generator handle, void* state, uint64_t bytes, tb_error* error) {
  return guarded(error, [&] {
    check_state(state, bytes);
    const Generator::State s = generator_of(handle).get();
    std::memcpy(state, &s, sizeof s);
  });
}
tb_status generator_set_state(tb_generator handle, const void* state, uint64_t bytes,
                              tb_error* error) {
  return guarded(error, [&] {
    check_state(state, bytes);
    Generator::State s{};
    std::memcpy(&s, state, sizeof s);
    generator_of(handle).set(s);
  });
}
static_assert(sizeof(Generator::State) == TB_GENERATOR_STATE_BYTES);

}  // namespace

const tb_operator_api kOperatorApi{
    .struct_size = sizeof(tb_operator_api),
    .count = count_operators,
    .at = operator_at,
    .find = find_op,
    .supports = supports,
    .invoke = invoke,
};
const tb_generator_api kGeneratorApi{
    .struct_size = sizeof(tb_generator_api),
    .default_generator = generator_default,
    .create = generator_create,
    .destroy = generator_destroy,
    .set_seed = generator_set_seed,
    .get_seed = generator_get_seed,
    .get_state = generator_get_state,
    .set_state = generator_set_state,
};

}  // namespace ocltensor::opencl
