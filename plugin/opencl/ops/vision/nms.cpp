// torchvision::nms: boxes in the order of their scores are settled in rounds, on the device: which
// of a round's boxes remain, and which boxes behind the round they suppress. The host only waits
// for their number.
#include <algorithm>
#include <cmath>
#include <limits>

#include "call/divide_up.h"
#include "call/division.h"
#include "call/scalar_bits.h"
#include "kernels/vision.h"
#include "nms_params.h"
#include "ops/copy/copy.h"
#include "ops/sort/sort.h"
#include "vision.h"

namespace ocltensor::opencl::vision {
namespace {

// Boxes, row-major, and the memory that rounds work on.
struct Boxes {
  TensorView dets;
  const Scratch& order;    // int64: numbers of boxes by falling scores
  const Scratch& rows;     // of the compute type: see nms_params.h
  const Scratch& removed;  // a byte for each box in order
  const Scratch& kept;     // int64: the result
  const Scratch& counts;   // int64: all kept boxes, those of the round
  NmsParams p;
  int64_t count() const { return p.boxes; }
};

Defines defines_of(DType type) {
  Defines d;
  return d.type(define::A, type);
}

// Comparing with the caller's float64 number is comparing with the largest number of the compute
// type that is not above it.
uint64_t threshold_bits(double threshold, DType type) {
  if (compute_type(type) == DType::Float64) return slot_bits(threshold);
  auto below = static_cast<float>(threshold);
  if (below > threshold) below = std::nextafter(below, -std::numeric_limits<float>::infinity());
  return slot_bits(below);
}

// The next round's parameters, for `pieces` pieces of work.
struct Work {
  NmsParams p;
  Division division;
};
Work cut(const OpCall& call, const NmsParams& round, int64_t pieces) {
  Work work{round, divide(call.caps(), pieces)};
  work.p.pieces = pieces;
  work.p.per_item = work.division.per_item;
  return work;
}

// Calls round(p) for boxes [p.first, p.end), `size` at a time.
template <typename Round>
void for_each_round(const Boxes& boxes, int64_t size, const Round& round) {
  NmsParams p = boxes.p;
  for (int64_t first = 0; first < boxes.count(); first += size) {
    p.first = first;
    p.end = std::min(boxes.count(), first + size);
    round(p);
  }
}

// Removes boxes behind the round, in pieces of `each`.
void sweep(const OpCall& call, const Boxes& boxes, const auto& kernel, const Defines& d,
           const Scratch& list, const NmsParams& round, int64_t each) {
  const auto [p, division] = cut(call, round, divide_up(boxes.count() - round.end, each));
  if (p.pieces == 0) return;
  call.launch(kernel, d,
              {.removed = boxes.removed,
               .rows = boxes.rows,
               .list = list,
               .counts = boxes.counts,
               .p = p})
      .run(division.global, division.local);
}

void run_rows(const OpCall& call, const Boxes& boxes) {
  constexpr int64_t kRound = 256, kVector = 16;
  namespace kernel = kernels::vision::nms_cpu;
  const Scratch list = call.scratch(kRound * 8);
  Defines d = defines_of(boxes.dets.dtype());
  d.set(define::WIDE, boxes.dets.dtype() == DType::Float64);
  for_each_round(boxes, kRound, [&](const NmsParams& p) {
    call.launch(kernel::settle, d,
                {.kept = boxes.kept,
                 .list = list,
                 .removed = boxes.removed,
                 .counts = boxes.counts,
                 .rows = boxes.rows,
                 .order = boxes.order,
                 .p = p})
        .run({1, 1, 1}, {1, 1, 1});
    sweep(call, boxes, kernel::sweep, d, list, p, kVector);
  });
}

void run_masks(const OpCall& call, const Boxes& boxes) {
  constexpr int64_t kWords = 32, kRound = 64 * kWords;
  namespace kernel = kernels::vision::nms_gpu;
  const int64_t items =
      std::min<int64_t>(256, static_cast<int64_t>(call.caps().max_work_group_size));
  const Scratch list = call.scratch(kRound * 8), mask = call.scratch(kRound * kWords * 8);
  Defines d = defines_of(boxes.dets.dtype());
  d.set(define::WORDS, kWords).set(define::ITEMS, items);
  for_each_round(boxes, kRound, [&](const NmsParams& round) {
    const auto [p, division] = cut(call, round, kRound * divide_up(round.end - round.first, 64));
    call.launch(kernel::masks, d,
                {.mask = mask, .removed = boxes.removed, .rows = boxes.rows, .p = p})
        .run(division.global, division.local);
    call.launch(kernel::walk, d,
                {.kept = boxes.kept,
                 .list = list,
                 .counts = boxes.counts,
                 .removed = boxes.removed,
                 .mask = mask,
                 .order = boxes.order,
                 .p = round})
        .run({items, 1, 1}, {items, 1, 1});
    sweep(call, boxes, kernel::sweep, d, list, round, 1);
  });
}

constinit const AlgorithmFor<Boxes> kRows(
    {.id = "nms.rows",
     .description = "a work-item settles 256 boxes; the others are compared with those it keeps",
     .style = DeviceStyle::Cpu,
     .last_resort = true},
    Steps<takes_all<Boxes>, run_rows>());
constinit const AlgorithmFor<Boxes> kMasks(
    {.id = "nms.masks",
     .description = "bit masks of 2048 boxes, which a work-group walks through",
     .style = DeviceStyle::Gpu,
     .last_resort = true},
    Steps<takes_all<Boxes>, run_masks>());

struct Traits {
  static std::string describe(const OpCall& call, const Boxes& boxes) {
    return fmt::format("{} {} {} boxes", call.name(), name(boxes.dets.dtype()), boxes.count());
  }
};
using Algorithms = AlgorithmList<Boxes, Traits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms("nms", kNmsOperators, {&kRows, &kMasks});  // leaked
  return list;
}

void sort_by_score(const OpCall& call, TensorView scores, const Scratch& order) {
  const Contiguous dense(call, scores);
  const Dims row{1, scores.numel()};
  sort::sort_rows(call, LocalTensor(dense.view().address(), scores.dtype(), row),
                  {.descending = true}, nullptr, LocalTensor(order.address(), DType::Int64, row));
}

void gather(const OpCall& call, const Boxes& boxes) {
  const auto [p, division] = cut(call, boxes.p, boxes.count());
  call.launch(kernels::vision::nms::gather, defines_of(boxes.dets.dtype()),
              {.rows = boxes.rows,
               .removed = boxes.removed,
               .counts = boxes.counts,
               .dets = boxes.dets,
               .order = boxes.order,
               .p = p})
      .run(division.global, division.local);
}

int64_t read_number(const OpCall& call, const Scratch& from) {
  int64_t number = 0;
  const Place place = resolve(from.address(), 0, sizeof number);
  call.stream().read(&number, place.buffer, place.offset, sizeof number, false);
  return number;
}

void nms(OpCall& call) {
  check_outputs(call);
  const TensorView dets = call.args().tensor(Arg::dets), scores = call.args().tensor(Arg::scores);
  const int64_t count = dets.size(0);
  if (count >= INT32_MAX) unsupported(TB_REASON_SIZE, "{}: boxes are limited to 2^31", call.name());
  call.accept();
  if (count == 0) {
    (void)call.resize_out(0, Dims{0});
    return;
  }
  const auto bytes = static_cast<uint64_t>(count);
  const Scratch order = call.scratch(bytes * 8), removed = call.scratch(bytes),
                kept = call.scratch(bytes * 8), counts = call.scratch(16),
                rows = call.scratch(bytes * 5 *
                                    static_cast<uint64_t>(size_of(compute_type(dets.dtype()))));
  sort_by_score(call, scores, order);
  const Contiguous dense(call, dets);
  Boxes boxes{dense.view(), order, rows, removed, kept, counts, {}};
  boxes.p.boxes = count;
  boxes.p.threshold = threshold_bits(call.args().real(Arg::iou_threshold), dets.dtype());
  gather(call, boxes);
  algorithms().run(call, boxes);
  const int64_t remaining = read_number(call, counts);
  copy_tensor(call, call.resize_out(0, Dims{remaining}),
              LocalTensor(kept.address(), DType::Int64, Dims{remaining}));
}

constexpr OpEntry kOperators[] = {{"torchvision::nms.out", nms}};

}  // namespace

constinit const std::span<const OpEntry> kNmsOperators = kOperators;

const AlgorithmFamily& nms_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::vision
