// SPDX-License-Identifier: MIT
#include "framework/loader.hpp"

#include <dirent.h>

#include <algorithm>
#include <set>

#include "framework/config.hpp"
#include "framework/error.hpp"
#include "framework/library.hpp"
#include "framework/swap.hpp"

namespace stockade {

// A row of the config that is to run, flattened.
struct Loader::Row {
  std::string id;
  std::string path;  // in the config, for messages
  std::string plugin;
  nlohmann::json config;
  std::map<std::string, std::string> labels;  // of the services that it has apart
};

struct Loader::Running {
  Row row;
  std::shared_ptr<Fiber> fiber;
};

struct Loader::Change {
  std::string source;
  std::function<void(LoaderConfig&)> edit;
  std::string target{};  // the row that is reloaded or replaced, whose old library is reported
  bool reload = false;   // although nothing in its config changed
  bool keep = true;      // tell on_change
  std::shared_ptr<const LibraryStatus> old_library{};
};

struct Loader::Outcome {
  explicit Outcome(Loop& loop) : done(loop) {}
  Completion<> done;
  std::exception_ptr error;
};

namespace {

std::vector<std::string> plugins_in(const std::string& directory) {
  std::vector<std::string> names;
  if (DIR* dir = opendir(directory.c_str())) {
    while (const dirent* entry = readdir(dir)) {
      std::string name = entry->d_name;
      if (name.size() > 3 && name.ends_with(".so"))
        names.push_back(name.substr(0, name.size() - 3));
    }
    closedir(dir);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Texts are taken here, while the code is mapped that threw, and whose type the exception may be.
std::exception_ptr failure(std::string_view stage, const std::string& id, const std::string& plugin,
                           const std::exception_ptr& cause, const std::string& hint = {}) {
  return std::make_exception_ptr(Error(code_of(cause, "PLUGIN_FAILED"),
                                       "failed to " + std::string(stage) + " loader entry " + id +
                                           " (" + plugin + "): " + describe(cause) + hint,
                                       id));
}

void throw_failures(const char* code, const char* text, std::vector<std::exception_ptr> failures) {
  if (failures.empty()) return;
  if (failures.size() == 1) std::rethrow_exception(failures.front());
  std::string all = text;
  for (const auto& error : failures) all += "\n  - " + describe(error);
  throw AggregateError(code, all, std::move(failures));
}

// The same for the same row of the same file, so that a group that is given no id keeps its own.
std::string id_from(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string id;
  for (int shift = 28; shift >= 0; shift -= 4) id += kDigits[(hash >> shift) & 15U];
  return id;
}

struct Place {
  std::vector<LoaderEntry>* rows = nullptr;
  std::size_t at = 0;
  LoaderEntry& entry() const { return (*rows)[at]; }
};

// `id`, or the way to it through its groups: `outer:inner:id`.
std::optional<Place> find_entry(std::vector<LoaderEntry>& rows, std::string_view id,
                                const std::string& prefix = {}) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string address = prefix + rows[i].id;
    if (rows[i].id == id || address == id) return Place{&rows, i};
    if (!rows[i].group) continue;
    if (auto below = find_entry(*rows[i].group, id, address + ":")) return below;
  }
  return std::nullopt;
}

Place entry_place(LoaderConfig& config, std::string_view id) {
  auto found = find_entry(config.plugins, id);
  if (!found)
    throw Error("ENTRY_UNKNOWN", "cannot resolve entry " + std::string(id), std::string(id));
  return *found;
}

std::vector<LoaderEntry>& rows_below(LoaderConfig& config, const std::string& parent) {
  if (parent.empty()) return config.plugins;
  LoaderEntry& entry = entry_place(config, parent).entry();
  if (!entry.group) throw Error("ENTRY_NO_GROUP", "entry " + parent + " is not a group", parent);
  return *entry.group;
}

nlohmann::ordered_json rows_json(const std::vector<LoaderEntry>& rows) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& row : rows) {
    nlohmann::ordered_json json;
    json["id"] = row.id;
    if (!row.group) json["plugin"] = row.plugin;
    if (row.disabled) json["disabled"] = true;
    if (row.group) json["group"] = rows_json(*row.group);
    for (const auto& realm : row.isolate)
      std::visit([&](const auto& value) { json["isolate"][realm.first] = value; }, realm.second);
    if (!row.config.is_null()) json["config"] = row.config;
    out.push_back(std::move(json));
  }
  return out;
}

Task<> next_turn(Loop& loop) {
  Completion<> turn(loop);
  loop.post([turn] { turn.settle(); });
  co_await turn;
}

// A null config is an empty one.
bool same_config(const nlohmann::json& a, const nlohmann::json& b) {
  return a == b || (a.empty() && b.empty());
}

}  // namespace

