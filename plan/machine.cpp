// SPDX-License-Identifier: Apache-2.0
#include "plan/machine.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file_io.h"

namespace aifs::plan {

void LinkOptions::bind(config::Binder& b) {
  b.number("call_us", call_us, {.min = 0.0}, {"what every operation costs once", "us"});
  b.number("latency_us", latency_us, {.min = 0.0}, {"of one message between two ranks", "us"});
  b.number("bandwidth_gb_s", bandwidth_gb_s, {.min = 1e-6},
           {"of one rank in one direction", "GB/s"});
}

void CardOptions::bind(config::Binder& b) {
  b.text("name", name, {"for people"});
  b.number("fp32_tflops", fp32_tflops, {.min = 1e-6}, {"matrix products of fp32", "TFLOP/s"});
  b.number("tf32_tflops", tf32_tflops, {.min = 1e-6}, {"of tf32", "TFLOP/s"});
  b.number("half_tflops", half_tflops, {.min = 1e-6}, {"of bf16 and fp16", "TFLOP/s"});
  b.number("memory_tb_s", memory_tb_s, {.min = 1e-6}, {"copies, read and written", "TB/s"});
  b.number("memory_gib", memory_gib, {.min = 0.0}, {"that a run may use", "GiB"});
  b.number("product_efficiency", product_efficiency, {.min = 1e-3, .max = 1.0},
           {"share of the products' limit that steps reach"});
  b.number("memory_efficiency", memory_efficiency, {.min = 1e-3, .max = 1.0},
           {"share of the memory's limit that steps reach"});
  b.number("operation_us", operation_us, {.min = 0.0},
           {"shortest time of an operation, launch included", "us"});
}

void Machine::bind(config::Binder& b) {
  b.text("name", name, {"for people"});
  b.section("card", card, {"what computes a rank's part"});
  b.integer("ranks_per_node", ranks_per_node, {.min = 1, .max = 1 << 20},
            {"consecutive ranks that share a host"});
  b.section("host", host, {"link between a card and the memory of its host"});
  b.section("node", node, {"link between ranks of a host"});
  b.section("network", network, {"link between hosts"});
}

Machine load_machine(const std::string& file) {
  config::Json json = config::parse_json(read_file(file), file);
  if (json.is_object() && json.contains("machine")) json = config::Json(json["machine"]);
  Machine machine;
  config::read(machine, json, "", {});
  return machine;
}

}  // namespace aifs::plan
