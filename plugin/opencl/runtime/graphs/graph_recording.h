// A graph while it is being recorded.
#pragma once

#include <memory>
#include <string>

#include "runtime/graphs/graph.h"
#include "runtime/observe/stream_observer.h"
#include "runtime/queue/kernel.h"

namespace ocltensor::opencl {

// Used under its stream's lock, except at its begin and end.
class GraphRecording final : public StreamObserver {
 public:
  GraphRecording(Stream& stream, std::shared_ptr<GraphPool> pool);
  ~GraphRecording() override;  // unmarks the generators
  runtime::StreamId pool() const { return graph_->pool->id(); }
  Faults& faults() { return *graph_->faults; }
  // A generator that has been marked.
  void add_generator(Generator& generator, uint64_t marker);

  // Takes the changes of the kernel's arguments, which must be all arguments.
  bool take(Kernel& kernel, const Range& range) override;
  // Copies the source of a write unless it stays.
  bool take(const Transfer& transfer, bool source_stays) override;
  void keep(cl::Buffer& buffer) override { graph_->buffers.push_back(std::move(buffer)); }

  // Refuses everything, which fails the recording. The first failure counts.
  void check(const HostUse& use) override;
  void name_failure(const std::string& operation) override;
  // Throws TB_E_STATE if it has failed.
  std::unique_ptr<Graph> finish();

 private:
  // Retains a buffer of the pool.
  void keep_segment(cl_mem buffer);
  void keep_if_segment(const void* value);
  std::vector<GraphDraw> find_draws(const unsigned char* bytes, size_t count) const;
  unsigned char* copy_of(const void* bytes, size_t count);
  void unmark();
  void keep_constants_on_device();

  Device& device_;
  const uint64_t stream_;
  std::unique_ptr<Graph> graph_;
  struct Marked {
    Generator* generator;
    uint64_t marker;
  };
  std::vector<Marked> marked_;
  // Writes whose sources are copies that no replay changes.
  struct Constant {
    size_t command;
    std::unique_ptr<unsigned char[]> bytes;
  };
  std::vector<Constant> constants_;
  std::string failure_;
  bool is_named_ = false;
};

}  // namespace ocltensor::opencl
