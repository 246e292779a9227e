// CPU time that control groups allow this process.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace razorkv {

/// Processors' worth of time in cgroup v2's cpu.max ("QUOTA PERIOD" in microseconds): 1.5 for "150000 100000". Empty
/// for "max PERIOD" (no limit) and for text of another form.
std::optional<double> parse_cpu_max(std::string_view text);
/// The same of cgroup v1's cpu.cfs_quota_us and cpu.cfs_period_us; a quota of -1 is no limit.
std::optional<double> parse_cfs_quota(std::string_view quota, std::string_view period);
/// Path of a process's group in /proc/self/cgroup, a line "ID:CONTROLLERS:PATH" each: of v1's `controller`, or of the
/// v2 hierarchy (which names none) for "".
std::optional<std::string> find_cgroup(std::string_view proc_cgroup, std::string_view controller);

/// The smallest limit of the groups that hold this process, from its own up to the root; empty where there is none.
/// `root` stands for "/" and is for tests.
std::optional<double> cpu_quota(const std::string& root = "");

}  // namespace razorkv
