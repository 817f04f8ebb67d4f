// What providers have found out about a device: a structure of each one's own.
#pragma once

#include <any>
#include <utility>
#include <vector>

namespace ocltensor::opencl {

class ProviderFacts {
 public:
  // nullptr if nobody has set facts of this type. Cheap enough for every launch.
  template <typename T>
  const T* find() const {
    for (const std::any& facts : all_)
      if (const T* found = std::any_cast<T>(&facts)) return found;
    return nullptr;
  }

  template <typename T>
  void set(T facts) {
    for (std::any& old : all_)
      if (std::any_cast<T>(&old) != nullptr) {
        old = std::move(facts);
        return;
      }
    all_.emplace_back(std::move(facts));
  }

 private:
  std::vector<std::any> all_;
};

}  // namespace ocltensor::opencl
