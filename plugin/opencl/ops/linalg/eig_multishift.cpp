// eig.multishift: eigenvalues of large general matrices on GPUs. The host drives QR sweeps with
// many shifts until all blocks on the diagonal are small; those are solved all at once.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "call/division.h"
#include "eig.h"
#include "eig_multishift_params.h"
#include "eig_shifts.h"
#include "kernels/linalg.h"

namespace ocltensor::opencl::linalg {
namespace {

namespace kernel = kernels::linalg::eig_multishift;

constexpr int64_t kTeam = 64;       // TEAM_ITEMS, VECTORS
constexpr int64_t kApart = 4;       // APART
constexpr int64_t kMostBulges = 4;  // of a chain
constexpr int64_t kMostPairs = 16;  // of shifts: more of them converge more slowly
constexpr int64_t kMostSpan = kTeam;
constexpr uint64_t kMostLocal = uint64_t{48} << 10;
constexpr int64_t kPatience = 6;  // sweeps without deflation until shifts are exceptional
constexpr int64_t kSweeps = 60;   // for as many eigenvalues as a sweep has shifts

// The sizes of a device's chains: rows of a window, and bulges.
struct Sizes {
  int64_t span, bulges;
};
Sizes sizes_for(const OpCall& call, DType type) {
  const uint64_t local = std::min(call.caps().local_memory, kMostLocal);
  int64_t span = kMostSpan;
  while (span > 0 && static_cast<uint64_t>(span * (2 * span + 1) * size_of(type)) > local)
    span -= kApart;
  const int64_t most = std::min(int64_t{call.caps().max_work_group_size} / kTeam, kMostBulges);
  int64_t bulges = 1;
  while (bulges * 2 <= most) bulges *= 2;
  return {span, most == 0 ? 0 : bulges};
}
bool are_useful(const Sizes& s) { return s.bulges > 0 && s.span >= 2 * kApart * s.bulges - kApart; }

// Blocks of up to so many rows are left to one work-group: the WINDOW of eig_chase.h.
int64_t most_alone(DType type, const Sizes& sizes) {
  const int64_t bytes = size_of(type);
  return std::min<int64_t>(sizes.span, bytes == 4 ? 48 : bytes == 8 ? 32 : 24);
}

struct Block {
  int64_t lo, hi;
  int64_t rows() const { return hi - lo + 1; }
};

// The numbers of a type as complex ones of the host, and back.
void load(const std::byte* from, DType type, std::complex<double>* to) {
  const auto get = [&]<typename R>(R /*part*/) {
    R parts[2] = {0, 0};
    std::memcpy(parts, from, static_cast<size_t>(size_of(type)));
    *to = {static_cast<double>(parts[0]), static_cast<double>(parts[1])};
  };
  real_type(type) == DType::Float32 ? get(0.0F) : get(0.0);
}
void store(std::complex<double> x, DType type, std::byte* to) {
  const auto put = [&]<typename R>(R /*part*/) {
    const R parts[2] = {static_cast<R>(x.real()), static_cast<R>(x.imag())};
    std::memcpy(to, parts, static_cast<size_t>(size_of(type)));
  };
  real_type(type) == DType::Float32 ? put(0.0F) : put(0.0);
}

// The work on one matrix.
class Multishift {
 public:
  Multishift(const OpCall& call, const SchurProblem& problem, int64_t matrix)
      : call_(call),
        problem_(problem),
        type_(problem.a.view().dtype()),
        matrix_(matrix),
        vectors_(problem.params.vectors != 0),
        n_(problem.params.n),
        sizes_(sizes_for(call, type_)),
        alone_(most_alone(type_, sizes_)),
        flags_(call, DType::Int32, {n_}),
        places_(call, DType::Int32, {n_, 2}),
        shifts_(call, type_, {kMostPairs, 3}),
        products_(call, type_, {divide_up(kMostPairs, sizes_.bulges), sizes_.span, sizes_.span}),
        starts_(static_cast<size_t>(n_)) {
    p_.n = n_;
    if (finds_small_blocks()) solve_small_blocks();
    launch(kernel::finish, {.value = values(), .number = numbers(), .scaled = scaled(), .p = p_})
        .run({group(), 1, 1}, {group(), 1, 1});
  }

