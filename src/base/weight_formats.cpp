// Looks formats up, and checks that the parts of a quantised weight fit together.
#include "weight_formats.h"

#include <string>

namespace ocltensor {
namespace {

constexpr WeightFormat kFormats[] = {
#define OCLTENSOR_WEIGHT_FORMAT(name, layout, block, bytes, align, scales, zero, ...)             \
  {#name,      WeightLayout::layout, block, bytes, align, WeightScales::scales, WeightZero::zero, \
   __VA_ARGS__},
#include "weight_formats.def"
#undef OCLTENSOR_WEIGHT_FORMAT
};

// Of a row's elements, and between groups: kernels count these with 32 bits.
constexpr int64_t kMostInRow = (int64_t{1} << 31) - (1 << 16);
constexpr int64_t kTileRows = 8, kSmallestGroup = 32, kLeastColumns = 32, kMostColumns = 128,
                  kCodes = 16;

std::string names() {
  std::string list;
  for (const WeightFormat& f : kFormats)
    list += fmt::format("{}{}", list.empty() ? "" : ", ", f.name);
  return list;
}

void check_bytes(const QuantisedWeight& w, const std::string& op) {
  const WeightFormat& f = *w.format;
  const int64_t given = w.bytes.numel() * w.bytes.itemsize();
  if (f.layout == WeightLayout::Flat) {
    const int64_t wanted = (w.n * w.k + f.block - 1) / f.block * f.bytes;
    check(given == wanted, "{}: a weight of format {} with {} x {} elements has {} bytes, got {}",
          op, f.name, w.n, w.k, wanted, given);
    return;
  }
  check(w.k % f.block == 0, "{}: format {} has blocks of {} elements, which do not divide K = {}",
        op, f.name, f.block, w.k);
  if (f.layout == WeightLayout::Tiles) {
    check(w.bytes.ndim() == 4 && w.bytes.size(2) == 32 && w.bytes.itemsize() == 4,
          "{}: a weight of format {} has shape [N / 8, K / (tiles * 16), 32, tiles / 2] of int32, "
          "got {}",
          op, f.name, to_string(w.bytes.sizes()));
    const int64_t columns = w.tile_columns();
    check(columns == kLeastColumns || columns == 2 * kLeastColumns || columns == kMostColumns,
          "{}: a weight of format {} has tiles of 32, 64 or 128 columns, got {}", op, f.name,
          columns);
    check(w.n % kTileRows == 0, "{}: format {} has tiles of 8 rows, which do not divide N = {}", op,
          f.name, w.n);
    check(w.bytes.size(1) * columns == w.k,
          "{}: format {} with {} tiles of {} columns has no K = {}", op, f.name, w.bytes.size(1),
          columns, w.k);
  }
  check(given == w.n * w.pitch(),
        "{}: a weight of format {} with N = {} and K = {} has {} bytes, got {}", op, f.name, w.n,
        w.k, w.n * w.pitch(), given);
}

void check_group(const QuantisedWeight& w, const std::string& op) {
  const WeightFormat& f = *w.format;
  if (w.group == w.k && f.layout != WeightLayout::Flat) return;
  check(w.group >= kSmallestGroup && (w.group & (w.group - 1)) == 0,
        "{}: format {} has groups of a power of 2, at least {}, or of a whole row (K = {}), got {}",
        op, f.name, kSmallestGroup, w.k, w.group);
  check(f.layout == WeightLayout::Flat || w.k % w.group == 0,
        "{}: format {}: groups of {} do not divide K = {}", op, f.name, w.group, w.k);
}

// `part`: scale or zero.
void check_part(const QuantisedWeight& w, const std::string& op, const char* part,
                const std::optional<TensorView>& tensor, bool wanted) {
  const WeightFormat& f = *w.format;
  check(tensor || !wanted, "{}: format {} needs a {}", op, f.name, part);
  check(!tensor || wanted, "{}: format {} takes no {}", op, f.name, part);
  if (!wanted) return;
  check(!is_complex(tensor->dtype()), "{}: format {}: the {} is {}", op, f.name, part,
        name(tensor->dtype()));
  const int64_t last = tensor->ndim() - 1;
  check(last < 0 || tensor->size(last) <= 1 || tensor->stride(last) < kMostInRow,
        "{}: format {}: groups of the {} are {} elements apart, 2^31 or more", op, f.name, part,
        tensor->ndim() == 0 ? 0 : tensor->stride(last));
  if (f.zero == WeightZero::Codes && &tensor == &w.zero) {
    check(tensor->ndim() == 1 && tensor->size(0) == kCodes,
          "{}: format {} has {} codes, as a zero of shape [{}], got {}", op, f.name, kCodes, kCodes,
          to_string(tensor->sizes()));
    return;
  }
  if (f.layout == WeightLayout::Flat) {
    const int64_t blocks = (w.n * w.k + w.group - 1) / w.group;
    check(tensor->ndim() == 1 && tensor->size(0) == blocks,
          "{}: format {}: {} x {} elements in blocks of {} have a {} of shape [{}], got {}", op,
          f.name, w.n, w.k, w.group, part, blocks, to_string(tensor->sizes()));
    return;
  }
  const int64_t groups = w.k == 0 ? 1 : w.k / w.group;
  check(tensor->ndim() == 2 && (tensor->size(0) == w.n || tensor->size(0) == 1) &&
            tensor->size(1) == groups,
        "{}: format {}: {} rows of {} groups have a {} of shape [{}, {}], got {}", op, f.name, w.n,
        groups, part, w.n, groups, to_string(tensor->sizes()));
}

}  // namespace

std::span<const WeightFormat> weight_formats() { return kFormats; }

const WeightFormat* find_weight_format(std::string_view name) {
  for (const WeightFormat& f : kFormats)
    if (f.name == name) return &f;
  return nullptr;
}

int64_t QuantisedWeight::tile_columns() const { return bytes.size(3) * 32; }

QuantisedWeight quantised_weight(const Args& args, int64_t n, int64_t k) {
  const std::string& op = args.schema().full_name();
  const std::string_view name = args.string(Arg::mode);
  QuantisedWeight w{find_weight_format(name),
                    n,
                    k,
                    args.integer(Arg::group),
                    args.tensor(Arg::weight),
                    args.optional_tensor(Arg::scale),
                    args.optional_tensor(Arg::offset)};
  if (w.format == nullptr)
    fail(TB_E_INVALID, "{}: no weights of format '{}'; there are {}", op, name, names());
  check(n >= 0 && k >= 0, "{}: a weight of format {} with N = {} and K = {}", op, name, n, k);
  check(k < kMostInRow, "{}: a weight of format {} with K = {}, 2^31 or more", op, name, k);
  const bool apart = w.format->scales == WeightScales::Apart;
  check(apart || w.group == 0,
        "{}: format {} has its scales in its blocks: group must be 0, got {}", op, name, w.group);
  if (apart && w.group == 0) w.group = k;
  check_bytes(w, op);
  if (apart && k > 0) check_group(w, op);
  check_part(w, op, "scale", w.scale, apart);
  check_part(w, op, "zero", w.zero, w.format->zero != WeightZero::None);
  return w;
}

}  // namespace ocltensor
