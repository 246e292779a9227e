#include "cache/page_pool.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "razorkv/error.h"

namespace razorkv {
namespace {

constexpr std::size_t kSystemPage = 4096;
constexpr std::size_t kSlabBytes = std::size_t{1} << 20U;
constexpr std::size_t kReserveBytes = std::size_t{1} << 20U;  // free but resident: what a few decode steps toggle

std::size_t round_up(std::size_t value, std::size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

struct Slab;

}  // namespace

struct PageRef::Page {
  std::atomic<std::uint32_t> references{0};
  PagePool::Impl* pool = nullptr;
  Slab* slab = nullptr;
  std::byte* data = nullptr;
  Page* next = nullptr;  // in a free list
};

namespace {

using Page = PageRef::Page;

struct Slab {
  std::byte* data;
  std::size_t bytes;
  std::vector<Page> pages;
  std::size_t live = 0;
};

// Intrusive, so that giving a page back cannot fail.
class FreeList {
 public:
  void push(Page* page) noexcept {
    page->next = head_;
    head_ = page;
    ++size_;
  }
  Page* pop() noexcept {
    Page* page = head_;
    head_ = page->next;
    --size_;
    return page;
  }
  void remove(const Slab* slab) noexcept {
    for (Page** link = &head_; *link != nullptr;) {
      if ((*link)->slab == slab) {
        *link = (*link)->next;
        --size_;
      } else {
        link = &(*link)->next;
      }
    }
  }
  std::size_t size() const noexcept { return size_; }

 private:
  Page* head_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace

struct PagePool::Impl {
  Impl(std::size_t bytes, std::size_t budget_bytes)
      : page_bytes(round_up(std::max<std::size_t>(bytes, 1), 64)),
        budget(budget_bytes),
        pages_return_alone(page_bytes % kSystemPage == 0),
        reserve_pages(std::max<std::size_t>(1, kReserveBytes / page_bytes)) {}

  ~Impl() {
    for (const auto& slab : slabs) munmap(slab->data, slab->bytes);
  }

  void add_slab() {
    const std::size_t count = std::max<std::size_t>(1, kSlabBytes / page_bytes);
    const std::size_t bytes = round_up(count * page_bytes, kSystemPage);
    auto slab = std::make_unique<Slab>(Slab{nullptr, bytes, std::vector<Page>(count)});
    slabs.reserve(slabs.size() + 1);
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
    // A huge page would make free pages resident again and keep returned ones.
    madvise(data, bytes, MADV_NOHUGEPAGE);
    slab->data = static_cast<std::byte*>(data);
    for (std::size_t i = count; i-- > 0;) {
      Page& page = slab->pages[i];
      page.pool = this;
      page.slab = slab.get();
      page.data = slab->data + i * page_bytes;
      absent.push(&page);
    }
    slabs.push_back(std::move(slab));
  }

  Page* allocate() {
    const std::lock_guard lock(mutex);
    if (budget != 0 && live + page_bytes > budget) {
      throw OutOfBudget(fmt::format(
          "the KV cache may use {} bytes and holds {}: no room for another page of {} bytes; raise --kv-budget-mb, or "
          "use a shorter context or a stronger compression",
          budget, live, page_bytes));
    }
    if (resident.size() == 0 && absent.size() == 0) try {
        add_slab();
      } catch (const std::bad_alloc&) {
        throw OutOfMemory(fmt::format(
            "the system gave no memory for another {} bytes of KV cache, which holds {}; free memory or use a smaller "
            "context",
            kSlabBytes, live));
      }
    Page* page = resident.size() > 0 ? resident.pop() : absent.pop();
    ++page->slab->live;
    live += page_bytes;
    peak = std::max(peak, live);
    page->references.store(1, std::memory_order_relaxed);
    return page;
  }

  void release(Page* page) noexcept {
    const std::lock_guard lock(mutex);
    live -= page_bytes;
    Slab* slab = page->slab;
    --slab->live;
    if (pages_return_alone && resident.size() >= reserve_pages) {
      give_back(page);
      return;
    }
    resident.push(page);
    if (!pages_return_alone && slab->live == 0 && resident.size() > reserve_pages + slab->pages.size()) unmap(slab);
  }

  void trim() noexcept {
    const std::lock_guard lock(mutex);
    if (pages_return_alone) {
      while (resident.size() > 0) give_back(resident.pop());
    }
    for (std::size_t i = slabs.size(); i-- > 0;) {
      if (slabs[i]->live == 0) unmap(slabs[i].get());
    }
  }

  PoolStats stats() const noexcept {
    const std::lock_guard lock(mutex);
    return {live, peak, live + resident.size() * page_bytes, budget};
  }

  void give_back(Page* page) noexcept {
    madvise(page->data, page_bytes, MADV_DONTNEED);
    absent.push(page);
  }

  void unmap(Slab* slab) noexcept {
    resident.remove(slab);
    absent.remove(slab);
    munmap(slab->data, slab->bytes);
    std::erase_if(slabs, [slab](const auto& owned) { return owned.get() == slab; });
  }

  const std::size_t page_bytes;
  const std::size_t budget;
  const bool pages_return_alone;  // else memory returns by whole slabs
  const std::size_t reserve_pages;
  mutable std::mutex mutex;
  std::vector<std::unique_ptr<Slab>> slabs;
  FreeList resident;
  FreeList absent;  // never touched, or given back
  std::size_t live = 0;
  std::size_t peak = 0;
  std::atomic<bool> poison{false};
};

PageRef::PageRef(const PageRef& other) noexcept : page_(other.page_) {
  if (page_ != nullptr) page_->references.fetch_add(1, std::memory_order_relaxed);
}

PageRef::~PageRef() {
  if (page_ != nullptr && page_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) page_->pool->release(page_);
}

std::byte* PageRef::data() const noexcept { return page_->data; }

bool PageRef::shared() const noexcept { return page_->references.load(std::memory_order_acquire) > 1; }

PagePool::PagePool(std::size_t page_bytes, std::size_t budget_bytes)
    : impl_(std::make_unique<Impl>(page_bytes, budget_bytes)) {}

PagePool::~PagePool() = default;

std::size_t PagePool::page_bytes() const noexcept { return impl_->page_bytes; }

PageRef PagePool::allocate() {
  PageRef page(impl_->allocate());
  if (impl_->poison.load(std::memory_order_relaxed)) std::memset(page.data(), 0xFF, impl_->page_bytes);
  return page;
}

PoolStats PagePool::stats() const noexcept { return impl_->stats(); }

void PagePool::trim() noexcept { impl_->trim(); }

void PagePool::poison_new_pages(bool on) noexcept { impl_->poison.store(on, std::memory_order_relaxed); }

}  // namespace razorkv
