#include "server/scheduler.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/model_handle.h"
#include "engine/policy_handle.h"

namespace razorkv::server {

struct Scheduler::Job {
  GenerationRequest request;
  std::shared_ptr<Generation> generation = std::make_shared<Generation>();
  Clock::time_point submitted = Clock::now();
  Clock::time_point started;
  Clock::time_point prompt_done;
  std::unique_ptr<KvSequence> prompt;  // while the prompt is being read
  std::vector<std::size_t> held;       // slots
  std::vector<Choice> choices;
  GenerationSummary summary;
  bool over = false;

  std::size_t width() const { return std::max<std::size_t>(request.samplers.size(), 1); }
};

namespace {

double seconds(std::chrono::steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

Scheduler::Scheduler(Model model, const EngineSettings& engine_settings, Policy policy,
                     const SchedulerSettings& settings)
    : model_(std::move(model)),
      policy_(std::move(policy)),
      settings_(settings),
      engine_(std::make_shared<Engine>(model_.impl()->loaded, engine_settings)),
      slots_(settings.parallel) {
  if (settings_.context < 1) settings_.context = model_.impl()->loaded->config().context;
  if (settings_.parallel < 1 || settings_.micro_batch < 1) {
    throw InvalidArgument("the scheduler needs at least one slot and micro-batches of at least one token");
  }
  thread_ = std::thread([this] { run(); });
}

Scheduler::~Scheduler() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::shared_ptr<Generation> Scheduler::submit(GenerationRequest request) {
  if (request.prompt.empty()) throw InvalidArgument("the prompt has no tokens; expected at least one");
  const auto length = static_cast<std::int64_t>(request.prompt.size());
  if (length > settings_.context) {
    throw ContextFull("the prompt has " + std::to_string(length) + " tokens, the context holds " +
                      std::to_string(settings_.context) + "; shorten the prompt or start the server with a longer one");
  }
  if (request.samplers.size() > settings_.parallel) {
    throw InvalidArgument("n: " + std::to_string(request.samplers.size()) + " choices were asked for, the server has " +
                          std::to_string(settings_.parallel) + " slots");
  }
  auto job = std::make_unique<Job>();
  job->request = std::move(request);
  job->summary.prompt_tokens = length;
  std::shared_ptr<Generation> generation = job->generation;
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_ || draining_) throw ShuttingDown("the server is shutting down");
    if (queue_.size() >= settings_.queue) {
      ++status_.rejected;
      throw Overloaded("the queue is full: " + std::to_string(queue_.size()) + " requests are waiting");
    }
    ++status_.requests;
    queue_.push_back(std::move(job));
  }
  wake_.notify_all();
  return generation;
}

void Scheduler::on_engine(const std::function<void(const std::shared_ptr<Engine>&)>& work) {
  struct Outcome {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::exception_ptr error;
  };
  const auto outcome = std::make_shared<Outcome>();
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_) throw ShuttingDown("the server is shutting down");
    tasks_.emplace_back([this, &work, outcome](bool alive) {
      std::exception_ptr error;
      try {
        if (!alive) throw ShuttingDown("the server is shutting down");
        work(engine_);
      } catch (...) {
        error = std::current_exception();
      }
      // The waiting thread gets the only reference, so the exception does not end here while it is read there.
      const std::scoped_lock done(outcome->mutex);
      outcome->error = std::move(error);
      outcome->done = true;
      outcome->changed.notify_all();
    });
  }
  wake_.notify_all();
  std::unique_lock lock(outcome->mutex);
  outcome->changed.wait(lock, [&] { return outcome->done; });
  std::exception_ptr error = std::move(outcome->error);
  lock.unlock();
  if (error) std::rethrow_exception(std::move(error));
}

void Scheduler::on_slots(const std::function<void(SlotTable&, CheckpointStore&)>& work) {
  on_engine([&](const std::shared_ptr<Engine>&) { work(slots_, store_); });
}

void Scheduler::keep_in_slot(std::size_t slot, const CheckpointStore::Pointer& state) {
  store_.add(state);
  slots_.keep(slot, state);
}

void Scheduler::forget(const std::string& base) {
  on_engine([&](const std::shared_ptr<Engine>&) { store_.erase_base(base); });
}

void Scheduler::drain(std::chrono::milliseconds grace) {
  std::unique_lock lock(mutex_);
  draining_ = true;
  const auto done = [&] { return queue_.empty() && status_.running == 0; };
  if (!settled_.wait_for(lock, grace, done)) {
    cancel_all_ = true;
    wake_.notify_all();
    settled_.wait(lock, done);
  }
}

