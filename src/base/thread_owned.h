// Objects of threads that are there as long as any code of the thread may run. A thread_local
// object with a destructor is not: exit() destroys the calling thread's first, and destructors of
// statics, exit handlers and other thread_locals would then use freed memory.
#pragma once

#include <memory>

namespace ocltensor {

namespace detail {
// Has `destroy(slot)` called at the end of the calling thread, after all its thread_locals; never
// for the thread that ends the process.
void destroy_with_thread(void (*destroy)(void* slot) noexcept, void* slot);
}  // namespace detail

// The calling thread's object, made at its first use. `slot` is a thread_local pointer, null at
// first:
//   Table& table() {
//     thread_local Table* own = nullptr;
//     return thread_owned(own);
//   }
// What uses it after it was destroyed (another such object's destructor) has it made again, and
// that one is destroyed, too.
template <typename T>
T& thread_owned(T*& slot) {
  if (slot == nullptr) [[unlikely]] {
    auto made = std::make_unique<T>();
    detail::destroy_with_thread(
        [](void* of_thread) noexcept {
          T*& ended = *static_cast<T**>(of_thread);
          const std::unique_ptr<T> last(ended);
          ended = nullptr;
        },
        &slot);
    slot = made.release();
  }
  return *slot;
}

}  // namespace ocltensor
