#include "base/processors.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/cpu_quota.h"

namespace razorkv {
namespace {

TEST(CpuQuota, ParsesVersion2) {
  EXPECT_EQ(parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_EQ(parse_cpu_max("50000 100000"), 0.5);
  EXPECT_EQ(parse_cpu_max("max 100000\n"), std::nullopt);
  for (const char* bad : {"", "\n", "150000", "150000 ", "150000 0", "-1 100000", "1e5 100000", "150000 100000 7"}) {
    EXPECT_EQ(parse_cpu_max(bad), std::nullopt) << bad;
  }
}

TEST(CpuQuota, ParsesVersion1) {
  EXPECT_EQ(parse_cfs_quota("400000\n", "100000\n"), 4.0);
  EXPECT_EQ(parse_cfs_quota("-1\n", "100000\n"), std::nullopt);
  EXPECT_EQ(parse_cfs_quota("0", "100000"), std::nullopt);
  EXPECT_EQ(parse_cfs_quota("400000", ""), std::nullopt);
  EXPECT_EQ(parse_cfs_quota("99999999999999999999", "100000"), std::nullopt);
}

TEST(CpuQuota, FindsTheGroup) {
  const std::string both = "9:name=systemd:/\n4:memory:/a\n3:cpuset:/set\n2:cpuacct,cpu:/pod:7/box\n0::/user.slice\n";
  EXPECT_EQ(find_cgroup(both, "cpu"), "/pod:7/box");
  EXPECT_EQ(find_cgroup(both, "cpuset"), "/set");
  EXPECT_EQ(find_cgroup(both, ""), "/user.slice");
  EXPECT_EQ(find_cgroup("1:cpu:/only1\n", ""), std::nullopt);
  EXPECT_EQ(find_cgroup("0::/only2", "cpu"), std::nullopt);
  EXPECT_EQ(find_cgroup("0::/only2", ""), "/only2");
  EXPECT_EQ(find_cgroup("no colons\n:\n\n", "cpu"), std::nullopt);
  EXPECT_EQ(find_cgroup("", ""), std::nullopt);
}

class FakeRoot : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  const std::string root_ = ::testing::TempDir() + "razorkv_cpu_quota." + std::to_string(::getpid());
};

TEST_F(FakeRoot, LeastOfTheGroupsAbove) {
  put("/proc/self/cgroup", "0::/slice/job/step\n");
  EXPECT_EQ(cpu_quota(root_), std::nullopt);
  put("/sys/fs/cgroup/slice/job/step/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota(root_), std::nullopt);
  put("/sys/fs/cgroup/slice/cpu.max", "300000 100000\n");
  EXPECT_EQ(cpu_quota(root_), 3.0);
  put("/sys/fs/cgroup/slice/job/cpu.max", "700000 100000\n");
  EXPECT_EQ(cpu_quota(root_), 3.0);
  put("/sys/fs/cgroup/slice/job/step/cpu.max", "250000 100000\n");
  EXPECT_EQ(cpu_quota(root_), 2.5);
}

TEST_F(FakeRoot, ContainerSeesItsGroupAsTheRoot) {
  put("/proc/self/cgroup", "3:cpu,cpuacct:/docker/0123\n0::/docker/0123\n");
  put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(root_), 2.0);
  put("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(cpu_quota(root_), 1.0);
}

TEST(Processors, FollowsTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(usable_processors(), 1);
  EXPECT_LE(usable_processors(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_processors(), 1);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace razorkv
