#include "engine/mailbox.hpp"

#include <utility>

namespace pawl::engine {

bool Mailbox::post(Command command) {
  {
    const std::scoped_lock lock(mutex_);
    if (closed_)
      return false;
    commands_.push_back(std::move(command));
  }
  changed_.notify_one();
  return true;
}

bool Mailbox::post_note(Command note) {
  {
    const std::scoped_lock lock(mutex_);
    if (closed_)
      return false;
    notes_.push_back(std::move(note));
  }
  changed_.notify_one();
  return true;
}

void Mailbox::wake() {
  {
    const std::scoped_lock lock(mutex_);
    woken_ = true;
  }
  changed_.notify_one();
}

bool Mailbox::has_mail() const {
  const std::scoped_lock lock(mutex_);
  return !commands_.empty();
}

bool Mailbox::serve_notes() {
  std::deque<Command> notes;
  {
    const std::scoped_lock lock(mutex_);
    notes.swap(notes_);
  }
  for (const auto& note : notes)
    note();
  return !notes.empty();
}

void Mailbox::serve() {
  serve_notes();
  std::deque<Command> commands;
  {
    const std::scoped_lock lock(mutex_);
    commands.swap(commands_);
    woken_ = false;
  }
  for (const auto& command : commands)
    command();
}

void Mailbox::close() {
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
  }
  serve();
}

void Mailbox::wait(Clock::time_point until) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, until,
                      [this] { return woken_ || !commands_.empty() || !notes_.empty(); });
}

}  // namespace pawl::engine
