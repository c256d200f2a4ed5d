// SPDX-License-Identifier: Apache-2.0
// Weights trained by the reference, and its forecast with them: the same weights, the same graph
// and the same fields must give the same forecast. The set-up is that of configs/speedy.json.
#include <ATen/ATen.h>

#include <algorithm>

#include "app/conformance/cases.h"
#include "app/conformance/dataset_stores.h"
#include "app/conformance/model_setup.h"
#include "app/conformance/tensors.h"
#include "app/graph_tensors.h"
#include "core/time.h"
#include "data/anemoi_dataset.h"
#include "data/data_loader.h"
#include "train/rollout.h"

namespace aifs::conformance {

namespace {

constexpr int64_t kTimestep_s = 6 * 3600;
constexpr const char* kDiagnostic = "tp";
constexpr const char* kScaledByMaximum = "z";

// The store beside the case, in a folder "datasets" of one of the folders above, or in a tar
// archive there.
class TrainedStore {
 public:
  TrainedStore(const fs::path& json_path, const std::string& store) {
    fs::path folder = json_path.parent_path();
    for (int level = 0; level < 4; ++level, folder = folder.parent_path()) {
      for (const fs::path& place : {folder, folder / "datasets"}) {
        const fs::path archive = (place / fs::path(store).stem()).string() + ".tar";
        if (fs::is_directory(place / store)) {
          path_ = place / store;
        } else if (fs::exists(archive)) {
          unpacked_.emplace();
          unpack_tar(archive, unpacked_->path());
          path_ = unpacked_->path() / store;
        } else {
          continue;
        }
        return;
      }
    }
    throw DataError(concat("the store '", store, "' was not found"),
                    "it is looked for beside the case and in datasets/ of the folders above");
  }
  std::string path() const { return path_.string(); }

 private:
  std::optional<TemporaryFolder> unpacked_;
  fs::path path_;
};

model::NetworkPlan trained_plan(const Json& json, const data::VariableTable& variables) {
  const Json& o = json.at("options");
  const auto family = json.at("model").get<std::string>();
  model::ModelOptions options;
  options.channels = o.at("channels").get<int64_t>();
  options.layers = o.at("layers").get<int64_t>();
  for (model::BlockOptions* block : std::initializer_list<model::BlockOptions*>{
           &options.encoder, &options.processor, &options.decoder}) {
    if (family == "graphtransformer") {
      block->kind = model::BlockKind::kGraphTransformer;
      block->heads = o.at("heads").get<int64_t>();
    } else if (family != "gnn") {
      throw NotSupported("model " + family);
    }
  }
  options.bounding = {{.kind = model::BoundingKind::kRelu, .variables = {kDiagnostic}}};
  model::FieldLayout layout;
  layout.num_inputs = variables.num_inputs();
  layout.input_names = variables.input_names();
  layout.input_prognostic = variables.input_prognostic();
  layout.output_prognostic = variables.output_prognostic();
  layout.outputs.names = variables.output_names();
  return model::NetworkPlan::single(options, layout);
}

data::VariableTable trained_variables(const Json& json, const std::vector<std::string>& names) {
  const auto outputs = json.at("output_variables").get<std::vector<std::string>>();
  data::RoleOptions roles;
  roles.diagnostic = {kDiagnostic};
  for (const std::string& name : names) {
    if (std::find(outputs.begin(), outputs.end(), name) == outputs.end())
      roles.forcing.push_back(name);
  }
  return data::VariableTable(names, roles);
}

data::NormaliserOptions trained_normaliser(const data::VariableTable& variables) {
  data::NormaliserOptions options;
  options.std = {kDiagnostic};
  options.max = {kScaledByMaximum};
  for (const int64_t column : variables.forcing_columns()) {
    const std::string& name = variables.names()[static_cast<size_t>(column)];
    if (name != kScaledByMaximum) options.none.push_back(name);
  }
  return options;
}

// Limit of a lead time, in standard deviations.
double limit_at(int64_t lead_s) {
  const int64_t hours = lead_s / 3600;
  return hours <= 6 ? 1e-4 : hours <= 24 ? 3e-4 : 1e-3;
}

void check_forecast(const CaseFile& file, at::ScalarType dtype, Comparison& comparison) {
  const SafetensorsFile tensors = file.tensors();
  const TrainedStore store(file.json_path, file.json.at("store").get<std::string>());
  data::DatasetOptions dataset_options;
  dataset_options.dataset = store.path();
  const auto dataset = std::make_shared<data::AnemoiDataset>(dataset_options);
  const data::DatasetInfo& info = dataset->info();
  const data::VariableTable variables = trained_variables(file.json, info.variables);
  data::Statistics statistics = info.statistics;
  const data::Imputer imputer(info.variables, statistics, {});
  const data::Normaliser normaliser =
      data::Normaliser::create(info.variables, statistics, trained_normaliser(variables));

  std::vector<int64_t> leads_s;
  for (const auto& [name, entry] : tensors.entries()) {
    if (name.starts_with("forecast/")) leads_s.push_back(parse_duration(name.substr(9)));
  }
  const int64_t steps = *std::max_element(leads_s.begin(), leads_s.end()) / kTimestep_s;
  const CaseModel model(trained_plan(file.json, variables), app::read_graph_tensors(tensors),
                        {"edge_length", "edge_dirs"}, tensors, dtype);
  const train::Window window;
  data::LoaderOptions loading;
  loading.nodes = {0, info.num_nodes()};
  const data::Batch batch =
      data::read_batch({dataset, normaliser, imputer}, loading,
                       {{file.json.at("newest_input_row").get<int64_t>()}, window.offsets(steps)});

  const at::NoGradGuard no_grad;
  const train::Forecaster forecaster(*model.network, variables, window, at::kCPU);
  const auto columns = at::tensor(variables.output_columns(), at::kLong);
  const auto table = [&](const std::vector<float>& values) {
    return at::tensor(at::ArrayRef<float>(values), at::kFloat)
        .to(at::kDouble)
        .index_select(0, columns);
  };
  const at::Tensor mul = table(normaliser.mul), add = table(normaliser.add);
  const at::Tensor stdev =
      at::tensor(at::ArrayRef<double>(statistics.stdev), at::kDouble).index_select(0, columns);
  forecaster.run(batch.values.to(dtype), steps, [&](const train::ForecastStep& step) {
    const int64_t lead_s = (step.step + 1) * kTimestep_s;
    for (const std::string& name : {concat(lead_s / 3600, "h"), concat(lead_s / 86400, "d")}) {
      if (!tensors.contains("forecast/" + name)) continue;
      const at::Tensor y = step.prediction[0][0][0].to(at::kDouble);
      const at::Tensor physical = ((y - add) / mul).to(at::kFloat).to(at::kDouble);
      const at::Tensor stored = read_tensor(tensors, "forecast/" + name, at::kDouble);
      comparison.add(concat("forecast/", name, " in deviations"),
                     ((physical - stored).abs() / stdev).max().item<double>(), limit_at(lead_s));
    }
  });
}

}  // namespace

void run_trained_case(const CaseFile& file, Report& report) {
  report.run("trained model", file.name,
             [&](Comparison& comparison) { check_forecast(file, at::kFloat, comparison); });
}

}  // namespace aifs::conformance
