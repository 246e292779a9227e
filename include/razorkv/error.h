// Errors that a user, a file or the machine can cause. Messages say what was expected, what was found and what to do.
#pragma once

#include <stdexcept>
#include <string>

namespace razorkv {

/// Base of everything that the library throws on purpose.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// A file that is missing, unreadable, cut short, corrupt, or not what it should be.
class FileError : public Error {
  using Error::Error;
};
/// A model that is well-formed but that this engine cannot run.
class UnsupportedModel : public Error {
  using Error::Error;
};
/// An argument or option outside its range.
class InvalidArgument : public Error {
  using Error::Error;
};
/// The context length is used up.
class ContextFull : public Error {
  using Error::Error;
};
/// The KV byte budget (--kv-budget-mb) does not allow another page.
class OutOfBudget : public Error {
  using Error::Error;
};
/// The system gave no memory.
class OutOfMemory : public Error {
  using Error::Error;
};
/// The caller asked to stop; the session is as it was before the call that was stopped.
class Cancelled : public Error {
  using Error::Error;
};

}  // namespace razorkv
