#include "base/large_stack.h"

#include <pthread.h>

#include <exception>
#include <string>

#include "razorkv/error.h"

namespace razorkv {
namespace {

struct Job {
  const std::function<void()>* work = nullptr;
  std::exception_ptr failure;
};

void* run_job(void* argument) {
  Job& job = *static_cast<Job*>(argument);
  try {
    (*job.work)();
  } catch (...) {
    job.failure = std::current_exception();
  }
  return nullptr;
}

}  // namespace

void run_on_large_stack(std::size_t stack_bytes, const std::function<void()>& work) {
  Job job;
  job.work = &work;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_t thread{};
  const bool started = pthread_attr_setstacksize(&attributes, stack_bytes) == 0 &&
                       pthread_create(&thread, &attributes, run_job, &job) == 0;
  pthread_attr_destroy(&attributes);
  if (!started) {
    throw OutOfMemory(
        "cannot start a thread with a stack of " + std::to_string(stack_bytes >> 20) +
        " MiB, needed for text with a very long unbroken run of characters; break the run or free memory");
  }
  pthread_join(thread, nullptr);
  if (job.failure) std::rethrow_exception(job.failure);
}

}  // namespace razorkv
