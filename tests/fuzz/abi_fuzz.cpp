// Calls through the C ABI with any numbers, addresses, tensors, texts and arguments: a status,
// never a crash. Handles are those that the plugin gave, or NULL; pointers lead to memory of the
// size that the call names. Nothing is compiled, as that would take nearly all of the time:
// operators are asked whether they support a call, and invoked where they declined it.
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "input.h"
#include "tensor_backend/plugin.h"

extern "C" tb_status tb_plugin_get_api(uint32_t abi_major, const tb_host_api* host, tb_error* error,
                                       const tb_api** api);

namespace {

constexpr uint64_t kHostBytes = uint64_t{1} << 20;

struct Plugin {
  const tb_api* api = nullptr;
  tb_library library = nullptr;
  std::vector<tb_kernel> kernels;
  uint32_t operators = 0;
};

// Kernels that touch no memory, whatever they are given.
constexpr const char* kSource =
    "__kernel void pairs(__global char *a, ulong i, __global const int *b, ulong j, float x) {}\n"
    "__kernel void plain(__global float *a, int n, uchar4 v, __global long *b) {}\n";

const Plugin& plugin() {
  static const Plugin p = [] {
    Plugin made;
    setenv("OCLTENSOR_LOG_LEVEL", "off", 1);
    if (tb_plugin_get_api(TB_ABI_MAJOR, nullptr, nullptr, &made.api) != TB_OK) std::abort();
    char text[512] = "";
    tb_error error{sizeof error, 0, 0, 0, sizeof text, text};
    if (made.api->kernel->compile(0, kSource, "", &made.library, &error) == TB_OK)
      for (uint32_t i = 0; i < 2; ++i) {
        made.kernels.emplace_back();
        (void)made.api->kernel->at(made.library, i, &made.kernels.back(), nullptr, nullptr);
      }
    (void)made.api->operators->count(&made.operators, nullptr);
    return made;
  }();
  return p;
}

// What one input makes; given back at its end.
struct World {
  Input& in;
  const tb_api& api = *plugin().api;
  std::vector<tb_address> blocks{};
  std::vector<tb_stream> streams{};
  std::vector<tb_event> events{};
  std::vector<tb_generator> generators{};
  // Behind arguments of one call.
  std::deque<tb_tensor> tensors{};
  std::deque<std::vector<int64_t>> dims{};
  std::deque<std::vector<const tb_tensor*>> lists{};
  std::deque<std::vector<double>> reals{};
  std::deque<std::string> texts{};
  std::vector<uint8_t> host = std::vector<uint8_t>(kHostBytes);
  char message[256] = "";
  tb_error error_buffer{sizeof(tb_error), 0, 0, 0, sizeof message, message};

