// SPDX-License-Identifier: Apache-2.0
#include "anemoi/graph_section.h"

#include <algorithm>
#include <functional>
#include <map>

#include "core/check.h"

namespace aifs::anemoi {

namespace {

// Puts options that are there under our names, in this order.
class Options {
 public:
  Options(const Place& from, const char* kind) : from_(from), json_{{"kind", kind}} {
    from["_target_"].mark();
  }

  Options& number(const char* theirs, const char* ours) {
    if (const Place place = from_[theirs]) json_[ours] = place.number();
    return *this;
  }
  Options& integer(const char* theirs, const char* ours) {
    if (const Place place = from_[theirs]) json_[ours] = integer_at(place);
    return *this;
  }
  Options& text(const char* theirs, const char* ours) {
    if (const Place place = from_[theirs]) json_[ours] = place.text();
    return *this;
  }
  Options& norm(const char* otherwise) {
    const Place norm = from_["norm"];
    json_["norm"] = norm ? norm.text() : std::string(norm.is_given() ? "none" : otherwise);
    return *this;
  }
  Options& masks() {
    return text("source_mask_attr_name", "source_mask")
        .text("target_mask_attr_name", "target_mask");
  }
  Options& area() {
    return text("reference_node_name", "reference")
        .text("mask_attr_name", "mask")
        .number("margin_radius_km", "margin_km");
  }
  Options& set(const char* ours, Json value) {
    json_[ours] = std::move(value);
    return *this;
  }
  Json json() const { return json_; }

  // Anemoi refuses 3.0 where it wants an integer.
  static int64_t integer_at(const Place& place) {
    if (place.is_float())
      throw ConfigError(place.path(), concat("must be an integer, and is ", place.number()));
    return place.integer();
  }

