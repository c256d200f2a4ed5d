// SPDX-License-Identifier: Apache-2.0
// A training step on paper: memory of a rank, what it sends, what it computes, how long it takes.
#pragma once

#include <string>
#include <vector>

#include "plan/layout.h"
#include "plan/machine.h"
#include "plan/network.h"

namespace aifs::plan {

// Operands of products; fp64 counts as fp32.
enum class Arithmetic { kFp32, kTf32, kHalf };

// Everything the step of a run depends on; made from a configuration by app/run/plan.cpp.
struct StepInput {
  NetworkInput network;
  Machine machine = {};
  Layout layout = {};
  graph::HiddenOrder hidden_order = graph::HiddenOrder::kAuto;
  graph::SourceRows mapper_sources = graph::SourceRows::kHalo;
  model::AttentionSharing attention = model::AttentionSharing::kAuto;
  Arithmetic arithmetic = Arithmetic::kFp32;
  int64_t rollout = 1;                     // forecast steps of a training step
  bool recompute_steps = false;            // train.rollout.recompute
  int64_t accumulate_batches = 1;          // batches of a step
  std::vector<int64_t> stage_layers = {};  // of a pipeline; none: shared out evenly
  int64_t batch_size = 1;                  // samples of a batch of one replica
  int64_t batch_times = 3;                 // of a sample
  int64_t dataset_variables = 0;
  int64_t prefetch_batches = 2;
  int64_t optimizer_states = 2;  // moments
  bool average = false;          // a mean of weights is kept
  int64_t loss_terms = 1;        // sums over ranks for each forecast step
};

// Bytes on one rank, the most of all ranks and stages.
struct MemoryPlan {
  double parameters = 0, gradients = 0, optimizer = 0, average = 0;
  double features = 0, encoder = 0, processor = 0, decoder = 0, output = 0;  // activations
  double working = 0;        // gradients and recomputed tensors of the backward pass
  double communication = 0;  // buffers
  double graph = 0;          // indices and attributes of edges
  double batch = 0;          // on the device: the present one and the next
  double host_batches = 0;   // read ahead, in the memory of the host
  // Inputs of layers that run again, page-locked; a run rounds each tensor up to 64 MiB.
  double host_inputs = 0;

  double activations() const { return features + encoder + processor + decoder + output; }
  double device() const {
    return parameters + gradients + optimizer + average + activations() + working + communication +
           graph + batch;
  }
};

// One kind of transfer in a step, from the rank that sends most.
struct Transfer {
  std::string what;            // "processor sources"
  std::string operation = {};  // as parallel/backends/counting_communicator.h counts: "all-to-all"
  int64_t group = 1;           // ranks that take part
  double calls = 0, bytes = 0;
  double seconds = 0;  // of all calls
  double exposed = 0;  // seconds that no arithmetic hides
  std::string note = {};
};

struct TimePlan {
  double compute_s = 0, exposed_s = 0, optimizer_s = 0, bubble_s = 0;
  double total_s() const { return compute_s + exposed_s + optimizer_s + bubble_s; }
};

struct FlopPlan {
  double unsplit_forward = 0;  // of one sample through the whole model, products as a plain model
  double executed_step = 0;    // of one rank in a step: forward, recomputation, backward
  double useful_step = 0;      // three times the unsplit forward of a rank's share
};

struct StepPlan {
  Layout layout;
  int64_t parameters = 0;  // trainable, of the whole model
  double samples = 0;      // of a step, all replicas
  MemoryPlan memory;
  std::vector<Transfer> transfers;
  FlopPlan flops;
  TimePlan time;

  double bytes(const std::string& operation) const;
  double calls(const std::string& operation) const;
};

// Throws ConfigError for a layout that the network or graph does not allow.
StepPlan plan_step(const StepInput& input, const graph::Graph& graph);
// Plans a step with the nodes and edges of ranks as given.
StepPlan plan_step(const StepInput& input, const Division& division);
// How plan_step() divides the graph.
Division divide(const StepInput& input, const graph::Graph& graph);
Division divide(const StepInput& input, const CountedGraph& graph);

// Parts of it, one file each.
MemoryPlan plan_memory(const StepInput& input, const RankRows& rows, const Stage& stage,
                       const NetworkCost& cost);
std::vector<Transfer> plan_transfers(const StepInput& input, const RankRows& rows, bool divided,
                                     const NetworkCost& cost, double backward_s);
// Seconds of a part in the passes of one batch.
struct PassTimes {
  double forward_s = 0, backward_s = 0;
};
PassTimes pass_times(const StepInput& input, const PartCost& part);
// Seconds of forward and backward passes of one batch; `backward_s` gets those of the latter.
double compute_s(const StepInput& input, const NetworkCost& cost, double& backward_s);
double optimizer_s(const StepInput& input, const NetworkCost& cost);

}  // namespace aifs::plan
