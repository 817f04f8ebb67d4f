// What the calls of one process group share: engine, lanes, time limit, and the first failure.
#pragma once

#include <c10/core/Event.h>

#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lane.h"
#include "notices.h"
#include "staging.h"
#include "work.h"

namespace torch_ocl::distributed {

using WorkPtr = c10::intrusive_ptr<OclWork>;

// What the engine gets of a call, on the thread of its lane.
struct Running {
  Engine& engine;
  const Spans& memory;  // in the order of the call's uses
  Engine::Limit limit;
  int ranks;
  // Of calls that are staged in chunks: null on the device, whose engine needs none.
  Staging* staging = nullptr;
  Stopwatch* watch = nullptr;
  int source = -1;  // to be set where a message came from

  // The work on spans as long as one another; staged for chunk by chunk on the host.
  void in_chunks(const Spans& read, const Spans& written, const Staging::Work& work);
};

// A call as it is submitted.
struct Call {
  c10d::OpType op;
  std::vector<Use> uses{};
  std::vector<at::Tensor> results{};
  // What all ranks must say alike of a collective, besides which one it is: see form_of().
  std::string form{};
  Engine::Limit limit = kUnset;  // the group's
  std::function<void(Running&)> run{};
  struct Peer {
    int rank;  // -1: any
    int tag;
  };
  std::optional<Peer> peer{};  // of a message; else all ranks take part
  bool on_device = true;       // where the group has an engine for that
  bool in_chunks = false;      // `run` calls Running::in_chunks for all of its memory

  static constexpr Engine::Limit kUnset{-1};
};

// torch.distributed's error, with a text.
std::exception_ptr error_of(const std::string& text);

struct GroupOptions {
  int rank, size;
  std::string name;
  Engine::Limit limit;
  bool copies;                         // stage by copies even where device memory could be mapped
  std::chrono::milliseconds patience;  // after which a collective that waits is a warning
  // For tensors on ocl; null: they are staged on the host.
  std::shared_ptr<DeviceEngine> device_engine{};
};

// Alive until the last call has ended, whatever becomes of the backend.
class Group : public std::enable_shared_from_this<Group> {
 public:
  static std::shared_ptr<Group> make(std::shared_ptr<Engine> engine,
                                     c10::intrusive_ptr<c10d::Store> store, GroupOptions options);
  ~Group();

  const GroupOptions& options() const { return options_; }
  // Throws if the group has ended or failed, or in a forked child.
  std::shared_ptr<Engine> engine();
  void set_limit(Engine::Limit limit);
  Engine::Limit limit();

  // Tensors are checked before: dense, all on the CPU or on one device. All collectives run in one
  // lane; messages in one for each peer, tag and direction, as ranks may post those in different
  // orders while those of one kind must keep theirs.
  WorkPtr submit(Call call);

  // Lets what was submitted end, then gives up the engine with its connections and threads.
  void shut_down();
  // Ends all works with an error. A call that is inside the engine goes on until the engine's limit
  // with its memory, but nobody waits for it.
  void abandon(const std::string& why);
  bool has_failed();
  uint64_t collectives();  // how many were submitted
  // Called every second: tells other ranks which calls this one waits in, warns of those that take
  // long, and gives up all if one of them has failed.
  void look_around();

 private:
  // What the job of a lane holds.
  struct Submitted {
    Call call;
    WorkPtr work;
    // A collective's are known when it runs: calls that callbacks make come before what waits.
    uint64_t number = 0;
    std::string text{};
    std::optional<c10::Stream> stream{};  // the lane's, on the tensors' device
    std::optional<c10::Event> before{};   // what the caller had enqueued by then
  };
  // A collective that runs. Messages have no number that other ranks know.
  struct Started {
    const Submitted* call;  // while it runs
    Clock::time_point begin;
    bool is_told = false, is_warned = false;
  };
  enum Direction { kAll, kSend, kReceive, kBack };

  Group(std::shared_ptr<Engine> engine, c10::intrusive_ptr<c10d::Store> store,
        GroupOptions options);
  bool is_forked() const;
  std::shared_ptr<Engine> engine_locked() const;
  std::shared_ptr<Lane> lane_of(const Call& call, Direction direction);
  c10::Stream stream_of(c10::Device device, Direction direction);
  bool run(Submitted& call);
  int run_engine(const Submitted& call);           // returns where a message came from
  bool is_on_device(const Submitted& call) const;  // done by the engine of device memory
  int run_on_device(const Submitted& call, std::future<void> compared, Stopwatch& watch);
  // Throws if the rank before this one calls something else.
  void compare(const Submitted& call, Engine& engine) const;
  // On another thread; a call that differs ends what the device's engine does.
  std::future<void> compare_beside(const Submitted& call,
                                   const std::shared_ptr<Engine>& engine) const;
  // Ends the group after a call has failed; returns the text of its error.
  std::string failed(const Submitted& call, const std::string& reason);
  std::string text_of(const Call& call, uint64_t number) const;
  void warn_of(uint64_t number, const std::string& text);

  const GroupOptions options_;
  Notices notices_;
  const int process_;
  bool may_compare_beside_ = false;  // of the collectives' lane
  std::mutex mutex_;                 // for all that follows
  std::shared_ptr<Engine> engine_;
  Engine::Limit limit_;
  std::string failure_;
  uint64_t collectives_ = 0, messages_ = 0, started_ = 0;
  std::set<WorkPtr> unfinished_;
  std::map<WorkPtr, Started> running_;
  std::shared_ptr<Lane> lane_ = std::make_shared<Lane>();
  std::map<std::tuple<int, int, Direction>, std::shared_ptr<Lane>> message_lanes_;
  std::map<std::pair<c10::DeviceIndex, Direction>, c10::Stream> streams_;
};

}  // namespace torch_ocl::distributed
