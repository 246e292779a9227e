// A save that does not end leaves the old file whole.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <string>

#include "razorkv/error.h"
#include "state_case.h"
#include "support/temporary_folder.h"

namespace razorkv {
namespace {

using test::Running;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StateCrash : public ::testing::Test {
 protected:
  StateCrash() : first_(test::tiny_model(), test::mixed_policy()), second_(test::tiny_model(), test::mixed_policy()) {
    first_.feed_random(900, 1);
    second_.feed_random(800, 2);
    first_.save(path_);
  }
  std::string save_message(const Running& running) const {
    try {
      running.save(path_);
    } catch (const FileError& error) {
      return error.what();
    }
    return "saved";
  }

  test::TemporaryFolder folder_;
  const std::string path_ = folder_.file("state");
  Running first_;
  Running second_;
};

TEST_F(StateCrash, KilledAtRandomMoments) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a fork of a process with threads";
#endif
  const std::string first = test::read_bytes(path_);
  second_.save(path_);
  const std::string second = test::read_bytes(path_);
  std::mt19937 random(3);
  int killed_amid = 0;
  for (int round = 0; round < 40; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (;;) {
        try {
          first_.save(path_);
          second_.save(path_);
        } catch (...) {
          ::_exit(1);
        }
      }
    }
    ::usleep(std::uniform_int_distribution<useconds_t>(500, 15000)(random));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    const std::string found = test::read_bytes(path_);
    ASSERT_TRUE(found == first || found == second) << "round " << round << ": " << found.size() << " bytes";
    for (const std::string& name : folder_.names()) {
      if (name == "state") continue;
      ++killed_amid;
      ::unlink(folder_.file(name).c_str());
    }
  }
  EXPECT_GT(killed_amid, 0) << "no kill hit a save";
  first_.load(path_);
}

/// Killed by the system at every eighth of the file's length: nobody handles SIGXFSZ.
TEST_F(StateCrash, KilledAtChosenLengths) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a fork of a process with threads";
#endif
  const std::string old = test::read_bytes(path_);
  for (rlim_t part = 0; part < 8; ++part) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const rlimit limit{old.size() * 7 / 8 * part / 8, RLIM_INFINITY};
      const rlimit no_core{0, 0};
      ::setrlimit(RLIMIT_CORE, &no_core);
      ::setrlimit(RLIMIT_FSIZE, &limit);
      ::signal(SIGXFSZ, SIG_DFL);
      try {
        second_.save(path_);
      } catch (...) {
        ::_exit(1);
      }
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << status;
    ASSERT_EQ(test::read_bytes(path_), old);
  }
}

TEST_F(StateCrash, FailedWrite) {
  const std::string old = test::read_bytes(path_);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limit{50000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string message = save_message(second_);
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, AllOf(HasSubstr(path_), HasSubstr("cannot write"), HasSubstr(std::strerror(EFBIG))));
  EXPECT_EQ(test::read_bytes(path_), old);
  EXPECT_THAT(folder_.names(), ElementsAre("state"));
}

TEST_F(StateCrash, FullDisk) {
  const test::TemporaryFolder small;
  if (::mount("none", small.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "needs the right to mount a small tmpfs: " << std::strerror(errno);
  }
  std::string message = "saved";
  try {
    second_.save(small.file("state"));
  } catch (const FileError& error) {
    message = error.what();
  }
  const std::vector<std::string> left = small.names();
  EXPECT_EQ(::umount2(small.path().c_str(), MNT_DETACH), 0);
  EXPECT_THAT(message, AllOf(HasSubstr(small.file("state")), HasSubstr(std::strerror(ENOSPC))));
  EXPECT_THAT(left, ElementsAre());
}

TEST_F(StateCrash, PlacesThatAreNoFile) {
  const auto message = [&](const std::string& path) -> std::string {
    try {
      second_.save(path);
    } catch (const FileError& error) {
      return error.what();
    }
    return "saved";
  };
  EXPECT_THAT(message(folder_.file("no/such/state")),
              AllOf(HasSubstr(folder_.file("no/such/state")), HasSubstr(std::strerror(ENOENT))));
  EXPECT_THAT(message(folder_.path()), HasSubstr("found a folder"));
  EXPECT_THAT(folder_.names(), ElementsAre("state"));
}

}  // namespace
}  // namespace razorkv