SchedulerStatus Scheduler::status() const {
  const std::scoped_lock lock(mutex_);
  SchedulerStatus out = status_;
  out.waiting = queue_.size();
  return out;
}

void Scheduler::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      // Requests that wait may be cancelled or time out, so the queue is looked at from time to time.
      wake_.wait_for(lock, std::chrono::milliseconds(200),
                     [&] { return stopping_ || !tasks_.empty() || !queue_.empty() || !jobs_.empty(); });
      if (stopping_) break;
    }
    try {
      run_tasks();
      sweep();
      admit();
      prefill_step();
      decode_step();
    } catch (...) {  // no memory for the scheduler's own lists
      fail_all(std::current_exception());
    }
    std::erase_if(jobs_, [](const std::unique_ptr<Job>& job) { return job->over; });
    trim_cache();
    publish();
  }
  std::deque<std::function<void(bool)>> tasks;
  {
    const std::scoped_lock lock(mutex_);
    for (std::unique_ptr<Job>& job : queue_) jobs_.push_back(std::move(job));
    queue_.clear();
    tasks.swap(tasks_);
  }
  for (const auto& task : tasks) task(false);
  fail_all(std::make_exception_ptr(ShuttingDown("the server is shutting down")));
  jobs_.clear();
  publish();
}

void Scheduler::fail_all(const std::exception_ptr& error) {
  for (const std::unique_ptr<Job>& job : jobs_) {
    if (job && !job->over) fail(*job, error);
  }
  std::erase(jobs_, nullptr);
}

void Scheduler::run_tasks() {
  std::deque<std::function<void(bool)>> tasks;
  {
    const std::scoped_lock lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const auto& task : tasks) task(true);
}

void Scheduler::sweep() {
  std::deque<std::unique_ptr<Job>> gone;
  bool all = false;
  const Clock::time_point now = Clock::now();
  const auto ended = [&](const Job& job) { return all || job.generation->cancelled() || now > job.request.deadline; };
  {
    const std::scoped_lock lock(mutex_);
    all = cancel_all_;
    for (std::unique_ptr<Job>& job : queue_) {
      if (ended(*job)) gone.push_back(std::move(job));
    }
    std::erase(queue_, nullptr);
  }
  for (std::unique_ptr<Job>& job : jobs_) {
    if (ended(*job)) {
      gone.push_back(std::move(job));
    }
  }
  std::erase(jobs_, nullptr);
  for (const std::unique_ptr<Job>& job : gone) {
    ++counted_.cancelled;
    if (job->generation->cancelled()) {
      fail(*job, std::make_exception_ptr(Cancelled("the request was cancelled")));
    } else if (all) {
      fail(*job, std::make_exception_ptr(ShuttingDown("the server is shutting down")));
    } else {
      fail(*job, std::make_exception_ptr(TimedOut("the request took longer than the server's time limit")));
    }
  }
}

void Scheduler::admit() {
  while (start_next()) {
  }
}

bool Scheduler::start_next() {
  std::map<std::string, std::size_t> of_client;
  for (const std::unique_ptr<Job>& job : jobs_) {
    if (!job->over) of_client[job->request.client] += job->width();
  }
  std::unique_ptr<Job> job;
  {
    const std::scoped_lock lock(mutex_);
    const auto next = std::min_element(queue_.begin(), queue_.end(), [&](const auto& a, const auto& b) {
      return of_client[a->request.client] < of_client[b->request.client];
    });
    if (next == queue_.end() || slots_.used() + (*next)->width() > slots_.count()) return false;
    job = std::move(*next);
    queue_.erase(next);
    ++status_.running;  // drain() must not miss it
  }
  jobs_.push_back(std::move(job));
  Job& started = *jobs_.back();
  try {
    started.held = slots_.take(started.width());
    start(started);
  } catch (...) {
    fail(started, std::current_exception());
  }
  return true;
}