LoaderConfig read_loader_config(std::string_view text, const std::string& path) {
  auto json = parse_config(text, "failed to parse config file " + path, path);
  if (json.is_object()) json.erase("$schema");
  return read_config<LoaderConfig>(json, "failed to validate config file " + path);
}

Loader::Loader(Context context, std::string plugin_directory)
    : context_(std::move(context)),
      plugin_directory_(std::move(plugin_directory)),
      listener_(std::make_shared<detail::Listener>()),
      changes_(context_.loop(), [](std::exception_ptr) {}) {
  listener_->call = detail::erase_listener<FiberUpdated>(
      [this](const FiberUpdated& updated) { take_updated(updated.fiber); });
  listener_->owner = context_.fiber().get();
  listener_->scope = context_.scope();
  context_.fiber()->registry().listeners().add(FiberUpdated::event, listener_, false);
}

Loader::~Loader() {
  context_.fiber()->registry().listeners().remove(FiberUpdated::event, listener_);
}

void Loader::provide() {
  std::shared_ptr<Loader> self(this, [](Loader*) {});
  context_.provide<Loader>(self);
  context_.provide_as<Loader>(settled_service, self, [this] { return settled_once_; });
}

// A plugin gave its own fiber another config.
void Loader::take_updated(const Fiber& fiber) {
  for (auto& running : running_) {
    if (running.fiber.get() != &fiber) continue;
    running.row.config = fiber.config();
    entry_place(config_, running.row.id).entry().config = fiber.config();
    if (on_change_) on_change_();
  }
}

std::string Loader::file_of(const std::string& plugin) const {
  return plugin.front() == '/' ? plugin : plugin_directory_ + "/" + plugin + ".so";
}

PluginDefinition Loader::open(const Row& row) const {
  std::exception_ptr error;
  try {
    return open_plugin(context_.loop(), file_of(row.plugin));
  } catch (...) {
    error = failure("import", row.id, row.plugin, std::current_exception());
  }
  const auto known = plugins_in(plugin_directory_);
  const bool misspelt =
      row.plugin.front() != '/' && std::find(known.begin(), known.end(), row.plugin) == known.end();
  if (!misspelt) std::rethrow_exception(error);
  throw Error(code_of(error, "PLUGIN_FAILED"), describe(error) + suggestion(row.plugin, known),
              row.id);
}

std::shared_ptr<const Scope> Loader::scope_of(const Row& row) const {
  if (row.labels.empty()) return context_.scope();
  Context context = context_;
  for (const auto& [key, label] : row.labels) context = context.isolate(key, label);
  return context.scope();
}

// Those that are to run; fills in ids, and finds what is wrong before anything is opened.
std::vector<Loader::Row> Loader::rows_of(LoaderConfig& config,
                                         std::vector<ConfigIssue>& issues) const {
  struct Walk {
    std::vector<ConfigIssue>& issues;
    std::set<std::string> ids{};
    std::vector<Row> rows{};

    void list(std::vector<LoaderEntry>& entries, const std::string& path,
              const std::map<std::string, std::string>& labels, bool enabled) {
      for (std::size_t i = 0; i < entries.size(); ++i)
        row(entries[i], path + "[" + std::to_string(i) + "]", labels, enabled);
    }
    void row(LoaderEntry& entry, const std::string& path, std::map<std::string, std::string> labels,
             bool enabled) {
      if (entry.group && !entry.plugin.empty())
        issues.push_back({path + ".plugin", "a group has no plugin of its own"});
      if (!entry.group && entry.plugin.empty()) {
        issues.push_back({path + ".plugin", "expected the name of a plugin, found nothing"});
        return;
      }
      if (entry.id.empty()) entry.id = entry.group ? id_from(path) : entry.plugin;
      if (!ids.insert(entry.id).second)
        issues.push_back({path + ".id", "duplicate loader entry id: " + entry.id});
      for (const auto& [key, how] : entry.isolate) {
        const auto* label = std::get_if<std::string>(&how);
        if (label && label->empty())
          issues.push_back({path + ".isolate." + key, "expected true or a label, found \"\""});
        // A newline cannot be meant, so a row's own label is nobody else's.
        if (label)
          labels[key] = *label;
        else if (std::get<bool>(how))
          labels[key] = "\n" + entry.id;
      }
      enabled = enabled && !entry.disabled;
      if (entry.group)
        list(*entry.group, path + ".group", labels, enabled);
      else if (enabled)
        rows.push_back({entry.id, path, entry.plugin, entry.config, std::move(labels)});
    }
  } walk{issues};
  walk.list(config.plugins, "$.plugins", {}, true);
  return std::move(walk.rows);
}

