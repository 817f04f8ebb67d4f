// Copies between devices by a library that sees both, by mapped memory, by pieces of page-locked
// memory.
#include "device_copy.h"

#include <array>
#include <map>
#include <mutex>

#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/memory/staging.h"
#include "runtime/queue/pieces.h"
#include "runtime/queue/stream.h"

namespace ocltensor::opencl {
namespace {

// Large enough for a bus's full rate; small enough that the first read and the last write, beside
// which nothing else happens, are short.
constexpr PieceOrder kOrder{uint64_t{4} << 20, 2};
constexpr size_t kPieces = 2 * kOrder.ahead;  // half of them being read, half being written

struct Piece {
  unsigned char* memory = nullptr;
  cl::Buffer buffer;
  cl::Event done;  // of its last read or write; null: never used
};

// CL_SUCCESS if the piece's last read or write has succeeded.
cl_int wait_for(const Piece& piece) {
  const cl_event event = piece.done();
  return event == nullptr ? CL_SUCCESS : cl().clWaitForEvents(1, &event);
}

// Of one source device, whose driver locks the memory. Kept like the device, to the process's end.
class Pieces {
 public:
  explicit Pieces(Device& device) : device_(device) {}

  std::mutex mutex;  // held from the first next() to the last use of what it returned

  // The piece that was used longest ago, when nothing uses it any more.
  Piece& next() {
    Piece& piece = pieces_[next_++ % kPieces];
    if (piece.memory == nullptr)
      piece.memory =
          static_cast<unsigned char*>(allocate_pinned(device_, kOrder.piece_bytes, piece.buffer));
    (void)wait_for(piece);  // a failure belongs to an earlier copy, and was raised there
    return piece;
  }

 private:
  Device& device_;
  std::array<Piece, kPieces> pieces_;
  size_t next_ = 0;
};

Pieces& pieces_of(Device& device) {
  static std::mutex mutex;
  static auto& all = *new std::map<const Device*, Pieces>();
  const std::lock_guard lock(mutex);
  return all.try_emplace(&device, device).first->second;
}

void copy_in_pieces(Stream& to, Place target, Stream& from, Place source, uint64_t bytes) {
  struct Reading {
    Piece* piece;
    uint64_t at, count;
  };
  Pieces& pieces = pieces_of(from.device());
  const std::lock_guard lock(pieces.mutex);
  const auto read = [&](uint64_t at, uint64_t count) {
    Piece& piece = pieces.next();
    from.read(piece.memory, source.buffer, source.offset + at, count, true);
    piece.done = from.marker(false);
    return Reading{&piece, at, count};
  };
  const auto write = [&](const Reading& reading) {
    if (const cl_int code = wait_for(*reading.piece); code != CL_SUCCESS) {
      from.synchronize();  // raises the failure with what the stream knows of it
      check_cl(code, "clWaitForEvents (copy between devices)");
    }
    to.write(target.buffer, target.offset + reading.at, reading.piece->memory, reading.count, true);
    reading.piece->done = to.marker(false);
  };
  pass_in_pieces(bytes, kOrder, read, write);
  from.synchronize();  // all has been read; raises invalid values
}

// False where no library sees both memories, or the devices do not reach each other.
bool copy_by_library(Stream& to, Place target, Stream& from, Place source, uint64_t bytes) {
  const auto there = from.device().memory().find_shared(source);
  if (!there) return false;
  const auto here = to.device().memory().find_shared(target);
  if (!here || !there->memory.admit(there->segment, here->memory)) return false;
  from.synchronize();
  to.synchronize();
  here->memory.copy(here->segment.address + here->offset, there->segment.address + there->offset,
                    bytes);
  return true;
}

// A buffer's memory as the host sees it.
class Mapped {
 public:
  Mapped(Stream& stream, Place place, uint64_t bytes, cl_map_flags flags)
      : stream_(stream),
        buffer_(place.buffer),
        memory_(stream.map(place.buffer, place.offset, bytes, flags)) {}
  ~Mapped() {
    try {
      stream_.unmap(buffer_, memory_);
    } catch (const std::exception&) {
      // The stream raises what has failed at its next call.
    }
  }
  Mapped(const Mapped&) = delete;
  void* memory() const { return memory_; }

 private:
  Stream& stream_;
  cl_mem buffer_;
  void* memory_;
};

}  // namespace

void copy_between_devices(Stream& to, Place target, Stream& from, Place source, uint64_t bytes) {
  if (copy_by_library(to, target, from, source, bytes)) return;
  if (from.device().caps().unified_memory) {
    const Mapped mapped(from, source, bytes, CL_MAP_READ);
    return to.write(target.buffer, target.offset, mapped.memory(), bytes, false);
  }
  if (to.device().caps().unified_memory) {
    const Mapped mapped(to, target, bytes, CL_MAP_WRITE_INVALIDATE_REGION);
    return from.read(mapped.memory(), source.buffer, source.offset, bytes, false);
  }
  copy_in_pieces(to, target, from, source, bytes);
}

}  // namespace ocltensor::opencl
