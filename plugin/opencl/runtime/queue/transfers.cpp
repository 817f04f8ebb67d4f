// Chooses the way of each copy, and enqueues its commands.
#include "transfers.h"

#include <cstring>

#include "runtime/device/device.h"
#include "runtime/memory/memory.h"
#include "runtime/queue/pieces.h"

namespace ocltensor::opencl {
namespace {

// The next pieces are transferred while one is copied out of staging memory.
constexpr PieceOrder kReading{Staging::kChunkBytes / 2, 3};
// A piece is copied into staging memory, and its command is enqueued before the next one is.
constexpr PieceOrder kWriting{Staging::kChunkBytes, 1};

}  // namespace

std::byte* Transfers::host_address(cl_mem buffer, uint64_t offset) {
  if (queue_.is_traced()) return nullptr;
  std::byte* memory = queue_.device().memory().host_address(buffer);
  return memory == nullptr ? nullptr : memory + offset;
}

void Transfers::read(void* target, cl_mem source, uint64_t offset, uint64_t bytes,
                     bool asynchronous) {
  if (asynchronous) {
    enqueue_read(target, source, offset, bytes, false,
                 queue_.traced("copy", "copy to host", bytes));
    return queue_.count(bytes);
  }
  if (const std::byte* from = host_address(source, offset)) {
    queue_.settle();
    std::memcpy(target, from, bytes);
    return;
  }
  if (!queue_.device().caps().unified_memory && bytes > Staging::kSmall)
    return read_in_pieces(static_cast<std::byte*>(target), source, offset, bytes);
  enqueue_read(target, source, offset, bytes, true, queue_.traced("copy", "copy to host", bytes));
  queue_.count();
}

void Transfers::read_in_pieces(std::byte* target, cl_mem source, uint64_t offset, uint64_t bytes) {
  struct Piece {
    uint64_t at, count;
    void* memory;
    cl::Event filled;
  };
  const auto fill = [&](uint64_t at, uint64_t count) {
    Piece piece{at, count, queue_.staging(count), {}};
    enqueue_read(piece.memory, source, offset + at, count, false, &piece.filled());
    if (cl_event* event = queue_.traced("copy", "copy to host", count)) {
      queue_.check(add_reference(piece.filled()), "a reference to an event");
      *event = piece.filled();
    }
    queue_.count();
    queue_.flush();
    return piece;
  };
  const auto empty = [&](const Piece& piece) {
    queue_.check(piece.filled.wait(), "clWaitForEvents");
    std::memcpy(target + piece.at, piece.memory, piece.count);
  };
  pass_in_pieces(bytes, kReading, fill, empty);
  queue_.leave_staging();
}

bool Transfers::write_at_once(cl_mem target, uint64_t offset, const void* source, uint64_t bytes) {
  std::byte* to = queue_.is_settled() ? host_address(target, offset) : nullptr;
  if (to == nullptr) return false;
  std::memcpy(to, source, bytes);
  return true;
}

void Transfers::write(cl_mem target, uint64_t offset, const void* source, uint64_t bytes) {
  if (std::byte* to = host_address(target, offset)) {
    queue_.settle();
    std::memcpy(to, source, bytes);
    return;
  }
  if (queue_.device().caps().unified_memory)
    return enqueue_write(target, offset, source, bytes, true);
  write_in_pieces(target, offset, static_cast<const std::byte*>(source), bytes);
}

void Transfers::write_in_pieces(cl_mem target, uint64_t offset, const std::byte* source,
                                uint64_t bytes) {
  struct Piece {
    uint64_t at, count;
    const void* memory;
  };
  const auto fill = [&](uint64_t at, uint64_t count) {
    return Piece{at, count, std::memcpy(queue_.staging(count), source + at, count)};
  };
  const auto empty = [&](const Piece& piece) {
    enqueue_write(target, offset + piece.at, piece.memory, piece.count, false);
    queue_.flush();
  };
  pass_in_pieces(bytes, kWriting, fill, empty);
  queue_.leave_staging();
}

void* Transfers::map(cl_mem buffer, uint64_t offset, uint64_t bytes, cl_map_flags flags) {
  if (std::byte* memory = queue_.device().memory().host_address(buffer)) {
    queue_.settle();
    return memory + offset;
  }
  cl_int code = CL_SUCCESS;
  void* memory = cl().clEnqueueMapBuffer(queue_.get(), buffer, CL_TRUE, flags, offset, bytes, 0,
                                         nullptr, nullptr, &code);
  queue_.check(code, "clEnqueueMapBuffer");
  return memory;
}

void Transfers::unmap(cl_mem buffer, void* memory) {
  if (queue_.device().memory().host_address(buffer) != nullptr) return;
  queue_.check(cl().clEnqueueUnmapMemObject(queue_.get(), buffer, memory, 0, nullptr, nullptr),
               "clEnqueueUnmapMemObject");
  queue_.count();
}

void Transfers::enqueue_read(void* target, cl_mem source, uint64_t offset, uint64_t bytes,
                             bool blocking, cl_event* event) {
  queue_.check(cl().clEnqueueReadBuffer(queue_.get(), source, blocking ? CL_TRUE : CL_FALSE, offset,
                                        bytes, target, 0, nullptr, event),
               "clEnqueueReadBuffer");
}

void Transfers::enqueue_write(cl_mem target, uint64_t offset, const void* source, uint64_t bytes,
                              bool blocking) {
  cl_event* event = queue_.traced("copy", "copy to device", bytes);
  queue_.check(cl().clEnqueueWriteBuffer(queue_.get(), target, blocking ? CL_TRUE : CL_FALSE,
                                         offset, bytes, source, 0, nullptr, event),
               "clEnqueueWriteBuffer");
  queue_.count();
}

}  // namespace ocltensor::opencl