 private:
  int64_t group() const { return kTeam * sizes_.bulges; }
  Defines defines() const {
    Defines d = with_numbers({}, type_);
    d.set(define::GROUP, group());
    return d.set(define::SPAN, sizes_.span).set(define::BULGES, sizes_.bulges);
  }
  template <typename Arguments>
  Launch launch(const KernelOf<Arguments>& kernel,
                const std::type_identity_t<Arguments>& arguments) const {
    return call_.launch(kernel, defines(), arguments);
  }

  // What the problem has for this matrix.
  MemoryRange part_of(TensorView all, int64_t count) const {
    const int64_t bytes = count * size_of(all.dtype());
    return {all.address() + static_cast<uint64_t>(matrix_ * bytes), 0, bytes};
  }
  MemoryRange a() const { return part_of(problem_.a.view(), n_ * n_); }
  MemoryRange q() const {
    return vectors_ ? part_of(problem_.q.view(), n_ * n_) : MemoryRange(problem_.q);
  }
  MemoryRange values() const { return part_of(problem_.values.view(), n_); }
  MemoryRange numbers() const { return part_of(problem_.numbers.view(), 2); }
  MemoryRange scaled() const { return part_of(problem_.scaled, n_); }

  std::vector<std::byte> read(const MemoryRange& range, int64_t from, int64_t bytes) const {
    std::vector<std::byte> data(static_cast<size_t>(bytes));
    const Place place = resolve(range.address, range.low, range.high);
    call_.stream().read(data.data(), place.buffer, place.offset + static_cast<uint64_t>(from),
                        data.size(), false);
    return data;
  }
  void write(const MemoryRange& range, const void* data, size_t bytes) const {
    const Place place = resolve(range.address, range.low, range.high);
    call_.stream().write(place.buffer, place.offset, data, bytes, false);
  }

  bool is_rehearsed() const { return call_.stream().rehearsal().has_stopped(); }

  // False where an element is not finite, or sweeps do not converge. In a rehearsal that lacks
  // programs the host reads nothing.
  bool finds_small_blocks() {
    find_kernel(call_.stream(), kernel::chase.source, kernel::chase.function, defines());
    starts_.assign(starts_.size(), 1);
    if (is_rehearsed()) return true;
    std::complex<double> unit;
    const DType part = real_type(type_);
    load(read(numbers(), 0, size_of(part)).data(), part, &unit);
    if (std::isnan(unit.real())) return false;
    Block active{0, n_ - 1};
    find_starts(active);
    Block last{0, 0};
    int64_t tries = 0;
    double left = kSweeps * std::max(1.0, static_cast<double>(n_) / (2 * kMostPairs));
    while (find_active(active.hi, active)) {
      if (left-- <= 0) {
        const auto nan = std::numeric_limits<double>::quiet_NaN();
        std::array<std::byte, sizeof(double)> bytes{};
        store(nan, part, bytes.data());
        write(numbers(), bytes.data(), static_cast<size_t>(size_of(part)));
        return false;
      }
      tries = active.lo == last.lo && active.hi == last.hi ? tries + 1 : 0;
      last = active;
      sweep(active, tries % kPatience == kPatience - 1);
      find_starts(active);
    }
    return true;
  }