 private:
  const Place& from_;
  Json json_;
};

using Translator = std::function<Json(const Place&)>;

int64_t finest(const Place& resolution) {
  int64_t finest = 0;
  if (!resolution.is_list()) return Options::integer_at(resolution);
  for (const int64_t level : levels_of(resolution))
    finest = std::max(finest, level);
  return finest;
}

Json lat_lon_kind(const Place& p) {
  const auto flat = [](const Place& list) {
    std::vector<double> values;
    for (const Place& element : list.elements()) {
      if (!element.is_list()) {
        values.push_back(element.number());
        continue;
      }
      const std::vector<Place> inner = element.elements();
      if (inner.empty())
        throw ConfigError(element.path(), "is an empty list", "name a number of degrees");
      values.push_back(inner.front().number());
    }
    return values;
  };
  return Options(p, "latlon")
      .set("latitudes", flat(p["latitudes"]))
      .set("longitudes", flat(p["longitudes"]))
      .set("coordinates", "float32")  // what Python lists become
      .json();
}

Json npz_kind(const Place& p, const char* kind) {
  Options options(p, kind);
  options.text("npz_file", "file").text("lat_key", "latitudes").text("lon_key", "longitudes");
  if (const Place folder = p["grid_definition_path"])
    folder.not_honoured("is an option of older releases; npz_file names the file");
  return options.json();
}

Json icon_kind(const Place& p, const char* kind) {
  return Options(p, kind).text("grid_filename", "file").integer("max_level", "max_level").json();
}

// Nodes of coordinates that are listed, or in a file.
const std::map<std::string, Translator>& listed_node_table() {
  static const std::map<std::string, Translator> table{
      {"LatLonNodes", lat_lon_kind},
      {"NPZFileNodes", [](const Place& p) { return npz_kind(p, "npz"); }},
      {"LimitedAreaNPZFileNodes",
       [](const Place& p) {
         Json json = npz_kind(p, "limited_area_npz");
         json.update(Options(p, "limited_area_npz").area().json());
         return json;
       }},
      {"TextNodes",
       [](const Place& p) {
         return Options(p, "text")
             .text("dataset", "file")
             .integer("idx_lat", "latitude_line")
             .integer("idx_lon", "longitude_line")
             .json();
       }},
      {"XArrayNodes",
       [](const Place& p) {
         return Options(p, "netcdf")
             .text("dataset", "file")
             .text("lat_key", "latitudes")
             .text("lon_key", "longitudes")
             .json();
       }},
      {"ICONMultiMeshNodes", [](const Place& p) { return icon_kind(p, "icon_vertices"); }},
      {"ICONCellGridNodes", [](const Place& p) { return icon_kind(p, "icon_cells"); }}};
  return table;
}

const std::map<std::string, Translator>& node_table() {
  static const std::map<std::string, Translator> table{
      {"AnemoiDatasetNodes",
       [](const Place& p) {
         p["dataset"].no_effect("nodes are the cells of the training's dataset of this name");
         return Options(p, "dataset").json();
       }},
      {"ReducedGaussianGridNodes",
       [](const Place& p) {
         const std::string grid = p["grid"].text();
         if (!grid.empty() && (grid[0] == 'f' || grid[0] == 'F'))
           throw ConfigError(p["grid"].path(), concat("'", grid, "' is no reduced grid"));
         return Options(p, "gaussian").text("grid", "grid").json();
       }},
      {"TriNodes",
       [](const Place& p) {
         return Options(p, "tri").set("refinement", finest(p["resolution"])).json();
       }},
      {"LimitedAreaTriNodes",
       [](const Place& p) {
         return Options(p, "limited_area_tri")
             .set("refinement", finest(p["resolution"]))
             .area()
             .json();
       }},
      {"StretchedTriNodes",
       [](const Place& p) {
         return Options(p, "stretched_tri")
             .integer("global_resolution", "global_refinement")
             .integer("lam_resolution", "local_refinement")
             .area()
             .json();
       }},
      {"HEALPixNodes",
       [](const Place& p) {
         return Options(p, "healpix").integer("resolution", "resolution").json();
       }},
      {"LimitedAreaHEALPixNodes", [](const Place& p) {
         return Options(p, "limited_area_healpix")
             .integer("resolution", "resolution")
             .area()
             .json();
       }}};
  return table;
}

Json cut_off(const Place& p, const char* kind) {
  const Place factor = p["cutoff_factor"], distance = p["cutoff_distance_km"];
  if (factor.is_there() == distance.is_there())
    throw ConfigError(p.path(), "needs one of cutoff_factor and cutoff_distance_km");
  Options options(p, kind);
  options.number("cutoff_factor", "cutoff_factor")
      .number("cutoff_distance_km", "cutoff_distance_km");
  const Place most = p["max_num_neighbours"];
  const int64_t limit = most ? Options::integer_at(most) : 64;
  if (limit < 1) throw ConfigError(most.path(), "must be positive");  // 0 has a meaning here
  return options.set("max_neighbours", limit).masks().json();
}

Json nearest(const Place& p, const char* kind) {
  return Options(p, kind).integer("num_nearest_neighbours", "num_neighbours").masks().json();
}

void drop_masks(const Place& p) {
  for (const char* key : {"source_mask_attr_name", "target_mask_attr_name"})
    p[key].no_effect("is dropped by these edges there, too");
}

// Levels that a scale_resolutions names; empty where it names none.
std::vector<int64_t> levels_at(const Place& scales, int64_t lowest) {
  std::vector<int64_t> levels;
  if (scales.is_list()) {
    for (const Place& level : scales.elements())
      levels.push_back(level.integer());
  } else if (scales) {
    const int64_t last = std::min<int64_t>(Options::integer_at(scales), 30);
    for (int64_t level = 1; level <= last; ++level)
      levels.push_back(level);
  } else {
    return {};
  }
  for (const int64_t level : levels) {
    if (level < lowest)
      throw ConfigError(scales.path(), concat("names level ", level, " below ", lowest));
  }
  if (levels.empty()) throw ConfigError(scales.path(), "names no level");
  return levels;
}

Json multi_scale(const Place& p, const std::vector<int64_t>& of_nodes) {
  Options options(p, "multi_scale");
  const Place hops = p["x_hops"], scales = p["scale_resolutions"];
  options.set("x_hops", hops ? Options::integer_at(hops) : 1);
  if (scales) {
    options.set("levels", levels_at(scales, 0));
  } else if (of_nodes.empty()) {
    options.set("include_level_0", true);
  } else {
    options.set("levels", of_nodes);
  }
  p["depth"].no_effect("counts for hexagons only");
  drop_masks(p);
  return options.json();
}

Json healpix_edges(const Place& p) {
  Options options(p, "healpix_multi_scale");
  std::vector<int64_t> levels = levels_at(p["scale_resolutions"], 1);
  std::sort(levels.begin(), levels.end());
  if (!levels.empty()) options.set("levels", levels);
  drop_masks(p);
  return options.json();
}

Json icon_edges(const Place& p, const char* kind) {
  p["icon_mesh"].no_effect("the mesh is that of the nodes");
  drop_masks(p);
  return Options(p, kind).json();
}

const std::map<std::string, Translator>& weight_table() {
  static const std::map<std::string, Translator> table{
      {"SphericalAreaWeights",
       [](const Place& p) {
         p["fill_value"].expect(0, "every cell has an area");
         p["radius"].expect(1, "is 1 here");
         p["centre"].no_effect("is the centre of the sphere");
         return Options(p, "spherical").norm("none").json();
       }},
      {"UniformWeights", [](const Place& p) { return Options(p, "uniform").norm("none").json(); }},
      {"CosineLatWeightedAttribute",
       [](const Place& p) {
         return Options(p, "cosine_latitude")
             .number("min_value", "min_value")
             .number("max_value", "max_value")
             .norm("none")
             .json();
       }},
      {"IsolatitudeAreaWeights",
       [](const Place& p) { return Options(p, "isolatitude").norm("none").json(); }},
      {"PlanarAreaWeights",
       [](const Place& p) { return Options(p, "planar").norm("none").json(); }},
      {"MaskedPlanarAreaWeights",
       [](const Place& p) {
         return Options(p, "masked_planar").text("mask_node_attr_name", "mask").norm("none").json();
       }},
      {"AnemoiDatasetVariableWeights",
       [](const Place& p) {
         if (p["norm"] && p["norm"].text() == "log1p")
           p["norm"].not_honoured("Anemoi takes the logarithm twice here; it is taken once");
         return Options(p, "variable").text("variable", "variable").norm("none").json();
       }},
      {"NonmissingAnemoiDatasetVariable",
       [](const Place& p) { return Options(p, "nonmissing").text("variable", "variable").json(); }},
      {"NonzeroAnemoiDatasetVariable",
       [](const Place& p) { return Options(p, "nonzero").text("variable", "variable").json(); }},
      {"CutOutMask", [](const Place& p) { return Options(p, "cutout_mask").json(); }},
      {"GridsMask",
       [](const Place& p) {
         const Place grids = p["grids"];
         std::vector<int64_t> numbers{grids.is_list() ? 0 : grids.integer(0)};
         if (grids.is_list()) {
           numbers.clear();
           for (const Place& grid : grids.elements())
             numbers.push_back(grid.integer());
         }
         return Options(p, "grids_mask").set("grids", numbers).json();
       }},
      {"LimitedAreaMask", [](const Place& p) { return Options(p, "area_mask").json(); }}};
  return table;
}

const std::map<std::string, Translator>& edge_attribute_table() {
  static const std::map<std::string, Translator> table{
      {"EdgeLength", [](const Place& p) { return Options(p, "length").norm("none").json(); }},
      {"EdgeDirection", [](const Place& p) { return Options(p, "direction").norm("none").json(); }},
      {"Azimuth", [](const Place& p) { return Options(p, "azimuth").norm("none").json(); }},
      {"DirectionalHarmonics",
       [](const Place& p) {
         return Options(p, "directional_harmonics").integer("order", "order").norm("none").json();
       }},
      {"RadialBasisFeatures",
       [](const Place& p) {
         Options options(p, "radial_basis");
         options.number("r_scale", "scale");
         if (p["centers"]) options.set("centers", p["centers"].numbers());
         return options.number("sigma", "sigma").number("epsilon", "epsilon").norm("l1").json();
       }},
      {"GaussianDistanceWeights",
       [](const Place& p) {
         return Options(p, "gaussian_weight").number("sigma", "sigma").norm("l1").json();
       }},
      {"AttributeFromSourceNode",
       [](const Place& p) {
         return Options(p, "of_source").text("node_attr_name", "node_attribute").json();
       }},
      {"AttributeFromTargetNode", [](const Place& p) {
         return Options(p, "of_target").text("node_attr_name", "node_attribute").json();
       }}};
  return table;
}

Json translated(const std::map<std::string, Translator>& table, const Place& place,
                const char* what) {
  const auto found = table.find(place.class_name());
  if (found != table.end()) return found->second(place);
  place.not_honoured(concat("there are no ", what, " of class ", place.class_name(), " here"));
  return nullptr;
}

// A mask of other masks, by name or by definition.
std::vector<std::pair<std::string, Json>> combined_mask(const std::string& name, const Place& mask,
                                                        const char* kind) {
  std::vector<std::pair<std::string, Json>> all;
  std::vector<std::string> names;
  const Place operands = mask["masks"];
  const std::vector<Place> list = operands.is_list() ? operands.elements() : std::vector{operands};
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_text()) {
      names.push_back(list[i].text());
      continue;
    }
    names.push_back(concat("_", name, "_", i));
    const auto parts = node_attribute_kinds(names.back(), list[i]);
    if (parts.empty()) return {};
    all.insert(all.end(), parts.begin(), parts.end());
  }
  all.emplace_back(name, Options(mask, kind).set("masks", names).json());
  return all;
}

}  // namespace

