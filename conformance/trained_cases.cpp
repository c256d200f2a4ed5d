// SPDX-License-Identifier: Apache-2.0
// Weights trained by the reference, and its forecast with them: the same weights, the same graph
// and the same fields must give the same forecast. What a case does not say of roles, normaliser
// and boundings is that of configs/speedy.json.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>

#include "anemoi/part_sections.h"
#include "app/run/graph_tensors.h"
#include "conformance/anemoi_form.h"
#include "conformance/anemoi_model.h"
#include "conformance/cases.h"
#include "conformance/dataset_stores.h"
#include "conformance/model_setup.h"
#include "conformance/tensors.h"
#include "core/temporary_folder.h"
#include "core/time.h"
#include "data/loader/data_loader.h"
#include "data/sources/anemoi_dataset.h"
#include "train/rollout.h"

namespace aifs::conformance {

namespace {

constexpr const char* kScaledByMaximum = "z";
// Accumulated fields, which tell nothing of the state that they end in.
const std::vector<std::string>& usual_diagnostics() {
  static const std::vector<std::string> kNames{"tp", "cp"};
  return kNames;
}

// A store beside the case, in a folder "datasets" of one of the folders above or of $AIFS_SHARED,
// or in a tar archive there.
class TrainedStore {
 public:
  TrainedStore(const fs::path& json_path, const std::string& store) {
    std::vector<fs::path> places;
    fs::path folder = json_path.parent_path();
    for (int level = 0; level < 4; ++level, folder = folder.parent_path()) {
      places.push_back(folder);
      places.push_back(folder / "datasets");
    }
    if (const char* shared = std::getenv("AIFS_SHARED"))
      places.push_back(fs::path(shared) / "datasets");
    for (const fs::path& place : places) {
      if (is_in(place, store)) return;
    }
    throw DataError(concat("the store '", store, "' was not found"),
                    "it is looked for beside the case and in datasets/ of the folders above");
  }
  std::string path() const { return path_.string(); }

 private:
  bool is_in(const fs::path& place, const std::string& store) {
    if (fs::is_directory(place / store)) {
      path_ = place / store;
      return true;
    }
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(place, ignored)) {
      if (entry.path().extension() != ".tar" || !tar_holds(entry.path(), store)) continue;
      unpacked_.emplace();
      unpack_tar(entry.path(), unpacked_->path());
      path_ = unpacked_->path() / store;
      return true;
    }
    return false;
  }

