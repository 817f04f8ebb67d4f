// Graphs: work that is recorded once and replayed, with little work of the host per operator.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "ocltensor/generator.h"
#include "ocltensor/stream.h"

namespace ocltensor {

// Memory that graphs have for themselves, as long as a handle or one of the graphs exists. Graphs
// may share it if they are replayed in the order in which they were recorded, and never at the same
// time.
class OCLTENSOR_API GraphPool {
 public:
  explicit GraphPool(Device device);
  Device device() const;
  tb_graph_pool handle() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// Recorded work of one device; a shared handle. Replays of one graph are kept apart by the caller.
class OCLTENSOR_API Graph {
 public:
  // Calls `body` once, with a separate stream as this thread's current one, and records what any
  // thread enqueues on that stream. Nothing is executed: tensors made by the body have no values
  // before the first replay. Where the body needs some on the host, copies from or to the host, or
  // waits, an Error (TB_E_STATE) is thrown through it and from here. Run the work once before: that
  // builds its programs, and lets choices be measured. `generators`: those from which the body
  // draws, beside the device's default one; they outlive the graph. TB_UNSUPPORTED on devices
  // without graphs.
  static Graph record(const GraphPool& pool, const std::function<void()>& body,
                      std::span<const Generator> generators = {});
  // The same with a pool of its own.
  static Graph record(Device device, const std::function<void()>& body);

  // Enqueues the work on the device's current stream, with the addresses of the recording: tensors
  // from before it must still exist; new values are written into them in place. Random numbers are
  // new ones.
  void replay() const;
  void replay(const Stream& stream) const;
  tb_graph_info info() const;
  tb_graph handle() const;

 private:
  Graph() = default;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace ocltensor
