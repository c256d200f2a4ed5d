// SPDX-License-Identifier: Apache-2.0
// What the estimates of time need to know of a machine: its card and its links. The defaults are an
// H100 system with NVLink in a node and one InfiniBand adapter per card between nodes; others come
// from a JSON file, or from what `aifs-bench comm` measured.
#pragma once

#include <string>

#include "core/config.h"

namespace aifs::plan {

// An exchange of n bytes between two ranks takes latency + n / bandwidth; an operation costs
// call_us once, whatever it consists of. The defaults of the node are fitted to collectives of two
// cards over NVLink.
struct LinkOptions {
  double call_us = 18.0;
  double latency_us = 1.5;
  double bandwidth_gb_s = 330.0;  // of one rank, in one direction

  void bind(config::Binder& b);
  double call_s() const { return call_us * 1e-6; }
  double latency_s() const { return latency_us * 1e-6; }
  double bytes_per_s() const { return bandwidth_gb_s * 1e9; }
};

// Limits of the card, and the share of them that training steps reach. The limits of bf16 products
// and of memory are measured, those of fp32 and tf32 are as far below the nominal ones; the shares
// are fitted to the H100's steps of docs/performance.md, which come out within a twentieth.
struct CardOptions {
  std::string name = "H100 80GB HBM3";
  double fp32_tflops = 54.0;  // matrix products by type of their operands
  double tf32_tflops = 390.0;
  double half_tflops = 787.0;
  double memory_tb_s = 3.03;
  double memory_gib = 78.0;
  double product_efficiency = 0.87;
  double memory_efficiency = 0.845;
  double operation_us = 4.0;  // shortest time of a kernel, launch included

  void bind(config::Binder& b);
};

struct Machine {
  std::string name = "H100, NVLink, InfiniBand NDR";
  CardOptions card;
  int64_t ranks_per_node = 8;
  LinkOptions node;
  // Between a card and its host (PCIe 5), page-locked memory.
  LinkOptions host{.call_us = 10.0, .latency_us = 0.0, .bandwidth_gb_s = 50.0};
  // 400 Gb/s adapters at nine tenths of their nominal rate; not measured.
  LinkOptions network{.call_us = 20.0, .latency_us = 5.0, .bandwidth_gb_s = 45.0};

  void bind(config::Binder& b);
  // The link that ties so many consecutive ranks together: that of a node, or the network.
  const LinkOptions& link(int64_t ranks) const { return ranks <= ranks_per_node ? node : network; }
};

// From a file of the same keys, or from the key "machine" of one that aifs-bench comm wrote; what
// the file does not say stays as it is above. Throws ConfigError.
Machine load_machine(const std::string& file);

}  // namespace aifs::plan
