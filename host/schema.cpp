// SPDX-License-Identifier: MIT
// `stockade schema`: the JSON Schema of a plugin's config, or of a whole config file, for editors.
#include "framework/schema.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "framework/library.hpp"
#include "framework/loader.hpp"
#include "framework/loop.hpp"
#include "host/commands.hpp"

namespace stockade {

namespace {

using Json = nlohmann::ordered_json;

std::string plugin_directory() {
  return installation_directory() + "/plugins";
}

std::vector<std::string> plugin_names() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(plugin_directory()))
    if (file.path().extension() == ".so") names.push_back(file.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

Json schema_of_plugin(Loop& loop, const std::string& plugin) {
  const bool by_path = plugin.find('/') != std::string::npos;
  const std::string file = by_path ? std::filesystem::absolute(plugin).string()
                                   : plugin_directory() + "/" + plugin + ".so";
  if (!by_path && !std::filesystem::exists(file))
    throw Error("PLUGIN_UNUSABLE",
                "there is no plugin \"" + plugin + "\"" + suggestion(plugin, plugin_names()),
                plugin);
  const PluginDefinition definition = open_plugin(loop, file);
  Json schema = definition.schema ? definition.schema() : Json::object();
  Json out = {{"$schema", kSchemaDialect}, {"title", "config of the plugin " + definition.name}};
  out.update(schema);
  return out;
}

// Each plugin's own schema applies to `config` where the entry names that plugin.
Json schema_of_file(Loop& loop) {
  Json out = {{"$schema", kSchemaDialect}, {"title", "stockade config file"}};
  out.update(schema_of<LoaderConfig>());
  Json& entry = out["$defs"]["LoaderEntry"];
  out["properties"]["$schema"] = {{"type", "string"}};
  const auto names = plugin_names();
  entry["properties"]["plugin"] = {{"anyOf", {{{"enum", names}}, {{"pattern", "^/"}}}},
                                   {"type", "string"}};
  for (const auto& name : names) {
    Json config = schema_of_plugin(loop, name);
    config["$id"] = "stockade:plugin/" + name;  // a resource of its own, for its $defs
    entry["allOf"].push_back(
        {{"if", {{"properties", {{"plugin", {{"const", name}}}}}, {"required", {"plugin"}}}},
         {"then", {{"properties", {{"config", std::move(config)}}}}}});
  }
  return out;
}

}  // namespace

int print_schema(const std::string& plugin) {
  try {
    Loop loop;
    std::cout << (plugin.empty() ? schema_of_file(loop) : schema_of_plugin(loop, plugin)).dump(2)
              << std::endl;
    return 0;
  } catch (...) {
    return report_failure(std::current_exception());
  }
}

}  // namespace stockade
