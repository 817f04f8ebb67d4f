// Unpacking and parsing the embedded CSV; data augmentation.
#include "digits.h"

#include <zlib.h>

#include <sstream>
#include <stdexcept>
#include <string>

extern const unsigned char digits_gz[];
extern const unsigned long digits_gz_size;

namespace demo {
namespace {

std::string unpack() {
  z_stream stream{};
  stream.next_in = const_cast<unsigned char*>(digits_gz);
  stream.avail_in = static_cast<unsigned>(digits_gz_size);
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK)
    throw std::runtime_error("zlib could not start");
  std::string text;
  char part[1 << 16];
  int code = Z_OK;
  while (code == Z_OK) {
    stream.next_out = reinterpret_cast<unsigned char*>(part);
    stream.avail_out = sizeof part;
    code = inflate(&stream, Z_NO_FLUSH);
    text.append(part, sizeof part - stream.avail_out);
  }
  inflateEnd(&stream);
  if (code != Z_STREAM_END) throw std::runtime_error("the embedded digits are damaged");
  return text;
}

}  // namespace

DataSet load_digits() {
  Digits all;
  std::istringstream lines(unpack());
  std::string line;
  while (std::getline(lines, line)) {
    if (line.empty()) continue;
    std::istringstream fields(line);
    std::string field;
    for (int i = 0; i < kSide * kSide; ++i) {
      if (!std::getline(fields, field, ',')) throw std::runtime_error("a digit has too few pixels");
      all.pixels.push_back(std::stof(field) / 16.0f);
    }
    if (!std::getline(fields, field)) throw std::runtime_error("a digit has no label");
    all.labels.push_back(static_cast<int64_t>(std::stof(field)));
  }
  const int64_t half = all.count() / 2;
  const auto pixel = [&](int64_t row) { return all.pixels.begin() + row * kSide * kSide; };
  DataSet set;
  set.train = {{all.pixels.begin(), pixel(half)}, {all.labels.begin(), all.labels.begin() + half}};
  set.test = {{pixel(half), all.pixels.end()}, {all.labels.begin() + half, all.labels.end()}};
  return set;
}

Digits shifted_batch(const Digits& from, const std::vector<int64_t>& rows,
                     std::mt19937_64& random) {
  Digits batch;
  batch.pixels.resize(rows.size() * kSide * kSide);
  for (size_t n = 0; n < rows.size(); ++n) {
    const int dx = static_cast<int>(random() % 3) - 1;
    const int dy = static_cast<int>(random() % 3) - 1;
    const float* source = from.pixels.data() + rows[n] * kSide * kSide;
    float* target = batch.pixels.data() + n * kSide * kSide;
    for (int y = 0; y < kSide; ++y)
      for (int x = 0; x < kSide; ++x) {
        const int sy = y - dy;
        const int sx = x - dx;
        const bool inside = sy >= 0 && sy < kSide && sx >= 0 && sx < kSide;
        target[y * kSide + x] = inside ? source[sy * kSide + sx] : 0.0f;
      }
    batch.labels.push_back(from.labels[static_cast<size_t>(rows[n])]);
  }
  return batch;
}

}  // namespace demo