Task<> Loader::transition(std::shared_ptr<Change> change) {
  LoaderConfig next = config_;
  change->edit(next);
  std::vector<ConfigIssue> issues;
  std::vector<Row> rows = rows_of(next, issues);

  // What is to be done, with every library open and every config checked.
  Swap swap(context_);
  std::vector<std::exception_ptr> failures;
  for (const auto& row : rows) {
    auto old = std::find_if(running_.begin(), running_.end(),
                            [&](const Running& running) { return running.row.id == row.id; });
    const bool runs = old != running_.end();
    const bool target = change->target == row.id;
    if (target && runs) change->old_library = old->fiber->definition().library;
    const bool other_code = !runs || old->row.plugin != row.plugin || (target && change->reload);
    const bool other_config = !runs || !same_config(old->row.config, row.config);
    if (!other_code && !other_config && old->row.labels == row.labels) continue;
    PluginDefinition definition;
    try {
      definition = other_code ? open(row) : old->fiber->definition();
    } catch (...) {
      failures.push_back(std::current_exception());
      continue;
    }
    try {
      definition.check_config(row.config);
    } catch (...) {
      issues.push_back({row.path + ".config", describe(std::current_exception())});
    }
    auto scope = scope_for(scope_of(row), definition);
    swap.place(runs ? old->fiber : nullptr, std::move(scope), std::move(definition), row.config,
               row.id);
  }
  try {
    throw_config_issues(change->source, issues);
  } catch (...) {
    failures.push_back(std::current_exception());
  }
  throw_failures("ENTRIES_FAILED", "loader entries failed to apply", std::move(failures));
  for (const auto& running : running_)
    if (std::none_of(rows.begin(), rows.end(),
                     [&](const Row& row) { return row.id == running.row.id; }))
      swap.remove(running.fiber);

  auto loading = swap.load(!change->target.empty());
  std::vector<Swap::Failure> failed = co_await loading;
  if (!failed.empty()) {
    for (const auto& [fiber, error] : failed)
      failures.push_back(
          failure("apply", std::string(fiber->name()), fiber->definition().name, error));
    failed.clear();
    auto abandoning = swap.abandon();
    co_await abandoning;
    throw_failures("ENTRIES_FAILED", "loader entries failed to apply", std::move(failures));
  }
  swap.commit();
  std::vector<Running> running;
  for (auto& row : rows) {
    auto old = std::find_if(running_.begin(), running_.end(),
                            [&](const Running& r) { return r.row.id == row.id; });
    std::shared_ptr<Fiber> fiber;
    if (old != running_.end()) fiber = swap.successor_of(old->fiber);
    if (!fiber)
      for (const auto& part : swap.parts())
        if (!part.old && part.successor->name() == row.id) fiber = part.successor;
    running.push_back({std::move(row), std::move(fiber)});
  }
  running_ = std::move(running);
  config_ = std::move(next);
  auto retiring = swap.retire();
  co_await retiring;
  // Rows that waited may load now.
  for (std::size_t i = 0; i < running_.size(); ++i) {
    if (!running_[i].fiber->busy()) continue;
    auto quiet = running_[i].fiber->quiet();
    co_await quiet;
    i = static_cast<std::size_t>(-1);  // which may wake those before it
  }
}

Task<> Loader::carry_out(std::shared_ptr<Change> change, std::shared_ptr<Outcome> outcome) {
  while (changing_) {
    Completion<> free = *changing_;
    co_await free;
  }
  changing_.emplace(context_.loop());
  try {
    auto transition_now = transition(change);
    co_await transition_now;
  } catch (...) {
    outcome->error = std::current_exception();
  }
  // The last references to the old code go, and it is unmapped on a later turn than that.
  for (int turn = 0; turn < 4 && change->old_library &&
                     change->old_library->state == LibraryStatus::State::mapped;
       ++turn) {
    auto pause = next_turn(context_.loop());
    co_await pause;
  }
  if (!outcome->error && change->keep && on_change_) on_change_();
  if (!outcome->error && !settled_once_) {
    settled_once_ = true;
    context_.notify(settled_service);
  }
  auto free = std::exchange(changing_, std::nullopt);
  free->settle();
  outcome->done.settle();
}

// The change belongs to the loader and not to who asked for it, who may be unloaded by it.
Task<SwapReport> Loader::submit(std::shared_ptr<Change> change) {
  auto outcome = std::make_shared<Outcome>(context_.loop());
  changes_.start(carry_out(change, outcome));
  Completion<> done = outcome->done;
  co_await done;
  if (outcome->error) std::rethrow_exception(outcome->error);
  SwapReport report;
  if (const auto& library = change->old_library) {
    report.unmapped = library->state == LibraryStatus::State::unmapped;
    report.library = library->explain();
  }
  co_return report;
}

