// Computes on two streams, with an event between them, and measures the time on the device.
#include <ocltensor/ocltensor.h>

#include <iostream>

namespace ot = ocltensor;

int main() {
  const ot::Device device = ot::is_available() ? "ocl" : "cpu";
  const ot::DefaultDevice scope(device);
  const ot::Stream first = ot::Stream::create(device), second = ot::Stream::create(device);
  const ot::Event ready(device);
  const ot::Event begin(device, true), end(device, true);  // with timing

  ot::Tensor x, sum;
  {
    const ot::StreamGuard on(first);  // this thread's current stream until the end of the block
    x = ot::full({256, 256}, 2);
    ready.record();
  }
  {
    const ot::StreamGuard on(second);
    ready.wait(second);       // the stream waits; the host goes on
    x.record_stream(second);  // its memory is not reused before this stream is done with it
    begin.record();
    sum = x.matmul(x).sum();
    end.record();
    std::cout << "sum " << sum.item<int>() << "\n";  // waits for the second stream
  }
  second.synchronize();
  std::cout << std::boolalpha << "idle: " << second.query()
            << ", measured: " << (begin.elapsed_time(end) >= 0) << "\n";
}
