#include "cli/command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace razorkv::test {
namespace {

struct Pipe {
  Pipe() {
    if (pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
  }
  std::array<int, 2> ends{};
};

}  // namespace

CommandResult run_command(const std::vector<std::string>& arguments, const CommandOptions& options) {
  using Clock = std::chrono::steady_clock;
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> words = {RAZORKV_COMMAND};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const Pipe in;
  const Pipe out;
  const Pipe err;
  const auto start = Clock::now();
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    dup2(in.ends[0], STDIN_FILENO);
    dup2(out.ends[1], STDOUT_FILENO);
    dup2(err.ends[1], STDERR_FILENO);
    for (const Pipe* pipe : {&in, &out, &err}) {
      close(pipe->ends[0]);
      close(pipe->ends[1]);
    }
    std::signal(SIGPIPE, SIG_DFL);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(in.ends[0]);
  close(out.ends[1]);
  close(err.ends[1]);

  CommandResult result;
  std::size_t written = 0;
  int input = in.ends[1];
  fcntl(input, F_SETFL, O_NONBLOCK);
  std::array<pollfd, 3> polls = {pollfd{out.ends[0], POLLIN, 0}, pollfd{err.ends[0], POLLIN, 0},
                                 pollfd{input, POLLOUT, 0}};
  bool told = false;
  bool killed = false;
  while (polls[0].fd >= 0 || polls[1].fd >= 0) {
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (!killed && result.seconds > options.limit_seconds) {
      kill(child, SIGKILL);
      killed = true;
    }
    poll(polls.data(), polls.size(), 50);
    if (polls[2].fd >= 0 && (polls[2].revents & (POLLOUT | POLLERR)) != 0) {
      const ssize_t count = write(input, options.input.data() + written, options.input.size() - written);
      if (count > 0) written += static_cast<std::size_t>(count);
      if (count < 0 || written == options.input.size()) {
        close(input);
        polls[2].fd = -1;
      }
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (polls[i].fd < 0 || (polls[i].revents & (POLLIN | POLLHUP)) == 0) continue;
      std::array<char, 4096> buffer{};
      const ssize_t count = read(polls[i].fd, buffer.data(), buffer.size());
      if (count <= 0) {
        close(polls[i].fd);
        polls[i].fd = -1;
        continue;
      }
      (i == 0 ? result.out : result.err).append(buffer.data(), static_cast<std::size_t>(count));
      if (i == 0 && !told && options.on_output) {
        told = true;
        options.on_output(child);
      }
    }
  }
  if (polls[2].fd >= 0) close(input);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

}  // namespace razorkv::test
