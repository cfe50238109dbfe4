// SPDX-License-Identifier: MIT
#include "plugins/sessions/session_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "framework/config.hpp"
#include "framework/error.hpp"
#include "framework/json.hpp"
#include "sandbox/policy.hpp"
#include "sandbox/roots.hpp"

namespace stockade {

namespace {

constexpr const char* kOpened = "session/opened";
constexpr const char* kSuffix = ".jsonl";

Error unwritable(const std::string& path, const std::string& why) {
  return Error("SESSION_UNWRITABLE", "cannot write the session log " + path + ": " + why, path);
}

std::string now() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  tm parts{};
  gmtime_r(&time.tv_sec, &parts);
  char text[40];
  std::size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  snprintf(text + n, sizeof text - n, ".%03ldZ", time.tv_nsec / 1000000);
  return text;
}

void make_directories(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST)
      throw unwritable(path, describe_errno(errno));
    if (end == std::string::npos) return;
  }
}

std::string read_all(int fd, const std::string& path) {
  std::string text;
  char chunk[65536];
  for (;;) {
    ssize_t n = read(fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      throw Error("SESSION_INVALID",
                  "cannot read the session log " + path + ": " + describe_errno(errno), path);
    if (n == 0) return text;
    text.append(chunk, static_cast<std::size_t>(n));
  }
}

}  // namespace

std::string default_session_directory() {
  const char* state = getenv("XDG_STATE_HOME");
  if (state && *state == '/') return std::string(state) + "/stockade/sessions";
  const char* home = getenv("HOME");
  const passwd* user = home && *home == '/' ? nullptr : getpwuid(geteuid());
  if (user) home = user->pw_dir;
  if (!home || *home != '/')
    throw Error("SESSION_UNWRITABLE",
                "there is no home directory for session logs; set XDG_STATE_HOME");
  return std::string(home) + "/.local/state/stockade/sessions";
}

bool is_session_id(const std::string& id) {
  return !id.empty() && id.size() <= 64 && id.front() != '.' &&
         id.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
             std::string::npos;
}

std::optional<SessionRecord> read_session_log(const std::string& text, const std::string& id,
                                              const std::string& path) {
  SessionRecord record;
  std::size_t begin = 0;
  for (std::size_t number = 1;; ++number) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    auto invalid = [&](const std::string& why) {
      return Error("SESSION_INVALID",
                   "the session log " + path + " is damaged in line " + std::to_string(number) +
                       ": " + why + "; nothing was run; move the file away to begin anew",
                   path);
    };
    nlohmann::json event;
    try {
      event = parse_config(std::string_view(text).substr(begin, end - begin), "the line");
    } catch (const Error& error) {
      throw invalid(error.what());
    }
    begin = end + 1;
    if (!event.is_object() || !event.contains("type") || !event["type"].is_string() ||
        !event.contains("data") || !event["data"].is_object())
      throw invalid("it is no event");
    if (event.value("seq", nlohmann::json()) != number)
      throw invalid("its \"seq\" is not " + std::to_string(number));
    const auto type = event["type"].get<std::string>();
    const auto& data = event["data"];
    if ((type == kOpened) != (number == 1))
      throw invalid(std::string("\"") + kOpened + "\" is the first event and no other");
    if (number == 1) {
      if (data.value("id", nlohmann::json()) != id) throw invalid("it is of another session");
      record.session.id = id;
      auto cwd = data.value("cwd", nlohmann::json());
      if (cwd.is_string()) record.session.cwd = cwd.get<std::string>();
    }
    if (type == kSandboxModeEvent) {
      auto mode = data.value("mode", nlohmann::json());
      if (!mode.is_string() || !parse_mode(mode.get<std::string>()))
        throw invalid("sandbox/mode carries unknown mode " + json_text(mode));
      record.session.events.push_back({type, mode.get<std::string>()});
    }
    record.events.push_back(std::move(event));
  }
  record.torn_bytes = text.size() - begin;
  if (record.events.empty()) return std::nullopt;
  return record;
}

SessionRecord load_session(const std::string& directory, const std::string& id) {
  std::string path = directory + "/" + id + kSuffix;
  Fd file(is_session_id(id) ? open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1);
  if (!file)
    throw Error("SESSION_UNKNOWN",
                "there is no session \"" + id + "\"" + suggestion(id, session_ids(directory)), id);
  auto record = read_session_log(read_all(file.get(), path), id, path);
  if (!record) throw Error("SESSION_INVALID", "the session log " + path + " holds no event", path);
  return std::move(*record);
}

std::vector<std::string> session_ids(const std::string& directory) {
  std::vector<std::string> ids;
  DIR* entries = opendir(directory.c_str());
  if (!entries) return ids;
  while (const dirent* entry = readdir(entries)) {
    std::string name = entry->d_name;
    if (!name.ends_with(kSuffix)) continue;
    name.resize(name.size() - std::string_view(kSuffix).size());
    if (is_session_id(name)) ids.push_back(std::move(name));
  }
  closedir(entries);
  std::sort(ids.begin(), ids.end());
  return ids;
}

