// SPDX-License-Identifier: Apache-2.0
#include "plan/report.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "plan/all_reduce_cost.h"

namespace aifs::plan {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiB = 1 << 30;

std::string line(const char* format, ...) {
  char text[192];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  return text;
}

struct MemoryLine {
  const char* name;
  double bytes;
};

std::vector<MemoryLine> memory_lines(const MemoryPlan& m) {
  return {{"parameters", m.parameters},
          {"gradients", m.gradients},
          {"optimiser states", m.optimizer},
          {"average of weights", m.average},
          {"activations of encoder", m.encoder},
          {"activations of processor", m.processor},
          {"activations of decoder", m.decoder},
          {"output and loss", m.output},
          {"backward pass", m.working},
          {"communication buffers", m.communication},
          {"graph", m.graph},
          {"batches", m.batch}};
}

std::string memory_table(const MemoryPlan& memory, const CardOptions& card) {
  std::string text = "memory of a rank               GiB\n";
  for (const MemoryLine& m : memory_lines(memory)) {
    if (m.bytes > 0.0) text += line("  %-26s %9.4f\n", m.name, m.bytes / kGiB);
  }
  const double all = memory.device() / kGiB;
  text +=
      line("  %-26s %9.4f  %s\n", "all", all,
           all > card.memory_gib ? line("MORE than the %.0f of the card", card.memory_gib).c_str()
                                 : line("of %.0f", card.memory_gib).c_str());
  for (const auto& [name, bytes] : {std::pair{"read ahead", memory.host_batches},
                                    std::pair{"inputs of layers", memory.host_inputs}}) {
    if (bytes > 0.0) text += line("  %-26s %9.4f  on the host\n", name, bytes / kGiB);
  }
  return text;
}

std::string transfer_table(const std::vector<Transfer>& transfers) {
  if (transfers.empty()) return "communication: none\n";
  std::string text =
      "communication of a step         ranks  operation         calls         MB        ms   "
      "exposed\n";
  for (const Transfer& t : transfers) {
    text += line("  %-28s %6lld  %-14s %8.0f %10.4f %9.3f %9.3f%s%s\n", t.what.c_str(),
                 static_cast<long long>(t.group), t.operation.c_str(), t.calls, t.bytes * 1e-6,
                 t.seconds * 1e3, t.exposed * 1e3, t.note.empty() ? "" : "  ", t.note.c_str());
  }
  return text;
}

// Returns what the gradients would take by every algorithm, one piece after another.
std::string reduce_table(const StepPlan& plan, const Machine& machine) {
  const auto is_gradients = [](const Transfer& t) {
    return t.what == "gradients" && t.operation == "all-reduce";
  };
  const auto gradients = std::find_if(plan.transfers.begin(), plan.transfers.end(), is_gradients);
  const int64_t ranks = plan.layout.holders();
  if (gradients == plan.transfers.end() || gradients->group != ranks) return {};
  const double piece = gradients->bytes / gradients->calls;
  const auto ms = [&](AllReduce algorithm, bool by_node) {
    return 1e3 * gradients->calls * all_reduce_s(algorithm, by_node, ranks, piece, machine);
  };
  std::string text =
      line("all-reduce of %.0f MB, ms          flat   by node\n", gradients->bytes * 1e-6);
  for (const auto& [algorithm, name] : EnumNames<AllReduce>::table)
    text += line("  %-26s %9.3f %9.3f\n", name, ms(algorithm, false), ms(algorithm, true));
  return text + "\n";
}

}  // namespace

