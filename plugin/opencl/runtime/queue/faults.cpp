// The record of invalid values, and the errors that its entries are raised as.
#include "faults.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "fault_record.h"
#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/driver/clhpp.h"

namespace ocltensor::opencl {
namespace {

// A site packs (operator + 1, kind, dimension), from the highest bits to the lowest.
constexpr int32_t kDimensions = 64;
constexpr int32_t kKinds = 16;
static_assert(TB_MAX_RANK <= kDimensions);

struct Kind {
  tb_status status;
  const char* text;  // {0}: value, {1}: dimension, {2}: limit
};
constexpr std::array<Kind, 13> kTexts{{
    {TB_E_INDEX, "index {0} is out of range for dimension {1} of size {2}"},
    {TB_E_INDEX, "target {0} is out of range: there are {2} classes"},
    {TB_E_INVALID, "a probability is not between 0 and 1"},
    {TB_E_INVALID, "a weight is negative or not finite (row {0})"},
    {TB_E_INVALID, "the sum of a row's weights is not positive (row {0})"},
    {TB_E_INVALID, "ZeroDivisionError: an integer is divided by zero"},
    {TB_E_INVALID, "a rate is negative or not a number (element {0})"},
    {TB_E_INDEX, "offset {0} is out of range: there are {2} elements"},
    {TB_E_INDEX, "offsets descend: {0} follows {2}"},
    {TB_E_INDEX, "the offset {0} at the start or end must be {2}"},
    {TB_E_INVALID, "all elements of input should be between 0 and 1 (element {0} is not)"},
    {TB_E_INVALID, "all elements of target should be between 0 and 1 (element {0} is not)"},
    {TB_E_INVALID, "a part's end {0} is less than the one before it, or more than the size {2}"},
}};
static_assert(kTexts.size() <= kKinds);

// Custom kernels that report: the one at place i has the site -1 - i.
struct CustomSites {
  std::mutex mutex;
  std::vector<const char*> kernels;
};
CustomSites& custom_sites() {
  static CustomSites& sites = *new CustomSites;  // leaked: streams may raise while the process ends
  return sites;
}

// Who found a value, and what is wrong with it.
struct Finding {
  tb_status status;
  std::string text;
};

Finding finding_of_kernel(const FaultRecord& found) {
  CustomSites& sites = custom_sites();
  const std::lock_guard lock(sites.mutex);
  return {TB_E_INDEX, fmt::format("kernel {}: index {} is out of range for a dimension of size {}",
                                  sites.kernels.at(static_cast<size_t>(-1 - found.site)),
                                  found.value, found.limit)};
}

Finding finding_of_operator(const FaultRecord& found) {
  const int32_t dim = found.site % kDimensions, rest = found.site / kDimensions;
  const Kind& kind = kTexts.at(static_cast<size_t>(rest % kKinds));
  const Operator& op = operators()[static_cast<size_t>(rest / kKinds - 1)];
  return {kind.status,
          fmt::format("{}: {}", op.name,
                      fmt::format(fmt::runtime(kind.text), found.value, dim, found.limit))};
}

}  // namespace

int32_t fault_site(const Operator& op, FaultKind kind, int64_t dim) {
  const auto index = static_cast<int32_t>(&op - operators().data());
  return ((index + 1) * kKinds + static_cast<int32_t>(kind)) * kDimensions +
         static_cast<int32_t>(dim);
}

int32_t fault_site(const char* kernel) {
  CustomSites& sites = custom_sites();
  const std::lock_guard lock(sites.mutex);
  sites.kernels.push_back(kernel);
  return -static_cast<int32_t>(sites.kernels.size());
}

cl_mem Faults::record() {
  std::call_once(once_, [&] {
    FaultRecord nothing{};
    cl_int code = CL_SUCCESS;
    auto record =
        std::make_shared<cl::Buffer>(device_.context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                     sizeof nothing, &nothing, &code);
    check_cl(code, "clCreateBuffer");
    record_ = std::move(record);
  });
  return (*record_)();
}

void Faults::raise_reported(cl_command_queue queue, uint64_t stream) {
  if (!expected_.exchange(false, std::memory_order_acq_rel)) return;
  FaultRecord found{};
  check_cl(cl().clEnqueueReadBuffer(queue, (*record_)(), CL_TRUE, 0, sizeof found, &found, 0,
                                    nullptr, nullptr),
           "clEnqueueReadBuffer (reported values)");
  if (found.state == 0) [[likely]]
    return;
  const FaultRecord nothing{};
  check_cl(cl().clEnqueueWriteBuffer(queue, (*record_)(), CL_TRUE, 0, sizeof nothing, &nothing, 0,
                                     nullptr, nullptr),
           "clEnqueueWriteBuffer (reported values)");
  const Finding what = found.site < 0 ? finding_of_kernel(found) : finding_of_operator(found);
  fail(what.status,
       "{} (found by the device in stream {} after the call had returned; later work was done "
       "without the value; OCLTENSOR_CHECK_VALUES=0 does not report it)",
       what.text, stream);
}

void StreamFaults::expect(std::shared_ptr<Faults> of_graph) {
  of_graph->expect();
  if (std::ranges::find(replayed_, of_graph) == replayed_.end())
    replayed_.push_back(std::move(of_graph));
}

void StreamFaults::raise_reported(cl_command_queue queue, uint64_t stream) {
  while (!replayed_.empty()) {
    const std::shared_ptr<Faults> faults = std::move(replayed_.back());
    replayed_.pop_back();
    faults->raise_reported(queue, stream);
  }
  own_.raise_reported(queue, stream);
}

}  // namespace ocltensor::opencl
