// One call of an operator, with everything around it checked.
#include "execute.h"

#include <fmt/format.h>

#include <deque>

#include "image.h"

namespace ocltensor::testing {
namespace {

struct Placed {
  Image image;
  DeviceMemory memory;
  tb_tensor tensor{};

  Placed(const Backend& backend, Image source)
      : image(std::move(source)), memory(backend, image.bytes().size()) {
    memory.upload(image.bytes().data());
  }
  void describe(tb_tensor& t) const {
    t.struct_size = sizeof(tb_tensor);
    t.dtype = to_abi(image.dtype());
    t.ndim = static_cast<uint32_t>(image.sizes().size());
    t.sizes = image.sizes().data();
    t.strides = image.layout().strides.data();
    t.base = memory.address();
    t.base_bytes = memory.bytes();
    t.address = memory.address() + image.origin();
  }
};

struct Run {
  const Backend& backend;
  const Case& c;
  CaseView view{c};
  std::deque<Placed> inputs;  // one per slot of the view
  std::deque<Placed> outputs;
  std::vector<Placed*> out_places;
  std::vector<const tb_tensor*> outs;
  Outcome result;

  Run(const Backend& b, const Case& the_case) : backend(b), c(the_case) {}

  void place_inputs() {
    for (auto& slot : view.slots()) {
      inputs.emplace_back(backend, Image(slot.data->value, slot.data->layout));
      inputs.back().describe(*slot.tensor);
    }
    for (size_t i = 0; i < c.args.size(); ++i) {
      tb_value& v = view.values()[i];
      if (v.tag != TB_GENERATOR) continue;
      // Odd seeds use the default generator, even ones an explicit one.
      if (c.seed % 2 == 1 || backend.generator() == nullptr)
        v.tag = TB_NONE;
      else
        v.as.p = backend.generator();
    }
  }

  // The tensors of an argument: one, or those of a list.
  std::vector<Placed*> placed(size_t argument) {
    std::vector<Placed*> all;
    for (size_t s = 0; s < inputs.size(); ++s)
      if (view.slots()[s].argument == argument) all.push_back(&inputs[s]);
    return all;
  }

  void place_outputs(const std::vector<TensorSpec>& specs, Draw* layouts) {
    const auto shared =
        c.alias >= 0 ? placed(static_cast<size_t>(c.alias)) : std::vector<Placed*>();
    for (size_t i = 0; i < specs.size(); ++i) {
      if (i < shared.size()) {
        out_places.push_back(shared[i]);
      } else {
        const Dims& sizes = specs[i].sizes;
        const Layout layout = layouts ? layouts->output_layout(sizes)
                                      : Layout{contiguous_strides(sizes), 0, numel(sizes)};
        outputs.emplace_back(backend, Image::poisoned(specs[i].dtype, sizes, layout));
        out_places.push_back(&outputs.back());
      }
      out_places[i]->describe(out_places[i]->tensor);
      outs.push_back(&out_places[i]->tensor);
    }
  }

  static tb_status resize(void* context, uint32_t index, const int64_t* sizes, uint32_t ndim,
                          tb_tensor* tensor) {
    Run& run = *static_cast<Run*>(context);
    return guarded(nullptr, [&] {
      check(index < run.out_places.size(), "resize_out of output {}", index);
      const Dims shape(std::span<const int64_t>(sizes, ndim));
      const DType dtype = run.out_places[index]->image.dtype();
      run.outputs.emplace_back(
          run.backend, Image::poisoned(dtype, shape, {contiguous_strides(shape), 0, numel(shape)}));
      run.out_places[index] = &run.outputs.back();
      run.outputs.back().describe(*tensor);
    });
  }

  tb_call call() {
    tb_call call{};
    call.struct_size = sizeof call;
    call.op = backend.find(c.op->name);
    call.stream = backend.stream();
    call.args = view.values().data();
    call.arg_count = static_cast<uint32_t>(view.values().size());
    call.outs = outs.data();
    call.out_count = static_cast<uint32_t>(outs.size());
    call.resize_out = resize;
    call.resize_context = this;
    return call;
  }

  void invoke() {
    const tb_call the_call = call();
    ErrorBuffer asked, done;
    result.supports = backend.api().operators->supports(&the_call, asked.get());
    backend.seed(c.seed);
    result.status = backend.api().operators->invoke(&the_call, done.get());
    result.message = done.text();
    result.reason = done.reason();
    if (result.supports == TB_OK && result.status == TB_UNSUPPORTED)
      violation("supports() accepted, invoke() declined: {}", done.text());
    if (result.supports == TB_UNSUPPORTED && result.status == TB_OK)
      violation("supports() declined ({}), invoke() ran it", asked.text());
    must(backend.api().stream->synchronize, backend.stream());
  }

  template <typename... T>
  void violation(fmt::format_string<T...> text, T&&... values) {
    result.violations.push_back(fmt::format(text, std::forward<T>(values)...));
  }

  bool written(const Placed* p, size_t argument) const {
    if (std::find(out_places.begin(), out_places.end(), p) != out_places.end()) return true;
    return std::find(c.mutates.begin(), c.mutates.end(), argument) != c.mutates.end();
  }

  void check_inputs() {
    for (size_t s = 0; s < inputs.size(); ++s) {
      const size_t argument = view.slots()[s].argument;
      std::vector<std::byte> now(inputs[s].image.bytes().size());
      inputs[s].memory.download(now.data());
      const bool may_change = result.status == TB_OK && written(&inputs[s], argument);
      if (may_change ? inputs[s].image.damage(now) >= 0 : now != inputs[s].image.bytes())
        violation("argument '{}' was changed", c.op->schema.inputs[argument].name);
    }
  }

  void collect() {
    for (size_t i = 0; i < out_places.size(); ++i) {
      const Placed& p = *out_places[i];
      std::vector<std::byte> now(p.image.bytes().size());
      p.memory.download(now.data());
      const int64_t at = p.image.damage(now);
      if (at >= 0)
        violation("output {}: byte {} outside its elements was overwritten (first element at {})",
                  i, at, p.image.origin());
      if (result.status == TB_OK)
        result.outs.push_back(p.image.gather(now));
      else if (now != p.image.bytes())
        violation("output {} was written although the call did not succeed", i);
    }
    if (result.status != TB_OK) return;
    for (const size_t argument : c.mutates)
      for (const Placed* p : placed(argument)) {
        std::vector<std::byte> now(p->image.bytes().size());
        p->memory.download(now.data());
        result.outs.push_back(p->image.gather(now));
      }
  }
};

}  // namespace

Outcome execute(const Backend& backend, const Case& c, const std::vector<TensorSpec>& specs,
                Draw* layouts) {
  Run run(backend, c);
  run.place_inputs();
  run.place_outputs(specs, layouts);
  run.invoke();
  run.check_inputs();
  run.collect();
  return std::move(run.result);
}

std::string reason_name(uint32_t reason) {
  static constexpr const char* kNames[] = {"no reason",      "operator", "dtype",
                                           "layout",         "rank",     "size",
                                           "device feature", "argument", "disabled"};
  return reason < std::size(kNames) ? kNames[reason] : fmt::format("reason {}", reason);
}

}  // namespace ocltensor::testing
