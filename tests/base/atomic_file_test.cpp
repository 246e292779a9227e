#include "base/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "razorkv/error.h"
#include "support/temporary_folder.h"

namespace razorkv {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string message_of(const auto& work) {
  try {
    work();
  } catch (const FileError& error) {
    return error.what();
  }
  return "no FileError";
}

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

class AtomicFileTest : public ::testing::Test {
 protected:
  test::TemporaryFolder folder_;
  const std::string path_ = folder_.file("state");
};

TEST_F(AtomicFileTest, OldUntilCommitted) {
  test::write_bytes(path_, "old");
  {
    AtomicFile file(path_);
    file.write(bytes("ne"));
    file.write(bytes("w"));
    EXPECT_EQ(test::read_bytes(path_), "old");
    file.commit();
    EXPECT_EQ(test::read_bytes(path_), "new");
  }
  EXPECT_THAT(folder_.names(), ElementsAre("state"));
}

TEST_F(AtomicFileTest, GivenUpLeavesNothing) {
  { AtomicFile(path_).write(bytes("new")); }
  EXPECT_THAT(folder_.names(), IsEmpty());
}

TEST_F(AtomicFileTest, TwoWritersOfOnePathDoNotMix) {
  AtomicFile first(path_);
  AtomicFile second(path_);
  first.write(bytes("first"));
  second.write(bytes("2nd"));
  first.commit();
  EXPECT_EQ(test::read_bytes(path_), "first");
  second.commit();
  EXPECT_EQ(test::read_bytes(path_), "2nd");
}

TEST_F(AtomicFileTest, RefusesPlacesThatAreNoFile) {
  EXPECT_THAT(message_of([&] { AtomicFile file(folder_.path()); }),
              AllOf(HasSubstr(folder_.path()), HasSubstr("folder")));
  const std::string missing = folder_.file("no/such/state");
  EXPECT_THAT(message_of([&] { AtomicFile file(missing); }),
              AllOf(HasSubstr(missing), HasSubstr(std::strerror(ENOENT))));
  ASSERT_EQ(::mkfifo(folder_.file("pipe").c_str(), 0600), 0);
  EXPECT_THAT(message_of([&] { AtomicFile file(folder_.file("pipe")); }), HasSubstr("regular file"));
}

TEST_F(AtomicFileTest, WholeContentCreatesFolders) {
  write_file_atomically(folder_.file("a/b/c"), "content");
  EXPECT_EQ(test::read_bytes(folder_.file("a/b/c")), "content");
}

/// Writes beyond the limit fail, after a short write, as on a full disk.
TEST_F(AtomicFileTest, FailedWriteLeavesTheOldFile) {
  test::write_bytes(path_, "old");
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string message = message_of([&] { write_file_atomically(path_, std::string(1500, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, AllOf(HasSubstr(path_), HasSubstr("write (after 1000 bytes)"), HasSubstr(std::strerror(EFBIG)),
                             HasSubstr("as it was")));
  EXPECT_EQ(test::read_bytes(path_), "old");
  EXPECT_THAT(folder_.names(), ElementsAre("state"));
}

TEST_F(AtomicFileTest, FullDiskLeavesTheOldFile) {
  if (::mount("none", folder_.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "needs the right to mount a small tmpfs: " << std::strerror(errno);
  }
  test::write_bytes(path_, "old");
  const std::string message = message_of([&] { write_file_atomically(path_, std::string(200000, 'x')); });
  const std::string kept = test::read_bytes(path_);
  const auto names = folder_.names();
  EXPECT_EQ(::umount2(folder_.path().c_str(), MNT_DETACH), 0);
  EXPECT_THAT(message, AllOf(HasSubstr(path_), HasSubstr(std::strerror(ENOSPC))));
  EXPECT_EQ(kept, "old");
  EXPECT_THAT(names, ElementsAre("state"));
}

}  // namespace
}  // namespace razorkv
