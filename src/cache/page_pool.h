// Fixed-size pages of K and V rows, reference-counted, within a byte budget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace razorkv {

class PagePool;

/// Counted handle of one page. A page goes back to its pool with its last handle. The pool outlives its pages.
/// Handles of one page may be copied and dropped on different threads.
class PageRef {
 public:
  PageRef() = default;
  PageRef(const PageRef& other) noexcept;
  PageRef(PageRef&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}
  PageRef& operator=(PageRef other) noexcept {
    std::swap(page_, other.page_);
    return *this;
  }
  ~PageRef();

  std::byte* data() const noexcept;  ///< 64-byte aligned, page_bytes() long
  bool shared() const noexcept;      ///< more than one handle
  explicit operator bool() const noexcept { return page_ != nullptr; }

  struct Page;

 private:
  friend class PagePool;
  explicit PageRef(Page* page) noexcept : page_(page) {}
  Page* page_ = nullptr;
};

struct PoolStats {
  std::size_t live_bytes = 0;      ///< pages held by handles
  std::size_t peak_bytes = 0;      ///< most that was ever live
  std::size_t reserved_bytes = 0;  ///< mapped and resident: live pages and the few free ones kept for reuse
  std::size_t budget_bytes = 0;    ///< 0 = no limit
};

/// Memory comes from the system in slabs; free pages beyond a small reserve are given back to it.
class PagePool {
 public:
  /// `page_bytes` is rounded up to a multiple of 64.
  PagePool(std::size_t page_bytes, std::size_t budget_bytes);
  ~PagePool();
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  std::size_t page_bytes() const noexcept;
  /// An unshared page with unspecified content. Throws OutOfBudget, or OutOfMemory when the system has none.
  PageRef allocate();
  PoolStats stats() const noexcept;
  /// Gives every free page back to the system.
  void trim() noexcept;
  /// For tests: fills every page that allocate() returns with NaN (in f32 and f16), so that an unwritten row shows.
  void poison_new_pages(bool on) noexcept;

 private:
  friend class PageRef;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace razorkv