FileSession::FileSession(std::string directory, std::string id, std::optional<std::string> cwd,
                         const std::vector<std::string>& writable_roots)
    : directory_(std::move(directory)) {
  if (!is_session_id(id))
    throw Error(
        "SESSION_INVALID",
        "\"" + id +
            "\" is no id of a session: it has 1 to 64 of letters, digits, dots, underscores "
            "and dashes, and begins with no dot",
        id);
  auto unsafe = [&](const std::string& why) {
    return Error("SESSION_UNSAFE", "session logs cannot lie in " + directory_ + ": " + why,
                 directory_);
  };
  auto check_writable = [&](const std::string& writable) {
    for (const std::string& path : {directory_, canonicalize(directory_)})
      if (is_within(path, writable))
        throw unsafe("commands may write " + writable +
                     ", and could change their own mode there; choose a smaller workspace, or set "
                     "XDG_STATE_HOME");
  };
  check_writable("/tmp");
  for (const auto& root : writable_roots) check_writable(root);  // before anything is made there
  make_directories(directory_);
  struct stat info {};
  if (lstat(directory_.c_str(), &info) != 0) throw unwritable(directory_, describe_errno(errno));
  if (!S_ISDIR(info.st_mode)) throw unsafe("it is not a directory");
  if (info.st_uid != geteuid()) throw unsafe("it belongs to another user");
  if ((info.st_mode & 077) != 0 && chmod(directory_.c_str(), 0700) != 0)
    throw unsafe("other users can reach it");
  for (const auto& root : writable_roots) check_writable(root);
  path_ = directory_ + "/" + id + kSuffix;
  session_.id = std::move(id);
  session_.cwd = std::move(cwd);
  open_file(false);
  if (!session_.cwd && !writable_roots.empty()) session_.cwd = writable_roots.front();
  if (session_.cwd) check_writable(*session_.cwd);
}

void FileSession::open_file(bool create) {
  file_ = Fd(open(path_.c_str(),
                  O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), 0600));
  if (!file_ && errno == ENOENT) return;
  if (!file_) throw unwritable(path_, describe_errno(errno));
  if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) throw unwritable(path_, describe_errno(errno));
    throw Error("SESSION_BUSY", "the session \"" + session_.id + "\" is open in another host",
                session_.id);
  }
  std::string text = read_all(file_.get(), path_);
  auto record = read_session_log(text, session_.id, path_);
  opening_.torn_bytes = record ? record->torn_bytes : text.size();
  size_ = text.size() - opening_.torn_bytes;
  if (opening_.torn_bytes > 0 && ftruncate(file_.get(), static_cast<off_t>(size_)) != 0)
    throw unwritable(path_, describe_errno(errno));
  if (!record) return;
  if (session_.cwd && record->session.cwd != session_.cwd)
    throw Error("SESSION_INVALID",
                "the session \"" + session_.id + "\" belongs to the directory " +
                    record->session.cwd.value_or("of no workspace") + " and not to " +
                    *session_.cwd + "; a session's directory never changes",
                session_.id);
  session_ = std::move(record->session);
  last_seq_ = record->events.size();
  if (opening_.torn_bytes > 0)
    write_event("session/repaired", {{"droppedBytes", opening_.torn_bytes}});
}

void FileSession::write_event(const std::string& type, nlohmann::ordered_json data) {
  std::string line =
      json_text(nlohmann::ordered_json{
          {"seq", last_seq_ + 1}, {"time", now()}, {"type", type}, {"data", std::move(data)}}) +
      "\n";
  ssize_t n;
  do n = write(file_.get(), line.data(), line.size());
  while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(line.size())) {
    size_ += line.size();
    ++last_seq_;
    return;
  }
  std::string why = n < 0 ? describe_errno(errno) : "the disk is full";
  // Half a line would make the next one unreadable.
  if (n > 0 && ftruncate(file_.get(), static_cast<off_t>(size_)) != 0)
    why += "; and what was written of a line could not be taken back";
  throw unwritable(path_, why);
}

void FileSession::append(std::string type, nlohmann::ordered_json data) {
  if (!file_) open_file(true);
  if (last_seq_ == 0) {
    nlohmann::ordered_json opened{{"id", session_.id}};
    if (session_.cwd) opened["cwd"] = *session_.cwd;
    opened["version"] = 1;
    write_event(kOpened, std::move(opened));
    opening_.created = true;
  }
  std::string mode = type == kSandboxModeEvent ? data.value("mode", std::string()) : std::string();
  if (type == kSandboxModeEvent && !parse_mode(mode))
    throw Error("SESSION_INVALID", "sandbox/mode carries unknown mode \"" + mode + "\"",
                session_.id);
  write_event(type, std::move(data));
  if (type == kSandboxModeEvent) session_.events.push_back({std::move(type), std::move(mode)});
}

}  // namespace stockade