std::string to_text(const StepPlan& plan, const Machine& machine) {
  const Layout& l = plan.layout;
  const TimePlan& t = plan.time;
  std::string text =
      line("%lld ranks: model %lld x tensor %lld x pipeline %lld x data %lld, sharding %s, on %s\n",
           static_cast<long long>(l.ranks()), static_cast<long long>(l.model),
           static_cast<long long>(l.tensor), static_cast<long long>(l.pipeline),
           static_cast<long long>(l.data), enum_name(l.sharding).c_str(), machine.name.c_str());
  text += line("%.2f million parameters, %.0f samples a step\n\n",
               static_cast<double>(plan.parameters) * 1e-6, plan.samples);
  text += memory_table(plan.memory, machine.card) + "\n" + transfer_table(plan.transfers) + "\n";
  text += reduce_table(plan, machine);
  text +=
      line("arithmetic                  TFLOP\n  %-22s %9.4f  products as a plain model has them\n",
           "forward of a sample", plan.flops.unsplit_forward * 1e-12);
  text += line("  %-22s %9.4f  of a rank, with recomputation and backward pass\n\n",
               "done in a step", plan.flops.executed_step * 1e-12);
  text += "time of a step                 ms\n";
  for (const auto& [name, seconds] :
       std::initializer_list<std::pair<const char*, double>>{{"compute", t.compute_s},
                                                             {"optimiser", t.optimizer_s},
                                                             {"exposed communication", t.exposed_s},
                                                             {"pipeline bubble", t.bubble_s}}) {
    if (seconds > 0.0) text += line("  %-22s %9.3f\n", name, seconds * 1e3);
  }
  return text + line("  %-22s %9.3f  %.1f samples/s, %.0f TFLOP/s a rank\n", "all",
                     t.total_s() * 1e3, plan.samples / t.total_s(),
                     plan.flops.useful_step / t.total_s() * 1e-12);
}

std::string to_text(const Scaling& scaling) {
  std::string text =
      scaling.name +
      " scaling    ranks    step ms  compute ms  exposed ms   GiB a rank  efficiency\n";
  for (const ScalingPoint& p : scaling.points) {
    text += line("  %18lld %10.3f %11.3f %11.3f %12.4f %10.1f %%\n",
                 static_cast<long long>(p.ranks), p.step_s * 1e3, p.compute_s * 1e3,
                 p.exposed_s * 1e3, p.memory / kGiB, 100.0 * p.efficiency);
  }
  return text;
}

Json to_json(const StepPlan& plan) {
  Json memory, transfers = Json::array();
  for (const MemoryLine& m : memory_lines(plan.memory))
    memory[m.name] = m.bytes;
  memory["all"] = plan.memory.device();
  memory["read ahead on the host"] = plan.memory.host_batches;
  memory["inputs of layers on the host"] = plan.memory.host_inputs;
  for (const Transfer& t : plan.transfers) {
    transfers.push_back({{"what", t.what},
                         {"operation", t.operation},
                         {"ranks", t.group},
                         {"calls", t.calls},
                         {"bytes", t.bytes},
                         {"seconds", t.seconds},
                         {"exposed_s", t.exposed},
                         {"algorithm", t.note}});
  }
  Layout layout = plan.layout;
  return {{"layout", config::write_object(config::fields_of(layout))},
          {"ranks", layout.ranks()},
          {"parameters", plan.parameters},
          {"samples", plan.samples},
          {"memory_bytes", memory},
          {"communication", transfers},
          {"flops",
           {{"forward_of_a_sample", plan.flops.unsplit_forward},
            {"done_in_a_step", plan.flops.executed_step}}},
          {"time_s",
           {{"compute", plan.time.compute_s},
            {"optimiser", plan.time.optimizer_s},
            {"exposed_communication", plan.time.exposed_s},
            {"pipeline_bubble", plan.time.bubble_s},
            {"all", plan.time.total_s()}}}};
}

Json to_json(const Scaling& scaling) {
  Json points = Json::array();
  for (const ScalingPoint& p : scaling.points) {
    points.push_back({{"ranks", p.ranks},
                      {"step_s", p.step_s},
                      {"compute_s", p.compute_s},
                      {"exposed_s", p.exposed_s},
                      {"memory_bytes", p.memory},
                      {"efficiency", p.efficiency}});
  }
  return points;
}

}  // namespace aifs::plan
