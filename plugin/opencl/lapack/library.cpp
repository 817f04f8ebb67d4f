// Finds the LAPACK library.
#include "library.h"

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/log.h"

namespace ocltensor::opencl::lapack {
namespace {

// Names between colons.
std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) names.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

// Opens a library that has LAPACK's routines. It stays open: its threads may outlive everything.
const Library* open(const std::string& name, int flags) {
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
  if (handle == nullptr) return nullptr;
  const auto* found = new Library(handle, name);
  if (found->find<void()>("dgeev_") != nullptr) {
    logging::debug("lapack", "LAPACK is {}", name);
    return found;
  }
  delete found;
  dlclose(handle);
  return nullptr;
}

const Library* search(const std::string& list) {
  const auto names = split(list);
  for (const int flags : {RTLD_NOLOAD, 0})
    for (const std::string& name : names)
      if (const Library* found = name == "0" ? nullptr : open(name, flags)) return found;
  return nullptr;
}

}  // namespace

Library::Library(void* handle, std::string name)
    : handle_(handle),
      name_(std::move(name)),
      set_threads_(find<int(int)>("MKL_Set_Num_Threads_Local")),
      set_process_threads_(find<void(int)>("openblas_set_num_threads")),
      get_process_threads_(find<int()>("openblas_get_num_threads")) {}

namespace {

// How many limits of the process's threads there are, and the number before the first.
struct Limits {
  std::mutex mutex;
  int count = 0, before = 0;
};
Limits& limits() {
  static Limits& one = *new Limits;  // leaked: threads may run while the process ends
  return one;
}

}  // namespace

Library::OneThread::OneThread(const Library& library) : library_(library) {
  if (library_.set_process_threads_ == nullptr || library_.get_process_threads_ == nullptr) return;
  const std::lock_guard lock(limits().mutex);
  if (limits().count++ > 0) return;
  limits().before = library_.get_process_threads_();
  library_.set_process_threads_(1);
}

Library::OneThread::~OneThread() {
  if (library_.set_process_threads_ == nullptr || library_.get_process_threads_ == nullptr) return;
  const std::lock_guard lock(limits().mutex);
  if (--limits().count == 0) library_.set_process_threads_(limits().before);
}

void* Library::find_symbol(const std::string& symbol) const {
  return dlsym(handle_, symbol.c_str());
}

const Library* library() {
  static std::mutex& mutex = *new std::mutex;  // leaked, as what it guards: used until exit
  static auto& known = *new std::map<std::string, const Library*>;
  const std::string list = config::get_string(config::Knob::Lapack);
  const std::lock_guard lock(mutex);
  const auto it = known.find(list);
  return it != known.end() ? it->second : known.emplace(list, search(list)).first->second;
}

}  // namespace ocltensor::opencl::lapack