std::vector<int64_t> levels_of(const Place& list) {
  constexpr int64_t kFinest = 99;
  std::vector<int64_t> levels;
  for (const Place& element : list.elements()) {
    levels.push_back(element.integer());
    if (levels.back() >= 0 && levels.back() <= kFinest) continue;
    throw ConfigError(element.path(), concat("is level ", levels.back()),
                      concat("levels are 0 to ", kFinest));
  }
  return levels;
}

Json node_kind(const Place& builder) {
  const std::string type = builder.class_name();
  if (type == "ZarrDatasetNodes") return node_table().at("AnemoiDatasetNodes")(builder);
  if (const auto found = listed_node_table().find(type); found != listed_node_table().end())
    return found->second(builder);
  return translated(node_table(), builder, "nodes");
}

Json edge_kind(const Place& builder, const std::vector<int64_t>& levels) {
  const std::string name = builder.class_name();
  if (name == "CutOffEdges") return cut_off(builder, "cutoff");
  if (name == "ReversedCutOffEdges") return cut_off(builder, "reversed_cutoff");
  if (name == "KNNEdges") return nearest(builder, "knn");
  if (name == "ReversedKNNEdges") return nearest(builder, "reversed_knn");
  if (name == "MutualKNNEdges") {
    Json json = nearest(builder, "mutual_knn");
    if (const Place reversed = builder["reversed_num_nearest_neighbours"])
      json["reversed_num_neighbours"] = Options::integer_at(reversed);
    return json;
  }
  if (name == "MultiScaleEdges") return multi_scale(builder, levels);
  if (name == "HEALPixMultiScaleEdges") return healpix_edges(builder);
  if (name == "ICONTopologicalProcessorEdges") return icon_edges(builder, "icon_mesh");
  if (name == "ICONTopologicalEncoderEdges" || name == "ICONTopologicalDecoderEdges")
    return icon_edges(builder, "icon_cells");
  builder.not_honoured(concat("there are no edges of class ", name, " here"));
  return nullptr;
}