  std::optional<TemporaryFolder> unpacked_;
  fs::path path_;
};

std::vector<std::string> diagnostics(const data::VariableTable& variables) {
  std::vector<std::string> names;
  for (int64_t column = 0; column < variables.num_variables(); ++column) {
    if (variables.role(column) == data::Role::kDiagnostic)
      names.push_back(variables.names()[static_cast<size_t>(column)]);
  }
  return names;
}

// The network's section of a configuration.
NetworkConfig trained_config(const Json& json, const data::VariableTable& variables) {
  const Json& o = json.at("options");
  const auto family = json.at("model").get<std::string>();
  if (family != "gnn" && family != "graphtransformer") throw NotSupported("model " + family);
  Json model{{"channels", o.at("channels")}, {"layers", o.at("layers")}};
  for (const char* part : {"encoder", "processor", "decoder"}) {
    model[part] = family == "gnn" ? Json{{"kind", "gnn"}}
                                  : Json{{"kind", "graph_transformer"}, {"heads", o.at("heads")}};
  }
  if (json.contains("bounding_in_order")) {
    const anemoi::Imported limits =
        anemoi::import_bounding_section(anemoi_boundings(json["bounding_in_order"]));
    model["bounding"] = section_of(limits, "model").at("bounding");
  } else {
    model["bounding"] =
        Json::array({Json{{"kind", "relu"}, {"variables", diagnostics(variables)}}});
  }
  return NetworkConfig::read({{"model", model}});
}

// The variables that the store calls accumulated, else the usual ones.
std::vector<std::string> accumulated(const std::vector<std::string>& names,
                                     const Json& variables_metadata) {
  std::vector<std::string> found, usual;
  for (const std::string& name : names) {
    const auto entry = variables_metadata.find(name);
    if (entry != variables_metadata.end() && entry->value("process", "") == "accumulation")
      found.push_back(name);
    const auto& known = usual_diagnostics();
    if (std::find(known.begin(), known.end(), name) != known.end()) usual.push_back(name);
  }
  return found.empty() ? usual : found;
}

data::VariableTable trained_variables(const Json& json, const data::AnemoiDataset& dataset) {
  const std::vector<std::string>& names = dataset.info().variables;
  const auto outputs = json.at("output_variables").get<std::vector<std::string>>();
  const Json given = json.value("variables", Json::object());
  data::RoleOptions roles;
  roles.diagnostic =
      given.contains("diagnostic")
          ? given["diagnostic"].get<std::vector<std::string>>()
          : accumulated(outputs, dataset.attributes().value("variables_metadata", Json::object()));
  for (const std::string& name : names) {
    if (std::find(outputs.begin(), outputs.end(), name) == outputs.end())
      roles.forcing.push_back(name);
  }
  return data::VariableTable(names, roles);
}

data::NormaliserOptions trained_normaliser(const Json& json, const data::VariableTable& variables) {
  data::NormaliserOptions options;
  if (json.contains("normalizer")) {
    config::read(options, json["normalizer"], "normalizer", {});
    return options;
  }
  options.std = diagnostics(variables);
  for (const int64_t column : variables.forcing_columns()) {
    const std::string& name = variables.names()[static_cast<size_t>(column)];
    (name == kScaledByMaximum ? options.max : options.none).push_back(name);
  }
  return options;
}

// Values of variables `from`, in the order of `to`.
std::vector<double> reordered(const std::vector<double>& values,
                              const std::vector<std::string>& from,
                              const std::vector<std::string>& to) {
  std::vector<double> result;
  for (const std::string& name : to) {
    const auto found = std::find(from.begin(), from.end(), name);
    if (found == from.end())
      throw DataError(concat("there are no statistics of variable '", name, "'"));
    result.push_back(values.at(static_cast<size_t>(found - from.begin())));
  }
  return result;
}

data::Statistics reordered(const data::Statistics& statistics, const std::vector<std::string>& from,
                           const std::vector<std::string>& to) {
  return {reordered(statistics.mean, from, to), reordered(statistics.stdev, from, to),
          reordered(statistics.minimum, from, to), reordered(statistics.maximum, from, to)};
}

struct Tables {
  data::Normaliser normaliser;
  std::vector<double> stdev;  // the unit of errors
};

// The tables that the weights were trained with: of the store that the case names, else those that
// the case holds, else of its own dataset.
Tables tables_of(const CaseFile& file, const SafetensorsFile& tensors,
                 const data::DatasetInfo& info, const data::VariableTable& variables) {
  const std::vector<std::string>& names = info.variables;
  const Json listed = file.json.value("variables", Json::object());
  const auto case_names = listed.value("dataset_variables", names);
  data::Statistics statistics = info.statistics;
  if (file.json.contains("statistics_store")) {
    const TrainedStore store(file.json_path, file.json["statistics_store"].get<std::string>());
    const data::AnemoiDataset other(data::DatasetOptions{.dataset = store.path()});
    statistics = reordered(other.info().statistics, other.info().variables, names);
  } else if (tensors.contains("normalizer/mul") && tensors.contains("normalizer/add")) {
    Tables tables{{}, statistics.stdev};
    for (const double x : reordered(tensors.doubles("normalizer/mul"), case_names, names))
      tables.normaliser.mul.push_back(static_cast<float>(x));
    for (const double x : reordered(tensors.doubles("normalizer/add"), case_names, names))
      tables.normaliser.add.push_back(static_cast<float>(x));
    return tables;
  } else if (tensors.contains("statistics/mean")) {
    statistics = reordered(statistics_of(tensors, "statistics/"), case_names, names);
  }
  Tables tables;
  tables.normaliser =
      data::Normaliser::create(names, statistics, trained_normaliser(file.json, variables));
  tables.stdev = statistics.stdev;
  return tables;
}

// Limit of a lead time, in standard deviations: what the case says of this lead time ("1e-4 ... at
// 6 h"), else that of the reference data.
double limit_at(const Json& json, int64_t lead_s) {
  constexpr int64_t kHour_s = 3600;
  const int64_t hours = lead_s / kHour_s;
  const double usual = hours <= 6 ? 1e-4 : hours <= 24 ? 3e-4 : 1e-3;
  const auto text = json.value("limit", std::string());
  static const std::regex kPart("(\\d+(?:\\.\\d+)?(?:e-?\\d+)?)[^,;]*? at (\\d+) ?h");
  const std::sregex_iterator end;
  for (std::sregex_iterator it(text.begin(), text.end(), kPart); it != end; ++it) {
    if (std::stoll((*it)[2]) == hours) return std::stod((*it)[1]);
  }
  return usual;
}

// The forecasts that a case stores, by lead time in seconds.
std::map<int64_t, std::string> stored_forecasts(const SafetensorsFile& tensors) {
  const std::string prefix = "forecast/";
  std::map<int64_t, std::string> names;
  for (const auto& [name, entry] : tensors.entries()) {
    if (name.starts_with(prefix)) names[parse_duration(name.substr(prefix.size()))] = name;
  }
  if (names.empty()) throw DataError("the case holds no forecast");
  return names;
}

void check_forecast(const CaseFile& file, at::ScalarType dtype, Comparison& comparison) {
  const SafetensorsFile tensors = file.tensors();
  const TrainedStore store(file.json_path, file.json.at("store").get<std::string>());
  const auto dataset =
      std::make_shared<data::AnemoiDataset>(data::DatasetOptions{.dataset = store.path()});
  const data::DatasetInfo& info = dataset->info();
  const data::VariableTable variables = trained_variables(file.json, *dataset);
  const Tables tables = tables_of(file, tensors, info, variables);
  data::Statistics statistics = info.statistics;
  const data::Imputer imputer(info.variables, statistics, {});

  const std::map<int64_t, std::string> forecasts = stored_forecasts(tensors);
  const int64_t timestep_s =
      parse_duration(file.json.value("timestep", format_duration(info.frequency_s)));
  const train::Window window{.row_step = timestep_s / info.frequency_s};
  const int64_t steps = forecasts.rbegin()->first / timestep_s;
  const NetworkConfig network = trained_config(file.json, variables);
  const CaseModel model(network, {data_parts({"data", "", variables}, {}, network.data)},
                        app::read_graph_tensors(tensors), tensors, dtype);
  data::LoaderOptions loading;
  loading.nodes = {0, info.num_nodes()};
  const data::Batch batch =
      data::read_batch({dataset, tables.normaliser, imputer}, loading,
                       {{file.json.at("newest_input_row").get<int64_t>()}, window.offsets(steps)});

  const at::NoGradGuard no_grad;
  const train::Forecaster forecaster(*model.network, variables, window, at::kCPU);
  const auto columns = at::tensor(variables.output_columns(), at::kLong);
  const auto table = [&]<class T>(const std::vector<T>& values) {
    return at::tensor(at::ArrayRef<T>(values)).to(at::kDouble).index_select(0, columns);
  };
  const at::Tensor mul = table(tables.normaliser.mul), add = table(tables.normaliser.add);
  const at::Tensor stdev = table(tables.stdev);
  forecaster.run(batch.values.to(dtype), steps, [&](const train::ForecastStep& step) {
    const int64_t lead_s = (step.step + 1) * timestep_s;
    const auto found = forecasts.find(lead_s);
    if (found == forecasts.end()) return;
    const at::Tensor y = step.prediction[0][0][0].to(at::kDouble);
    const at::Tensor physical = ((y - add) / mul).to(at::kFloat).to(at::kDouble);
    const at::Tensor stored = read_tensor(tensors, found->second, at::kDouble);
    comparison.add(concat(found->second, " in deviations"),
                   ((physical - stored).abs() / stdev).max().item<double>(),
                   limit_at(file.json, lead_s));
  });
}

}  // namespace

void run_trained_case(const CaseFile& file, Report& report) {
  report.run("trained model", file.name,
             [&](Comparison& comparison) { check_forecast(file, at::kFloat, comparison); });
}

}  // namespace aifs::conformance