void Scheduler::start(Job& job) {
  GenerationRequest& request = job.request;
  job.started = Clock::now();
  job.summary.queue_seconds = seconds(job.started - job.submitted);
  std::shared_ptr<const Checkpoint> from = request.start;
  if (request.reuse) {
    const auto found = store_.find({request.prompt, request.base, request.conversation});
    if (found && (!from || found->tokens.size() > from->tokens.size())) from = found;
  }
  if (!from) {
    job.prompt = std::make_unique<KvSequence>(engine_->new_sequence(policy_.impl()->rules));
    return;
  }
  job.prompt = std::make_unique<KvSequence>(from->sequence);
  job.summary.cached_tokens = from->sequence.tokens();
  counted_.cached_tokens += static_cast<std::uint64_t>(job.summary.cached_tokens);
  if (from->tokens.size() == request.prompt.size()) begin_answers(job, from->logits);
}

bool Scheduler::drops_rows(std::int64_t tokens) const {
  for (const auto& layer : policy_.impl()->rules->rules) {
    for (const HeadRule& rule : layer) {
      if (!rule.everything && tokens > rule.sinks + rule.window(tokens)) return true;
    }
  }
  return false;
}

// Compression begins only when there is something to drop. Until then it would change nothing but one thing: a later
// turn, read in one batch, would no longer see everything as a prompt does.
void Scheduler::compress_if_needed(KvSequence& sequence, std::int64_t tokens) const {
  if (!sequence.compressed() && drops_rows(tokens)) {
    sequence.compress();
    engine_->pool().trim();
  }
}

std::span<const float> Scheduler::decode(std::span<const BatchItem> items, std::exception_ptr& error) {
  for (;;) {
    try {
      return engine_->decode(items);
    } catch (const OutOfBudget&) {
      error = std::current_exception();
    } catch (const OutOfMemory&) {
      error = std::current_exception();
    } catch (...) {
      error = std::current_exception();
      return {};
    }
    if (!store_.evict_oldest()) return {};
    error = nullptr;
  }
}

void Scheduler::prefill_step() {
  std::vector<Job*> reading;
  for (const std::unique_ptr<Job>& job : jobs_) {
    if (job->prompt && !job->over) reading.push_back(job.get());
  }
  if (reading.empty()) return;
  Job& job = *reading[next_prefill_++ % reading.size()];
  const auto done = static_cast<std::size_t>(job.prompt->tokens());
  const std::size_t left = job.request.prompt.size() - done;
  const std::size_t count = std::min(left, static_cast<std::size_t>(settings_.micro_batch));
  const BatchItem item{job.prompt.get(), std::span(job.request.prompt).subspan(done, count), count == left ? 1 : 0};
  const Clock::time_point begin = Clock::now();
  std::exception_ptr error;
  const std::span<const float> logits = decode({&item, 1}, error);
  if (error) {
    fail(job, error);
    return;
  }
  const double time = seconds(Clock::now() - begin);
  job.summary.prefill_seconds += time;
  job.summary.prefilled_tokens += static_cast<std::int64_t>(count);
  counted_.prefill_seconds += time;
  counted_.prompt_tokens += count;
  job.generation->advance(static_cast<std::int64_t>(done + count));
  if (count < left) return;
  try {
    end_prompt(job, logits);
  } catch (...) {
    fail(job, std::current_exception());
  }
}

void Scheduler::end_prompt(Job& job, std::span<const float> logits) {
  compress_if_needed(*job.prompt, job.prompt->tokens());
  const std::vector<float> kept(logits.begin(), logits.end());
  if (job.request.samplers.empty()) {
    const KvSequence& sequence = *job.prompt;
    job.summary.state = std::make_shared<const Checkpoint>(
        Checkpoint{engine_, sequence, job.request.prompt, kept, job.request.base, job.request.conversation});
    job.summary.kv = sequence.usage();
    job.summary.compressed = sequence.compressed();
    job.prompt.reset();
    finish(job);
    return;
  }
  if (job.request.reuse) keep(job, *job.prompt, {}, kept);
  begin_answers(job, kept);
}

void Scheduler::begin_answers(Job& job, const std::vector<float>& logits) {
  job.prompt_done = Clock::now();
  std::size_t index = 0;
  for (Sampler& sampler : job.request.samplers) {
    job.choices.emplace_back(index++, *job.prompt, std::move(sampler), job.request.stops);
  }
  job.prompt.reset();
  for (Choice& choice : job.choices) take(job, choice, logits);
  finish_if_done(job);
}

