// SPDX-License-Identifier: Apache-2.0
#include "bench/roofline.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>

namespace aifs::bench {

namespace {

// Adds a product of the library: mm(a, b), bmm(a, b), addmm(sum, a, b), baddbmm(sum, a, b), or one
// of the latter in place.
std::unique_ptr<at::ObserverContext> add_product(const at::RecordFunction& call) {
  std::string_view name = call.name();
  if (name.ends_with('_')) name.remove_suffix(1);
  const bool adds = name == "aten::addmm" || name == "aten::baddbmm";
  if (!adds && name != "aten::mm" && name != "aten::bmm") return nullptr;
  const auto inputs = call.inputs();
  const size_t first = adds ? 1 : 0;
  const at::Tensor a = inputs.at(first).toTensor(), b = inputs.at(first + 1).toTensor();
  const int64_t rows = a.size(-2), depth = a.size(-1), columns = b.size(-1);
  const int64_t results = (a.dim() == 3 ? a.size(0) : 1) * rows * columns;
  const at::Tensor sum = adds ? inputs.at(0).toTensor() : at::Tensor();
  const size_t element = (adds ? sum : a).element_size();
  double bytes = static_cast<double>(a.nbytes() + b.nbytes()) +
                 static_cast<double>(results) * static_cast<double>(element);
  if (adds) bytes += static_cast<double>(sum.nbytes());
  const bool over_rows = depth > std::max(rows, columns);
  WorkLog::add({.kind = over_rows ? "weight gradients (library)" : "products (library)",
                .bytes = bytes,
                .operations = 2.0 * static_cast<double>(results) * static_cast<double>(depth)});
  return nullptr;
}

class ProductObserver {
 public:
  ProductObserver()
      : handle_(at::addGlobalCallback(at::RecordFunctionCallback(add_product)
                                          .needsInputs(true)
                                          .scopes({at::RecordScope::FUNCTION}))) {}
  ~ProductObserver() { at::removeCallback(handle_); }
  ProductObserver(const ProductObserver&) = delete;
  ProductObserver& operator=(const ProductObserver&) = delete;

 private:
  at::CallbackHandle handle_;
};

double sum_of(const std::vector<RooflineRow>& rows, double RooflineRow::*what) {
  return std::accumulate(rows.begin(), rows.end(), 0.0,
                         [&](double sum, const RooflineRow& row) { return sum + row.*what; });
}

}  // namespace

std::vector<WorkOfCall> calls_of(const std::function<void()>& work) {
  const WorkLog log;
  const ProductObserver observer;
  work();
  return log.calls();
}

Roofline roofline(const std::vector<WorkOfCall>& calls, const DeviceLimits& limits) {
  Roofline result{.limits = limits, .rows = {}};
  for (const WorkOfCall& call : calls) {
    auto row = std::find_if(result.rows.begin(), result.rows.end(),
                            [&](const RooflineRow& r) { return r.kind == call.kind; });
    if (row == result.rows.end()) {
      result.rows.push_back({.kind = call.kind});
      row = result.rows.end() - 1;
    }
    ++row->calls;
    row->bytes += call.bytes;
    row->operations += call.operations;
    row->seconds += std::max(call.bytes / limits.bytes_per_s, call.operations / limits.flop_per_s);
  }
  std::stable_sort(
      result.rows.begin(), result.rows.end(),
      [](const RooflineRow& a, const RooflineRow& b) { return a.seconds > b.seconds; });
  return result;
}

double Roofline::seconds() const {
  return sum_of(rows, &RooflineRow::seconds);
}

std::string Roofline::table() const {
  char line[160];
  std::snprintf(line, sizeof line, "Least times at %.0f GB/s and %.0f TFLOP/s:\n",
                1e-9 * limits.bytes_per_s, 1e-12 * limits.flop_per_s);
  std::string text = line;
  const auto add = [&](const RooflineRow& row) {
    std::snprintf(line, sizeof line, "  %-44s %5lld calls %9.2f ms %9.2f GB %9.3f TFLOP\n",
                  row.kind.c_str(), static_cast<long long>(row.calls), 1e3 * row.seconds,
                  1e-9 * row.bytes, 1e-12 * row.operations);
    text += line;
  };
  RooflineRow all{.kind = "all",
                  .bytes = sum_of(rows, &RooflineRow::bytes),
                  .operations = sum_of(rows, &RooflineRow::operations),
                  .seconds = seconds()};
  for (const RooflineRow& row : rows) {
    all.calls += row.calls;
    add(row);
  }
  add(all);
  return text;
}

nlohmann::ordered_json Roofline::to_json() const {
  nlohmann::ordered_json json{{"copy_gb_s", 1e-9 * limits.bytes_per_s},
                              {"product_tflop_s", 1e-12 * limits.flop_per_s},
                              {"ms", 1e3 * seconds()},
                              {"gb", 1e-9 * sum_of(rows, &RooflineRow::bytes)},
                              {"tflop", 1e-12 * sum_of(rows, &RooflineRow::operations)},
                              {"kinds", nlohmann::ordered_json::array()}};
  for (const RooflineRow& row : rows) {
    json["kinds"].push_back({{"kind", row.kind},
                             {"calls", row.calls},
                             {"ms", 1e3 * row.seconds},
                             {"gb", 1e-9 * row.bytes},
                             {"tflop", 1e-12 * row.operations}});
  }
  return json;
}

}  // namespace aifs::bench
