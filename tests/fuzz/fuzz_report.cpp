// SPDX-License-Identifier: Apache-2.0
// What a report reads: metrics, scores, a log, goodput and a validation, each of the whole text.
#include <nlohmann/json.hpp>

#include "report/report_page.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

using namespace aifs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view input = fuzz::view_of(bytes, size);
  const fuzz::MemoryFile file(bytes, size);
  report::ReportInput page;
  page.runs.emplace_back();
  report::RunFolder& run = page.runs.front();
  run.name = fuzz::text_of(bytes, size);
  run.log = report::summarise_log(input);
  fuzz::run(input, [&] { run.metrics = report::read_metrics(file.path(), 5); });
  fuzz::run(input, [&] { page.scores.push_back(report::read_scores(file.path())); });
  run.goodput = report::read_goodput(file.path());
  if (run.goodput) static_cast<void>(run.goodput->text());
  auto json = nlohmann::ordered_json::parse(input, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) run.validations.push_back(std::move(json));
  static_cast<void>(report::report_page(page));
  return 0;
}
