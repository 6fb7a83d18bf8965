#include "engine/worker.hpp"

#include <fmt/format.h>

#include <utility>

namespace pawl::engine {
namespace {
using std::chrono::milliseconds;

constexpr const char* kReadOnlyServer =
    "the server lets nothing be written: it is a standby, or default_transaction_read_only is on";
}  // namespace

postgres::SessionSettings session_settings(const Options& options) {
  postgres::SessionSettings settings;
  settings.url = options.postgres.url;
  settings.application_name = "pawl " + options.kafka.group;
  settings.pooled = options.postgres.pooled;
  settings.synchronous_commit = options.postgres.synchronous_commit;
  settings.durable_commit = options.postgres.synchronous_commit;
  settings.connect_timeout = options.postgres.connect_timeout;
  settings.lock_timeout = options.postgres.lock_timeout;
  milliseconds longest{30000};
  for (const auto& handler : options.handlers)
    longest = std::max(longest, handler.timeout);
  settings.statement_timeout =
      options.handlers.empty() ? longest : options.handlers.front().timeout;
  // A handler may compute without touching the database for as long as its timeout.
  settings.idle_in_transaction_timeout = longest + milliseconds(30000);
  return settings;
}

Worker::Worker(Context& context)
    : context_(context),
      positions_(context),
      processor_(context.frame),
      flight_(context.frame, context.offsets, processor_.scopes()),
      batches_(context.frame, processor_.scopes()),
      connect_backoff_(context.options.postgres.retry_initial, context.options.postgres.retry_max),
      thread_([this] { run(); }) {}

Worker::~Worker() {
  if (!finished()) {
    stop();
    interrupt();
  }
  join();
}

void Worker::join() {
  if (thread_.joinable())
    thread_.join();
}

void Worker::wake() {
  {
    const std::scoped_lock lock(mailbox_mutex_);
    woken_ = true;
  }
  mailbox_changed_.notify_one();
}

/// False: the thread has ended, and the command is let go of with all that it holds.
bool Worker::post(std::function<void()> command) {
  {
    const std::scoped_lock lock(mailbox_mutex_);
    if (mailbox_closed_)
      return false;
    mailbox_.push_back(std::move(command));
  }
  mailbox_changed_.notify_one();
  return true;
}

/// Serves what was posted so far and takes nothing more.
void Worker::close_mailbox() {
  {
    const std::scoped_lock lock(mailbox_mutex_);
    mailbox_closed_ = true;
  }
  serve_mailbox();
}

void Worker::assign(std::shared_ptr<kafka::PartitionStream> stream) {
  post([this, stream = std::move(stream)] {
    // A stream that outlived the partitions would keep Kafka's client from closing.
    if (stopping_)
      return;
    const auto& postgres = context_.options.postgres;
    const auto& failures = context_.options.failures;
    auto partition = std::make_unique<Partition>(
        stream, context_.board.add(stream->partition()),
        Backoff(postgres.retry_initial, postgres.retry_max),
        Backoff(failures.retry_initial, failures.retry_max),
        BatchPace(context_.options.batch.max_messages, context_.longest_batch));
    const auto name = partition->name();
    emit(Step::kAssigned, *partition, -1);
    partitions_[name] = std::move(partition);
  });
}

void Worker::revoke(std::vector<TopicPartition> partitions, bool lost, std::function<void()> done) {
  const bool posted = post([this, partitions = std::move(partitions), lost, done] {
    for (const auto& name : partitions)
      drop(name, !lost);
    done();
  });
  if (!posted)
    done();
}

void Worker::stop() {
  stop_asked_ = true;
  post([this] { stopping_ = true; });
}

void Worker::recheck(const std::string& topic) {
  post([this, topic] {
    for (auto& [name, partition] : partitions_) {
      // Positioning too: the topic may have gone between its acquire and now.
      if (name.topic == topic && (partition->phase == Partition::Phase::kRunning ||
                                  partition->phase == Partition::Phase::kPositioning)) {
        acquire_again(*partition, false);
      }
    }
  });
}

void Worker::reposition(const TopicPartition& partition) {
  post([this, partition] {
    const auto found = partitions_.find(partition);
    if (found == partitions_.end() || found->second->phase != Partition::Phase::kRunning)
      return;
    found->second->clear_buffer();
    found->second->phase = Partition::Phase::kPositioning;
  });
}

void Worker::interrupt() {
  const std::scoped_lock lock(session_mutex_);
  if (session_)
    session_->interrupt();
  if (setting_up_ != nullptr)
    setting_up_->interrupt();
}

WorkerCall Worker::current_call() const {
  const std::scoped_lock lock(call_mutex_);
  return call_;
}

void Worker::begin_call(const Partition& partition, milliseconds limit) {
  begin_call(partition.name(), partition.previous_owner, limit);
}

void Worker::begin_call(const TopicPartition& partition,
                        std::optional<postgres::Backend> previous_owner, milliseconds limit) {
  const std::scoped_lock lock(call_mutex_);
  call_.active = true;
  call_.since = Clock::now();
  call_.limit = limit;
  call_.own = session_ ? session_->backend() : std::nullopt;
  call_.previous_owner = std::move(previous_owner);
  call_.partition = partition;
}

void Worker::end_call() {
  const std::scoped_lock lock(call_mutex_);
  call_.active = false;
}

bool Worker::serve_mailbox() {
  std::deque<std::function<void()>> commands;
  {
    const std::scoped_lock lock(mailbox_mutex_);
    commands.swap(mailbox_);
    woken_ = false;
  }
  for (const auto& command : commands)
    command();
  return !commands.empty();
}

void Worker::run() {
  while (true) {
    serve_mailbox();
    if (stopping_)
      break;
    // A lost connection is made again even when nothing needs it any more: else nobody in this
    // process might find out that PostgreSQL is back.
    const bool needs_session = !partitions_.empty() || session_was_lost_;
    if (!needs_session || !ensure_session()) {
      wait_for_work(needs_session ? connect_not_before_ : Clock::now() + std::chrono::hours(1));
      continue;
    }
    poll_register();
    if (session_)
      tell_presence();
    if (session_)
      make_durable();
    if (session_)
      prepare_acquires();
    bool worked = false;
    for (auto& [name, partition] : partitions_) {
      if (!session_)
        break;
      worked = step(*partition) || worked;
      // A revocation must not wait for the other partitions' turns.
      const std::scoped_lock lock(mailbox_mutex_);
      if (!mailbox_.empty())
        break;
    }
    if (!worked)
      wait_for_work(next_deadline());
  }
  while (!partitions_.empty())
    drop(TopicPartition(partitions_.begin()->first), true);
  leave_presence();
  {
    const std::scoped_lock lock(session_mutex_);
    session_.reset();
  }
  // A revocation posted meanwhile must not wait for us.
  close_mailbox();
  finished_ = true;
}

/// A session on which everything is in place; null: on another database than ours. Throws whatever
/// goes wrong, also what the application's code does.
std::unique_ptr<postgres::Session> Worker::connect() {
  auto settings = session_settings(context_.options);
  if (context_.options.consumer.durability == Durability::kReplayable)
    settings.synchronous_commit = "off";
  // None of a worker's own statements waits for anything but a lock; a handler's are on top.
  settings.answer_timeout = settings.lock_timeout + postgres::kAnswerMargin;
  settings.unwanted = &stop_asked_;
  auto fresh = std::make_unique<postgres::Session>(settings);
  if (fresh->connected_read_only())
    throw postgres::Error::connection_lost(kReadOnlyServer);
  if (!ledger::still_registered(*fresh, context_.options.postgres.schema,
                                context_.options.kafka.cluster, context_.options.kafka.group,
                                context_.registration))
    return nullptr;
  fresh->established();
  const auto publish = [this](postgres::Session* session) {
    const std::scoped_lock lock(session_mutex_);
    setting_up_ = session;
  };
  // The application's code waits as it likes: the monitor watches it as it does a handler.
  publish(fresh.get());
  begin_call({}, std::nullopt, context_.longest_handler);
  try {
    for (const auto& on_connect : context_.registry.connect_functions())
      on_connect(fresh->connection());
  } catch (...) {
    publish(nullptr);
    end_call();
    throw;
  }
  publish(nullptr);
  end_call();
  return fresh;
}

bool Worker::ensure_session() {
  if (session_ && session_->alive())
    return true;
  if (session_)
    lose_session("the connection was found broken");
  if (Clock::now() < connect_not_before_)
    return false;
  try {
    auto fresh = connect();
    if (!fresh) {
      refuse_database();
      return false;
    }
    // Whatever was read over the old connection may be newer than what this server has.
    processor_.forget();
    positions_.forget();
    {
      const std::scoped_lock lock(session_mutex_);
      session_ = std::move(fresh);
    }
    connect_backoff_.reset();
    session_was_lost_ = false;
    database_refused_ = false;
    context_.database_reachable.answered();
    Event event{Step::kConnected};
    event.detail = session_->behind_pooler() && !session_->pooled()
                       ? "through a pooler; set postgres.pooled = true unless it pools sessions"
                       : "";
    context_.observers.emit(event);
    return true;
  } catch (...) {  // code's may be anything
    connect_not_before_ = Clock::now() + connect_backoff_.next();
    const auto text =
        fmt::format("cannot use PostgreSQL: {}", explain(std::current_exception(), true).text);
    context_.database_reachable.failed(text);
    if (!session_was_lost_) {
      Event event{Step::kDisconnected};
      event.detail = text;
      context_.observers.emit(event);
    }
    session_was_lost_ = true;
    return false;
  }
}

void Worker::refuse_database() {
  connect_not_before_ = Clock::now() + connect_backoff_.next();
  context_.database_reachable.failed("another database answers in its place");
  if (std::exchange(database_refused_, true))
    return;
  session_was_lost_ = true;
  Event event{Step::kDisconnected};
  const auto text = fmt::format(
      "this is not database {} in which this process began, or it has given consumer {}/{} another "
      "number: nothing is read or written in it. Bring the right database back, or restart this "
      "program to work with this one",
      context_.registration.database_id, context_.options.kafka.cluster,
      context_.options.kafka.group);
  event.detail = text;
  context_.observers.emit(event);
}

/// Its server process may outlive it, with a transaction whose locks are in our way then.
void Worker::discard_session() {
  if (session_ && session_->backend())
    context_.previous_owners.abandoned(*session_->backend());
  const std::scoped_lock lock(session_mutex_);
  session_.reset();
}

/// Leaves the session of our own accord; the next one is made at once.
void Worker::renew_session() {
  discard_session();
  for (auto& [name, partition] : partitions_)
    acquire_again(*partition, false);
}

void Worker::lose_session(const std::string& why) {
  discard_session();
  session_was_lost_ = true;
  connect_not_before_ = Clock::now() + connect_backoff_.next();
  for (auto& [name, partition] : partitions_)
    acquire_again(*partition, partition->epoch.has_value());
  context_.database_reachable.failed(why);
  Event event{Step::kDisconnected};
  event.detail = why;
  context_.observers.emit(event);
}

/// In a catch block. Whether it is the server that lets nothing be written is asked of the server.
Failure Worker::why_failed() {
  auto failure = explain(std::current_exception(), session_->alive());
  if (failure.kind != postgres::FailureClass::kReadOnly)
    return failure;
  try {
    if (session_->server_is_read_only()) {
      failure.kind = postgres::FailureClass::kConnection;
      failure.text = fmt::format("{}: {}", kReadOnlyServer, failure.text);
    } else {
      failure.kind = postgres::FailureClass::kMessage;
    }
  } catch (const postgres::Error& error) {
    failure.kind = postgres::FailureClass::kConnection;
    failure.text = error.what();
  }
  return failure;
}

void Worker::poll_register() {
  if (Clock::now() < next_poll_)
    return;
  next_poll_ = Clock::now() + context_.options.postgres.poll_interval;
  try {
    const auto held = context_.offsets.owned_by(*session_, context_.owner);
    if (session_->is_read_only()) {
      lose_session(kReadOnlyServer);
      return;
    }
    context_.database_reachable.answered();
    for (auto& [name, partition] : partitions_) {
      if (!partition->held_here())
        continue;
      const auto row = held.find(name);
      if (row == held.end() || row->second.epoch != *partition->epoch) {
        emit(Step::kFenced, *partition, partition->stored, "the register has another epoch");
        processor_.forget();
        acquire_again(*partition, true);
      } else if (row->second.stored_offset < partition->stored) {
        // Behind a pooler a database that lost commits may come back without the connection's
        // breaking.
        emit(
            Step::kWarning, *partition, partition->stored,
            fmt::format("the register went back to offset {}: commits were lost, as by a failover; "
                        "their messages are processed again",
                        row->second.stored_offset));
        processor_.forget();
        acquire_again(*partition, false);
      }
    }
  } catch (const std::exception&) {
    notice_lost_session("the register cannot be looked at, so operators' changes wait");
  }
}

void Worker::tell_presence() {
  try {
    context_.presence->tell(*session_);
  } catch (const std::exception&) {
    notice_lost_session(
        "processes of this group that handle a topic in other ways are not noticed");
  }
}

void Worker::leave_presence() {
  if (!session_ || !session_->alive())
    return;
  try {
    context_.presence->leave(*session_);
  } catch (const std::exception&) {
    notice_lost_session("the end of this process cannot be told; others find it out within 20 s");
  }
}

/// In a catch block of what is tried again by itself. `what` did not work, for the warning.
void Worker::notice_lost_session(std::string_view what) {
  const auto failure = why_failed();
  if (failure.kind == postgres::FailureClass::kConnection) {
    lose_session(failure.text);
    return;
  }
  Event event{Step::kWarning};
  const auto text =
      fmt::format("{}: {}{}; tried again", what, failure.text, sqlstate_text(failure));
  event.detail = text;
  context_.observers.emit(event);
}

/// A commit that waited for the disk has followed these positions over the same connection.
void Worker::note_durable(std::map<TopicPartition, std::int64_t> reached) {
  if (session_->pooled()) {
    // The server behind the pooler may be another one by now, that has lost what the first had.
    const auto rows = context_.offsets.owned_by(*session_, context_.owner);
    std::erase_if(reached, [&rows](const auto& mine) {
      const auto row = rows.find(mine.first);
      return row == rows.end() || row->second.stored_offset + 1 != mine.second;
    });
  }
  for (const auto& [partition, position] : reached)
    partitions_.at(partition)->status->durable = position;
}

/// With Durability::kReplayable: puts on disk what was committed, from time to time.
void Worker::make_durable() {
  const auto& consumer = context_.options.consumer;
  if (consumer.durability != Durability::kReplayable || Clock::now() < next_durable_)
    return;
  next_durable_ = Clock::now() + consumer.durability_interval;
  std::map<TopicPartition, std::int64_t> reached;
  for (const auto& [name, partition] : partitions_) {
    if (partition->held_here() && partition->status->position > partition->status->durable)
      reached.emplace(name, partition->status->position);
  }
  if (reached.empty())
    return;
  try {
    // One of them stands for all: what this session committed before is on disk with it.
    const auto& name = reached.begin()->first;
    auto& partition = *partitions_.at(name);
    if (!context_.offsets.commit_durably(*session_, name, *partition.epoch)) {
      emit(Step::kFenced, partition, partition.stored, "the register has another epoch");
      processor_.forget();
      acquire_again(partition, true);
      return;
    }
    note_durable(std::move(reached));
  } catch (const std::exception&) {
    notice_lost_session("commits cannot be put on disk, so Kafka is not told of them");
  }
}

Worker::Clock::time_point Worker::next_deadline() const {
  auto deadline = next_poll_;
  if (context_.options.consumer.durability == Durability::kReplayable)
    deadline = std::min(deadline, std::max(next_durable_, Clock::now()));
  for (const auto& [name, partition] : partitions_) {
    if (partition->phase == Partition::Phase::kStopped)
      continue;
    const bool waits = partition->phase != Partition::Phase::kRunning || !partition->buffer.empty();
    if (waits)
      deadline = std::min(deadline, partition->due());
  }
  return deadline;
}

void Worker::wait_for_work(Clock::time_point until) {
  std::unique_lock lock(mailbox_mutex_);
  mailbox_changed_.wait_until(lock, until, [this] { return woken_ || !mailbox_.empty(); });
}

void Worker::release(Partition& partition) {
  if (!partition.epoch || !session_ || !session_->alive())
    return;
  // Not a clean hand-over while messages are on probation: the next owner goes on with that.
  if (partition.on_probation > 0)
    return;
  try {
    if (context_.offsets.release(*session_, partition.name(), *partition.epoch)) {
      if (partition.held_here() && context_.options.consumer.durability == Durability::kReplayable)
        note_durable({{partition.name(), partition.status->position}});
      emit(Step::kReleased, partition, partition.stored);
    }
  } catch (const std::exception&) {
    // The next acquire fences us all the same.
    notice_lost_session("the hand-over cannot be marked clean");
  }
}

void Worker::drop(const TopicPartition& name, bool release_it) {
  const auto found = partitions_.find(name);
  if (found == partitions_.end())
    return;
  auto& partition = *found->second;
  partition.clear_buffer();
  has_room(partition);
  emit(Step::kRevoked, partition, partition.stored);
  if (release_it)
    release(partition);
  context_.board.remove(partition.status);
  partitions_.erase(found);
}

}  // namespace pawl::engine
