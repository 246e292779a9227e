// Running code that recurses deeply (std::regex inside libllama's tokenizers) on a stack of a chosen size.
#pragma once

#include <cstddef>
#include <functional>

namespace razorkv {

/// Runs `work` on a new thread with `stack_bytes` of stack and waits for it. The stack is address space; memory is used
/// only as deep as the recursion goes, and is returned afterwards. Exceptions of `work` are thrown here.
/// Throws OutOfMemory when the system refuses the thread or its stack.
void run_on_large_stack(std::size_t stack_bytes, const std::function<void()>& work);

}  // namespace razorkv
