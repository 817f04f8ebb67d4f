// The LAPACK library that a process has, or can load: found at run time, never linked.
#pragma once

#include <string>

namespace ocltensor::opencl::lapack {

class Library {
 public:
  Library(void* handle, std::string name);
  const std::string& name() const { return name_; }
  // A routine by its Fortran name ("dgeev_"); nullptr where the library lacks it.
  template <typename Routine>
  Routine* find(const std::string& symbol) const {
    return reinterpret_cast<Routine*>(find_symbol(symbol));  // NOLINT: what dlsym is for
  }
  // Sets how many threads the library's routines use when this thread calls them; returns what it
  // was before. Does nothing with libraries that have no such setting for a single thread.
  int set_threads(int count) const { return set_threads_ == nullptr ? 0 : set_threads_(count); }

  // While one lives, routines of a library whose setting is the whole process's (OpenBLAS) use one
  // thread: threads of its own for tiny matrices would wait for each other.
  class OneThread {
   public:
    explicit OneThread(const Library& library);
    OneThread(const OneThread&) = delete;
    OneThread& operator=(const OneThread&) = delete;
    ~OneThread();

   private:
    const Library& library_;
  };

 private:
  void* find_symbol(const std::string& symbol) const;
  void* handle_;
  std::string name_;
  int (*set_threads_)(int);           // of the calling thread
  void (*set_process_threads_)(int);  // of the process
  int (*get_process_threads_)();
};

// The first of the names of OCLTENSOR_LAPACK that is loaded already, else the first that can be
// loaded; nullptr where there is none. Looked for once for each value of the setting.
const Library* library();

}  // namespace ocltensor::opencl::lapack