void Scheduler::decode_step() {
  struct Part {
    Job* job;
    Choice* choice;
  };
  std::vector<Part> parts;
  std::vector<BatchItem> items;
  for (const std::unique_ptr<Job>& job : jobs_) {
    try {
      for (Choice& choice : job->choices) {
        if (!choice.finished()) compress_if_needed(choice.sequence(), choice.sequence().tokens() + 1);
      }
    } catch (...) {
      fail(*job, std::current_exception());
    }
    if (job->over) continue;
    for (Choice& choice : job->choices) {
      if (choice.finished()) continue;
      parts.push_back({job.get(), &choice});
      items.push_back({&choice.sequence(), {&choice.pending(), 1}, 1});
    }
  }
  if (parts.empty()) return;
  const Clock::time_point begin = Clock::now();
  std::exception_ptr error;
  const std::span<const float> logits = decode(items, error);
  if (error) {
    fail(*parts.back().job, error);
    return;
  }
  counted_.decode_seconds += seconds(Clock::now() - begin);
  const std::size_t width = logits.size() / parts.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Job& job = *parts[i].job;
    if (job.over) continue;
    try {
      take(job, *parts[i].choice, logits.subspan(i * width, width));
      finish_if_done(job);
    } catch (...) {
      fail(job, std::current_exception());
    }
  }
}

void Scheduler::take(Job& job, Choice& choice, std::span<const float> logits) {
  const std::size_t before = choice.tokens().size();
  GenerationDelta delta =
      choice.take(logits, job.request, *model_.impl()->vocabulary, {job.request.max_tokens, settings_.context});
  const std::size_t chosen = choice.tokens().size() - before;
  job.summary.generated_tokens += static_cast<std::int64_t>(chosen);
  counted_.generated_tokens += chosen;
  if (!delta.text.empty() || !delta.tokens.empty() || delta.finish) job.generation->push(std::move(delta));
  if (!choice.finished() || job.choices.size() > 1) return;
  job.summary.kv = choice.sequence().usage();
  job.summary.compressed = choice.sequence().compressed();
  // Behind a stop string the tokens hold more than the text that the next turn will bring.
  if (job.request.reuse && !choice.stopped_by_text()) {
    const auto fed = choice.sequence().tokens() - job.summary.prompt_tokens;
    if (fed == 0) return;  // the prompt's own state is kept, with its logits
    keep(job, choice.sequence(), {choice.tokens().begin(), choice.tokens().begin() + fed}, {});
  }
}

void Scheduler::finish_if_done(Job& job) {
  const bool done =
      std::all_of(job.choices.begin(), job.choices.end(), [](const Choice& choice) { return choice.finished(); });
  if (!done) return;
  if (job.choices.size() > 1) {
    job.summary.kv = job.choices.front().sequence().usage();
    job.summary.compressed = job.choices.front().sequence().compressed();
  }
  job.summary.decode_seconds = seconds(Clock::now() - job.prompt_done);
  finish(job);
}

void Scheduler::finish(Job& job) {
  job.over = true;
  slots_.release(std::exchange(job.held, {}));
  job.choices.clear();
  job.generation->finish(job.summary);
}

void Scheduler::fail(Job& job, std::exception_ptr error) {
  job.over = true;
  slots_.release(std::exchange(job.held, {}));
  job.prompt.reset();
  job.choices.clear();
  ++counted_.failed;
  job.generation->fail(std::move(error));
}

void Scheduler::keep(Job& job, const KvSequence& sequence, const std::vector<Token>& answer,
                     std::vector<float> logits) {
  if (settings_.cache_bytes == 0) return;
  std::vector<Token> tokens = job.request.prompt;
  tokens.insert(tokens.end(), answer.begin(), answer.end());
  keep_in_slot(job.held.front(),
               std::make_shared<const Checkpoint>(Checkpoint{engine_, sequence, std::move(tokens), std::move(logits),
                                                             job.request.base, job.request.conversation}));
}

void Scheduler::trim_cache() {
  bool dropped = false;
  while (engine_->pool_stats().live_bytes + store_.own_bytes() > settings_.cache_bytes && store_.evict_oldest()) {
    dropped = true;
  }
  if (dropped) engine_->pool().trim();
}

void Scheduler::publish() {
  counted_.running = jobs_.size();
  counted_.slots.resize(slots_.count());
  for (std::size_t slot = 0; slot < slots_.count(); ++slot) counted_.slots[slot] = slots_.busy(slot);
  counted_.checkpoints = store_.count();
  counted_.pool = engine_->pool_stats();
  const std::scoped_lock lock(mutex_);
  counted_.requests = status_.requests;
  counted_.rejected = status_.rejected;
  status_ = counted_;
  settled_.notify_all();
}

}  // namespace razorkv::server