namespace {

Task<> without_report(Task<SwapReport> task) {
  SwapReport report = co_await task;
}

Task<std::string> with_id(Task<SwapReport> task, std::string id) {
  SwapReport report = co_await task;
  co_return id;
}

}  // namespace

Task<> Loader::apply(LoaderConfig config, std::string source) {
  auto change = std::make_shared<Change>();
  change->source = std::move(source);
  change->keep = false;
  change->edit = [config = std::move(config)](LoaderConfig& next) { next = config; };
  return without_report(submit(std::move(change)));
}

Task<std::string> Loader::create(LoaderEntry entry, std::string parent) {
  if (entry.id.empty())
    entry.id = id_from("created " + std::to_string(context_.fiber()->registry().next_id()));
  std::string id = entry.id;
  auto change = std::make_shared<Change>();
  change->source = "the new entry " + id;
  change->edit = [entry = std::move(entry), parent = std::move(parent)](LoaderConfig& next) {
    rows_below(next, parent).push_back(entry);
  };
  return with_id(submit(std::move(change)), std::move(id));
}

Task<> Loader::update(std::string id, std::function<void(LoaderEntry&)> edit) {
  auto change = std::make_shared<Change>();
  change->source = "the entry " + id;
  change->edit = [id = std::move(id), edit = std::move(edit)](LoaderConfig& next) {
    edit(entry_place(next, id).entry());
  };
  return without_report(submit(std::move(change)));
}

Task<> Loader::remove(std::string id) {
  auto change = std::make_shared<Change>();
  change->source = "the entry " + id;
  change->edit = [id = std::move(id)](LoaderConfig& next) {
    Place place = entry_place(next, id);
    place.rows->erase(place.rows->begin() + static_cast<std::ptrdiff_t>(place.at));
  };
  return without_report(submit(std::move(change)));
}

Task<> Loader::move(std::string id, std::string parent, std::size_t position) {
  auto change = std::make_shared<Change>();
  change->source = "the entry " + id;
  change->edit = [id = std::move(id), parent = std::move(parent), position](LoaderConfig& next) {
    Place place = entry_place(next, id);
    LoaderEntry moved = place.entry();
    place.rows->erase(place.rows->begin() + static_cast<std::ptrdiff_t>(place.at));
    auto& rows = rows_below(next, parent);  // unknown where it is inside of what is moved
    rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(std::min(position, rows.size())),
                std::move(moved));
  };
  return without_report(submit(std::move(change)));
}

Task<SwapReport> Loader::reload(std::string id) {
  auto change = std::make_shared<Change>();
  change->source = "the entry " + id;
  change->reload = true;
  change->keep = false;
  change->edit = [id, target = change.get()](LoaderConfig& next) {
    target->target = entry_place(next, id).entry().id;
  };
  return submit(std::move(change));
}

Task<SwapReport> Loader::replace(std::string id, std::string plugin,
                                 std::optional<nlohmann::json> config) {
  auto change = std::make_shared<Change>();
  change->source = "the entry " + id;
  change->edit = [id, plugin = std::move(plugin), config = std::move(config),
                  target = change.get()](LoaderConfig& next) {
    LoaderEntry& entry = entry_place(next, id).entry();
    target->target = entry.id;
    entry.plugin = plugin;
    if (config) entry.config = *config;
  };
  return submit(std::move(change));
}

Task<> Loader::settled() const {
  std::vector<std::exception_ptr> failures;
  for (const auto& fiber : fibers()) {
    try {
      auto settled = fiber->settled();
      co_await settled;
    } catch (...) {
      failures.push_back(std::current_exception());
    }
  }
  throw_failures("FIBERS_FAILED", "loader fibers failed", std::move(failures));
}

std::vector<std::shared_ptr<Fiber>> Loader::fibers() const {
  std::vector<std::shared_ptr<Fiber>> out;
  for (const auto& running : running_) out.push_back(running.fiber);
  return out;
}

std::shared_ptr<Fiber> Loader::fiber(std::string_view id) const {
  auto found = std::find_if(running_.begin(), running_.end(),
                            [id](const Running& running) { return running.row.id == id; });
  return found == running_.end() ? nullptr : found->fiber;
}

std::string Loader::library_file(std::string_view id) const {
  auto found = std::find_if(running_.begin(), running_.end(),
                            [id](const Running& running) { return running.row.id == id; });
  return found == running_.end() ? "" : file_of(found->row.plugin);
}

nlohmann::ordered_json Loader::to_json() const {
  return {{"plugins", rows_json(config_.plugins)}};
}

}  // namespace stockade
