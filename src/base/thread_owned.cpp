// A list of each thread, behind a key of POSIX threads: keys are destroyed after thread_locals, and
// exit() does not destroy them at all.
#include "thread_owned.h"

#include <pthread.h>

#include <utility>

namespace ocltensor::detail {
namespace {

struct Owned {
  void (*destroy)(void* slot) noexcept;
  void* slot;
  std::unique_ptr<Owned> before;
};

void destroy_all(void* newest) noexcept {
  for (std::unique_ptr<Owned> owned(static_cast<Owned*>(newest)); owned != nullptr;
       owned = std::move(owned->before))
    owned->destroy(owned->slot);
}

// Null if the process has no key left: objects of threads are then kept to its end.
const pthread_key_t* key() {
  static const struct Key {
    Key() : is_made(pthread_key_create(&value, destroy_all) == 0) {}
    pthread_key_t value{};
    bool is_made;
  } made;
  return made.is_made ? &made.value : nullptr;
}

}  // namespace

void destroy_with_thread(void (*destroy)(void* slot) noexcept, void* slot) {
  const pthread_key_t* list = key();
  if (list == nullptr) return;
  auto* before = static_cast<Owned*>(pthread_getspecific(*list));
  auto owned = std::make_unique<Owned>(destroy, slot, nullptr);
  if (pthread_setspecific(*list, owned.get()) != 0) return;
  owned->before.reset(before);
  (void)owned.release();
}

}  // namespace ocltensor::detail