Json edge_attribute_kind(const Place& attribute) {
  attribute["dtype"].no_effect("attributes are float32");
  return translated(edge_attribute_table(), attribute, "edge attributes");
}

std::vector<std::pair<std::string, Json>> node_attribute_kinds(const std::string& name,
                                                               const Place& attribute) {
  const std::string type = attribute.class_name();
  attribute["dtype"].no_effect("attributes are float32");
  if (type == "BooleanNot") return combined_mask(name, attribute, "not");
  if (type == "BooleanAndMask") return combined_mask(name, attribute, "and");
  if (type == "BooleanOrMask") return combined_mask(name, attribute, "or");
  if (type == "AreaWeights") return {{name, weight_table().at("SphericalAreaWeights")(attribute)}};
  Json json = translated(weight_table(), attribute, "node attributes");
  if (json.is_null()) return {};
  return {{name, std::move(json)}};
}

Json post_process_kind(const Place& p) {
  const std::string name = p.class_name();
  const auto nodes = [&] { return p["nodes_name"].texts(); };
  if (name == "RemoveUnconnectedNodes") {
    return Options(p, "remove_unconnected")
        .set("nodes", nodes())
        .text("ignore", "ignore")
        .text("save_mask_indices_to_attr", "save_as")
        .json();
  }
  if (name == "SubsetNodesInArea") {
    const std::vector<double> area = p["area"].numbers();
    if (area.size() != 4) throw ConfigError(p["area"].path(), "is not north, west, south and east");
    return Options(p, "area")
        .set("nodes", nodes())
        .set("north", area[0])
        .set("west", area[1])
        .set("south", area[2])
        .set("east", area[3])
        .json();
  }
  if (name == "RestrictEdgeLength") {
    return Options(p, "restrict_length")
        .text("source_name", "source")
        .text("target_name", "target")
        .number("max_length_km", "max_length_km")
        .masks()
        .json();
  }
  if (name == "RemoveSelfEdges") {
    if (p["source_name"].text() != p["target_name"].text())
      throw ConfigError(p.path(), "self edges join a node set with itself");
    return Options(p, "remove_self_edges").text("source_name", "nodes").json();
  }
  for (const char* by : {"source", "target"}) {
    if (name != (*by == 's' ? "SortEdgeIndexBySourceNodes" : "SortEdgeIndexByTargetNodes"))
      continue;
    return Options(p, "sort_edges")
        .set("by", by)
        .set("descending", p["descending"].boolean(true))
        .json();
  }
  p.not_honoured(concat("there is no change of class ", name, " here"));
  return nullptr;
}

Imported import_graph_part(GraphPart part, const Json& definition) {
  const Source source(Json{{"part", definition}});
  const Place place = source.root()["part"];
  Json result;
  switch (part) {
    case GraphPart::kNodes:
      result = node_kind(place);
      break;
    case GraphPart::kEdges:
      result = edge_kind(place);
      break;
    case GraphPart::kEdgeAttribute:
      result = edge_attribute_kind(place);
      break;
    case GraphPart::kPostProcess:
      result = post_process_kind(place);
      break;
    case GraphPart::kNodeAttribute:
      result = Json::array();
      for (const auto& [name, attribute] : node_attribute_kinds("part", place))
        result.push_back(Json::array({name, attribute}));
      break;
  }
  Imported imported;
  imported.target.set({}, "part", std::move(result), place);
  imported.remarks = source.remarks();
  return imported;
}

}  // namespace aifs::anemoi