  // Asks the device where the block splits.
  void find_starts(const Block& block) {
    EigMultishiftParams p = p_;
    p.lo = block.lo;
    p.hi = block.hi;
    launch(kernel::deflate, {.a = a(), .flag = flags_, .p = p})
        .run({group(), 1, 1}, {group(), 1, 1});
    if (block.rows() == 1) return;
    const int64_t bytes = (block.rows() - 1) * int64_t{sizeof(int32_t)};
    const auto data = read(flags_, (block.lo + 1) * int64_t{sizeof(int32_t)}, bytes);
    std::memcpy(&starts_[static_cast<size_t>(block.lo + 1)], data.data(), data.size());
  }
  // The last block up to row `hi` that is not small.
  bool find_active(int64_t hi, Block& block) const {
    for (int64_t k = hi; k >= 0; --k) {
      if (starts_[static_cast<size_t>(k)] == 0) continue;
      block = {k, hi};
      if (block.rows() > alone_) return true;
      hi = k - 1;
    }
    return false;
  }

  // The number of pairs of shifts that the next sweep has.
  int64_t send_shifts(const Block& block, bool exceptional) const {
    const int64_t pairs = std::min(block.rows() / 4, kMostPairs);
    const int64_t rows = 2 * pairs;
    const int64_t first = block.hi + 1 - rows;
    const int64_t size = size_of(type_);
    const auto data = read(a(), first * (n_ + 1) * size, ((rows - 1) * n_ + rows) * size);
    TrailingBlock trailing{{}, rows, !is_complex(type_)};
    trailing.h.resize(static_cast<size_t>(rows * rows));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = std::max<int64_t>(i - 1, 0); j < rows; ++j)
        load(data.data() + (i * n_ + j) * size, type_,
             &trailing.h[static_cast<size_t>(i * rows + j)]);
    std::vector<std::byte> sent(static_cast<size_t>(pairs * 3 * size));
    std::byte* to = sent.data();
    for (const ShiftPair& pair : exceptional ? exceptional_shifts(trailing) : find_shifts(trailing))
      for (const std::complex<double> x : {pair.s0, pair.s1, std::complex<double>(pair.im)}) {
        store(x, type_, to);
        to += size;
      }
    write(shifts_, sent.data(), sent.size());
    return pairs;
  }

  void sweep(const Block& block, bool exceptional) const {
    EigMultishiftParams p = p_;
    p.lo = block.lo;
    p.hi = block.hi;
    p.begin = vectors_ ? 0 : block.lo;
    p.end = vectors_ ? n_ : block.hi + 1;
    p.pairs = send_shifts(block, exceptional);
    p.rows = sizes_.span;
    const int64_t chain_rows = kApart * sizes_.bulges;
    const int64_t steps = sizes_.span - chain_rows;
    const int64_t stages = divide_up(block.rows() - 1 + chain_rows - kApart, steps);
    const int64_t chains = divide_up(p.pairs, sizes_.bulges);
    p.lag = 1 + divide_up(chain_rows, steps);
    for (p.stage = 0; p.stage < stages + (chains - 1) * p.lag; ++p.stage) {
      const int64_t last = std::min(chains - 1, p.stage / p.lag);
      p.chain = p.stage < stages ? 0 : (p.stage - stages) / p.lag + 1;
      const int64_t count = last - p.chain + 1;
      if (count <= 0) continue;
      launch(kernel::chase, {.a = a(), .shift = shifts_, .place = places_, .u = products_, .p = p})
          .run({count * group(), 1, 1}, {group(), 1, 1});
      apply(products_, count, p);
    }
  }

  // What a window does to its rows, another one does to its columns: these must wait for those.
  void apply(const Numbers& products, int64_t windows, EigMultishiftParams p) const {
    p.tiles = divide_up(n_, kTeam);
    const auto run = [&](int64_t part, int64_t parts) {
      p.part = part;
      launch(kernel::apply, {.a = a(), .q = q(), .place = places_, .u = products, .p = p})
          .run({parts * p.tiles * kTeam, windows, 1}, {kTeam, 1, 1});
    };
    if (windows == 1 && vectors_) return run(0, 3);
    run(0, vectors_ ? 2 : 1);
    run(2, 1);
  }

