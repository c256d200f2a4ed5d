// SPDX-License-Identifier: Apache-2.0
#include "app/watch_tools/run_frame.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>

#include "core/check.h"
#include "core/join.h"
#include "core/time.h"
#include "verify/table_text.h"

namespace aifs::app {

namespace {

constexpr std::array kBars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array kAsciiBars{"_", ".", "-", "~", "=", "+", "*", "#"};

// Means of the finite values of `count` parts of about the same length; NaN where there are none.
std::vector<double> means_of_parts(std::span<const double> values, size_t count) {
  std::vector<double> means;
  for (size_t part = 0; part < count; ++part) {
    const size_t begin = part * values.size() / count, end = (part + 1) * values.size() / count;
    double sum = 0.0;
    size_t number = 0;
    for (size_t i = begin; i < end; ++i)
      if (std::isfinite(values[i])) sum += values[i], ++number;
    means.push_back(number > 0 ? sum / static_cast<double>(number) : NAN);
  }
  return means;
}

std::string state_text(const RunView& run) {
  using State = RunView::State;
  switch (run.state) {
    case State::kStarting:
      return "starting";
    case State::kRunning:
      return "running";
    case State::kSilent:
      return concat("silent for ", format_elapsed(run.quiet_s));
    case State::kFinished:
      return "finished";
    case State::kStopped:
      return "stopped, --resume goes on";
    case State::kFailed:
      return "ended with an error";
  }
  return "";
}

bool goes_on(const RunView& run) {
  return run.state == RunView::State::kRunning || run.state == RunView::State::kSilent;
}

std::string progress_text(const RunView& run) {
  if (run.step == 0) return "no step yet";
  if (run.last_step <= 0) return concat("step ", run.step);
  return concat("step ", run.step, " of ", run.last_step,
                verify::formatted(" (%.0f %%)", 100.0 * static_cast<double>(run.step) /
                                                    static_cast<double>(run.last_step)));
}

std::string rate_text(const RunView& run) {
  const std::optional<double> step_s = run.mean_step_s();
  if (!step_s || *step_s <= 0.0) return "";
  return *step_s <= 1.0 ? verify::formatted("%.1f steps/s", 1.0 / *step_s)
                        : verify::formatted("%.2f s a step", *step_s);
}

std::string loss_text(const RunView& run, const FrameSize& size) {
  constexpr int kWidth = 40;
  if (run.losses.empty()) return "";
  double lowest = INFINITY;
  for (const double loss : run.losses)
    if (loss < lowest) lowest = loss;
  const std::string spark = sparkline(run.losses, std::min(kWidth, size.columns / 2), size.utf8);
  std::string text = concat(verify::formatted("%.5g", run.losses.back()), "  ", spark);
  if (std::isfinite(lowest)) text += concat("  lowest ", verify::formatted("%.5g", lowest));
  if (run.skipped > 0) text += concat("  skipped steps: ", run.skipped);
  return text;
}

std::string speed_text(const RunView& run) {
  std::vector<std::string> parts;
  if (const std::string rate = rate_text(run); !rate.empty()) parts.push_back(rate);
  if (const auto share = run.share_of_waiting())
    parts.push_back(verify::formatted("%.1f %% waiting for data", 100.0 * *share));
  if (run.tflops_per_s) parts.push_back(verify::formatted("%.3g TFLOP/s", *run.tflops_per_s));
  if (run.mfu) parts.push_back(verify::formatted("MFU %.1f %%", 100.0 * *run.mfu));
  if (run.lr) parts.push_back(verify::formatted("learning rate %.3g", *run.lr));
  if (run.gradient_norm)
    parts.push_back(verify::formatted("gradient norm %.3g", *run.gradient_norm));
  if (run.rollout > 1) parts.push_back(concat("rollout ", run.rollout));
  return join(parts);
}

// "4: 97 % in use, 50.2 of 139.8 GiB, 640 W, 61 C; slowed down by heat": means, and the most of
// memory and heat.
std::string gpus_text(const RunView& run) {
  if (run.gpus.empty()) return "";
  using Figure = std::optional<double> GpuView::*;
  const auto known = [&](Figure figure) {
    std::vector<double> values;
    for (const GpuView& gpu : run.gpus)
      if (gpu.*figure) values.push_back(*(gpu.*figure));
    return values;
  };
  const auto mean = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  const auto most = [](const std::vector<double>& v) { return *std::ranges::max_element(v); };
  const std::vector<double> use = known(&GpuView::use), memory = known(&GpuView::memory_gib),
                            total = known(&GpuView::memory_total_gib),
                            power = known(&GpuView::power_w), heat = known(&GpuView::temperature_c);
  std::vector<std::string> parts;
  if (!use.empty()) parts.push_back(verify::formatted("%.0f %% in use", 100.0 * mean(use)));
  if (!memory.empty() && !total.empty())
    parts.push_back(verify::formatted("%.1f of ", most(memory)) +
                    verify::formatted("%.1f GiB", most(total)));
  if (!power.empty()) parts.push_back(verify::formatted("%.0f W", mean(power)));
  if (!heat.empty()) parts.push_back(verify::formatted("%.0f C", most(heat)));
  std::set<std::string> slowed_by;
  for (const GpuView& gpu : run.gpus)
    slowed_by.insert(gpu.slowed_by.begin(), gpu.slowed_by.end());
  std::string text = concat(run.gpus.size(), ": ", join(parts));
  if (!slowed_by.empty())
    text +=
        "; slowed down by " + join(std::vector<std::string>(slowed_by.begin(), slowed_by.end()));
  return text;
}

std::string validation_text(const RunView& run) {
  if (!run.validation) return "";
  const ValidationView& v = *run.validation;
  std::string text = concat("step ", v.step, ": ");
  if (!v.failure.empty()) {
    text += "failed, " + v.failure;
  } else {
    text += concat("loss ", v.loss ? verify::formatted("%.5g", *v.loss) : "not finite");
    if (!v.ratios.empty()) text += concat(", RMSE / persistence ", join(v.ratios));
  }
  return text;
}

std::string remarks_text(const RunView& run) {
  std::vector<std::string> parts;
  if (run.num_errors > 0) parts.push_back(concat(run.num_errors, " errors"));
  if (run.num_warnings > 0) parts.push_back(concat(run.num_warnings, " warnings"));
  if (run.failed_validations > 0)
    parts.push_back(concat(run.failed_validations, " failed validations"));
  std::string text = join(parts);
  if (!run.last_remark.empty()) text += concat("; ", run.last_remark);
  return text;
}

std::vector<std::string> block_of(const RunView& run, const FrameSize& size) {
  std::string head = concat(run.name, ": ", state_text(run), ", ", progress_text(run));
  if (run.step > 0) head += concat(", epoch ", run.epoch);
  if (const auto left = run.left_s(); left && goes_on(run) && *left > 0.0)
    head += concat(", about ", format_elapsed(*left), " left");
  std::vector<std::string> lines{head};
  const auto add = [&](const char* title, const std::string& text) {
    if (!text.empty()) lines.push_back(concat("  ", title, text));
  };
  add("loss        ", loss_text(run, size));
  add("speed       ", speed_text(run));
  if (run.goodput) add("goodput     ", run.goodput->text());
  add("GPUs        ", gpus_text(run));
  add("validation  ", validation_text(run));
  add("log         ", remarks_text(run));
  if (run.damaged_lines > 0)
    add("files       ", concat(run.damaged_lines, " lines of metrics.jsonl and validation.jsonl ",
                               "are damaged, and left out"));
  for (const std::string& fault : run.faults)
    add("files       ", fault);
  return lines;
}

std::string line_of(const RunView& run, const FrameSize& size) {
  constexpr int kWidth = 16;
  std::vector<std::string> parts{state_text(run), progress_text(run)};
  if (!run.losses.empty())
    parts.push_back(concat("loss ", verify::formatted("%.5g", run.losses.back()), " ",
                           sparkline(run.losses, kWidth, size.utf8)));
  if (const auto left = run.left_s(); left && goes_on(run) && *left > 0.0)
    parts.push_back(concat(format_elapsed(*left), " left"));
  if (run.num_errors + run.num_warnings > 0)
    parts.push_back(concat(run.num_errors + run.num_warnings, " warnings and errors"));
  if (!run.faults.empty()) parts.push_back("files cannot be read");
  return concat(run.name, ": ", join(parts));
}

// The length of the UTF-8 character that starts at `at`; 0 if there is none.
size_t character_bytes(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first >= 0x20 && first < 0x7f) return 1;
  const size_t length = first >= 0xf0 && first < 0xf8   ? 4
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xc2 && first < 0xe0 ? 2
                                                        : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  const bool is_control = length == 2 && first == 0xc2 && byte(at + 1) < 0xa0;
  return is_control ? 0 : length;
}

}  // namespace

