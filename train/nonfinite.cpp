// SPDX-License-Identifier: Apache-2.0
#include "train/nonfinite.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/safetensors.h"
#include "data/fields/variables.h"

namespace aifs::train {

namespace {

// Position in memory order of the first value that is not finite, or -1.
int64_t first_bad(const at::Tensor& x) {
  const at::Tensor bad = at::logical_not(at::isfinite(x)).flatten();
  if (!bad.any().item<bool>()) return -1;
  return bad.to(at::kByte).argmax().item<int64_t>();
}

std::string degrees(double value, const char* positive, const char* negative) {
  return concat(std::abs(value), " ", value < 0.0 ? negative : positive);
}

// Describes what the callbacks of one trace write to; the profiler interface takes plain functions.
struct Trace {
  const model::ParameterSet* parameters;
  std::function<void()> progress;
  int64_t operation = 0;
  bool busy = false;  // the checks themselves are operations
  std::string last_weights, found;
};
thread_local Trace* current_trace = nullptr;

// Gives memory that is not yet written, or passes on what is.
bool makes_no_values(const std::string& name) {
  static const std::vector<std::string> names{
      "empty",  "resize", "view",      "narrow",  "select", "slice", "expand",
      "detach", "alias",  "transpose", "permute", "chunk",  "split", "as_strided"};
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& part) { return name.find(part) != std::string::npos; });
}

void note_weights(Trace& trace, const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  for (const model::Parameter& parameter : trace.parameters->entries()) {
    if (!parameter.is_optimised() || !tensor.storage().is_alias_of(parameter.tensor.storage()))
      continue;
    const int64_t from = tensor.storage_offset() - parameter.tensor.storage_offset();
    if (from >= 0 && from < parameter.tensor.numel()) trace.last_weights = parameter.name;
  }
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& operation) {
  Trace* trace = current_trace;
  if (!trace || trace->busy || !trace->found.empty()) return nullptr;
  trace->busy = true;
  for (const c10::IValue& input : operation.inputs()) {
    if (input.isTensor()) note_weights(*trace, input.toTensor());
  }
  trace->busy = false;
  return nullptr;
}

void on_end(const at::RecordFunction& operation, at::ObserverContext*) {
  Trace* trace = current_trace;
  if (!trace || trace->busy || !trace->found.empty()) return;
  trace->busy = true;
  ++trace->operation;
  const std::string name = operation.name();
  if (!makes_no_values(name)) {
    for (const c10::IValue& output : operation.outputs()) {
      if (!output.isTensor()) continue;
      const at::Tensor& tensor = output.toTensor();
      if (!tensor.defined() || !tensor.is_floating_point() || first_bad(tensor) < 0) continue;
      trace->found =
          concat("output of ", name, ", ", tensor.sizes(), ", operation ", trace->operation,
                 trace->last_weights.empty() ? "" : ", after the weights '", trace->last_weights,
                 trace->last_weights.empty() ? "" : "'");
      break;
    }
  }
  if (trace->progress) trace->progress();
  trace->busy = false;
}

}  // namespace

std::string first_bad_value(const at::Tensor& field, const std::string& what,
                            const FieldPlaces& places) {
  AIFS_CHECK(field.dim() == 5, "a field of ", field.dim(), " axes");
  const at::Tensor values = field.detach().contiguous();
  int64_t rest = first_bad(values);
  if (rest < 0) return {};
  const auto value = values.flatten()[rest].item<double>();
  std::array<int64_t, 5> at{};
  for (int axis = 4; axis >= 0; --axis) {
    at[static_cast<size_t>(axis)] = rest % field.size(axis);
    rest /= field.size(axis);
  }
  const auto [sample, time, member, node, column] = at;
  std::string text = what + ": ";
  if (column < static_cast<int64_t>(places.variables.size())) {
    const std::string& name = places.variables[static_cast<size_t>(column)];
    const int64_t level = data::split_variable_name(name).level;
    text += concat("variable ", name, level >= 0 ? concat(" (level ", level, ")") : "");
  } else {
    text += concat("column ", column);
  }
  text += concat(" is ", value, " in sample ", sample, ", time ", time, ", member ", member,
                 ", at node ", places.first_node + node);
  const auto n = static_cast<size_t>(node);
  if (n < places.lat_deg.size() && n < places.lon_deg.size()) {
    text += concat(" (", degrees(places.lat_deg[n], "N", "S"), ", ",
                   degrees(places.lon_deg[n], "E", "W"), ")");
  }
  return text;
}

std::string first_bad_weight(const model::ParameterSet& parameters) {
  for (const model::Parameter& parameter : parameters.entries()) {
    if (!parameter.is_optimised()) continue;
    const int64_t position = first_bad(parameter.tensor.detach());
    if (position < 0) continue;
    return concat("weight '", parameter.name, "' is ",
                  parameter.tensor.detach().flatten()[position].item<double>(), " at element ",
                  position, " of ", parameter.tensor.sizes());
  }
  return {};
}

std::string first_bad_gradient(const model::ParameterSet& parameters,
                               const std::vector<OwnPart>& parts) {
  for (const OwnPart& part : parts) {
    const int64_t bad = first_bad(part.gradients);
    if (bad < 0) continue;
    for (const model::Parameter& parameter : parameters.entries()) {
      const int64_t position = part.begin + bad - parameter.offset;
      if (!parameter.is_optimised() || position < 0 || position >= parameter.tensor.numel())
        continue;
      return concat("gradient of '", parameter.name, "' is ", part.gradients[bad].item<double>(),
                    " at element ", position, " of ", parameter.tensor.sizes());
    }
  }
  return {};
}

std::string first_bad_operation(const model::ParameterSet& parameters,
                                const std::function<void()>& function,
                                const std::function<void()>& progress) {
  Trace trace{.parameters = &parameters, .progress = progress, .last_weights = {}, .found = {}};
  current_trace = &trace;
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(on_start, on_end)
                                                     .needsInputs(true)
                                                     .needsOutputs(true)
                                                     .scopes({at::RecordScope::FUNCTION}));
  const auto leave = [&] {
    at::removeCallback(handle);
    current_trace = nullptr;
  };
  try {
    const at::RecordFunctionGuard enabled(true);
    function();
  } catch (...) {
    leave();
    throw;
  }
  leave();
  return trace.found;
}

bool are_finite(const std::vector<at::Tensor>& tensors) {
  // A sum is finite if its terms are, short of values near the largest number there is.
  return std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
    return std::isfinite(tensor.sum().item<double>());
  });
}

void write_dump(const fs::path& folder, const data::Batch& batch, const std::string& report) {
  make_directories(folder);
  const at::Tensor values = batch.values.to(at::kCPU, at::kFloat).contiguous();
  const at::Tensor mask =
      batch.nan_mask.defined() ? batch.nan_mask.to(at::kCPU).contiguous() : at::Tensor();
  std::vector<SafetensorsItem> items{
      {"values", DType::kF32, values.sizes().vec(), values.const_data_ptr()},
      {"anchors", DType::kI64, {static_cast<int64_t>(batch.anchors.size())}, batch.anchors.data()}};
  if (mask.defined()) {
    items.push_back({"nan_mask", DType::kU8, mask.sizes().vec(), mask.const_data_ptr()});
  }
  write_safetensors(folder / "batch.safetensors", items);
  write_file_atomic(folder / "report.txt", report + "\n");
}

}  // namespace aifs::train
