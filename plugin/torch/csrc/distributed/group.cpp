// Calls on their way from a thread of the user through a lane to the engine.
#include "group.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "note.h"
#include "registry.h"
#include "runtime/stream.h"

namespace torch_ocl::distributed {
namespace {

std::optional<c10::Device> device_of(const std::vector<Use>& uses) {
  for (const Use& use : uses)
    if (use.tensor.device().type() == kOcl) return use.tensor.device();
  return std::nullopt;
}

// The larger of what a call reads and of what it writes.
size_t bytes_of(const std::vector<Use>& uses) {
  size_t read = 0, written = 0;
  for (const Use& use : uses) {
    read += use.reads ? use.tensor.nbytes() : 0;
    written += use.writes ? use.tensor.nbytes() : 0;
  }
  return std::max(read, written);
}

// The first line: engines and PyTorch append backtraces.
std::string reason_of(const std::exception& error) {
  const auto* known = dynamic_cast<const c10::Error*>(&error);
  const std::string text = known ? known->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace

void Running::in_chunks(const Spans& read, const Spans& written, const Staging::Work& work) {
  if (staging == nullptr) return work(read, written);
  staging->in_chunks(read, written, ranks, [&](const Spans& here, const Spans& results) {
    if (watch != nullptr) watch->end(Part::Copies);
    work(here, results);
    if (watch != nullptr) watch->end(Part::Engine);
  });
}

std::shared_ptr<Group> Group::make(std::shared_ptr<Engine> engine,
                                   c10::intrusive_ptr<c10d::Store> store, GroupOptions options) {
  std::shared_ptr<Group> group(new Group(std::move(engine), std::move(store), std::move(options)));
  watch_over(group);
  return group;
}

Group::Group(std::shared_ptr<Engine> engine, c10::intrusive_ptr<c10d::Store> store,
             GroupOptions options)
    : options_(std::move(options)),
      notices_(std::move(store), options_.rank, options_.size),
      process_(getpid()),
      engine_(std::move(engine)),
      limit_(options_.limit) {}

Group::~Group() {
  // Its threads are not in the child, whose end would wait for them.
  if (!is_forked()) return;
  new std::shared_ptr<Engine>(std::move(engine_));
  new std::shared_ptr<DeviceEngine>(std::move(options_.device_engine));
}

bool Group::is_forked() const { return getpid() != process_; }

std::shared_ptr<Engine> Group::engine() {
  TORCH_CHECK(!is_forked(), "ocl: this process was forked from one with the process group '",
              options_.name, "', which does not work here: start ranks by torchrun or spawn");
  const std::lock_guard lock(mutex_);
  return engine_locked();
}

std::shared_ptr<Engine> Group::engine_locked() const {
  TORCH_CHECK_WITH(DistBackendError, failure_.empty(), "ocl: the process group '", options_.name,
                   "' has ended: ", failure_);
  return engine_;
}

void Group::set_limit(Engine::Limit limit) {
  engine()->set_limit(limit);
  const std::lock_guard lock(mutex_);
  limit_ = limit;
}

Engine::Limit Group::limit() {
  const std::lock_guard lock(mutex_);
  return limit_;
}

std::string Group::text_of(const Call& call, uint64_t number) const {
  size_t bytes = 0;
  for (const Use& use : call.uses) bytes += use.tensor.nbytes();
  std::string text = "ocl: " + c10d::opTypeToString(call.op);
  if (call.peer) {
    const std::string rank = call.peer->rank < 0 ? "any rank" : std::to_string(call.peer->rank);
    text += call.op == c10d::OpType::SEND ? " to " : " from ";
    text += rank + " with tag " + std::to_string(call.peer->tag);
  } else {
    text += ", collective " + std::to_string(number);
  }
  text += " of group '" + options_.name + "', rank " + std::to_string(options_.rank) + " of " +
          std::to_string(options_.size) + " (" + std::to_string(bytes) + " bytes";
  if (!call.uses.empty())
    text += std::string(" of ") + c10::toString(call.uses.front().tensor.scalar_type());
  return text + ")";
}

WorkPtr Group::submit(Call call) {
  const auto submitted = std::make_shared<Submitted>();
  const std::optional<c10::Device> device = device_of(call.uses);
  const Direction direction = !call.peer ? kAll : call.op == c10d::OpType::SEND ? kSend : kReceive;
  engine();  // or its error
  if (device) {
    // Copy-on-write storages get memory of their own before addresses are taken.
    for (const Use& use : call.uses)
      if (use.writes) (void)use.tensor.mutable_data_ptr();
    submitted->stream = stream_of(*device, direction);
    submitted->before.emplace(kOcl).record(current_stream(device->index()));
  }
  std::shared_ptr<Lane> lane;
  {
    const std::lock_guard lock(mutex_);
    engine_locked();
    if (call.limit == Call::kUnset) call.limit = limit_;
    const uint64_t number = call.peer ? ++messages_ : ++collectives_;
    std::vector<at::Tensor> tensors;
    for (const Use& use : call.uses) tensors.push_back(use.tensor);
    submitted->work = c10::make_intrusive<OclWork>(options_.rank, call.op, number, device, tensors,
                                                   std::move(call.results));
    unfinished_.insert(submitted->work);
    lane = lane_of(call, direction);
    submitted->call = std::move(call);
    const auto won = std::make_shared<bool>(false);
    lane->push({[self = shared_from_this(), submitted, won] { *won = self->run(*submitted); },
                [work = submitted->work, won] {
                  if (*won) work->complete_future();
                }});
  }
  return submitted->work;
}

std::shared_ptr<Lane> Group::lane_of(const Call& call, Direction direction) {
  if (!call.peer) return lane_;
  constexpr size_t kMany = 64;
  if (message_lanes_.size() > kMany)
    std::erase_if(message_lanes_, [](const auto& entry) { return entry.second->is_idle(); });
  auto& lane = message_lanes_[{call.peer->rank, call.peer->tag, direction}];
  if (!lane) lane = std::make_shared<Lane>();
  return lane;
}

c10::Stream Group::stream_of(c10::Device device, Direction direction) {
  const std::lock_guard lock(mutex_);
  const auto key = std::make_pair(device.index(), direction);
  const auto found = streams_.find(key);
  if (found != streams_.end()) return found->second;
  return streams_.emplace(key, stream_from_pool(false, device.index())).first->second;
}

bool Group::run(Submitted& call) {
  bool won = false;
  if (!call.call.peer) {
    const std::lock_guard lock(mutex_);
    call.number = ++started_;
  }
  call.text = text_of(call.call, call.number);
  try {
    const int source = run_engine(call);
    won = call.work->succeed(call.stream, source);
  } catch (const std::exception& error) {
    won = call.work->fail(error_of(failed(call, reason_of(error))));
  }
  const std::lock_guard lock(mutex_);
  unfinished_.erase(call.work);
  running_.erase(call.work);
  return won;
}

int Group::run_engine(const Submitted& call) {
  Stopwatch watch(call.work->begin());
  watch.end(Part::Queue);
  const std::shared_ptr<Engine> engine = this->engine();
  if (!call.call.peer) {
    const std::lock_guard lock(mutex_);
    running_.emplace(call.work, Started{&call, Clock::now()});
  }
  const bool compares = !call.call.peer && options_.size > 1;
  if (is_on_device(call)) {
    std::future<void> compared;
    if (compares && may_compare_beside_)
      compared = compare_beside(call, engine);
    else if (compares)
      compare(call, *engine);
    watch.end(Part::Peers);
    const int source = run_on_device(call, std::move(compared), watch);
    // Of two ranks both see that calls differ. The first call makes the communicator, for whose
    // ranks NCCL waits without a limit.
    if (!call.call.peer) may_compare_beside_ = options_.size == 2;
    return source;
  }
  if (compares) compare(call, *engine);
  watch.end(Part::Peers);
  if (call.before) call.before->block(*call.stream);
  const bool copies =
      options_.copies || (call.stream && !shares_memory(call.stream->device_index()));
  if (copies && call.before && parts_are_told_apart()) {
    call.before->synchronize();
    watch.end(Part::Device);
  }
  std::optional<Staging::Streams> streams;
  if (call.stream) streams = {*call.stream, *call.stream};
  if (copies && call.call.in_chunks) {
    streams->back = stream_of(call.stream->device(), kBack);
    if (call.before) call.before->block(streams->back);
  }
  Staging staging(call.call.uses, streams, copies, call.call.in_chunks);
  const Part to_host_and_back = copies ? Part::Copies : Part::Device;
  watch.end(to_host_and_back);
  Running running{*engine, staging.spans(), call.call.limit, options_.size};
  if (call.call.in_chunks) running.staging = &staging, running.watch = copies ? &watch : nullptr;
  call.call.run(running);
  watch.end(running.watch != nullptr ? Part::Copies : Part::Engine);
  staging.give_back();
  watch.end(to_host_and_back);
  count_call(call.call.op, bytes_of(call.call.uses), watch);
  return running.source;
}

bool Group::is_on_device(const Submitted& call) const {
  return options_.device_engine && call.stream && call.call.on_device;
}

// On the memory itself. Nothing orders CUDA's streams and ours but the host's wait.
int Group::run_on_device(const Submitted& call, std::future<void> compared, Stopwatch& watch) {
  std::exception_ptr failure;
  int source = -1;
  try {
    const c10::DeviceGuard current(call.stream->device());
    call.before->synchronize();
    watch.end(Part::Device);
    const Spans memory = device_spans(call.call.uses);
    Running running{*options_.device_engine, memory, call.call.limit, options_.size};
    call.call.run(running);
    source = running.source;
  } catch (...) {
    failure = std::current_exception();
  }
  watch.end(Part::Engine);
  // Always waited for, as it uses the call; its reason comes first: the engine was given up for it.
  if (compared.valid()) compared.get();
  watch.end(Part::Peers);
  if (failure) std::rethrow_exception(failure);
  count_call(call.call.op, bytes_of(call.call.uses), watch);
  return source;
}

// Notes take as long as a small collective of the device's engine, which works meanwhile: a call
// that differs touches no memory but its own, and its result is not given away. Not for more than
// two ranks: one between two that agree with it would not hear of the third.
std::future<void> Group::compare_beside(const Submitted& call,
                                        const std::shared_ptr<Engine>& engine) const {
  const auto told = std::make_shared<std::promise<void>>();
  run_on_thread([this, &call, engine, told] {
    try {
      compare(call, *engine);
      told->set_value();
    } catch (const std::exception& error) {
      options_.device_engine->abort(error.what());
      told->set_exception(std::current_exception());
    }
  });
  return told->get_future();
}

void Group::compare(const Submitted& call, Engine& engine) const {
  const std::string own = std::to_string(call.number) + ", " + c10d::opTypeToString(call.call.op) +
                          call.call.form + (is_on_device(call) ? " by addresses" : "");
  const int size = options_.size, next = (options_.rank + 1) % size,
            previous = (options_.rank + size - 1) % size;
  Note sent(own), received;
  engine.exchange_notes(sent.span(), next, received.span(), previous, call.call.limit);
  TORCH_CHECK(sent == received, "ranks call different collectives (mismatch): rank ", previous,
              " calls ", received.text(), ", this rank ", sent.text());
}

void Group::shut_down() {
  if (is_forked() || has_failed()) return;
  std::vector<std::shared_ptr<Lane>> lanes{lane_};
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, lane] : message_lanes_) lanes.push_back(lane);
  }
  for (const auto& lane : lanes) lane->wait_until_idle();
  abandon("it was destroyed");
}

bool Group::has_failed() {
  const std::lock_guard lock(mutex_);
  return !failure_.empty();
}

uint64_t Group::collectives() {
  const std::lock_guard lock(mutex_);
  return collectives_;
}

}  // namespace torch_ocl::distributed