  // Neighbouring blocks together, as long as they are small.
  std::vector<Block> small_blocks() const {
    std::vector<Block> blocks;
    for (int64_t k = 0; k < n_;) {
      Block next{k, k};
      while (next.hi + 1 < n_ && starts_[static_cast<size_t>(next.hi + 1)] == 0) ++next.hi;
      if (!blocks.empty() && next.hi - blocks.back().lo < alone_)
        blocks.back().hi = next.hi;
      else
        blocks.push_back(next);
      k = next.hi + 1;
    }
    return blocks;
  }

  void solve_small_blocks() const {
    const std::vector<Block> blocks = small_blocks();
    std::vector<int32_t> places;
    for (const Block& block : blocks) {
      places.push_back(static_cast<int32_t>(block.lo));
      places.push_back(static_cast<int32_t>(block.rows()));
    }
    write(places_, places.data(), places.size() * sizeof(int32_t));
    const auto count = static_cast<int64_t>(blocks.size());
    const Numbers b(call_, type_, {count, alone_, alone_});
    const Numbers q_of_b(call_, type_, {count, alone_, alone_});
    const Numbers numbers_of_b(call_, real_type(type_), {count, 2});
    const Numbers found(call_, complex_type(type_), {count, alone_});
    const Numbers values_of_b(call_, complex_type(type_), {count, alone_});
    EigMultishiftParams p = p_;
    p.rows = alone_;
    p.end = n_;
    const auto run = [&](Launch&& launch) { launch.run({count * group(), 1, 1}, {group(), 1, 1}); };
    run(launch(kernel::take_blocks,
               {.a = a(), .place = places_, .b = b, .q = q_of_b, .number = numbers_of_b, .p = p}));
    run_schur(call_, {b, q_of_b, values_of_b, found.view(), numbers_of_b,
                      EigParams{.count = count, .n = alone_, .vectors = vectors_ ? 1 : 0}});
    run(launch(kernel::put_blocks, {.a = a(),
                                    .place = places_,
                                    .b = b,
                                    .found = found,
                                    .value = values(),
                                    .number = numbers(),
                                    .p = p}));
    if (vectors_) apply(q_of_b, count, p);
  }

  const OpCall& call_;
  const SchurProblem& problem_;
  const DType type_;
  const int64_t matrix_;
  const bool vectors_;
  const int64_t n_;
  const Sizes sizes_;
  const int64_t alone_;
  const Numbers flags_, places_, shifts_, products_;
  EigMultishiftParams p_{};
  std::vector<int32_t> starts_;  // whether a row begins a block
};

void find_schur_forms(const OpCall& call, const SchurProblem& problem) {
  for (int64_t m = 0; m < problem.params.count; ++m) Multishift(call, problem, m);
}

const char* refuse(const OpCall& call, const EigProblem& p) {
  return are_useful(sizes_for(call, p.a.dtype())) ? nullptr : "windows do not fit in local memory";
}

void run(const OpCall& call, const EigProblem& p) { run_eig(call, p, find_schur_forms); }

// Matrices are solved one after the other; the other algorithm has a work-group for each.
constexpr int64_t kFewestRows = 97;
constexpr int64_t kRowsOfMatrix = 64;  // for each matrix of a batch

// H100, float32, ms (eig.qr): 8.6 (17.1) for 128 rows, 60 (436) for 512, 191 (2574) for 1024.
const char* pass_over(const OpCall&, const EigProblem& p) {
  const int64_t n = p.a.size(-1);
  if (n < kFewestRows) return "one work-group is faster for so few rows";
  return p.a.numel() / (n * n) > std::max<int64_t>(n / kRowsOfMatrix, 1) ? "there are many matrices"
                                                                         : nullptr;
}

}  // namespace

constinit const AlgorithmFor<EigProblem> kMultishiftEig(
    {.id = "eig.multishift",
     .description = "QR sweeps with many shifts, driven by the host",
     .style = DeviceStyle::Gpu},
    Steps<refuse, run>(), pass_over);

}  // namespace ocltensor::opencl::linalg
