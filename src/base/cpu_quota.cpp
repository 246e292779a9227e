#include "base/cpu_quota.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>

namespace razorkv {
namespace {

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  text = trim(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string read_text(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void lower_to(std::optional<double>& least, std::optional<double> limit) {
  if (limit) least = least ? std::min(*least, *limit) : limit;
}

/// The smallest limit from the group `path` of the hierarchy mounted at `mount` up to its root. In a container the path
/// can be the host's, which is not mounted; the container's own group is the root then.
template <typename ReadLimit>
std::optional<double> least_limit(const std::string& mount, std::string path, const ReadLimit& read_limit) {
  std::optional<double> least;
  while (true) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    lower_to(least, read_limit(mount + path));
    if (path.empty()) return least;
    const std::size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
  }
}

}  // namespace

std::optional<double> parse_cfs_quota(std::string_view quota, std::string_view period) {
  const auto allowed = parse_number(quota);
  const auto length = parse_number(period);
  if (!allowed || !length || *allowed <= 0 || *length <= 0) return std::nullopt;
  return static_cast<double>(*allowed) / static_cast<double>(*length);
}

std::optional<double> parse_cpu_max(std::string_view text) {
  text = trim(text);
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  return parse_cfs_quota(text.substr(0, blank), text.substr(blank + 1));
}

std::optional<std::string> find_cgroup(std::string_view proc_cgroup, std::string_view controller) {
  while (!proc_cgroup.empty()) {
    const std::string_view line = proc_cgroup.substr(0, proc_cgroup.find('\n'));
    proc_cgroup.remove_prefix(std::min(proc_cgroup.size(), line.size() + 1));
    const std::size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view path = line.substr(second + 1);
    std::string_view names = line.substr(first + 1, second - first - 1);
    if (controller.empty() && names.empty()) return std::string(path);
    while (!names.empty()) {
      const std::string_view name = names.substr(0, names.find(','));
      names.remove_prefix(std::min(names.size(), name.size() + 1));
      if (!controller.empty() && name == controller) return std::string(path);
    }
  }
  return std::nullopt;
}

std::optional<double> cpu_quota(const std::string& root) {
  const std::string groups = read_text(root + "/proc/self/cgroup");
  std::optional<double> least;
  if (const auto path = find_cgroup(groups, "")) {
    lower_to(least, least_limit(root + "/sys/fs/cgroup", *path,
                                [](const std::string& group) { return parse_cpu_max(read_text(group + "/cpu.max")); }));
  }
  if (const auto path = find_cgroup(groups, "cpu")) {
    lower_to(least, least_limit(root + "/sys/fs/cgroup/cpu", *path, [](const std::string& group) {
               return parse_cfs_quota(read_text(group + "/cpu.cfs_quota_us"), read_text(group + "/cpu.cfs_period_us"));
             }));
  }
  return least;
}

}  // namespace razorkv