  tb_error* error() { return in.byte() % 4 == 0 ? nullptr : &error_buffer; }
  template <typename T>
  T pick(const std::vector<T>& list) {
    const uint8_t n = in.byte();
    return list.empty() || n % 8 == 0 ? T{} : list[n % list.size()];
  }
  tb_address address() {
    const tb_address block = pick(blocks);
    return in.byte() % 4 == 0 ? static_cast<tb_address>(in.any())
                              : block + static_cast<tb_address>(in.any());
  }
  int32_t device() { return in.byte() % 4 == 0 ? static_cast<int32_t>(in.any()) : 0; }
  const tb_tensor* tensor();
  tb_value value();
};

const tb_tensor* World::tensor() {
  constexpr std::array<tb_dtype, 8> kTypes = {{{TB_DTYPE_FLOAT, 32, 1},
                                               {TB_DTYPE_INT, 64, 1},
                                               {TB_DTYPE_BOOL, 8, 1},
                                               {TB_DTYPE_FLOAT, 16, 1},
                                               {TB_DTYPE_BFLOAT, 16, 1},
                                               {TB_DTYPE_COMPLEX, 64, 1},
                                               {TB_DTYPE_UINT, 8, 1},
                                               {TB_DTYPE_FLOAT, 64, 1}}};
  if (in.byte() % 32 == 0) return nullptr;
  const size_t rank = in.byte() % (in.byte() % 8 == 0 ? 70 : 5);
  std::vector<int64_t>& sizes = dims.emplace_back(rank);
  std::vector<int64_t>& strides = dims.emplace_back(rank);
  int64_t next = 1;
  const bool tame = in.byte() % 4 != 0;
  for (size_t i = rank; i-- > 0;) {
    sizes[i] = tame ? in.byte() % 4 : in.any();
    strides[i] = tame && in.byte() % 4 != 0 ? next : in.any();
    next = static_cast<int64_t>(static_cast<uint64_t>(next) * static_cast<uint64_t>(sizes[i]));
  }
  tb_tensor t{};
  t.struct_size = in.byte() % 16 == 0 ? in.number<uint32_t>() % (sizeof t + 1) : sizeof t;
  t.address = address();
  t.base = in.byte() % 2 == 0 ? 0 : address();
  t.base_bytes = static_cast<uint64_t>(in.any());
  t.dtype = in.byte() % 16 == 0 ? in.number<tb_dtype>() : kTypes[in.byte() % kTypes.size()];
  t.ndim = static_cast<uint32_t>(rank);
  t.sizes = sizes.data();
  t.strides = strides.data();
  return &tensors.emplace_back(t);
}

tb_value World::value() {
  tb_value v{};
  v.tag = in.byte() % 14;
  switch (v.tag) {
    case TB_BOOL:
    case TB_INT: v.as.i = in.any(); break;
    case TB_FLOAT: v.as.f = in.number<double>(); break;
    case TB_COMPLEX:
      v.as.p = reals.emplace_back(std::vector{in.number<double>(), 1.0}).data();
      break;
    case TB_STRING: {
      const std::string& text = texts.emplace_back(in.text());
      v.as.p = text.data();
      v.count = static_cast<uint32_t>(text.size());
      break;
    }
    case TB_DTYPE: v.as.dtype = in.number<tb_dtype>(); break;
    case TB_TENSOR: v.as.p = tensor(); break;
    case TB_TENSOR_LIST: {
      auto& list = lists.emplace_back(in.byte() % 4);
      for (const tb_tensor*& item : list) item = tensor();
      v.as.p = list.data();
      v.count = static_cast<uint32_t>(list.size());
      break;
    }
    case TB_INT_LIST:
    case TB_BOOL_LIST: {
      auto& list = dims.emplace_back(in.byte() % 6);
      for (int64_t& item : list) item = in.any();
      v.as.p = list.data();
      v.count = static_cast<uint32_t>(list.size());
      break;
    }
    case TB_FLOAT_LIST: {
      auto& list = reals.emplace_back(in.byte() % 6);
      for (double& item : list) item = in.number<double>();
      v.as.p = list.data();
      v.count = static_cast<uint32_t>(list.size());
      break;
    }
    case TB_GENERATOR: v.as.p = pick(generators); break;
    default: break;
  }
  return v;
}

// ---- A call of each kind

void memory(World& w) {
  const tb_memory_api& m = *w.api.memory;
  tb_address address = 0;
  switch (w.in.byte() % 8) {
    case 0: {
      const uint64_t bytes = w.in.byte() % 8 == 0 ? static_cast<uint64_t>(w.in.any()) | 1ull << 60
                                                  : w.in.number<uint16_t>();
      if (m.allocate(w.device(), bytes, w.pick(w.streams), &address, w.error()) == TB_OK &&
          address != 0)
        w.blocks.push_back(address);
      break;
    }
    case 1: {
      address = w.address();
      if (m.free(address, w.pick(w.streams), w.error()) == TB_OK) std::erase(w.blocks, address);
      break;
    }
    case 2: (void)m.record_use(w.address(), w.pick(w.streams), w.error()); break;
    case 3: {
      tb_memory_info info{};
      info.struct_size = w.in.number<uint32_t>() % (sizeof info + 1);
      (void)m.info(w.address(), w.in.byte() % 8 == 0 ? nullptr : &info, w.error());
      break;
    }
    case 4: {
      tb_memory_stats stats{};
      stats.struct_size = static_cast<uint32_t>(w.in.number<uint16_t>() % (sizeof stats + 1));
      (void)m.stats(w.device(), &stats, w.error());
      break;
    }
    case 5: (void)m.set_fraction(w.device(), w.in.number<double>(), w.error()); break;
    case 6:
      (void)m.set_watermarks(w.device(), w.in.number<double>(), w.in.number<double>(), w.error());
      break;
    default: {
      int32_t pinned = 0;
      (void)m.is_host(reinterpret_cast<const void*>(w.in.any()), &pinned, w.error());
      (void)m.set_watermarks(0, 1.7, 1.4, nullptr);
      (void)m.empty_cache(w.device(), w.error());
    }
  }
}

void transfer(World& w) {
  const tb_transfer_api& t = *w.api.transfer;
  const tb_stream stream = w.pick(w.streams);
  // Blocks have less than 64 KiB: more than the host's memory is never copied.
  const auto bytes = static_cast<uint64_t>(w.in.any());
  const tb_address a = w.address();
  switch (w.in.byte() % 4) {
    case 0: (void)t.to_device(stream, a, w.host.data(), bytes, 0, w.error()); break;
    case 1: (void)t.to_host(stream, w.host.data(), a, bytes, 0, w.error()); break;
    case 2: (void)t.on_device(stream, a, w.pick(w.streams), w.address(), bytes, w.error()); break;
    default: (void)t.fill(stream, a, w.host.data(), w.in.byte(), bytes, w.error());
  }
}

void operators(World& w) {
  const tb_operator_api& o = *w.api.operators;
  tb_op op = nullptr;
  if (w.in.byte() % 32 == 0) {
    (void)o.find(w.texts.emplace_back(w.in.text()).c_str(), &op, w.error());
    return;
  }
  tb_op_info info{};
  info.struct_size = sizeof info;
  (void)o.at(w.in.number<uint16_t>() % (plugin().operators + 1), &op, &info, w.error());
  std::vector<tb_value> args(w.in.byte() % 12);
  for (tb_value& arg : args) arg = w.value();
  std::vector<const tb_tensor*> outs(w.in.byte() % 4);
  for (const tb_tensor*& out : outs) out = w.tensor();
  tb_call call{};
  call.struct_size = w.in.byte() % 16 == 0 ? w.in.byte() : sizeof call;
  call.op = op;
  call.stream = w.pick(w.streams);
  call.args = args.data();
  call.outs = outs.data();
  call.arg_count = static_cast<uint32_t>(args.size());
  call.out_count = static_cast<uint32_t>(outs.size());
  if (o.supports(&call, w.error()) != TB_OK) (void)o.invoke(&call, w.error());
}

void kernels(World& w) {
  const tb_kernel_api& k = *w.api.kernel;
  tb_kernel_info info{};
  info.struct_size = static_cast<uint32_t>(w.in.byte() % (sizeof info + 1));
  tb_kernel found = nullptr;
  (void)k.find(plugin().library, w.texts.emplace_back(w.in.text()).c_str(), &found, &info,
               w.error());
  std::vector<tb_value> args(w.in.byte() % 7);
  for (tb_value& arg : args) arg = w.value();
  const std::array<uint64_t, 3> threads = {w.in.byte() % 40u, w.in.byte() % 9u, w.in.byte() % 9u};
  const std::array<uint64_t, 3> group = {static_cast<uint64_t>(w.in.any()), w.in.byte() % 3u, 1};
  (void)k.launch(w.pick(w.streams), w.pick(plugin().kernels), args.data(),
                 static_cast<uint32_t>(args.size()), w.in.byte() % 5, threads.data(),
                 w.in.byte() % 2 == 0 ? nullptr : group.data(), w.error());
}

void streams(World& w) {
  const tb_stream_api& s = *w.api.stream;
  const tb_event_api& e = *w.api.event;
  // The last bytes are rehearsals', so that inputs found before these were there keep their
  // meaning.
  const int chosen = w.in.byte();
  switch (chosen >= 232 ? 8 + chosen % 3 : chosen % 8) {
    case 0: {
      tb_stream stream = nullptr;
      if (w.streams.size() < 4 && s.create(w.device(), w.in.byte(), &stream, w.error()) == TB_OK)
        w.streams.push_back(stream);
      break;
    }
    case 1: {
      tb_event event = nullptr;
      if (e.create(w.device(), w.in.byte() % 4, &event, w.error()) == TB_OK)
        w.events.push_back(event);
      break;
    }
    case 2: (void)e.record(w.pick(w.events), w.pick(w.streams), w.error()); break;
    case 3: (void)s.wait_event(w.pick(w.streams), w.pick(w.events), w.error()); break;
    case 4: {
      double milliseconds = 0;
      (void)e.elapsed_ms(w.pick(w.events), w.pick(w.events), &milliseconds, w.error());
      break;
    }
    case 5: (void)s.query(w.pick(w.streams), w.error()); break;
    case 6: (void)s.synchronize(w.pick(w.streams), w.error()); break;
    case 8: (void)s.begin_rehearsal(w.pick(w.streams), w.error()); break;
    case 9: {
      uint32_t missing = 0;
      (void)s.end_rehearsal(w.pick(w.streams), &missing, w.error());
      break;
    }
    case 10: {
      uint32_t left = 0;
      (void)s.build_missing(w.pick(w.streams), &left, w.error());
      break;
    }
    default: (void)e.query(w.pick(w.events), w.error());
  }
}

void generators(World& w) {
  const tb_generator_api& g = *w.api.generator;
  const tb_generator generator = w.pick(w.generators);
  switch (w.in.byte() % 4) {
    case 0: {
      tb_generator made = nullptr;
      if (g.create(w.device(), w.in.number<uint64_t>(), &made, w.error()) == TB_OK)
        w.generators.push_back(made);
      break;
    }
    case 1: (void)g.get_state(generator, w.host.data(), w.in.byte(), w.error()); break;
    case 2: (void)g.set_state(generator, w.host.data(), w.in.byte(), w.error()); break;
    default: (void)g.set_seed(generator, w.in.number<uint64_t>(), w.error());
  }
}

void tools(World& w) {
  const std::string& text = w.texts.emplace_back(w.in.text());
  switch (w.in.byte() % 8) {
    case 0: (void)w.api.profiler->start(text.c_str(), 0, "/dev/null", w.error()); break;
    case 1: (void)w.api.profiler->start("interval", w.in.byte() % 2, "/dev/null", w.error()); break;
    case 2: (void)w.api.profiler->stop(w.error()); break;
    case 3: (void)w.api.profiler->push_range(text.c_str(), w.error()); break;
    case 4: (void)w.api.profiler->pop_range(w.error()); break;
    case 5: {
      char value[64];
      (void)w.api.switches->get(text.c_str(), value, w.in.byte() % 64, w.error());
      const char* name = nullptr;
      (void)w.api.switches->at(w.in.number<uint32_t>(), &name, w.error());
      break;
    }
    case 6: (void)w.api.capture->stop(w.error()); break;
    default: {
      void* native = nullptr;
      uint64_t offset = 0;
      (void)w.api.interop->buffer(w.address(), &native, &offset, w.error());
      (void)w.api.interop->context(w.device(), &native, w.error());
      (void)w.api.capture->start("/dev/null", w.error());
    }
  }
}

void give_back(World& w) {
  (void)w.api.profiler->stop(nullptr);
  (void)w.api.capture->stop(nullptr);
  for (const tb_event event : w.events) (void)w.api.event->destroy(event, nullptr);
  for (const tb_generator generator : w.generators)
    (void)w.api.generator->destroy(generator, nullptr);
  for (const tb_address block : w.blocks) (void)w.api.memory->free(block, w.streams[0], nullptr);
  for (size_t i = 1; i < w.streams.size(); ++i) (void)w.api.stream->destroy(w.streams[i], nullptr);
  (void)w.api.memory->set_watermarks(0, 1.7, 1.4, nullptr);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr std::array<void (*)(World&), 8> kCalls = {memory,  transfer, operators,  operators,
                                                      kernels, streams,  generators, tools};
  Input in(data, size);
  World w{in};
  tb_stream stream = nullptr;
  if (w.api.stream->default_stream(0, &stream, nullptr) != TB_OK) return 0;  // no device
  w.streams.push_back(stream);
  for (int i = 0; i < 40 && !in.done(); ++i) {
    kCalls[in.byte() % kCalls.size()](w);
    w.tensors.clear(), w.dims.clear(), w.lists.clear(), w.reals.clear(), w.texts.clear();
  }
  give_back(w);
  return 0;
}
