// Describes an operator's arguments for the log.
#include "operator_log.h"

#include <fmt/format.h>

#include <span>
#include <string>

#include "ocltensor/dtype.h"
#include "ocltensor/error.h"
#include "runtime/observe/profile_settings.h"

namespace ocltensor::opencl {
namespace {

std::string describe(const tb_tensor* tensor, bool buffers) {
  if (tensor == nullptr) return "none";
  std::string text;
  try {
    text = name(from_abi(tensor->dtype));
  } catch (const Error&) {  // the operator itself will raise this error
    text = "unknown type";
  }
  text += '[';
  for (uint32_t i = 0; i < tensor->ndim && tensor->sizes != nullptr; ++i)
    text += fmt::format("{}{}", i ? ", " : "", tensor->sizes[i]);
  text += ']';
  if (!buffers) return text;
  const tb_address base = tensor->base != 0 ? tensor->base : tensor->address;
  return text + fmt::format("(buffer {:#x}+{})", base, tensor->address - base);
}

std::string describe(const tb_value& value, bool buffers) {
  switch (value.tag) {
    case TB_NONE: return "none";
    case TB_BOOL: return value.as.i != 0 ? "true" : "false";
    case TB_INT: return fmt::format("{}", value.as.i);
    case TB_FLOAT: return fmt::format("{}", value.as.f);
    case TB_TENSOR: return describe(static_cast<const tb_tensor*>(value.as.p), buffers);
    case TB_INT_LIST:
      return fmt::format(
          "[{}]", fmt::join(std::span(static_cast<const int64_t*>(value.as.p), value.count), ", "));
    case TB_TENSOR_LIST: {
      std::string text = "[";
      const auto* tensors = static_cast<const tb_tensor* const*>(value.as.p);
      for (uint32_t i = 0; i < value.count; ++i)
        text += (i ? ", " : "") + describe(tensors[i], buffers);
      return text + "]";
    }
    default: return "...";
  }
}

}  // namespace

void log_operator(profiler::HostCall& call, std::string_view name, std::span<const tb_value> args,
                  std::span<const tb_tensor* const> outs) {
  const uint32_t log = profiler::log_mask();
  if ((log & profiler::kLogOperators) == 0) return;
  const bool buffers = (log & profiler::kLogBufferIds) != 0;
  std::string text = fmt::format("operator {}(", name);
  for (size_t i = 0; i < args.size(); ++i) text += (i ? ", " : "") + describe(args[i], buffers);
  text += ")";
  for (size_t i = 0; i < outs.size(); ++i) text += (i ? ", " : " -> ") + describe(outs[i], buffers);
  call.say(std::move(text));
}

}  // namespace ocltensor::opencl
