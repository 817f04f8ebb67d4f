// Keys of the group's store: "ocl/came/NUMBER/RANK" and "ocl/failure".
#include "notices.h"

#include <chrono>
#include <thread>
#include <utility>

namespace torch_ocl::distributed {
namespace {

constexpr const char* kFailure = "ocl/failure";

// What `function` answers, or nothing if the store fails.
template <typename Function>
auto asked(Function function) -> std::optional<decltype(function())> {
  try {
    return function();
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

Notices::Notices(c10::intrusive_ptr<c10d::Store> store, int rank, int size)
    : store_(std::move(store)), rank_(rank), size_(size) {}

std::string Notices::key_of(uint64_t number, int rank) const {
  return "ocl/came/" + std::to_string(number) + "/" + std::to_string(rank);
}

void Notices::came_to(uint64_t number) {
  asked([&] {
    store_->set(key_of(number, rank_), std::string("1"));
    return true;
  });
}

std::string Notices::missing(uint64_t number) {
  constexpr std::chrono::milliseconds kWhile{2500}, kPause{50};
  const auto end = std::chrono::steady_clock::now() + kWhile;
  for (;;) {
    std::string ranks;
    for (int rank = 0; rank < size_; ++rank) {
      const auto here = asked([&] { return store_->check({key_of(number, rank)}); });
      if (!here) return "unknown, as the group's store does not answer";
      if (!*here) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
    }
    if (ranks.empty() || std::chrono::steady_clock::now() > end) return ranks;
    std::this_thread::sleep_for(kPause);
  }
}

void Notices::tell_failure(const std::string& text) {
  asked([&] {
    store_->compareSet(kFailure, "", text);
    return true;
  });
}

std::optional<std::string> Notices::heard_failure() {
  const auto text = asked([&]() -> std::string {
    if (!store_->check({kFailure})) return "";
    return store_->get_to_str(kFailure);
  });
  return text && !text->empty() ? text : std::nullopt;
}

}  // namespace torch_ocl::distributed