std::string sparkline(std::span<const double> values, int width, bool utf8) {
  const size_t count = std::min(values.size(), static_cast<size_t>(std::max(width, 0)));
  std::vector<double> means = means_of_parts(values, count);
  const bool positive = std::none_of(means.begin(), means.end(), [](double v) { return v <= 0; });
  double low = INFINITY, high = -INFINITY;
  for (double& mean : means) {
    if (positive) mean = std::log(mean);
    if (!std::isfinite(mean)) continue;
    low = std::min(low, mean);
    high = std::max(high, mean);
  }
  const auto& bars = utf8 ? kBars : kAsciiBars;
  std::string text;
  for (const double mean : means) {
    if (!std::isfinite(mean)) {
      text += "x";
      continue;
    }
    const double share = high > low ? (mean - low) / (high - low) : 0.0;
    text += bars[std::min(bars.size() - 1, static_cast<size_t>(share * 8.0))];
  }
  return text;
}

std::string cut_to(const std::string& text, int columns) {
  std::vector<std::string> characters;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = character_bytes(text, at);
    characters.push_back(bytes > 0 ? text.substr(at, bytes) : "?");
    at += std::max<size_t>(bytes, 1);
  }
  const auto most = static_cast<size_t>(std::max(columns, 0));
  const bool is_cut = characters.size() > most;
  const size_t dots = is_cut ? std::min<size_t>(3, most) : 0;
  if (is_cut) characters.resize(most - dots);
  std::string out;
  for (const std::string& character : characters)
    out += character;
  return out + std::string(dots, '.');
}

std::vector<std::string> frame_of(const std::vector<const RunView*>& runs, const FrameSize& size) {
  std::vector<std::string> lines;
  for (const RunView* run : runs) {
    if (!lines.empty()) lines.emplace_back();
    const std::vector<std::string> block = block_of(*run, size);
    lines.insert(lines.end(), block.begin(), block.end());
  }
  const auto rows = static_cast<size_t>(std::max(size.rows, 0));
  if (rows > 0 && lines.size() > rows) {
    lines.clear();
    for (const RunView* run : runs)
      lines.push_back(line_of(*run, size));
  }
  if (rows > 0 && lines.size() > rows) {
    const size_t left_out = lines.size() - rows + 1;
    lines.resize(rows - 1);
    lines.push_back(concat("and ", left_out, " more"));
  }
  for (std::string& line : lines)
    line = cut_to(line, size.columns);
  return lines;
}

}  // namespace aifs::app
